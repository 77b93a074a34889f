"""FROM eventide.queries: a table that the database itself has, beside the streams."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from eventide.errors import BindError
from eventide.lang.sql.names.scope import refuse
from eventide.lang.sql.spans import span_of

SYSTEM = "eventide"
TABLES = ("eventide.queries",)


def with_system_tables(query: exp.Query, catalog: Collection[str]) -> exp.Query:
    """Replace `eventide.queries` by one name, which the catalog has; return the query.

    Where the catalog has no such name, tables of the database cannot be read.
    """
    found = [each for each in query.find_all(exp.Table) if each.db.lower() == SYSTEM]
    for table in found:
        name = f"{SYSTEM}.{table.name.lower()}"
        if name not in TABLES:
            message = f"no table {name!r}"
            raise BindError(message, span=span_of(table), hint=f"there is {', '.join(TABLES)}")
        if name not in catalog:
            hint = "ask it over all that is stored, with db.sql(…), as often as necessary"
            refuse(f"{name} is no stream: it cannot be read here", table, hint)
        if table.args.get("alias") is None:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name.lower())))
        one = exp.to_identifier(name, quoted=True)
        one.meta.update(table.this.meta)
        table.set("db", None)
        table.set("this", one)
    if found:
        for column in query.find_all(exp.Column):
            if column.db.lower() == SYSTEM:
                column.set("db", None)
    return query
