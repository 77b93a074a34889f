"""The ends of a period: the times of its first and last event, and where its last n events begin.

Both come from the index. It is descended only along the ends: an entry says from when until when
its events are and how many there are, so only the entry that decides is looked into.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.instants import TimeRange
from eventide.kernels.compiled import Int64s
from eventide.schema import TS
from eventide.store.order import int64_view
from eventide.store.reading.periods import thinned_away
from eventide.store.reading.scan import Wanted, stored_leaves
from eventide.store.segments.segment import Segment
from eventide.store.segments.tree import Tree, place
from eventide.store.snapshot import Snapshot, memory_periods

_TIMES = ["ts_min", "ts_max"]


def first_and_last(snapshot: Snapshot, times: TimeRange) -> tuple[int, int] | None:
    """Return the times of the first and the last event of a period; None if it has no event.

    Events that were thinned to aggregates count, unless the period cuts them: that is an error.
    """
    found = [ts for part in _times_in(snapshot, times) if len(part) for ts in (part[0], part[-1])]
    return (int(min(found)), int(max(found))) if found else None


def _times_in(snapshot: Snapshot, times: TimeRange) -> Iterator[Int64s]:
    """Yield sorted times that begin with the first or end with the last event of a period."""
    if times.is_empty:
        return
    for segment in snapshot.segments:
        own = segment.time_range
        if own == own.intersect(times):
            yield np.array([segment.ts_min, segment.ts_max])
        elif times.overlaps(own):
            yield from _times_in_segment(snapshot, segment, times)
    for rows in snapshot.memory:
        ts = int64_view(rows.column(TS))
        yield ts[slice(*np.searchsorted(ts, [times.start_us, times.end_us]))]


def _times_in_segment(snapshot: Snapshot, segment: Segment, times: TimeRange) -> Iterator[Int64s]:
    whole, cut = segment.tree(snapshot.path).cover(times, _TIMES)
    for entries in whole:
        yield np.array([place(entries, "ts_min").min(), place(entries, "ts_max").max()])
    wanted = Wanted(snapshot.columns, (TS,), times, {})
    for leaves in cut:
        if segment.thinned:
            raise thinned_away(snapshot.name, segment)
        for leaf in stored_leaves(snapshot.path, segment, leaves):
            yield int64_view(leaf.read(wanted, [TS]).column(TS))


@dataclass(frozen=True, slots=True)
class _IndexPart:
    """Events that the index knows together: when they are, how many, and where to look closer."""

    ts_min: int
    ts_max: int
    rows: int
    below: tuple[Tree, pa.RecordBatch, int, int] | Segment | None = None

    def is_in(self, times: TimeRange) -> bool:
        """Whether all of it lies in a period."""
        return times.start_us <= self.ts_min and self.ts_max < times.end_us

    def parts(self, snapshot: Snapshot) -> Iterator[_IndexPart]:
        """Yield the parts it consists of."""
        if isinstance(self.below, Segment):
            tree = self.below.tree(snapshot.path)
            for level, entries in enumerate(tree.levels):
                yield from _entries(tree, entries, level)
        elif self.below is not None:
            tree, entries, row, level = self.below
            yield from _entries(tree, tree.child(entries, row), level - 1)


def _entries(tree: Tree, entries: pa.RecordBatch, level: int) -> Iterator[_IndexPart]:
    columns = (place(entries, name).tolist() for name in (*_TIMES, "rows"))
    for row, (ts_min, ts_max, rows) in enumerate(zip(*columns, strict=True)):
        yield _IndexPart(ts_min, ts_max, rows, (tree, entries, row, level) if level else None)


def end_of(snapshot: Snapshot, times: TimeRange, rows: int, *, last: bool) -> TimeRange:
    """Return the beginning of a period that has at least so many events, or with `last` its end.

    It is the whole period if that has fewer. Events that were thinned to aggregates do not count.
    """
    waiting = [
        _IndexPart(each.ts_min, each.ts_max, each.rows, each)
        for each in snapshot.segments
        if not each.thinned and times.overlaps(each.time_range)
    ]
    for memory in snapshot.memory:
        if memory.num_rows:
            waiting += [_IndexPart(*part) for part in memory_periods(int64_view(memory.column(TS)))]
    while True:
        cut = [each for each in waiting if not each.is_in(times)]
        whole = [each for each in waiting if each.is_in(times)]
        closer = [part for each in cut for part in each.parts(snapshot)]
        if closer:
            waiting = whole + [each for each in closer if _touches(each, times)]
            continue
        # A part lies behind the bound if all of it does: so the bound of enough parts will do.
        whole.sort(key=lambda each: -each.ts_min if last else each.ts_max)
        counted = np.cumsum([each.rows for each in whole])
        place_of = int(np.searchsorted(counted, rows))
        if place_of == len(whole):
            return times
        decides = whole[place_of]
        if decides.below is None:
            if last:
                return TimeRange(decides.ts_min, times.end_us)
            return TimeRange(times.start_us, decides.ts_max + 1)
        waiting = [*whole[:place_of], *whole[place_of + 1 :], *decides.parts(snapshot)]


def _touches(part: _IndexPart, times: TimeRange) -> bool:
    return part.ts_max >= times.start_us and part.ts_min < times.end_us
