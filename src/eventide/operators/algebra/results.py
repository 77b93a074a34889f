"""What a search has found, and the rows that it becomes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow, to_numpy
from eventide.kernels.algebra.code import BothSides, FoundChains
from eventide.kernels.compiled import Bools, Int32s, Int64s, frozen
from eventide.operators.algebra.compiler import Compiled
from eventide.operators.algebra.words import Codes
from eventide.operators.expressions.evaluate import evaluate_predicate
from eventide.operators.key_parts import KeyOrder
from eventide.plan.expressions import Expression, columns_of
from eventide.schema import TS

_FEW = 8
"""With so many times fewer results than events, comparing them puts them in order sooner."""


@dataclass(frozen=True, slots=True)
class Results:
    """What was found: chains of which each is one event longer than another."""

    compiled: Compiled
    codes: Codes
    sides: BothSides
    found: FoundChains
    count: int

    @property
    def waiting(self) -> Bools:
        """Which of the waiting rows still wait."""
        return self.found.waiting_on

    @property
    def open(self) -> Int64s:
        """The results that something may follow yet."""
        return np.flatnonzero(self.found.waits[: self.count])

    def origins(self, chains: Int64s) -> Int64s:
        """Return the waiting row of chains by number: waiting rows alone, then results."""
        begun = len(self.waiting)
        if not self.count:
            return chains
        origin = self.found.origin[np.maximum(chains - begun, 0)]
        return np.where(chains < begun, chains, origin)

    def carried(self, number: int, chains: Int64s) -> pa.Array:
        """Return what chains by number carry."""
        own, repeated = self.compiled.program.carried[number]
        sides, result = self.sides, chains - len(self.waiting)
        words, valid = np.empty(len(chains), np.int64), np.empty(len(chains), np.bool_)
        alone = result < 0
        words[alone] = sides.first[number, chains[alone]]
        valid[alone] = sides.first_valid[number, chains[alone]]
        result = result[~alone]
        if own < 0:
            event = self.found.event[result]
            words[~alone] = sides.right[repeated, event]
            valid[~alone] = sides.right_valid[repeated, event]
        else:
            words[~alone] = self.found.carried[result, own]
            valid[~alone] = self.found.carried_valid[result, own]
        return self.codes.column(words, valid, self.compiled.carried[number])


@dataclass
class FoundRows:
    """The rows of results, in order of time; a column is made when it is asked for."""

    results: Results
    left: pa.RecordBatch
    right: pa.RecordBatch
    names: Mapping[str, int]
    """The numbers of what chains carry."""
    places: Int64s | None
    """The results that are rows, None if they are all."""

    @classmethod
    def of(
        cls,
        results: Results,
        left: pa.RecordBatch,
        right: pa.RecordBatch,
        names: Mapping[str, int],
    ) -> FoundRows:
        """Put results in order of time."""
        return cls(results, left, right, names, in_time(results))

    @cached_property
    def first(self) -> pa.Array:
        """The waiting row of each row."""
        return to_arrow(self.chosen(self.results.found.origin))

    @cached_property
    def last(self) -> pa.Array:
        """The right event of each row."""
        return to_arrow(self.chosen(self.results.found.event))

    def chosen(self, numbers: Int32s) -> Int32s:
        """Return some numbers of results, as the rows have them."""
        numbers = numbers[: self.results.count]
        return numbers if self.places is None else numbers[self.places]

    def column(self, name: str) -> pa.Array:
        """Return a column."""
        if name in self.names:
            count = self.results.count
            places = np.arange(count) if self.places is None else self.places
            return self.results.carried(self.names[name], len(self.results.waiting) + places)
        if name != TS and name in self.left.schema.names:
            return self.left.column(name).take(self.first)
        return self.right.column(name).take(self.last)

    def rows(self, names: Iterable[str]) -> pa.RecordBatch:
        """Return some of the columns."""
        wanted = list(names)
        return pa.RecordBatch.from_arrays([self.column(name) for name in wanted], names=wanted)

    def where(self, condition: Expression) -> FoundRows:
        """Return the rows on which a condition is true."""
        passing = evaluate_predicate(condition, self.rows({TS, *columns_of(condition)}))
        places = np.flatnonzero(to_numpy(passing))
        if self.places is not None:
            places = self.places[places]
        return FoundRows(self.results, self.left, self.right, self.names, places)


def in_time(results: Results) -> Int64s | None:
    """Return the results in order of time; None if they are."""
    event, events = results.found.event[: results.count], len(results.sides.ts)
    if _FEW * results.count < events:
        return np.argsort(event, kind="stable")
    if (event[1:] >= event[:-1]).all():
        return None
    return KeyOrder.of(frozen(event), events).order
