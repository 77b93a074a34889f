"""The first rows of each key: ROW_NUMBER() OVER (PARTITION BY k ORDER BY x) AS r … WHERE r <= n.

The SELECT inside becomes one with ORDER BY k, x LIMIT n, and remembers how many of the items of its
ORDER BY are keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp

from eventide.errors import BindError
from eventide.lang.sql.names.scope import sources_of
from eventide.lang.sql.spans import span_of

KEYS = "first_rows_keys"
"""The key under which a SELECT remembers how many items of its ORDER BY are keys."""
_AROUND = ("order", "limit", "offset", "distinct")


@dataclass(frozen=True, slots=True)
class _Numbered:
    """The item of a SELECT that numbers its rows."""

    name: str
    item: exp.Expr
    window: exp.Window


def read_first_rows(select: exp.Select) -> None:
    """Rewrite a SELECT, in place, that keeps the first rows of each key of the one in its FROM."""
    tables = list(sources_of(select))
    inner = tables[0].this if len(tables) == 1 and isinstance(tables[0], exp.Subquery) else None
    found = list(_numbered(inner)) if isinstance(inner, exp.Select) else []
    if len(found) != 1 or not isinstance(inner, exp.Select):
        return
    (numbered,) = found
    count, bound = _bound(select, numbered)
    _refuse_number(select, numbered, bound)
    extras = [word for word in _AROUND if inner.args.get(word)]
    order = numbered.window.args.get("order")
    if extras or order is None or numbered.window.args.get("spec"):
        what = f"{extras[0].upper()} beside ROW_NUMBER" if extras else "ROW_NUMBER without ORDER BY"
        _refuse(
            what, numbered.item, "write ROW_NUMBER() OVER (PARTITION BY car ORDER BY speed DESC)"
        )
    keys = numbered.window.args.get("partition_by") or []
    inner.set("expressions", [each for each in inner.expressions if each is not numbered.item])
    items = [*(exp.Ordered(this=key) for key in keys), *order.expressions]
    inner.set("order", exp.Order(expressions=items))
    inner.set("limit", exp.Limit(expression=exp.Literal.number(count)))
    inner.meta[KEYS] = len(keys)
    _drop(select, bound)


def _numbered(select: exp.Select) -> Iterator[_Numbered]:
    for item in select.expressions:
        window = item.unalias()
        if isinstance(window, exp.Window) and isinstance(window.this, exp.RowNumber):
            yield _Numbered(item.alias.lower(), item, window)


def _bound(select: exp.Select, numbered: _Numbered) -> tuple[int, exp.Expr]:
    """Return how many rows WHERE keeps of each key, and the condition that says so."""
    for condition in _conditions(select):
        comparison = condition.unnest()
        number, limit = comparison.args.get("this"), comparison.args.get("expression")
        named = isinstance(number, exp.Column) and number.name.lower() == numbered.name
        if not (named and isinstance(limit, exp.Literal) and limit.is_int):
            continue
        count = int(limit.name) - isinstance(comparison, exp.LT)
        first = isinstance(comparison, exp.EQ) and count == 1
        if count > 0 and (first or isinstance(comparison, exp.LT | exp.LTE)):
            return count, condition
    name = numbered.name or "place"
    what = "ROW_NUMBER in a standing query without WHERE around it"
    return _refuse(what, numbered.item, f"call it {name}, and add WHERE {name} <= 10 around it")


def _conditions(select: exp.Select) -> list[exp.Expr]:
    where = select.args.get("where")
    if where is None:
        return []
    return (
        list(where.this.flatten(unnest=False)) if isinstance(where.this, exp.And) else [where.this]
    )


def _refuse(what: str, node: exp.Expr, hint: str) -> NoReturn:
    # Not as unsupported: no SQL around this query could do it.
    raise BindError(what, span=span_of(node), hint=hint)


def _refuse_number(select: exp.Select, numbered: _Numbered, bound: exp.Expr) -> None:
    """Refuse the number in the answer: it changes with every row that comes before it."""
    hint = "name the columns, without the number; they are in the answer while they are in front"
    for item in select.expressions:
        if item.find(exp.Star) and not item.find(exp.Count):
            _refuse("the number of a row in a standing query", item, hint)
    for column in select.find_all(exp.Column):
        outside = column.find_ancestor(exp.Select) is select
        if outside and column.name.lower() == numbered.name and column.parent is not bound.unnest():
            _refuse("the number of a row in a standing query", column, hint)


def _drop(select: exp.Select, condition: exp.Expr) -> None:
    """Remove a condition from WHERE."""
    parent = condition.parent
    if isinstance(parent, exp.Where):
        select.set("where", None)
        return
    assert isinstance(parent, exp.And)
    other = parent.expression if parent.this is condition else parent.this
    parent.replace(other.copy())
