"""Partials of events by their numbers, from the index where possible: for windows by count.

    units     |    |    |    |    |    |    |       leaves in order, whose rows are counted
    cuts         |        |        |        |       at every n-th event
    read       ··          ··      ··       ··      units that a cut goes through

The number of a unit's first event is the number of events before it, so no search is needed to find
where a cut goes through it. Units between two cuts are not read: the entries of their leaves are
merged. That also holds for leaves that overlap, because events came late: they are one unit
together, and its events are read and sorted only if a cut goes through it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pyarrow as pa

from eventide.instants import START_OF_TIME_US, TimeRange
from eventide.kernels.compiled import Bools, Int64s
from eventide.kernels.ordering import ranges
from eventide.schema import TS
from eventide.store.order import int64_view
from eventide.store.reading.aggregate import aggregate
from eventide.store.reading.cuts import EvenCuts
from eventide.store.reading.exact import SummedRuns, summed_runs
from eventide.store.reading.leaf_sums import LeafRuns, Leaves
from eventide.store.reading.leaves import Units, leaf_entries
from eventide.store.reading.periods import FEW_GROUPS, THREADS
from eventide.store.reading.question import AggregateCall, AggregateQuestion
from eventide.store.segments.segment import Segment
from eventide.threads import in_threads


@dataclass(frozen=True, slots=True)
class Counted:
    """Partials of runs of events: the number of its first event, the times of first and last."""

    numbers: Int64s
    first_us: Int64s
    last_us: Int64s
    entries: pa.RecordBatch


@dataclass(frozen=True)
class CountedUnits:
    """The units of a snapshot with the numbers of their events, and where those are cut.

    `begins` are the numbers of the units' first events, counted from the first event asked for:
    earlier ones are below zero. `cuts` are cuts of numbers, not of times.
    """

    units: Units
    begins: Int64s
    cuts: EvenCuts
    question: AggregateQuestion

    @cached_property
    def ends(self) -> Int64s:
        """The number after each unit's last event."""
        return self.begins + self.units.rows

    @cached_property
    def asked(self) -> Bools:
        """Which units have events in a slice that is asked for."""
        times = self.cuts.times
        touched: Bools = (self.ends > times.start_us) & (self.begins < times.end_us)
        first, last = self.periods
        asked: Bools = touched & ((first != last) | self.cuts.are_asked(first))
        return asked

    @cached_property
    def periods(self) -> tuple[Int64s, Int64s]:
        """The slices of the first and the last event of each unit that are between the cuts."""
        times = self.cuts.times
        first = np.maximum(self.begins, times.start_us)
        last = np.minimum(self.ends, times.end_us) - 1
        return self.cuts.periods_of(first), self.cuts.periods_of(last)

    @cached_property
    def whole(self) -> Bools:
        """Which units lie in one slice and have entries with the aggregates asked for."""
        times, columns = self.cuts.times, self.units.snapshot.columns
        first, last = self.periods
        inside = (self.begins >= times.start_us) & (self.ends <= times.end_us) & (first == last)
        known = self.units.share(lambda segment: self.question.known_to(segment, columns))
        whole: Bools = self.asked & inside & known
        return whole

    @property
    def read(self) -> Bools:
        """Which units have to be read."""
        return self.asked & ~self.whole

    @cached_property
    def plain(self) -> Bools:
        """Which units are one leaf, in order, with all columns: there each row can be found."""
        alone: Bools = np.diff(self.units.bounds) == 1
        return alone & self.units.share(self.lies_in_order)

    @property
    def touched(self) -> TimeRange:
        """From the first event of the units that matter to their last."""
        asked = np.flatnonzero(self.asked)
        if not len(asked):
            return TimeRange(0, 0)
        units = self.units
        return TimeRange(int(units.ts_min[asked[0]]), int(units.ts_max[asked[-1]]) + 1)

    @property
    def slices(self) -> int:
        """How many slices are asked for."""
        end = self.cuts.times.end_us
        if not end:
            return 0
        last = int(self.cuts.periods_of(np.array([end - 1]))[0])
        return last // 2 + 1 if self.cuts.gaps else last + 1

    def count_leaves(self, units: Bools) -> int:
        """Return how many leaves some units have; events in memory are in none."""
        memory = len(self.units.snapshot.segments)
        parts = self.units.parts(np.flatnonzero(units))
        return sum(len(own) for segment, own, _ in parts if segment < memory)

    def partials(self) -> Counted:
        """Return one partial for each slice that is asked for, in order."""
        jobs = [*self.jobs()]
        parts = [self.of_entries()]
        if len(jobs) <= FEW_GROUPS or THREADS == 1:
            parts += [job() for job in jobs]
        else:
            parts += in_threads(lambda job: job(), jobs, THREADS)
        return self.merged(joined(self.question, parts))

    def of_entries(self) -> Counted:
        """Return the partials of the units that are not read: the entries of their leaves."""
        units, names = self.units, self.question.stored.names
        found, unit_of = [self.question.empty], [np.empty(0, np.int64)]
        for segment, own, owner in units.parts(np.flatnonzero(self.whole)):
            entries = leaf_entries(units.snapshot.path, units.snapshot.segments[segment])
            found.append(self.question.of_stored(entries.select(names).take(pa.array(own))))
            unit_of.append(owner)
        owners = np.concatenate(unit_of)
        # Leaves of one unit overlap: any of them may have its first event, or its last.
        first, last = units.ts_min[owners], units.ts_max[owners]
        return Counted(self.begins[owners], first, last, pa.concat_batches(found))

    def jobs(self) -> Iterator[Callable[[], Counted]]:
        """Yield what has to be read: many leaves at a time, or units one by one."""
        units = self.units
        for number, own, owner in units.parts(np.flatnonzero(self.read & self.plain)):
            segment = units.snapshot.segments[number]
            entries = leaf_entries(units.snapshot.path, segment).take(pa.array(own))
            columns = units.snapshot.columns
            leaves = Leaves(units.snapshot.path, segment, entries, self.question, columns)
            for which in leaves.groups():
                yield partial(self.of_leaves, leaves.some(which), owner[which])
        for unit in np.flatnonzero(self.read & ~self.plain).tolist():
            yield partial(self.of_unit, unit)

    def lies_in_order(self, segment: Segment) -> bool:
        """Whether the leaves of a segment have their rows in order, and all that is asked for."""
        names = list(self.question.layout.types)
        stored = self.units.snapshot.columns.stored_in(segment, names)
        return segment.form.in_order and len(stored) == len(names)

    def of_leaves(self, leaves: Leaves, owners: Int64s) -> Counted:
        """Return the partials of leaves that are units each."""
        heads = leaves.heads
        if heads is None:
            # A scan reports which of them is damaged.
            return joined(self.question, [self.of_unit(unit) for unit in owners.tolist()])
        begins = self.begins[owners]
        runs = self.runs(begins, leaves.rows)
        asked = self.cuts.are_asked(runs.periods)
        leaf_of, starts, ends = runs.leaf_of[asked], runs.starts[asked], runs.ends[asked]
        entries = leaves.summed(heads, LeafRuns(leaf_of, starts, ends, runs.periods[asked]))
        # Together, so that times are decoded at most once for each leaf.
        both = np.stack([starts, ends - 1], axis=1).ravel()
        times = heads.times_at(np.repeat(leaf_of, 2), both)
        return Counted(begins[leaf_of] + starts, times[0::2], times[1::2], entries)

    def of_unit(self, unit: int) -> Counted:
        """Return the partials of a unit that is read as a scan does."""
        begin, parts = int(self.begins[unit]), []
        names = self.question.attributes
        for rows in self.units.batches(np.array([unit]), names):
            runs = self.runs(np.array([begin]), np.array([rows.num_rows]))
            asked = self.cuts.are_asked(runs.periods)
            if asked.any():
                bounds = np.append(runs.starts, runs.ends[-1])
                entries = self.question.of_rows(rows.select(names), bounds)
                starts, ends = runs.starts[asked], runs.ends[asked]
                ts = int64_view(rows.column(TS))
                kept = entries.filter(pa.array(asked))
                parts.append(Counted(begin + starts, ts[starts], ts[ends - 1], kept))
            begin += rows.num_rows
        return joined(self.question, parts)

    def exact_sums(self, attribute: str, numbers: Int64s) -> list[pa.Array]:
        """Return the exact sums of the slices that begin with these events, which ascend."""
        return summed_runs(self.events_of(attribute, numbers), len(numbers))

    def events_of(self, attribute: str, numbers: Int64s) -> Iterator[SummedRuns]:
        """Yield the events of slices that begin with these events."""
        ends = self.cuts.starts_of(self.cuts.periods_of(numbers) + 1)
        ends = np.minimum(ends, self.cuts.times.end_us)
        first = np.searchsorted(self.ends, numbers, "right")
        last = np.searchsorted(self.begins, ends)
        units = np.unique(ranges(first, last - first))
        for own in np.split(units, np.flatnonzero(np.diff(units) > 1) + 1):
            begin = int(self.begins[own[0]])
            for rows in self.units.batches(own, [TS, attribute]):
                end = begin + rows.num_rows
                here = slice(
                    int(np.searchsorted(ends, begin, "right")), int(np.searchsorted(numbers, end))
                )
                low = np.maximum(numbers[here], begin) - begin
                high = np.minimum(ends[here], end) - begin
                yield SummedRuns(
                    rows.column(attribute), low, high, np.arange(here.start, here.stop)
                )
                begin = end

    def runs(self, begins: Int64s, rows: Int64s) -> LeafRuns:
        """Return the runs of leaves that lie in one slice each, from the numbers of first events.

        Those of a leaf leave no gap, and none is empty.
        """
        times = self.cuts.times
        low = np.maximum(times.start_us - begins, 0)
        high = np.minimum(times.end_us - begins, rows)
        some = low < high
        place, low, high = np.flatnonzero(some), low[some], high[some]
        first = self.cuts.periods_of(begins[place] + low)
        cuts = self.cuts.periods_of(begins[place] + high - 1) - first
        of = np.repeat(np.arange(len(place)), cuts + 1)
        firsts = np.cumsum(cuts + 1) - cuts - 1
        periods = np.arange(len(of)) - firsts[of] + first[of]
        starts = self.cuts.starts_of(periods) - begins[place][of]
        starts[firsts] = low
        ends = np.append(starts[1:], 0)[: len(starts)]
        ends[firsts + cuts] = high
        return LeafRuns(place[of], starts, ends, periods)

    def merged(self, found: Counted) -> Counted:
        """Return one partial for each slice."""
        if (found.numbers[1:] < found.numbers[:-1]).any():
            found = taken(found, np.argsort(found.numbers, kind="stable"))
        periods = self.cuts.periods_of(found.numbers)
        begins = np.flatnonzero(np.append(True, periods[1:] != periods[:-1])[: len(periods)])
        if len(begins) == len(periods):
            return found
        bounds = np.append(begins, len(periods))
        entries = self.question.of_entries(found.entries, bounds)
        first, last = found.first_us[begins], found.last_us[bounds[1:] - 1]
        return Counted(found.numbers[begins], first, last, entries)


