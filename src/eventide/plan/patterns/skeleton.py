"""The rows that every match of a pattern has: the pattern's skeleton.

Every match of `A (B | C) D* E{2,}` has a row of A, right after it one of B or C, and some rows
later two consecutive rows of E. A part that may be missing or repeated becomes a gap, which can
hold any rows. So the skeleton allows at least the matches that the pattern does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import assert_never

from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.patterns.tree import (
    Absent,
    Alternate,
    Concat,
    Exclude,
    PartitionEnd,
    PartitionStart,
    Pattern,
    Permute,
    Repeat,
    Variable,
    walk_pattern,
)

MOST_SYMBOLS = 64
"""If a part repeats more often, only its first and its last turn count."""

Item = frozenset[str] | None
"""A row of one of some variables, or None: a gap."""
GAP: Item = None


@dataclass(frozen=True, slots=True)
class Symbol:
    """A row that every match has: one of these variables."""

    variables: frozenset[str]
    follows: bool
    """Whether it comes right after the symbol before it, with no row in between."""


@dataclass(frozen=True, slots=True)
class Skeleton:
    """The symbols of a pattern in order; whether a match begins and ends with the outer ones."""

    symbols: tuple[Symbol, ...]
    begins: bool
    ends: bool


def skeleton_of(node: MatchRecognize) -> Skeleton:
    """Return the rows that every match of a node's pattern has.

    >>> from eventide.plan.expressions import ALWAYS, Named
    >>> from eventide.plan.nodes import Scan
    >>> pattern = Concat((Variable("A"), Repeat(Variable("B"), 1, None), Variable("C")))
    >>> node = MatchRecognize(Scan("cars", ()), (), (), pattern, (), ())
    >>> [(sorted(each.variables), each.follows) for each in skeleton_of(node).symbols]
    [(['A'], False), (['B'], True), (['C'], False)]
    """
    items = list(items_of(node.pattern))
    if node.strategy != "contiguous":
        items = [each for item in items for each in (item, GAP)][:-1]
    named = [place for place, item in enumerate(items) if item is not None]
    symbols = tuple(
        Symbol(variables, place > 0 and items[place - 1] is not None)
        for place, variables in enumerate(items)
        if variables is not None
    )
    # NOT reads rows outside of the match: up to the deadline, if it stands last.
    negates = any(isinstance(part, Absent) for part in walk_pattern(node.pattern))
    begins = bool(named) and named[0] == 0 and not negates
    ends = bool(named) and named[-1] == len(items) - 1 and not negates
    return Skeleton(symbols, begins, ends)


def items_of(pattern: Pattern) -> Iterator[Item]:
    """Yield the rows and gaps of a pattern in order, never two gaps side by side."""
    last: Item = frozenset()
    for item in parts_of(pattern):
        if item is not None or last is not None:
            yield item
        last = item


def parts_of(pattern: Pattern) -> Sequence[Item]:
    """Return the rows and gaps of a pattern in order."""
    match pattern:
        case Variable(name=name):
            return [frozenset((name,))]
        case Absent() | PartitionStart() | PartitionEnd():
            return []
        case Concat(parts=parts):
            return [item for part in parts for item in items_of(part)]
        case Exclude(part=part):
            return parts_of(part)
        case Alternate(options=options):
            return any_of([list(items_of(option)) for option in options])
        case Permute(parts=parts):
            return in_any_order([list(items_of(part)) for part in parts])
        case Repeat(part=part, at_least=at_least, at_most=at_most):
            return repeated(list(items_of(part)), at_least, at_most)
    assert_never(pattern)


def any_of(options: Sequence[Sequence[Item]]) -> Sequence[Item]:
    """Return what all options have in common: rows at the same places, if they are equally long."""
    if len({len(option) for option in options}) > 1 or any(GAP in option for option in options):
        return [GAP]
    return [union(rows) for rows in zip(*options, strict=True)]


def in_any_order(parts: Sequence[Sequence[Item]]) -> Sequence[Item]:
    """Return what all orders of some parts have in common: number of rows, and variables."""
    items = [item for part in parts for item in part]
    if GAP in items or len(items) > MOST_SYMBOLS:
        return [GAP]
    return [union(items)] * len(items)


def repeated(part: Sequence[Item], at_least: int, at_most: int | None) -> Sequence[Item]:
    """Return a part as often as it has to occur, and a gap where it may occur again."""
    if at_least == 0:
        return [] if at_most == 0 else [GAP]
    more = [] if at_least == at_most else [GAP]
    if at_least * len(part) > MOST_SYMBOLS:
        return [*part, GAP, *part, *more] if len(part) <= MOST_SYMBOLS // 2 else [GAP]
    return [*part] * at_least + more


def union(rows: Sequence[Item]) -> Item:
    """Return the variables of several rows together."""
    return reduce(frozenset.union, [each for each in rows if each is not None], frozenset[str]())
