"""WITH x AS (SELECT …) … FROM x MATCH_RECOGNIZE → FROM (SELECT …) AS x MATCH_RECOGNIZE."""

from __future__ import annotations

from sqlglot import exp

from eventide.lang.sql.match_clause import RowPattern
from eventide.lang.sql.names import identifier
from eventide.lang.sql.period_relations import sides_of_relations
from eventide.lang.sql.situation_clause import SituationTable


def inline_ctes(query: exp.Expr) -> None:
    """Put each CTE that a pattern or a join of periods reads in its place.

    Those that nobody else reads are dropped.
    """
    for node in list(query.find_all(RowPattern, SituationTable)):
        _inline(query, node.this)
    for side in sides_of_relations(query):
        _inline(query, side, through=True)


def _inline(query: exp.Expr, table: exp.Expr, *, through: bool = False) -> None:
    """Put the CTE that a table names in its place; with `through`, also the one that it reads."""
    if not (isinstance(table, exp.Table) and isinstance(table.this, exp.Identifier)):
        return
    cte = None if table.db else _visible(table, table.name)
    if cte is None:
        return
    from_ = cte.this.args.get("from_") if isinstance(cte.this, exp.Select) else None
    if through and from_ is not None and not cte.this.args.get("joins"):
        _inline(query, from_.this, through=True)
    alias = table.args.get("alias") or exp.TableAlias(this=identifier(table.name))
    table.replace(exp.Subquery(this=cte.this.copy(), alias=alias))
    _drop_unread(query, cte)


def _visible(node: exp.Expr, name: str) -> exp.CTE | None:
    """Return the plain CTE that a name means at a node: that of the innermost WITH."""
    child, parent = node, node.parent
    while parent is not None:
        with_ = parent if isinstance(parent, exp.With) else parent.args.get("with_")
        # Of its own WITH, a CTE sees those before it.
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
    if any(table.name.lower() == name for table in query.find_all(exp.Table)):
        return
    with_ = cte.parent
    assert isinstance(with_, exp.With)
    cte.pop()
    if not with_.expressions:
        with_.pop()
