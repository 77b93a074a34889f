"""WITH x AS (SELECT …) … FROM x MATCH_RECOGNIZE → FROM (SELECT …) AS x MATCH_RECOGNIZE."""

from __future__ import annotations

from sqlglot import exp

from eventide.lang.sql.match_clause import RowPattern
from eventide.lang.sql.names import identifier


def inline_ctes(query: exp.Expr) -> None:
    """Put each CTE that a row pattern reads in its place, and drop those nobody else reads."""
    for node in list(query.find_all(RowPattern)):
        table = node.this
        if not (isinstance(table, exp.Table) and isinstance(table.this, exp.Identifier)):
            continue
        cte = None if table.db else _visible(node, table.name)
        if cte is None:
            continue
        alias = table.args.get("alias") or exp.TableAlias(this=identifier(table.name))
        node.set("this", exp.Subquery(this=cte.this.copy(), alias=alias))
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
