"""Shapes: what conditions are without their constants, as programs and needs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from eventide.kernels.compiled import Int32s
from eventide.kernels.growing import longer
from eventide.kernels.sharing.conditions.listing import ListedNeeds
from eventide.kernels.sharing.conditions.programs import (
    ACCEPT,
    JUMP,
    REJECT,
    VALID,
    ConditionPrograms,
)
from eventide.operators.sharing.conditions.formulas import NEVER, Formula, Test
from eventide.operators.sharing.conditions.needs import (
    Need,
    Slotted,
    SlottedTree,
    best_needs,
    equalities,
    is_plain,
    slotted,
    width,
)
from eventide.schema import BOOL

EQUALITIES, NEEDS, SCAN, NOTHING = range(4)
"""How conditions of a shape are found; those of NOTHING are never true."""
_FIELDS = JUMP + 1
_ANY_OUTCOME, _NO_OUTCOME = 7, 0
_FIRST_LABEL = REJECT - 1
_NEED_FIELDS = 7


class ConditionShape(NamedTuple):
    """What Python has to know of a shape: its columns, and slots of tests that pass constants."""

    columns: frozenset[int]
    tests: tuple[tuple[int, int, int, int], ...]
    """Operation, column, first slot and number of slots of each test."""


class GrowingRows:
    """Rows of numbers that grow."""

    def __init__(self, fields: int = 0) -> None:
        shape = (16, fields) if fields else (16,)
        self.array: npt.NDArray[np.int32] = np.zeros(shape, np.int32)
        self.count = 0

    def extend(self, rows: object) -> None:
        """Add rows at the end."""
        added = np.asarray(rows, np.int32)
        end = self.count + len(added)
        self.array = longer(self.array, end)
        if len(added):
            self.array[self.count : end] = added
        self.count = end


class Shapes:
    """All shapes by number, as arrays."""

    def __init__(self) -> None:
        self.numbers: dict[object, int] = {}
        self.shapes: list[ConditionShape] = []
        self.starts, self.code = GrowingRows(), GrowingRows(_FIELDS)
        self.tests, self.sizes, self.access = GrowingRows(), GrowingRows(), GrowingRows()
        self.equal_starts, self.equal_counts = GrowingRows(), GrowingRows()
        self.equal_columns, self.equal_slots = GrowingRows(), GrowingRows()
        self.need_starts, self.need_counts = GrowingRows(), GrowingRows()
        self.needs = GrowingRows(_NEED_FIELDS)
        self.uses: npt.NDArray[np.int64] = np.zeros(16, np.int64)

    def number_of(self, formula: Formula) -> int:
        """Return the number of the shape of a formula."""
        key = _key(formula)
        number = self.numbers.get(key)
        if number is None:
            number = self._add(formula)
            self.numbers[key] = number
        return number

    @property
    def programs(self) -> ConditionPrograms:
        """What the kernel runs."""
        return ConditionPrograms(self.starts.array, self.code.array)

    @property
    def need_table(self) -> ListedNeeds:
        """What kernels list conditions by."""
        return ListedNeeds(self.need_starts.array, self.need_counts.array, self.needs.array)

    @property
    def nbytes(self) -> int:
        """How much memory the arrays take."""
        return sum(
            each.array.nbytes for each in vars(self).values() if isinstance(each, GrowingRows)
        )

    def _add(self, formula: Formula) -> int:
        number = len(self.shapes)
        tree, size = slotted(formula)
        tests = tuple(_tests(tree))
        columns = frozenset(test.column for test, _ in tests)
        described = tuple((t.operation, t.column, slot, width(t)) for t, slot in tests)
        self.shapes.append(ConditionShape(columns, described))
        self.starts.extend([self.code.count])
        self.code.extend(_program(tree, self.code.count))
        self.tests.extend([is_plain(formula)])
        self.sizes.extend([size])
        self.uses = longer(self.uses, number + 1)
        self._add_access(formula, tree)
        return number

    def _add_access(self, formula: Formula, tree: SlottedTree | Slotted) -> None:
        equal = equalities(tree)
        strong = any(_is_selective(test) for test, _ in equal)
        needs = None if strong else best_needs(tree)
        self.equal_starts.extend([self.equal_columns.count])
        self.equal_counts.extend([len(equal) if strong else 0])
        self.need_starts.extend([self.needs.count])
        self.need_counts.extend([len(needs.needs) if needs else 0])
        if strong:
            self.equal_columns.extend([test.column for test, _ in equal])
            self.equal_slots.extend([slot for _, slot in equal])
        if needs:
            self.needs.extend([_need_row(each) for each in needs.needs])
        access = EQUALITIES if strong else NEEDS if needs else SCAN
        self.access.extend([NOTHING if formula == NEVER else access])


def _is_selective(test: Test) -> bool:
    return getattr(test.constants[0], "type", None) != BOOL


def _need_row(need: Need) -> tuple[int, ...]:
    return tuple(map(int, need))


def _key(formula: Formula) -> object:
    if isinstance(formula, Test):
        selective = bool(formula.constants) and _is_selective(formula)
        return (*formula[:3], width(formula), selective)
    return formula.every, tuple(map(_key, formula.parts))


def _tests(tree: SlottedTree | Slotted) -> list[Slotted]:
    if isinstance(tree, Slotted):
        return [tree]
    return [test for part in tree.parts for test in _tests(part)]


def _program(tree: SlottedTree | Slotted, origin: int) -> Int32s:
    """Return the instructions of a formula, which will be at `origin`."""
    code: list[list[int]] = []
    _emit(tree, (True, REJECT), code, origin, count(_FIRST_LABEL, -1))
    code.append([ACCEPT, 0, 0, 0, 0, REJECT])
    return np.array(code, np.int32)


def _emit(
    tree: SlottedTree | Slotted,
    way: tuple[bool, int],
    code: list[list[int]],
    origin: int,
    labels: Iterator[int],
) -> None:
    """Add instructions of a formula, the first of which will be at `origin`.

    The way is a value and a target: if the formula has the value, they go on behind them, otherwise
    at the target.
    """
    value, target = way
    if isinstance(tree, Slotted):
        test = tree.test
        mask = test.mask if value else _ANY_OUTCOME ^ test.mask
        code.append([test.operation, mask, test.column, tree.slot, width(test), target])
        return
    if not tree.parts:
        if tree.every != value:
            code.append([VALID, _NO_OUTCOME, 0, 0, 0, target])
        return
    if tree.every == value:
        for part in tree.parts:
            _emit(part, way, code, origin, labels)
        return
    end, first = next(labels), len(code)
    *parts, last = tree.parts
    for part in parts:
        _emit(part, (not value, end), code, origin, labels)
    _emit(last, way, code, origin, labels)
    for instruction in code[first:]:
        if instruction[JUMP] == end:
            instruction[JUMP] = origin + len(code)
