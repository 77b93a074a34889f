"""The conditions of a plan on single attributes, so that the store can skip what cannot meet them.

Only conditions right above the scan count, and only comparisons of an attribute with a constant of
its own type. They stay in the plan as well: no matter how much the store skips, the answer is the
same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eventide.plan.expressions import Call, Column, Expression, Literal, conjuncts
from eventide.plan.nodes import Filter, Scan
from eventide.plan.tree import Plan
from eventide.schema import SEQ, TS
from eventide.store.index.ranges import ValueRange

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def value_ranges(plan: Plan) -> dict[str, ValueRange]:
    """Return the range of each attribute outside of which no row can matter to a plan."""
    match plan:
        case Filter(source=Scan(), condition=condition):
            return dict(merged(conjuncts(condition)))
        case Scan():
            return {}
    sources = plan.children
    return value_ranges(sources[0]) if len(sources) == 1 else {}


def merged(conditions: Iterable[Expression]) -> Iterator[tuple[str, ValueRange]]:
    """Yield for each attribute the range that all conditions on it allow."""
    found: dict[str, ValueRange] = {}
    for condition in conditions:
        bound = bound_of(condition)
        if bound is not None:
            name, new = bound
            held = found.get(name, ValueRange())
            found[name] = held.intersect(new)
    yield from found.items()


def bound_of(condition: Expression) -> tuple[str, ValueRange] | None:
    """Return the attribute and the values on which a comparison with a constant holds, or None."""
    match condition:
        case Call(function=name, arguments=(Column() as column, Literal() as literal)):
            return range_of(name, column, literal)
        case Call(function=name, arguments=(Literal() as literal, Column() as column)):
            return range_of(MIRRORED.get(name, ""), column, literal)
    return None


def range_of(comparison: str, column: Column, literal: Literal) -> tuple[str, ValueRange] | None:
    """Return the values on the right side of a constant."""
    value = literal.value
    # A comparison with null is never true; the plan checks that itself.
    if value is None or column.type != literal.type or column.name in (TS, SEQ):
        return None
    match comparison:
        case ">=" | ">":
            return column.name, ValueRange(low=value, includes_low=comparison == ">=")
        case "<=" | "<":
            return column.name, ValueRange(high=value, includes_high=comparison == "<=")
        case "=":
            return column.name, ValueRange(value, value)
    return None
