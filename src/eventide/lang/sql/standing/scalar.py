"""A scalar subquery in WHERE of a standing query: a join with the one row of its aggregate.

`WHERE speed > (SELECT AVG(speed) FROM cars [RANGE 1 MINUTE])` compares each row with one value. If
the window is empty there is no value, and the comparison is true of no row: as it is with a join.
"""

from __future__ import annotations

from sqlglot import exp

from eventide.lang.sql.functions.aggregates import aggregate_name
from eventide.lang.sql.names.columns import fresh
from eventide.lang.sql.names.scope import refuse, sources_of
from eventide.lang.sql.spans import span_of

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)
_VALUE = "value"


def join_scalars(select: exp.Select) -> None:
    """Replace scalar subqueries in WHERE, in place, by columns of subqueries that are joined."""
    where = select.args.get("where")
    if where is None:
        return
    for node in list(where.find_all(exp.Subquery)):
        if isinstance(node.parent, exp.In | exp.Exists) or not isinstance(node.this, exp.Select):
            continue
        if node.find_ancestor(exp.Select) is select:
            _check(node, where)
            taken = [each.alias_or_name for each in sources_of(select)]
            alias = fresh("scalar", taken)
            column = exp.column(_VALUE, table=alias)
            span = span_of(node)
            if span is not None:
                column.this.meta.update(start=span.start, end=span.end - 1)
            inner = node.this.copy()
            (item,) = inner.expressions
            inner.set("expressions", [exp.alias_(item.unalias(), _VALUE)])
            node.replace(column)
            joined = exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(alias)))
            select.append("joins", exp.Join(this=joined))


def _check(node: exp.Subquery, where: exp.Expr) -> None:
    """Refuse a subquery that may have several rows, or that is not compared."""
    inner = node.this
    several = inner.args.get("group") or inner.args.get("limit") or len(inner.expressions) != 1
    if several or not any(aggregate_name(each) for each in inner.expressions[0].walk()):
        what = "a subquery that may have several values, or none"
        refuse(what, node, "take an aggregate without GROUP BY: (SELECT MAX(speed) FROM …)")
    above = node.parent
    while isinstance(above, exp.Paren | exp.Binary) and not isinstance(above, _COMPARISONS):
        if isinstance(above, exp.Connector):
            break
        above = above.parent
    outside = above.parent if isinstance(above, _COMPARISONS) else None
    while isinstance(outside, exp.And | exp.Paren):
        outside = outside.parent
    if outside is not where:
        what = "a subquery that is not part of a comparison joined by AND"
        refuse(what, node, "write x > (SELECT …) AND …, or join the subquery in FROM")
