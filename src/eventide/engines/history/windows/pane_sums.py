"""Windows merged from panes of the index, with sums of floats that are correctly rounded.

Panes are merged without loss, so the sum of a window is off by no more than those of its panes
together. A window is proven if its sum rounds to the same double anywhere within that. For the
other windows the events of their panes are read; a pane that several of them cover is read once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from eventide.accumulators import Accumulator, Frames
from eventide.accumulators.columns import floats
from eventide.accumulators.contract import Columns
from eventide.accumulators.sums import FLOAT_SUM, FloatSums
from eventide.kernels.compiled import Bools, Floats, Int64s, frozen
from eventide.store.reading.proof import error_of, unsure
from eventide.store.reading.question import AggregateQuestion
from eventide.store.snapshot import Snapshot

ROUGH = FloatSums(exact=False)


@dataclass(frozen=True, slots=True)
class PaneSums:
    """How far the sum of each pane may be off; `read` returns exact sums of some, by place.

    Errors are those of store/reading/proof.py: infinite if the sum has to be read, and a NaN if it
    is not finite because a value is not.
    """

    error: Floats
    read: Callable[[Int64s], list[pa.Array]]
    offset: int = 0

    def some(self, first: int, last: int) -> PaneSums:
        """Return those of the panes from `first` to `last` - 1."""
        return PaneSums(self.error[first:last], self.read, self.offset + first)

    def unsure(self, merged: Columns, frames: Frames) -> Int64s:
        """Return which sums of frames are not proven to be correctly rounded."""
        ((high, low),) = FLOAT_SUM.pairs(merged)
        width = int((frames.right - frames.left).max(initial=0))
        most = float(self.error.max(initial=0.0)) * width
        # A NaN among the errors gives a NaN here.
        found: Bools = (
            unsure(high, low, most) if np.isfinite(most) else np.ones(len(high), np.bool_)
        )
        found |= ~np.isfinite(high)
        places = np.flatnonzero(found)
        if not len(places):
            return places
        error = self.of_frames(taken(frames, places))
        beyond = ~np.isfinite(high[places]) & ~np.isnan(error)
        return places[unsure(high[places], low[places], error) | beyond]

    def of_frames(self, frames: Frames) -> Floats:
        """Return how far the sums of frames may be off."""
        ones = np.ones(len(self.error), np.int64)
        columns = [pa.array(self.error), pa.nulls(len(ones), pa.float64()), pa.array(ones)]
        # A little more, as the errors are rounded when they are added.
        return floats(ROUGH.by_frame(columns, frames)[0]) * (1.0 + 2.0**-20)

    def exact(self, parts: Columns, frames: Frames) -> list[pa.Array]:
        """Return the partials of panes, exact in all that frames cover."""
        ends = np.zeros(len(self.error) + 1, np.int64)
        np.add.at(ends, frames.left, 1)
        np.add.at(ends, frames.right, -1)
        covered = np.cumsum(ends[:-1]) > 0
        return self.replaced(parts, np.flatnonzero(covered & (self.error > 0.0)))

    def replaced(self, parts: Columns, places: Int64s) -> list[pa.Array]:
        """Return the partials of panes, those at some places from their events."""
        if not len(places):
            return list(parts)
        chosen = np.arange(len(self.error))
        chosen[places] = len(chosen) + np.arange(len(places))
        columns = list(parts)
        found = self.read(places + self.offset)
        for column in (0, 1, 3):  # all but the count
            both = pa.concat_arrays([parts[column], found[column]])
            columns[column] = both.take(pa.array(chosen))
        return columns


def pane_sums(
    source: Snapshot,
    question: AggregateQuestion,
    entries: pa.RecordBatch,
    read: Callable[[str, Int64s], list[pa.Array]],
) -> list[PaneSums | None]:
    """Return for each call that is a sum of floats how far panes may be off, or None if none is."""
    found: dict[str, PaneSums] = {}
    for attribute in question.summed:
        error = error_of(source, attribute, entries)
        if error is not None:
            found[attribute] = PaneSums(error, partial(read, attribute))
    return [
        found.get(call.attribute or "") if call.function in ("sum", "avg") else None
        for call in question.calls
    ]


def some(sums: Sequence[PaneSums | None], first: int, last: int) -> list[PaneSums | None]:
    """Return those of the panes from `first` to `last` - 1."""
    return [None if each is None else each.some(first, last) for each in sums]


def aggregates_of(
    accumulator: Accumulator, parts: Columns, frames: Frames, sums: PaneSums | None
) -> pa.Array:
    """Return the aggregates of frames of panes; `sums` is given if they may be off."""
    if sums is None:
        return accumulator.of_frames(parts, frames)
    wrong = np.flatnonzero(np.isinf(sums.error))
    if len(wrong):
        parts = sums.replaced(parts, wrong)
        sums = replace(sums, error=np.where(np.isinf(sums.error), 0.0, sums.error))
    merged = accumulator.by_frame(parts, frames)
    answers = accumulator.finish(merged)
    places = sums.unsure(merged, frames)
    if not len(places):
        return answers
    some = taken(frames, places)
    chosen = np.arange(len(answers))
    chosen[places] = len(answers) + np.arange(len(places))
    exact = accumulator.of_frames(sums.exact(parts, some), some)
    return pa.concat_arrays([answers, exact]).take(pa.array(chosen))


def taken(frames: Frames, places: Int64s) -> Frames:
    """Return some frames."""
    return Frames(frozen(frames.left[places]), frozen(frames.right[places]))
