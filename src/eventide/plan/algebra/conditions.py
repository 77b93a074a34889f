"""The parts of a condition on two events that follow each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce

from eventide.errors import Span
from eventide.plan.algebra.nodes import Follows, Iterate, attributes
from eventide.plan.expressions import (
    ALWAYS,
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjuncts,
)
from eventide.schema import BOOL, INTERVAL, START_TS, TIMESTAMP, TS

LENGTH = Call("-", (Column(TS, TIMESTAMP), Column(START_TS, TIMESTAMP)), INTERVAL)
"""How long an event is: DUR."""
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


@dataclass
class ConditionParts:
    """What a condition asks of the left event, of the right one, of equal keys, of both."""

    left: list[Expression] = field(default_factory=list)
    right: list[Expression] = field(default_factory=list)
    keys: list[tuple[Expression, Expression]] = field(default_factory=list)
    both: list[Expression] = field(default_factory=list)
    within_us: int | None = None
    within_span: Span | None = None
    """Where `within_us` is in the text, if nothing else there bounds the length."""

    def bound(self, condition: Expression) -> None:
        """Take over the most that a condition lets an event last, if it says that."""
        most_us = longest_us(condition)
        if most_us is None:
            return
        self.within_span = None if self.within_us is not None else constant_span(condition)
        self.within_us = least(self.within_us, most_us)


def parts_of(node: Follows) -> ConditionParts:
    """Return the parts of a bound condition.

    What is asked of one event alone can be asked before: a right event on which it is not true is
    skipped by all, and a left one on which it is not true is never followed.
    """
    left, right = attributes(node.left.row).keys(), attributes(node.right.row).keys()
    found = ConditionParts(within_us=node.within_us)
    if isinstance(node, Iterate):
        # What is too long ends a chain; skipping it has the same results, for all later is longer.
        for part in conjuncts(node.proceed):
            found.bound(part)
    for part in conjuncts(node.condition):
        names = columns_of(part)
        most_us = longest_us(part)
        key = _equal(part, left, right, _followed(node))
        if part == ALWAYS:
            continue
        if names and names <= left:
            found.left.append(part)
        elif names and names <= right:
            found.right.append(part)
        elif key is not None:
            found.keys.append(key)
        elif most_us is not None:
            found.bound(part)
        else:
            found.both.append(part)
    return found


def together(parts: Sequence[Expression]) -> Expression:
    """Return the conjunction of conditions."""
    return reduce(_both, parts) if parts else ALWAYS


def _both(one: Expression, other: Expression) -> Expression:
    return Call("and", (one, other), BOOL)


def least(one: int | None, other: int | None) -> int | None:
    """Return the lesser of two bounds, either of which may be missing."""
    known = [each for each in (one, other) if each is not None]
    return min(known, default=None)


def longest_us(condition: Expression) -> int | None:
    """Return the most that a condition lets an event last, if that is all it says."""
    match condition:
        case Call(function=function, arguments=(Literal() as one, Call() as other)) if (
            function in _TURNED
        ):
            return longest_us(Call(_TURNED[function], (other, one), BOOL))
        case Call(function="<" | "<=" as function, arguments=(length, Literal(value=int(most)))):
            most -= function == "<"
            return most if length == LENGTH and most >= 0 else None
    return None


def constant_span(condition: Expression) -> Span | None:
    """Return where the constant of a comparison is in the text."""
    assert isinstance(condition, Call)
    return next((each.span for each in condition.arguments if isinstance(each, Literal)), None)


def _followed(node: Follows) -> dict[str, tuple[str, Expression]]:
    """Return, of carried values that repeat a right column, where they begin and what they repeat.

    If such a value has to be equal to that column, it is always that of the left event.
    """
    if not isinstance(node, Iterate):
        return {}
    return {
        each.name: (each.first, each.next)
        for each in node.carried
        if isinstance(each.next, Column) and each.next.name in node.right.row
    }


def _equal(
    part: Expression,
    left: Iterable[str],
    right: Iterable[str],
    followed: dict[str, tuple[str, Expression]],
) -> tuple[Expression, Expression] | None:
    """Return the left and the right key that a condition demands to be equal, if it is that."""
    match part:
        case Call(function="=", arguments=(one, other)):
            for mine, yours in ((one, other), (other, one)):
                if isinstance(mine, Column) and mine.name in followed:
                    first, repeated = followed[mine.name]
                    if yours == repeated:
                        return Column(first, mine.type, mine.span), yours
                names, others = columns_of(mine), columns_of(yours)
                if names and others and names <= {*left} and others <= {*right}:
                    return mine, yours
    return None
