"""Take constants out of expressions: queries that differ only in them have one plan.

A constant becomes a column `$1`, `$2`, … with its value for each query. Only constants that are
compared or added to something are taken out: a pattern of `LIKE`, a part of a date or the size of a
window is more than a value to the operator that has it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from eventide.plan.expressions import (
    At,
    Call,
    Column,
    Expression,
    Literal,
    MatchAggregate,
    Named,
    rebuild,
)

_TAKES_VALUES = frozenset({"=", "<>", "<", "<=", ">", ">=", "in", "+", "-", "*"})
_VALUES = frozenset({"int64", "float64", "string", "timestamp", "decimal", "interval"})


@dataclass(slots=True)
class TakenConstants:
    """The constants that have been taken out of a plan, in order; `$1` is the first."""

    values: list[Literal] = field(default_factory=list)

    def name(self, literal: Literal) -> str:
        """Return the name of the column that a constant becomes."""
        self.values.append(literal)
        return f"${len(self.values)}"


def lifted(
    expression: Expression, constants: TakenConstants, suffix: str, *, over_rows: bool
) -> Expression:
    """Return an expression with columns instead of constants.

    `over_rows` is for a condition over several rows, in which a value of the current row is an
    `At`; names of columns end with `suffix`.
    """

    def place(value: Expression, *, within: bool) -> Expression:
        assert isinstance(value, Literal)
        column = Column(constants.name(value) + suffix, value.type)
        return At(column) if over_rows and not within else column

    def changed(each: Expression, *, within: bool) -> Expression:
        inside = within or isinstance(each, At | MatchAggregate)
        if isinstance(each, Call) and each.function in _TAKES_VALUES:
            return rebuild(
                each,
                lambda part: (
                    place(part, within=inside) if is_value(part) else changed(part, within=inside)
                ),
            )
        return rebuild(each, lambda part: changed(part, within=inside))

    return changed(expression, within=False)


def lifted_item(item: Named, constants: TakenConstants, suffix: str) -> Named:
    """Return a column of the output with a column instead of a constant, if it is just that."""
    if not is_value(item.expression):
        return item
    assert isinstance(item.expression, Literal)
    name = constants.name(item.expression) + suffix
    return Named(item.name, Column(name, item.expression.type))


def is_value(expression: Expression) -> bool:
    """Whether an expression is a constant that can be taken out."""
    return (
        isinstance(expression, Literal)
        and expression.value is not None
        and expression.type.kind in _VALUES
    )
