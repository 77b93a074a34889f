"""Tests of texts against constants, decided once for each distinct value of a column."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eventide.arrays import to_numpy
from eventide.kernels.compiled import Int32s, Int64s, frozen
from eventide.kernels.growing import longer
from eventide.kernels.key_table import empty_table, roomy
from eventide.kernels.sharing.conditions.matching import TextVerdicts
from eventide.kernels.sharing.conditions.words import place_values
from eventide.operators.expressions.evaluate import evaluate_predicate
from eventide.operators.fingerprints import Fingerprints
from eventide.plan.expressions import Call, Column, Expression, Literal
from eventide.schema import BOOL, STRING

MOST_VALUES = 100_000
"""So many values are remembered, then all are forgotten."""
_VALUE = Column("value", STRING)


class TextTest(NamedTuple):
    """A function of a text and constants: `contains(text, 'a')`. The texts are at a place."""

    place: int
    function: str
    constants: tuple[Literal, ...]

    @property
    def condition(self) -> Expression:
        """The test over a column of values."""
        return Call(self.function, (_VALUE, *self.constants), BOOL)


@dataclass
class TextTests:
    """Numbered tests, and which of them pass on the values that have been seen."""

    numbers: dict[TextTest, int] = field(default_factory=dict)
    tests: list[TextTest | None] = field(default_factory=list)
    uses: list[int] = field(default_factory=list)
    free: list[int] = field(default_factory=list)
    by_place: list[dict[int, TextTest]] = field(default_factory=list)
    free_places: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.marks = np.full(16, -1, np.int32)
        self.forget()

    @property
    def width(self) -> int:
        """How many columns have tests."""
        return len(self.by_place)

    def forget(self) -> None:
        """Forget all values."""
        self.table = empty_table()
        self.count, self.filled = 0, 0
        self.starts = np.zeros(16, np.int64)
        self.counts = np.zeros(16, np.int32)
        self.passed = np.zeros(16, np.int32)

    def new_place(self) -> int:
        """Return a place for the texts of a column."""
        if self.free_places:
            return self.free_places.pop()
        self.by_place.append({})
        return len(self.by_place) - 1

    @property
    def nbytes(self) -> int:
        """How much memory values and their tests take."""
        arrays = (*self.table, self.starts, self.counts, self.passed, self.marks)
        return sum(each.nbytes for each in arrays)

    def check(self, test: TextTest) -> None:
        """Raise what the test raises if its constants make no sense: a wrong expression, say."""
        if test not in self.numbers:
            evaluate_predicate(test.condition, _ONE_VALUE)

    def use(self, test: TextTest, times: int = 1) -> int:
        """Return the number of a test that has been checked, and count uses of it."""
        number = self.numbers.get(test)
        if number is None:
            number = self.free.pop() if self.free else len(self.tests)
            if number == len(self.tests):
                self.tests.append(test)
                self.uses.append(0)
            self.tests[number] = test
            self.numbers[test] = number
            self.by_place[test.place][number] = test
            self.forget()
        self.uses[number] += times
        return number

    def leave(self, numbers: Iterable[int]) -> None:
        """Count a use less of each test."""
        for number in numbers:
            self.uses[number] -= 1
            test = self.tests[number]
            if not self.uses[number] and test is not None:
                del self.numbers[test], self.by_place[test.place][number]
                self.tests[number] = None
                self.free.append(number)

    def judge(self, place: int, values: pa.Array, prints: Fingerprints, verdicts: Int32s) -> None:
        """Write the places of values into a column of `verdicts`, and decide the new ones."""
        self.table = roomy(self.table, len(values))
        fresh = np.empty(len(values), np.int32)
        first = frozen(prints.first ^ np.int64(place))
        count = place_values(
            self.table, first, prints.second, prints.null, self.count, verdicts, place, fresh
        )
        if count:
            self._decide(place, values.take(pa.array(fresh[:count])))

    def _decide(self, place: int, values: pa.Array) -> None:
        """Find the tests that pass on values which get the next places."""
        rows = pa.RecordBatch.from_arrays([values], [_VALUE.name])
        found_values: list[Int64s] = [np.zeros(0, np.int64)]
        found_tests: list[Int64s] = [np.zeros(0, np.int64)]
        for number, test in self.by_place[place].items():
            passes = np.flatnonzero(to_numpy(evaluate_predicate(test.condition, rows)))
            found_values.append(passes)
            found_tests.append(np.full(len(passes), number))
        where, which = np.concatenate(found_values), np.concatenate(found_tests)
        order = np.argsort(where, kind="stable")
        counts = np.bincount(where, minlength=len(values))
        end = self.count + len(values)
        self.starts, self.counts = longer(self.starts, end), longer(self.counts, end)
        self.passed = longer(self.passed, self.filled + len(which))
        self.counts[self.count : end] = counts
        self.starts[self.count : end] = self.filled + np.cumsum(counts) - counts
        self.passed[self.filled : self.filled + len(which)] = which[order]
        self.count, self.filled = end, self.filled + len(which)

    def prepared(self) -> TextVerdicts:
        """Return what the kernel reads, with marks of no event."""
        self.marks = longer(self.marks, len(self.tests))
        self.marks[:] = -1
        return TextVerdicts(self.starts, self.counts, self.passed, self.marks)

    def make_room(self) -> None:
        """Forget values before a batch if there are many."""
        if self.count > MOST_VALUES:
            self.forget()


_ONE_VALUE = pa.RecordBatch.from_arrays([pa.array([""])], [_VALUE.name])