def taken(found: Counted, order: Int64s) -> Counted:
    """Return partials in another order."""
    entries = found.entries.take(pa.array(order))
    return Counted(found.numbers[order], found.first_us[order], found.last_us[order], entries)


def joined(question: AggregateQuestion, parts: Sequence[Counted]) -> Counted:
    """Return partials one after the other."""
    none: Int64s = np.empty(0, np.int64)
    return Counted(
        np.concatenate([none, *(part.numbers for part in parts)]),
        np.concatenate([none, *(part.first_us for part in parts)]),
        np.concatenate([none, *(part.last_us for part in parts)]),
        pa.concat_batches([question.empty, *(part.entries for part in parts)]),
    )


def counted_units(
    units: Units, question: AggregateQuestion, times: TimeRange, size: int, slide: int
) -> CountedUnits:
    """Return units with numbers, counted from the first event of a time range, and their cuts.

    Cuts are where the full windows of a size and slide begin and end. Of the leaves at the ends of
    the time range only the times are read, to count the events in it.
    """
    before, inside = 0, 0
    if not times.is_empty:
        bounds = [START_OF_TIME_US, times.start_us, times.end_us]
        counts = aggregate(units.snapshot, [AggregateCall("count")], bounds)
        before, inside = counts.column(0).to_pylist()
    full = max(0, (inside - size) // slide + 1)
    numbers = TimeRange(0, (full - 1) * slide + size if full else 0)
    cuts = EvenCuts.of_windows(size, slide, numbers)
    begins = np.cumsum(units.rows) - units.rows - before
    return CountedUnits(units, begins, cuts, question)
