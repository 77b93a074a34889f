"""The leaves of a stored stream over time, and what a way to answer does with each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from eventide.engines.history.access import Access
from eventide.engines.history.ends import EndsAccess
from eventide.engines.history.patterns.candidates import Periods
from eventide.engines.history.patterns.ways import IntervalAccess
from eventide.engines.history.pruning import value_ranges
from eventide.engines.history.windows.calendar import CalendarIndex
from eventide.engines.history.windows.count_index import CountIndex
from eventide.engines.history.windows.index import WindowIndex
from eventide.kernels.compiled import Bools, Int64s
from eventide.plan.nodes import scans_of
from eventide.plan.tree import Plan
from eventide.store.reading.leaves import Units, units_of
from eventide.store.segments.tree import place
from eventide.store.snapshot import Snapshot
from eventide.store.source import EventSource

Fate = Literal["outside", "ruled out", "summarised", "kept", "read"]
FATES: tuple[Fate, ...] = ("outside", "ruled out", "summarised", "kept", "read")


@dataclass(frozen=True, eq=False)
class LeafStrip:
    """Leaves in order of time: first and last event, rows, and what is done with them.

    outside     not in the time range of the query
    ruled out   the index shows that nothing in them matters
    summarised  the index has all that is needed, they are not read
    kept        the map of the pattern keeps them, but conditions do not
    read        they are read
    """

    start_us: Int64s
    end_us: Int64s
    rows: Int64s
    fate: Int64s
    """Places in `FATES`."""

    def are(self, fate: Fate) -> Bools:
        """Return which leaves have a fate."""
        return np.asarray(self.fate == FATES.index(fate))

    def count(self, fate: Fate) -> int:
        """Return how many leaves have a fate."""
        return int(self.are(fate).sum())


def leaf_strip(plan: Plan, source: EventSource, best: Access) -> LeafStrip | None:
    """Return the leaves of a stream; None if it is not stored, or leaves have lost events."""
    if not isinstance(source, Snapshot) or any(each.thinned for each in source.segments):
        return None
    units = best.question.units if isinstance(best, IntervalAccess) else units_of(source)
    match best:
        case IntervalAccess():
            fate = fate_in_pattern(best)
        case WindowIndex():
            fate = fate_in_windows(best, units)
        case CountIndex():
            fate = np.select(
                [best.counted.read, best.counted.whole],
                [FATES.index("read"), FATES.index("summarised")],
                FATES.index("ruled out"),
            )
        case CalendarIndex():
            fate = fate_in_calendar(best, units)
        case EndsAccess(times=times):
            read = (units.ts_max >= times.start_us) & (units.ts_min < times.end_us)
            fate = np.where(read, FATES.index("read"), FATES.index("ruled out"))
        case _:
            fate = fate_in_replay(plan, units)
    (scan,) = scans_of(plan)
    times = scan.time_range
    inside = (units.ts_max >= times.start_us) & (units.ts_min < times.end_us)
    fate = np.where(inside, fate, FATES.index("outside"))
    return LeafStrip(units.ts_min, units.ts_max + 1, units.rows, fate)


def fate_in_pattern(best: IntervalAccess) -> Int64s:
    """Return what is done with leaves: by the map and, once hits are known, by the conditions."""
    question = best.question
    fate = np.where(question.kept, FATES.index("kept"), FATES.index("ruled out"))
    if not best.chosen:
        return np.where(question.kept, FATES.index("read"), fate)
    if any(each.clause not in question.found for each in best.chosen):
        return fate
    read = touched(question.units, question.periods(best.chosen)) & question.kept
    return np.where(read, FATES.index("read"), fate)


def touched(units: Units, periods: Periods) -> Bools:
    """Return the units that share an instant with a period."""
    first = np.searchsorted(units.ts_max, periods.start_us)
    behind = np.searchsorted(units.ts_min, periods.end_us, "right")
    marks = np.zeros(units.count + 1, np.int64)
    np.add.at(marks, first[first < behind], 1)
    np.add.at(marks, behind[first < behind], -1)
    return np.asarray(np.cumsum(marks[:-1]) > 0)


def fate_in_windows(best: WindowIndex, units: Units) -> Int64s:
    """Return which leaves are read because windows end in them; the others are summarised."""
    read = np.zeros(units.count, np.bool_)
    for cover in best.covers:
        entries: pa.RecordBatch = cover.border.entries
        if entries.num_rows:
            # Overlapping leaves are one unit: the last that begins no later than they do.
            starts = place(entries, "ts_min")
            read[np.searchsorted(units.ts_min, starts, "right") - 1] = True
    return np.where(read, FATES.index("read"), FATES.index("summarised"))


def fate_in_calendar(best: CalendarIndex, units: Units) -> Int64s:
    """Return which leaves are read because a period ends in them; the others are summarised."""
    cuts = np.clip(best.cuts, best.times.start_us, best.times.end_us)
    read = np.searchsorted(cuts, units.ts_min, "right") < np.searchsorted(
        cuts, units.ts_max, "right"
    )
    return np.where(read, FATES.index("read"), FATES.index("summarised"))


def fate_in_replay(plan: Plan, units: Units) -> Int64s:
    """Return which leaves are read, and which the conditions right above the scan rule out."""
    possible = np.ones(units.count, np.bool_)
    for attribute, wanted in value_ranges(plan).items():
        possible &= units.may_hold(attribute, wanted)
    return np.where(possible, FATES.index("read"), FATES.index("ruled out"))
