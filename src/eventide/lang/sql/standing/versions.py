"""JOIN relation FOR SYSTEM_TIME AS OF t.ts in a query without windows: t has all its events.

Every row keeps what was valid when it came, so none ever changes:

    FROM t JOIN r FOR SYSTEM_TIME AS OF t.ts    FROM t [RANGE UNBOUNDED] JOIN r FOR SYSTEM_TIME …
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from eventide.errors import Span
from eventide.lang.sql.names.scope import sources_of
from eventide.lang.sql.spans import span_of
from eventide.lang.sql.standing.clause import WindowClause
from eventide.lang.sql.standing.find import is_standing
from eventide.plan.standing.windows import Unbounded
from eventide.schema import Schema


def give_windows(query: exp.Expr, catalog: Mapping[str, Schema]) -> None:
    """Put a window behind each stream that is joined with versions of relations, in place."""
    relations = {name.lower() for name, schema in catalog.items() if schema.key}
    for version in list(query.find_all(exp.Version)):
        select = version.find_ancestor(exp.Select)
        if select is None or is_standing(select):
            continue
        for source in sources_of(select):
            held = isinstance(source, exp.Table) and source.name.lower() in relations
            if not held and isinstance(source, exp.Table | exp.Subquery):
                clause = WindowClause(Unbounded(), span_of(source) or Span(0, 0))
                source.set("stream_window", clause)
