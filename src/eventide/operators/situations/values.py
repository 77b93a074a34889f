"""Aggregates over the events of situations: at their end, and at an earlier instant.

A run's aggregate is a partial result that continues from batch to batch. The events of a batch are
further partials behind it. All partials of a run merge to its present value, the first few of them
to its value at an earlier position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from eventide.accumulators import Accumulator, Frames, Groups
from eventide.arrays import no_rows, to_arrow
from eventide.kernels.compiled import Bools, Int64s, frozen
from eventide.kernels.grouping import order_by_key
from eventide.kernels.ordering import ranges
from eventide.kernels.situations.runs import frames_until
from eventide.operators.aggregate import accumulator_of, lift
from eventide.operators.situations.runs import Derived, run_codes
from eventide.plan.expressions import Aggregate, columns_of
from eventide.schema import TS

MOST_PARTS = 4
"""So many parts of each run are kept before they are merged."""


@dataclass(frozen=True)
class SymbolAggregates:
    """The aggregates over the events of one kind of situation."""

    aggregates: tuple[Aggregate, ...]
    accumulators: tuple[Accumulator, ...] = field(init=False)

    def __post_init__(self) -> None:
        found = tuple(accumulator_of(each) for each in self.aggregates)
        object.__setattr__(self, "accumulators", found)

    @property
    def schema(self) -> pa.Schema:
        """The columns of partials."""
        return pa.schema(
            [
                pa.field(f"a{i}_{j}", kind)
                for i, accumulator in enumerate(self.accumulators)
                for j, kind in enumerate(accumulator.types)
            ]
        )

    @cached_property
    def reads(self) -> list[str]:
        """The columns of events that are read."""
        # A batch without columns would not know its number of rows.
        return sorted(frozenset[str]().union(*map(columns_of, self.aggregates))) or [TS]

    def split(self, columns: Sequence[pa.Array]) -> list[list[pa.Array]]:
        """Return the columns of each accumulator."""
        parts, place = [], 0
        for accumulator in self.accumulators:
            parts.append(list(columns[place : place + len(accumulator.types)]))
            place += len(accumulator.types)
        return parts

    def lift(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """Return the partials of single events."""
        columns: list[pa.Array] = []
        for each, accumulator in zip(self.aggregates, self.accumulators, strict=True):
            columns += lift(each, accumulator, rows)
        return columns

    def by_group(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        """Return one partial for each group."""
        merged: list[pa.Array] = []
        for accumulator, parts in zip(self.accumulators, self.split(columns), strict=True):
            merged += accumulator.by_group(parts, groups)
        return merged

    def by_frame(self, columns: Sequence[pa.Array], frames: Frames) -> list[pa.Array]:
        """Return one partial for each frame."""
        merged: list[pa.Array] = []
        for accumulator, parts in zip(self.accumulators, self.split(columns), strict=True):
            merged += accumulator.by_frame(parts, frames)
        return merged

    def of_frames(self, columns: Sequence[pa.Array], frames: Frames) -> list[pa.Array]:
        """Return the aggregates of frames."""
        parts = self.split(columns)
        return [
            each.of_frames(part, frames)
            for each, part in zip(self.accumulators, parts, strict=True)
        ]

    def finish(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """Return the aggregates of partials."""
        parts = self.split(columns)
        return [each.finish(part) for each, part in zip(self.accumulators, parts, strict=True)]


@dataclass(frozen=True)
class Parts:
    """Partials of runs in order of time: the columns, and the number of the run of each.

    A run may have several. They are merged when they have become many, not for each event.
    """

    columns: pa.RecordBatch
    run: Int64s

    @classmethod
    def none(cls, aggregates: SymbolAggregates) -> Parts:
        """Return no parts."""
        nothing = no_rows(aggregates.schema)
        return cls(nothing, np.empty(0, np.int64))

    @cached_property
    def by_run(self) -> tuple[Int64s, Int64s]:
        """The parts in order of their runs, and where those of each run begin.

        The last run has no parts, and stands for all runs without any.
        """
        order = np.empty(len(self.run), np.int64)
        offsets = np.zeros(int(self.run.max(initial=-1)) + 3, np.int64)
        order_by_key(run_codes(self.run), offsets, order)
        return order, offsets

    def take(self, runs: Int64s) -> Parts:
        """Return the parts of some runs, which are numbered from zero."""
        if not len(self.run):
            return self
        order, offsets = self.by_run
        known = np.minimum(runs, len(offsets) - 2)
        counts = offsets[known + 1] - offsets[known]
        places = order[ranges(offsets[known], counts)]
        number = np.repeat(np.arange(len(runs)), counts)
        return Parts(self.rows(places), number)

    def rows(self, places: Int64s) -> pa.RecordBatch:
        """Return the columns of some parts, without a copy if they lie side by side."""
        count = len(places)
        if not count:
            return no_rows(self.columns.schema)
        first, last = places[[0, -1]].tolist()
        if last - first == count - 1 and (count < 3 or bool((np.diff(places) == 1).all())):
            return self.columns.slice(first, count)
        return self.columns.take(to_arrow(places))


@dataclass(frozen=True)
class RunValues:
    """The aggregates of the runs of one symbol in a step.

    `position` is where each part stands; parts of earlier batches stand before all of this one.
    """

    aggregates: SymbolAggregates
    parts: Parts
    position: Int64s
    runs: int

    @classmethod
    def of(
        cls,
        aggregates: SymbolAggregates,
        derived: Derived,
        symbol: int,
        carried: Parts,
        rows: pa.RecordBatch,
    ) -> RunValues:
        """Return the aggregates of a symbol: earlier parts, and the events of this step."""
        member_row, member_run = derived.members[symbol]
        before = np.full(len(carried.run), -1, np.int64)
        if not len(member_row):
            return cls(aggregates, carried, before, len(derived.runs))
        lifted = aggregates.lift(rows.select(aggregates.reads).take(to_arrow(member_row)))
        columns = [
            pa.concat_arrays([old, new])
            for old, new in zip(carried.columns.columns, lifted, strict=True)
        ]
        both = pa.RecordBatch.from_arrays(columns, schema=aggregates.schema)
        parts = Parts(both, np.concatenate([carried.run, member_run]))
        position = np.concatenate([before, derived.base + 2 * member_row + 1])
        return cls(aggregates, parts, position, len(derived.runs))

    @property
    def are_many(self) -> bool:
        """Whether there are so many parts that some have to be merged."""
        return len(self.parts.run) > MOST_PARTS * self.runs

    def of_runs(self, runs: Int64s) -> tuple[Int64s, Int64s, Int64s, pa.RecordBatch]:
        """Return the parts of some runs side by side, in order of time.

        These are: the place of every run among them, or -1; where the parts of each begin, and one
        more; their positions; and the parts.
        """
        wanted = np.zeros(self.runs, np.bool_)
        wanted[runs] = True
        place = np.where(wanted, np.cumsum(wanted) - 1, -1)
        chosen = np.flatnonzero(wanted[self.parts.run])
        order = np.empty(len(chosen), np.int64)
        offsets = np.zeros(int(np.count_nonzero(wanted)) + 1, np.int64)
        order_by_key(run_codes(place[self.parts.run[chosen]]), offsets, order)
        chosen = chosen[order]
        return place, offsets, self.position[chosen], self.parts.columns.take(to_arrow(chosen))

    def merged(self, runs: Int64s) -> Parts:
        """Return the parts of some runs that ascend; they are numbered from zero.

        Those of a run become one part once there are many: not with each event.
        """
        number = np.full(self.runs, -1, np.int64)
        number[runs] = np.arange(len(runs))
        number = number[self.parts.run]
        chosen = np.flatnonzero(number >= 0)
        if len(chosen) <= MOST_PARTS * len(runs):
            return Parts(self.parts.rows(chosen), number[chosen])
        _, offsets, _, parts = self.of_runs(runs)
        frames = Frames(frozen(offsets[:-1]), frozen(offsets[1:]))
        columns = self.aggregates.by_frame(parts.columns, frames)
        together = pa.RecordBatch.from_arrays(columns, schema=self.aggregates.schema)
        return Parts(together, np.arange(len(runs)))

    def at(self, runs: Int64s, positions: Int64s, is_open: Bools) -> list[pa.Array]:
        """Return the aggregates of runs; for open ones, as they were at positions."""
        place, offsets, part_pos, parts = self.of_runs(runs)
        number = place[runs]
        until = np.where(is_open, positions, np.iinfo(np.int64).max)
        right = np.empty(len(number), np.int64)
        frames_until(frozen(offsets), frozen(part_pos), frozen(number), frozen(until), right)
        left = offsets[number]
        # A frame that many matches share is computed once, and frames have to ascend.
        order = np.lexsort((right, left))
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = (np.diff(left[order]) != 0) | (np.diff(right[order]) != 0)
        chosen = order[is_first]
        frames = Frames(frozen(left[chosen]), frozen(right[chosen]))
        values = self.aggregates.of_frames(parts.columns, frames)
        place_of = np.empty(len(order), np.int64)
        place_of[order] = np.cumsum(is_first) - 1
        rows = to_arrow(place_of)
        return [value.take(rows) for value in values]

    def at_end(self, runs: Int64s) -> list[pa.Array]:
        """Return the aggregates of runs as they are now."""
        never = np.zeros(len(runs), np.int64)
        return self.at(runs, never, np.zeros(len(runs), np.bool_))


def merged_parts(values: Sequence[RunValues], symbol: Int64s, kept: Int64s) -> tuple[Parts, ...]:
    """Return the parts of the runs kept, by their new numbers; `symbol` is that of all runs."""
    found = []
    for each, own in enumerate(values):
        places = np.flatnonzero(symbol[kept] == each)
        parts = own.merged(kept[places])
        found.append(Parts(parts.columns, places[parts.run]))
    return tuple(found)
