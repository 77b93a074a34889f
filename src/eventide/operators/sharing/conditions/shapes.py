"""Shapes: what conditions are without their constants, as programs and needs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np
import numpy.typing as npt

from eventide.kernels.compiled import Int32s, Int64s
from eventide.kernels.growing import longer
from eventide.kernels.ordering import ranges
from eventide.kernels.sharing.conditions.listing import ListedNeeds
from eventide.kernels.sharing.conditions.programs import (
    ACCEPT,
    COLUMN,
    COUNT,
    EQUAL,
    JUMP,
    MASK,
    OPERATION,
    REJECT,
    SLOT,
    TRUE,
    VALID,
)
from eventide.operators.sharing.conditions.batches import Batch
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
_NEED_FIELDS = 6


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
    """All shapes by number, as arrays.

    `skipped` has how many tests of a condition are decided by how it is found.
    """

    def __init__(self) -> None:
        self.numbers: dict[object, int] = {}
        self.starts, self.lengths, self.code = GrowingRows(), GrowingRows(), GrowingRows(_FIELDS)
        # What a condition does that was dropped.
        self.code.extend([[VALID, _NO_OUTCOME, 0, 0, 0, REJECT]])
        self.skipped = GrowingRows()
        self.sizes, self.access = GrowingRows(), GrowingRows()
        self.equal_starts, self.equal_counts = GrowingRows(), GrowingRows()
        self.equal_columns, self.equal_slots = GrowingRows(), GrowingRows()
        self.need_starts, self.need_counts = GrowingRows(), GrowingRows()
        self.needs = GrowingRows(_NEED_FIELDS)

    def __len__(self) -> int:
        return self.starts.count

    def number_of(self, formula: Formula) -> int:
        """Return the number of the shape of a formula."""
        key = _key(formula)
        number = self.numbers.get(key)
        if number is None:
            number = self._add(formula)
            self.numbers[key] = number
        return number

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

    def tests_of(self, batch: Batch) -> tuple[npt.NDArray[np.int32], Int64s]:
        """Return the instructions of conditions that are tests, and their first constants."""
        starts = self.starts.array[batch.shapes].astype(np.int64)
        lengths = self.lengths.array[batch.shapes].astype(np.int64)
        code = self.code.array[ranges(starts, lengths)]
        bases = np.repeat(batch.bases.astype(np.int64), lengths)
        real = code[:, MASK] != _NO_OUTCOME
        return code[real], (bases + code[:, SLOT])[real]

    def add_conjunctions(
        self, patterns: npt.NDArray[np.bool_], code: npt.NDArray[np.int32]
    ) -> Int32s:
        """Add shapes that ask for several of some tests each; return their numbers.

        Of each, `patterns` says which; some are equalities, and these come first.
        """
        which, tests = np.nonzero(patterns)
        counts = patterns.sum(axis=1)
        first = np.cumsum(counts) - counts
        rows = code[tests]
        before = np.cumsum(rows[:, COUNT]) - rows[:, COUNT]
        rows[:, SLOT] = before - before[first][which]
        numbers = np.arange(len(self), len(self) + len(patterns), dtype=np.int32)
        program = np.zeros((len(rows) + len(patterns), _FIELDS), np.int32)
        program[:, JUMP] = REJECT
        program[np.arange(len(rows)) + which] = rows
        self.starts.extend(self.code.count + first + np.arange(len(patterns)))
        self.lengths.extend(counts)
        self.code.extend(program)
        self.sizes.extend(np.add.reduceat(rows[:, COUNT], first))
        equal = (rows[:, OPERATION] == EQUAL) & (rows[:, MASK] == TRUE)
        equal_counts = np.add.reduceat(equal.astype(np.int64), first)
        self.equal_starts.extend(self.equal_columns.count + np.cumsum(equal_counts) - equal_counts)
        self.equal_counts.extend(equal_counts)
        self.equal_columns.extend(rows[equal, COLUMN])
        self.equal_slots.extend(rows[equal, SLOT])
        nothing = np.zeros(len(patterns), np.int32)
        for each in (self.need_starts, self.need_counts, self.skipped):
            each.extend(nothing)
        self.access.extend(nothing + EQUALITIES)
        return numbers

    def _add(self, formula: Formula) -> int:
        number = len(self)
        tree, size = slotted(formula)
        program = _program(tree, self.code.count)
        self.starts.extend([self.code.count])
        self.lengths.extend([len(program) - 1])
        self.code.extend(program)
        self.sizes.extend([size])
        self._add_access(formula, tree)
        return number

    def _add_access(self, formula: Formula, tree: SlottedTree | Slotted) -> None:
        equal = equalities(tree)
        strong = any(is_selective(test) for test, _ in equal)
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
        whole = needs is not None and len(needs.needs) == 1 and needs.needs[0].whole
        self.skipped.extend([is_plain(formula) if whole else 0])
        access = EQUALITIES if strong else NEEDS if needs else SCAN
        self.access.extend([NOTHING if formula == NEVER else access])


def is_selective(test: Test) -> bool:
    """Whether an equality leaves few conditions; that of a truth value does not."""
    return getattr(test.constants[0], "type", None) != BOOL


def _need_row(need: Need) -> tuple[int, ...]:
    return tuple(map(int, need[:_NEED_FIELDS]))


def _key(formula: Formula) -> object:
    if isinstance(formula, Test):
        selective = bool(formula.constants) and is_selective(formula)
        return (*formula[:3], width(formula), selective)
    return formula.every, tuple(map(_key, formula.parts))


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
