"""Which events have some attribute in a range: their times and numbers.

Segments with a secondary index on the attribute look it up; in the others the column is read, where
the time index leaves room for such values. The answer is the same.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.errors import StoreError
from eventide.instants import TimeRange
from eventide.kernels.compiled import Floats, Int64s, frozen
from eventide.kernels.ordering import ascends, sort_pairs, sorting_order
from eventide.schema import SEQ, TS
from eventide.store.index.ranges import ValueRange, checked, type_of
from eventide.store.index.secondary import DamagedRunError, SecondaryReader
from eventide.store.order import int64_view
from eventide.store.reading.leaves import leaf_entries
from eventide.store.reading.lookup import reader_of
from eventide.store.reading.scan import scan_parts
from eventide.store.segments.segment import Segment
from eventide.store.segments.tree import place
from eventide.store.snapshot import Snapshot

log = logging.getLogger("eventide.store")

UNKNOWN_SHARE = 0.1
"""The share of rows that a condition is assumed to pass if nothing is known."""
SMALLEST_SHARE = 1e-4
SAMPLED = 512
"""How many entries of a run are read to see when the events of a range were."""
NUMBERS = (pa.int64(), pa.float64())
LARGEST = float(np.finfo(np.float64).max)

Atom = tuple[str, ValueRange]
"""An attribute and the values it may have."""


@dataclass(frozen=True, slots=True)
class Hits:
    """Events by their times and numbers."""

    ts: Int64s
    seq: Int64s

    def __len__(self) -> int:
        return len(self.ts)

    def at(self, places: Int64s) -> Hits:
        """Return those at some places."""
        return Hits(self.ts[places], self.seq[places])


@dataclass(frozen=True, slots=True)
class Reach:
    """How many events a condition has, and what it costs to find them."""

    events: int
    """Exact where `read_rows` is 0, otherwise an estimate."""
    entries: int
    """Entries of secondary indexes to read."""
    lookups: int
    read_rows: int
    """Rows of which the attribute has to be read, for lack of an index."""
    in_time: int = 0
    """Entries that come in order of time: those of a single value."""


def hits_of(
    snapshot: Snapshot, atoms: Sequence[Atom], time_range: TimeRange, *, in_order: bool
) -> Hits:
    """Return the events of a time range that meet any of some conditions.

    `in_order` says that all events of the snapshot came in the order of their times.
    """
    parts = [
        part
        for attribute, wanted in atoms
        for part in parts_of(snapshot, attribute, wanted, time_range)
    ]
    if not parts:
        return Hits(np.empty(0, np.int64), np.empty(0, np.int64))
    ts = np.concatenate([part.ts for part in parts])
    seq = np.concatenate([part.seq for part in parts])
    if in_order and not ascends(frozen(seq[:-1]), frozen(seq[1:])):
        numbers, times = np.empty_like(seq), np.empty_like(ts)
        sort_pairs(frozen(seq), frozen(ts), numbers, times)
        ts, seq = times, numbers
    elif not in_order:
        order = sorting_order(ts, seq)
        ts, seq = (ts, seq) if order is None else (ts[order], seq[order])
    start, end = np.searchsorted(ts, [time_range.start_us, time_range.end_us])
    found = Hits(ts[start:end], seq[start:end])
    if len(atoms) == 1 or not len(found):
        return found
    # An event may meet several of them.
    fresh = np.concatenate([[True], found.seq[1:] != found.seq[:-1]])
    return found.at(np.flatnonzero(fresh))


def parts_of(
    snapshot: Snapshot, attribute: str, wanted: ValueRange, time_range: TimeRange
) -> list[Hits]:
    """Return the events of each segment, and of the rows in memory, that meet a condition."""
    parts = []
    for segment in snapshot.segments:
        if not time_range.overlaps(segment.time_range):
            continue
        reader = reader_for(snapshot, segment, attribute)
        found = None if reader is None else looked_up(reader, wanted, segment)
        parts.append(scanned(snapshot, segment, attribute, wanted, time_range, found))
    parts += [
        Hits(int64_view(rows.column(TS)), int64_view(rows.column(SEQ))).at(
            np.flatnonzero(wanted.mask(rows.column(attribute)))
        )
        for rows in snapshot.memory
        if rows.num_rows
    ]
    return parts


def scanned(
    snapshot: Snapshot,
    segment: Segment,
    attribute: str,
    wanted: ValueRange,
    time_range: TimeRange,
    found: Hits | None,
) -> Hits:
    """Return what an index has found, or else read the column."""
    if found is not None:
        return found
    asked = snapshot.wanted((TS, SEQ), time_range, {attribute: wanted})
    batches = list(scan_parts(snapshot.path, [segment], (), asked))
    none = np.empty(0, np.int64)
    columns = [
        np.concatenate([none, *(int64_view(rows.column(name)) for rows in batches)])
        for name in (TS, SEQ)
    ]
    return Hits(*columns)


def looked_up(reader: SecondaryReader, wanted: ValueRange, segment: Segment) -> Hits | None:
    """Return what an index knows; None if it turns out to be damaged."""
    none = np.empty(0, np.int64)
    try:
        parts = [
            part for run, start, stop in reader.found(wanted) for part in run.times(start, stop)
        ]
    except (DamagedRunError, StoreError) as error:
        log.warning("an index of %s is not used: %s", segment.file, error)
        return None
    ts, seq = (np.concatenate([none, *(part[n] for part in parts)]) for n in range(2))
    return Hits(ts, seq + segment.seq_offset)


def reader_for(snapshot: Snapshot, segment: Segment, attribute: str) -> SecondaryReader | None:
    """Return the secondary index of a segment on an attribute, if there is one."""
    columns = snapshot.columns
    for index in segment.indexes:
        if index.attribute == attribute and columns.stored_in(segment, [attribute]):
            try:
                kind = segment.form.schema.type_of(attribute)
                return reader_of(snapshot.path, index, kind)
            except (DamagedRunError, StoreError) as error:
                log.warning("index %s is not used: %s", snapshot.path / index.file, error)
    return None


def reach_of(snapshot: Snapshot, atoms: Sequence[Atom], time_range: TimeRange) -> Reach:
    """Return how many events meet any of some conditions, and what it costs to find them."""
    reaches = [reach_of_one(snapshot, *atom, time_range) for atom in atoms]
    return Reach(
        sum(each.events for each in reaches),
        sum(each.entries for each in reaches),
        sum(each.lookups for each in reaches),
        sum(each.read_rows for each in reaches),
        # Those of several values are put in order together.
        reaches[0].in_time if len(reaches) == 1 else 0,
    )


def reach_of_one(
    snapshot: Snapshot, attribute: str, wanted: ValueRange, time_range: TimeRange
) -> Reach:
    """Return how many events a condition has and what finding them costs; reads almost nothing."""
    events = entries = lookups = read_rows = 0
    for segment in snapshot.segments:
        if not time_range.overlaps(segment.time_range):
            continue
        reader = reader_for(snapshot, segment, attribute)
        count = None if reader is None else counted(reader, wanted)
        if count is None:
            share = share_of(snapshot, segment, attribute, wanted)
            events += round(share * segment.rows * inside(segment, time_range))
            read_rows += segment.rows if share else 0
        else:
            # The index does not know which of them are in the time range.
            events += round(count * inside(segment, time_range))
            entries, lookups = entries + count, lookups + 1
    for rows in snapshot.memory:
        if rows.num_rows:
            events += int(wanted.mask(rows.column(attribute)).sum())
    return Reach(events, entries, lookups, read_rows, entries if wanted.is_equality else 0)


def inside(segment: Segment, time_range: TimeRange) -> float:
    """Return about which share of a segment's rows lies in a time range."""
    own = segment.time_range
    common = own.intersect(time_range)
    return max(0, common.end_us - common.start_us) / max(1, own.end_us - own.start_us)


