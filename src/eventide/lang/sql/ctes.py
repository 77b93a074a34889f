"""WITH x AS (SELECT …) … FROM x MATCH_RECOGNIZE → FROM (SELECT …) AS x MATCH_RECOGNIZE."""

from __future__ import annotations

from sqlglot import exp

from eventide.lang.sql.cel.table import CelTable
from eventide.lang.sql.names.columns import identifier
from eventide.lang.sql.names.derived import times_named
from eventide.lang.sql.names.scope import NO_CTE, sources_of
from eventide.lang.sql.patterns.clause import RowPattern
from eventide.lang.sql.situations.clause import SituationTable
from eventide.lang.sql.situations.period_relations import sides_of_relations
from eventide.lang.sql.standing.clause import window_of_table
from eventide.lang.sql.windows.group_by import is_windowed
from eventide.lang.sql.xml.table import XPathTable


def inline_ctes(query: exp.Expr) -> None:
    """Replace each table that a pattern or a join of periods reads by the CTE that it names.

    The same goes for what a SELECT with TUMBLE or HOP reads, or one that names hidden times, and
    for a SELECT or UNION that a SELECT alone reads, if it reads nothing else. CTEs that nothing
    else reads are dropped.
    """
    for node in list(query.find_all(RowPattern, SituationTable)):
        inline_cte(query, node.this)
    while (table := _cte_read_by_cel(query)) is not None:
        inline_cte(query, table)
    for side in sides_of_relations(query):
        inline_cte(query, side, through=True)
    for select in list(query.find_all(exp.Select)):
        tables = list(sources_of(select))
        cte = visible_cte(tables[0]) if len(tables) == 1 else None
        if cte is None or window_of_table(tables[0]) is not None:
            continue
        alone = isinstance(cte.this, exp.Select | exp.Union) and _readings(query, cte) == 1
        if is_windowed(select) or alone or _reads_times(select, cte.this):
            inline_cte(query, tables[0], through=True)


def _cte_read_by_cel(query: exp.Expr) -> exp.Expr | None:
    """Return a CTE's name that CEL or a tree pattern reads; the CTE may have some of its own."""
    tables = (each for found in query.find_all(CelTable, XPathTable) for each in found.expressions)
    return next((table for table in tables if visible_cte(table) is not None), None)


def _reads_times(select: exp.Select, read: exp.Expr) -> bool:
    """Whether a SELECT names times of another's rows that the other does not show."""
    items = read.expressions if isinstance(read, exp.Select) else []
    if any(isinstance(item, exp.Star) or item.is_star for item in items):
        return False
    return bool(times_named(select) - {item.alias_or_name.lower() for item in items})


def _readings(query: exp.Expr, cte: exp.CTE) -> int:
    return sum(visible_cte(table) is cte for table in query.find_all(exp.Table))


def inline_cte(query: exp.Expr, table: exp.Expr, *, through: bool = False) -> None:
    """Replace a table by the CTE that it names; with `through`, also the one that the CTE reads."""
    cte = visible_cte(table)
    if cte is None:
        return
    from_ = cte.this.args.get("from_") if isinstance(cte.this, exp.Select) else None
    if through and from_ is not None and not cte.this.args.get("joins"):
        inline_cte(query, from_.this, through=True)
    alias = table.args.get("alias") or exp.TableAlias(this=identifier(table.name))
    # At its new place the CTE's own name may be visible; inside the CTE it meant something else.
    for inner in cte.this.find_all(exp.Table):
        if visible_cte(inner) is None:
            inner.meta[NO_CTE] = True
    subquery = exp.Subquery(this=cte.this.copy(), alias=alias, joins=table.args.get("joins"))
    subquery.set("stream_window", window_of_table(table))
    table.replace(subquery)
    _drop_unread(query, cte)


def visible_cte(table: exp.Expr) -> exp.CTE | None:
    """Return the plain CTE that a table names: that of the innermost WITH."""
    if not (isinstance(table, exp.Table) and isinstance(table.this, exp.Identifier)):
        return None
    if table.db or table.meta.get(NO_CTE):
        return None
    name = table.name
    child: exp.Expr = table
    parent = table.parent
    while parent is not None:
        with_ = parent if isinstance(parent, exp.With) else parent.args.get("with_")
        # A CTE sees those before it in its own WITH.
        if isinstance(with_, exp.With) and child is not with_:
            for cte in with_.expressions:
                if cte is child:
                    break
                if cte.alias.lower() == name.lower():
                    plain = not (with_.args.get("recursive") or cte.args["alias"].columns)
                    return cte if plain else None
        child, parent = parent, parent.parent
    return None


def _drop_unread(query: exp.Expr, cte: exp.CTE) -> None:
    name = cte.alias.lower()
    tables = (table for table in query.find_all(exp.Table) if not table.meta.get(NO_CTE))
    if any(table.name.lower() == name for table in tables):
        return
    with_ = cte.parent
    assert isinstance(with_, exp.With)
    cte.pop()
    if not with_.expressions:
        with_.pop()
