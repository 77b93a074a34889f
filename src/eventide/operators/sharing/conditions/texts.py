"""Tests of texts against constants, decided once for each distinct value of a column."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow, to_numpy
from eventide.kernels.compiled import Int32s, Int64s, frozen
from eventide.kernels.growing import longer
from eventide.kernels.key_table import empty_table, roomy
from eventide.kernels.sharing.conditions.matching import TextVerdicts
from eventide.kernels.sharing.conditions.words import place_values
from eventide.operators.expressions.evaluate import evaluate_predicate
from eventide.operators.fingerprints import Fingerprints
from eventide.operators.sharing.conditions.looked_for import looked_for
from eventide.operators.sharing.conditions.pattern_table import PatternTable
from eventide.plan.expressions import Call, Column, Expression, Literal
from eventide.schema import BOOL, STRING

MOST_VALUES = 100_000
"""So many values are remembered, then all are forgotten."""
MOST_PASSED = 20_000_000
"""So many tests that they pass."""
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
    others: list[dict[int, TextTest]] = field(default_factory=list)
    """By place, the tests that look for nothing in particular: they are all tried."""
    free_places: list[int] = field(default_factory=list)
    patterns: PatternTable = field(default_factory=PatternTable)
    unsure: set[int] = field(default_factory=set)
    """The tests that may fail although what they look for is there."""

    def __post_init__(self) -> None:
        self.marks = np.full(16, -1, np.int32)
        self.forget()

    @property
    def width(self) -> int:
        """How many columns have tests."""
        return len(self.others)

    @property
    def nbytes(self) -> int:
        """How much memory values and their tests take."""
        arrays = (*self.table, self.starts, self.counts, self.passed, self.marks)
        return sum(each.nbytes for each in arrays) + self.patterns.nbytes

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
        self.others.append({})
        return len(self.others) - 1

    def check(self, test: TextTest) -> None:
        """Raise what the test raises if its constants make no sense: a wrong expression, say."""
        if test not in self.numbers and test.function not in _TAKE_ALL:
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
            self._look_for(number, test)
            if self.count:
                self.forget()
        self.uses[number] += times
        return number

    def _look_for(self, number: int, test: TextTest) -> None:
        found = looked_for(test.function, test.constants)
        if found is None:
            self.others[test.place][number] = test
            return
        self.patterns.add(number, test.place, found)
        if not found.enough:
            self.unsure.add(number)

    def leave(self, numbers: Iterable[int]) -> None:
        """Count a use less of each test."""
        for number in numbers:
            self.uses[number] -= 1
            test = self.tests[number]
            if not self.uses[number] and test is not None:
                del self.numbers[test]
                if self.others[test.place].pop(number, None) is None:
                    self.patterns.remove(number)
                    self.unsure.discard(number)
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
            self._decide(place, values.take(to_arrow(fresh[:count])))

    def _decide(self, place: int, values: pa.Array) -> None:
        """Find the tests that pass on values which get the next places."""
        rows = pa.RecordBatch.from_arrays([values], [_VALUE.name])
        where, which = self._surely(rows, *self.patterns.found(place, values))
        for number, test in self.others[place].items():
            passes = np.flatnonzero(to_numpy(evaluate_predicate(test.condition, rows)))
            where = np.concatenate((where, passes))
            which = np.concatenate((which, np.full(len(passes), number)))
        order = np.argsort(where, kind="stable")
        counts = np.bincount(where, minlength=len(values))
        end = self.count + len(values)
        self.starts, self.counts = longer(self.starts, end), longer(self.counts, end)
        self.passed = longer(self.passed, self.filled + len(which))
        self.counts[self.count : end] = counts
        self.starts[self.count : end] = self.filled + np.cumsum(counts) - counts
        self.passed[self.filled : self.filled + len(which)] = which[order]
        self.count, self.filled = end, self.filled + len(which)

    def _surely(self, rows: pa.RecordBatch, where: Int64s, which: Int64s) -> tuple[Int64s, Int64s]:
        """Return the pairs of a value and a test that pass, of those that may."""
        kept = np.ones(len(which), np.bool_)
        for number in self.unsure.intersection(np.unique(which).tolist()):
            test, here = self.tests[number], np.flatnonzero(which == number)
            assert test is not None
            kept[here] = to_numpy(evaluate_predicate(test.condition, rows.take(where[here])))
        return where[kept], which[kept]

    def prepared(self) -> TextVerdicts:
        """Return what the kernel reads, with marks of no event."""
        self.marks = longer(self.marks, len(self.tests))
        self.marks[: len(self.tests)] = -1
        return TextVerdicts(self.starts, self.counts, self.passed, self.marks)

    def make_room(self) -> None:
        """Forget values before a batch if there are many."""
        if self.count > MOST_VALUES or self.filled > MOST_PASSED:
            self.forget()


_TAKE_ALL = ("starts_with", "ends_with", "contains", "<", "<=", ">", ">=")
_ONE_VALUE = pa.RecordBatch.from_arrays([pa.array([""])], [_VALUE.name])