def sampled_times(
    snapshot: Snapshot, atoms: Sequence[Atom], time_range: TimeRange
) -> tuple[Int64s, Floats]:
    """Return times of some events that meet any of some conditions, and the weight of each.

    It reads a page from the middle of the range in each run: entries are in order of values, so its
    times are like those of the other events.
    """
    found: list[Int64s] = [np.empty(0, np.int64)]
    counts = [np.empty(0)]
    for attribute, wanted in atoms:
        for segment in snapshot.segments:
            if not time_range.overlaps(segment.time_range):
                continue
            reader = reader_for(snapshot, segment, attribute)
            try:
                runs = [] if reader is None else reader.found(wanted)
                for run, start, stop in runs:
                    middle = (start + stop) // 2
                    part = next(run.times(middle, min(stop, middle + SAMPLED)), None)
                    if part is not None:
                        found.append(part[0])
                        counts.append(np.full(len(part[0]), (stop - start) / len(part[0])))
            except (DamagedRunError, StoreError):
                continue
    times = np.concatenate(found)
    asked = (times >= time_range.start_us) & (times < time_range.end_us)
    return times[asked], np.concatenate(counts)[asked]


def counted(reader: SecondaryReader, wanted: ValueRange) -> int | None:
    """Return how many entries an index has in a range; None if it turns out to be damaged."""
    try:
        return reader.count(wanted)
    except (DamagedRunError, StoreError):
        return None


def share_of(snapshot: Snapshot, segment: Segment, attribute: str, wanted: ValueRange) -> float:
    """Return about which share of a segment's rows meets a condition, estimated from its leaves."""
    if not snapshot.columns.stored_in(segment, [attribute]):
        return 0.0
    if attribute not in segment.form.summaries:
        return UNKNOWN_SHARE
    entries = leaf_entries(snapshot.path, segment)
    low, high = (entries.column(f"{attribute}.{end}") for end in ("min", "max"))
    possible = wanted.may_hold(low, high)
    inside = np.where(possible, UNKNOWN_SHARE, 0.0)
    kind = low.type
    if kind in NUMBERS:
        inside = np.where(possible, overlap(low, high, checked(wanted, type_of(low))), 0.0)
    rows = place(entries, "rows")
    return float((inside * rows).sum() / max(1, rows.sum()))


def overlap(minima: pa.Array, maxima: pa.Array, wanted: ValueRange) -> Floats:
    """Return which part of the range of each leaf's values lies in a range."""
    low, high = (
        halved(column.cast(pa.float64(), safe=False).fill_null(0).to_numpy(zero_copy_only=False))
        for column in (minima, maxima)
    )
    bottom = low if wanted.low is None else np.maximum(low, halved(float(str(wanted.low))))
    top = high if wanted.high is None else np.minimum(high, halved(float(str(wanted.high))))
    width = np.maximum(high - low, 1e-300)
    # A value that is met exactly has some rows too.
    return np.asarray(np.clip(np.maximum(top - bottom, 0.0) / width, SMALLEST_SHARE, 1.0))


def halved(values: Floats | float) -> Floats:
    """Return half of each value, so that the difference of any two is a number; NaN is largest."""
    return np.asarray(np.nan_to_num(values, nan=LARGEST) / 2)
