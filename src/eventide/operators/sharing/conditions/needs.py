"""What has to be true of an event before a condition can be: how the condition is found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from eventide.kernels.sharing.conditions.listing import HIGH_OPEN, INTERVAL, KEY, LOW_OPEN, TEXT_KEY
from eventide.kernels.sharing.conditions.programs import (
    AT_LEAST,
    AT_MOST,
    BETWEEN,
    EQUAL,
    LESS,
    MORE,
    ONE_OF,
    TEXT,
    TRUE,
)
from eventide.operators.sharing.conditions.formulas import Formula, Test

MOST_LISTINGS = 256
"""A condition that would be listed more often is not worth it."""
_KEY_SHARE, _TEXT_SHARE, _BETWEEN_SHARE, _RANGE_SHARE = 0.01, 0.02, 0.25, 0.5
_TRUTH_SHARE = 0.5


class Slotted(NamedTuple):
    """A test, and where its constants are among those of a condition."""

    test: Test
    slot: int


class SlottedTree(NamedTuple):
    """A formula with the slots of its tests."""

    every: bool
    parts: tuple[SlottedTree | Slotted, ...]


class Need(NamedTuple):
    """One way to find conditions: the fields of kernels/sharing/conditions/listing.py.

    `whole` says that nothing else is asked.
    """

    kind: int
    column: int
    slot: int
    width: int = 1
    other: int = -1
    open: int = 0
    whole: bool = False


class Requirement(NamedTuple):
    """Needs of which one has to be met, and a guess at the share of events that meets one."""

    needs: tuple[Need, ...]
    share: float


def slotted(formula: Formula, slot: int = 0) -> tuple[SlottedTree | Slotted, int]:
    """Return the formula with slots from one on, and the next free one."""
    if isinstance(formula, Test):
        return Slotted(formula, slot), slot + width(formula)
    parts = []
    for part in formula.parts:
        found, slot = slotted(part, slot)
        parts.append(found)
    return SlottedTree(formula.every, tuple(parts)), slot


def width(test: Test) -> int:
    """Return how many words the constants of a test take: a text test is one number."""
    return 1 if test.operation == TEXT else len(test.constants)


def equalities(tree: SlottedTree | Slotted) -> list[Slotted]:
    """Return the tests for equality that all have to pass."""
    parts: Sequence[SlottedTree | Slotted] = (tree,) if isinstance(tree, Slotted) else tree.parts
    if isinstance(tree, SlottedTree) and not tree.every:
        return []
    return [
        part
        for part in parts
        if isinstance(part, Slotted) and part.test.operation == EQUAL and part.test.mask == TRUE
    ]


def best_needs(tree: SlottedTree | Slotted) -> Requirement | None:
    """Return the best needs of a formula, or None if every event may make it true."""
    if isinstance(tree, Slotted):
        return _need_of_test(tree, whole=True)
    if tree.every:
        tests = sum(isinstance(part, Slotted) for part in tree.parts)
        plain = tests == len(tree.parts)
        found = [*_intervals(tree, tests if plain else -1)]
        for part in tree.parts:
            needs = (
                _need_of_test(part, whole=False) if isinstance(part, Slotted) else best_needs(part)
            )
            if needs is not None:
                whole = len(tree.parts) == 1
                found.append(needs if whole else _in_part(needs))
        return min(found, key=lambda each: each.share, default=None)
    several = [best_needs(part) for part in tree.parts]
    known = [each for each in several if each is not None]
    if len(known) < len(several) or not known:
        return None
    listed = tuple(need for each in known for need in each.needs)
    if sum(each.width for each in listed) > MOST_LISTINGS:
        return None
    return Requirement(listed, sum(each.share for each in known))


def _in_part(needs: Requirement) -> Requirement:
    """Return needs of a part: what else is asked is not known from them."""
    return Requirement(tuple(each._replace(whole=False) for each in needs.needs), needs.share)


def _need_of_test(part: Slotted, *, whole: bool) -> Requirement | None:
    test, slot = part
    if test.mask != TRUE:
        return None
    match test.operation:
        case operation if operation == EQUAL:
            share = _TRUTH_SHARE if isinstance(_value(test), bool) else _KEY_SHARE
            return Requirement((Need(KEY, test.column, slot, whole=whole),), share)
        case operation if operation == ONE_OF:
            count = len(test.constants)
            if count > MOST_LISTINGS:
                return None
            share = min(0.5, count * _KEY_SHARE)
            return Requirement((Need(KEY, test.column, slot, count, whole=whole),), share)
        case operation if operation == TEXT:
            return Requirement((Need(TEXT_KEY, test.column, slot, whole=whole),), _TEXT_SHARE)
        case operation if operation == BETWEEN:
            need = Need(INTERVAL, test.column, slot, other=slot + 1, whole=whole)
            return Requirement((need,), _BETWEEN_SHARE)
        case operation if operation in _ENDS and whole:
            low, high, end = _ENDS[operation]
            need = Need(
                INTERVAL,
                test.column,
                slot if low else -1,
                other=slot if high else -1,
                open=end,
                whole=True,
            )
            return Requirement((need,), _RANGE_SHARE)
    return None


_ENDS = {
    LESS: (False, True, HIGH_OPEN),
    AT_MOST: (False, True, 0),
    MORE: (True, False, LOW_OPEN),
    AT_LEAST: (True, False, 0),
}


def _value(test: Test) -> object:
    return getattr(test.constants[0], "value", None)


def _intervals(tree: SlottedTree, tests: int) -> list[Requirement]:
    """Return the interval of each column that is bounded: one lower end and one upper one."""
    ends: dict[int, dict[bool, Slotted]] = {}
    for part in tree.parts:
        if isinstance(part, Slotted) and part.test.mask == TRUE and part.test.operation in _ENDS:
            is_low, _, _ = _ENDS[part.test.operation]
            ends.setdefault(part.test.column, {}).setdefault(is_low, part)
    found = []
    for column, sides in ends.items():
        low, high = sides.get(True), sides.get(False)
        opened = sum(_ENDS[side.test.operation][2] for side in sides.values())
        need = Need(
            INTERVAL,
            column,
            -1 if low is None else low.slot,
            other=-1 if high is None else high.slot,
            open=opened,
            whole=len(sides) == tests,
        )
        both = low is not None and high is not None
        found.append(Requirement((need,), _BETWEEN_SHARE if both else _RANGE_SHARE))
    return found


def is_plain(formula: Formula) -> int:
    """Return the number of tests of a condition that asks for all of them, otherwise 0."""
    if isinstance(formula, Test):
        return 1
    plain = formula.every and all(isinstance(part, Test) for part in formula.parts)
    return len(formula.parts) if plain else 0
