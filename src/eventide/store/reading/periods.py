"""Partials of many periods at once, from the index where possible.

Every leaf lies entirely in one period, or a cut goes through it. The entries of the first kind are
merged by period, in one call for all; leaves of the second kind are read, in parallel threads. One
look at the times of all leaves decides that; it does not matter whether they overlap because events
came late. In segments whose index lacks an aggregate, all leaves are read.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.errors import StoreError
from eventide.instants import moment
from eventide.kernels.compiled import Bools, Int64s
from eventide.store.reading.borders import Border, PeriodPartials, partials_of_rows
from eventide.store.reading.cuts import Cuts
from eventide.store.reading.leaf_sums import Leaves
from eventide.store.reading.leaves import leaf_entries
from eventide.store.reading.question import AggregateQuestion
from eventide.store.segments.segment import Segment
from eventide.store.segments.tree import place, those
from eventide.store.snapshot import Snapshot
from eventide.threads import in_threads

FEW_GROUPS = 2
"""Up to this many groups of leaves are read sooner than another thread can start."""
THREADS = os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Cover:
    """What a segment has between the cuts: entries that lie in one period each, leaves to read."""

    periods: Int64s
    whole: pa.RecordBatch
    border: Border


def period_partials_of(
    snapshot: Snapshot, question: AggregateQuestion, cuts: Cuts
) -> PeriodPartials:
    """Return partials that together stand for every event between the cuts, in order of periods."""
    return read_covers(snapshot, question, cuts, covers_of(snapshot, question, cuts))


def covers_of(snapshot: Snapshot, question: AggregateQuestion, cuts: Cuts) -> list[Cover]:
    """Return what each segment has between the cuts; only entries of the index are read."""
    return [
        cover_of(snapshot, segment, question, cuts)
        for segment in snapshot.segments
        if cuts.times.overlaps(segment.time_range)
    ]


def read_covers(
    snapshot: Snapshot, question: AggregateQuestion, cuts: Cuts, covers: Sequence[Cover]
) -> PeriodPartials:
    """Read the leaves that have to be read, and return all partials in order of periods."""
    if cuts.times.is_empty:
        return PeriodPartials(np.empty(0, np.int64), question.empty)
    parts = [PeriodPartials(cover.periods, cover.whole) for cover in covers]
    groups = [
        group
        for cover in covers
        if cover.border.entries.num_rows
        for group in cover.border.groups()
    ]
    if len(groups) <= FEW_GROUPS or THREADS == 1:
        parts += [group.partials() for group in groups]
    else:
        parts += in_threads(Border.partials, groups, THREADS)
    parts += [partials_of_rows(rows, question, cuts) for rows in snapshot.memory if rows.num_rows]
    return in_order(question, parts)


def cover_of(
    snapshot: Snapshot, segment: Segment, question: AggregateQuestion, cuts: Cuts
) -> Cover:
    """Return the entries of a segment that lie in one period each, and the leaves to be read."""
    columns, times = snapshot.columns, cuts.times
    known = question.known_to(segment, columns)
    entries = segment.summary()
    if not (known and lie_whole(entries, cuts).all()):
        entries = leaf_entries(snapshot.path, segment)
    ts_min, ts_max = place(entries, "ts_min"), place(entries, "ts_max")
    touched = (ts_max >= times.start_us) & (ts_min < times.end_us)
    if not touched.all():
        entries = entries.filter(pa.array(touched))
        ts_min, ts_max = place(entries, "ts_min"), place(entries, "ts_max")
    first = cuts.periods_of(np.maximum(ts_min, times.start_us))
    last = cuts.periods_of(np.minimum(ts_max, times.end_us - 1))
    asked = (first != last) | cuts.are_asked(first)
    whole = lie_whole(entries, cuts) & asked & known
    read = asked & ~whole
    if read.any() and segment.thinned:
        raise thinned_away(snapshot.name, segment)
    found = question.empty
    if whole.any():
        found = question.of_stored(those(entries.select(question.stored.names), whole))
    unread = entries.filter(pa.array(read)) if read.any() else entries.slice(0, 0)
    leaves = Leaves(snapshot.path, segment, unread, question, columns)
    return Cover(first[whole], found, Border(leaves, cuts))


def lie_whole(entries: pa.RecordBatch, cuts: Cuts) -> Bools:
    """Return which entries lie in one period each."""
    times = cuts.times
    ts_min, ts_max = place(entries, "ts_min"), place(entries, "ts_max")
    inside: Bools = (ts_min >= times.start_us) & (ts_max < times.end_us)
    low, high = np.maximum(ts_min, times.start_us), np.minimum(ts_max, times.end_us - 1)
    inside &= cuts.periods_of(low) == cuts.periods_of(high)
    return inside


def in_order(question: AggregateQuestion, parts: Sequence[PeriodPartials]) -> PeriodPartials:
    """Return all partials in order of their periods."""
    periods = np.concatenate([np.empty(0, np.int64), *(part.periods for part in parts)])
    entries = pa.concat_batches([question.empty, *(part.entries for part in parts)])
    if (periods[1:] >= periods[:-1]).all():
        return PeriodPartials(periods, entries)
    order = np.argsort(periods, kind="stable")
    return PeriodPartials(periods[order], entries.take(pa.array(order)))


def merged_by_period(
    question: AggregateQuestion, found: PeriodPartials, cuts: Cuts
) -> PeriodPartials:
    """Return one partial for each period that is asked for and has events."""
    periods, entries = found.periods, found.entries
    begins = np.flatnonzero(np.append(True, periods[1:] != periods[:-1])[: len(periods)])
    if len(begins) < len(periods):
        entries = question.of_entries(entries, np.append(begins, len(periods)))
        periods = periods[begins]
    asked = cuts.are_asked(periods)
    if asked.all():
        return PeriodPartials(periods, entries)
    return PeriodPartials(periods[asked], entries.filter(pa.array(asked)))


def dense(question: AggregateQuestion, found: PeriodPartials, periods: int) -> pa.RecordBatch:
    """Return one partial for each of the periods 0 to `periods` - 1, with events or without."""
    return question.of_entries(
        found.entries, np.searchsorted(found.periods, np.arange(periods + 1))
    )


def thinned_away(name: str, segment: Segment) -> StoreError:
    """Return the error for a question that only thinned events could answer."""
    message = f"the events of {name} in this period were thinned to aggregates"
    period = f"{moment(segment.ts_min)} to {moment(segment.ts_max)}"
    hint = f"ask for a period that has all or nothing of {period}; `stats()` lists such periods"
    return StoreError(message, hint=hint)
