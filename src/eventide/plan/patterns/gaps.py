"""Patterns with gaps between all their rows, for which rows that meet no condition do not matter.

A match of `A T* B`, where T has no condition, is a row of A and a later one of B, whatever lies
between them. Without rows that are neither, the same rows match: the order of those that are left
is the same, and of two gaps the longer one stays the longer one. If nobody asks for the rows in
gaps either, the answer is the same.
"""

from __future__ import annotations

from collections.abc import Collection

from eventide.plan.expressions import ALWAYS, At, Expression, MatchAggregate, walk
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.patterns.tree import Concat, Pattern, Repeat, Variable


def has_only_gaps(node: MatchRecognize) -> bool:
    """Whether the rows in which a match begins, ends and goes on have only gaps between them.

    Then the answer is the same without rows that are none of these.
    """
    parts = node.pattern.parts if isinstance(node.pattern, Concat) else (node.pattern,)
    rows, gaps = parts[::2], parts[1::2]
    if len(rows) == len(gaps) or not all(isinstance(each, Variable) for each in rows):
        return False
    free = {item.name for item in node.defines if item.expression == ALWAYS}
    if not all(is_gap(each, free) for each in gaps):
        return False
    named = {each.name for each in rows if isinstance(each, Variable)}
    if named & free or node.strategy != "contiguous" or node.output != "one row":
        return False
    if node.skip.variable is not None and node.skip.variable not in named:
        return False
    items = (*node.defines, *node.measures)
    return all(reads_only(item.expression, named) for item in items)


def is_gap(part: Pattern, free: Collection[str]) -> bool:
    """Whether a part is any number of rows without a condition."""
    match part:
        case Repeat(part=Variable(name=name), at_least=0, at_most=None):
            return name in free
    return False


def reads_only(expression: Expression, named: Collection[str]) -> bool:
    """Whether an expression reads a match only at rows of some variables.

    The first row of a match is of the first variable, its last row is the current one in a
    condition and of the last variable in a measure.
    """
    for part in walk(expression):
        match part:
            case At(variable=None, edge="first" | "last", offset=0, shift=0):
                continue
            case At(variable=str(name), shift=0) | MatchAggregate(variable=str(name)):
                if name not in named:
                    return False
            case At() | MatchAggregate():
                return False
    return True
