"""Which stream a table in FROM names."""

from __future__ import annotations

from collections.abc import Mapping, Set

from sqlglot import exp

from eventide.errors import BindError
from eventide.lang.sql.ctes import NO_CTE
from eventide.lang.sql.names.scope import refuse
from eventide.lang.sql.spans import span_of, written
from eventide.plan.bind import suggestion
from eventide.schema import Schema

_READ = frozenset({"this", "alias", "joins"})
_VERSION_HINT = "put a window behind the stream beside it, as in orders [RANGE UNBOUNDED] AS o"


def stream_named(
    table: exp.Table, catalog: Mapping[str, Schema], ctes: Set[str], read: Set[str] = frozenset()
) -> str | None:
    """Return the stream a table names, None for a CTE; anything else is an error.

    `read` are the parts of a table, beside its name and alias, that the caller handles.
    """
    if not isinstance(table.this, exp.Identifier):
        what = f"{written(table)} is not a stream"
        refuse(what, table, "FROM takes streams, CTEs and subqueries")
    name = table.name
    if not table.db and name.lower() in ctes and not table.meta.get(NO_CTE):
        return None
    folded = {stream.lower(): stream for stream in catalog}
    known = name if name in catalog else folded.get(name.lower())
    if known is None or table.db:
        shown = f"{table.db}.{name}" if table.db else name
        message = f"no stream {shown!r}"
        hint = suggestion(name, [*catalog, *sorted(ctes)], "stream")
        raise BindError(message, span=span_of(table.this), hint=hint)
    _refuse_extras(table, _READ | read)
    return known


def _refuse_extras(table: exp.Table, read: Set[str]) -> None:
    """Refuse parts of a table that would be lost with it: samples, pivots, renamings."""
    extras = {key for key, value in table.args.items() if value} - read
    alias = table.args.get("alias")
    if "version" in extras:
        refuse("FOR SYSTEM_TIME in a query without windows", table, _VERSION_HINT)
    if extras:
        what = f"{min(extras).strip('_').upper()} on a stream"
        refuse(what, table, "leave it out, or use it on a subquery")
    if alias is not None and alias.columns:
        refuse("renaming a stream's columns in FROM", alias, "rename them in the SELECT list")
