"""Estimate rate, values and conditions of a window from the newest stored events of its stream.

Values come in bursts: a window of a thousand events has fewer different ones than a thousand events
from random places. So consecutive events are counted, as long as the window if it is short. For a
long window, runs spread over its length are counted, and the number of runs that have a value tells
how many values are in none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from eventide.instants import TimeRange
from eventide.kernels.compiled import Int64s
from eventide.operators.expressions.evaluate import evaluate_predicate
from eventide.plan.expressions import Expression
from eventide.plan.standing.statistics import ColumnValues
from eventide.store.source import EventSource, TimeSlice

SAMPLE_ROWS = 1 << 16
RUNS = 16
RUN_ROWS = SAMPLE_ROWS // RUNS
MOST_BYTES = 1 << 26
"""A sample of long texts is not worth more memory: then it has fewer events."""
MOST_PARTS = 1 << 8
"""The index is read no deeper than to about this many parts of the stream."""
MOST_RUNS = 64
"""This many windows are compared, if the sample is that much longer than they are."""
PAIRED_ROWS = 1 << 10
"""How often rows have the same value is counted in at least this many consecutive rows."""
FEW_ALIKE = 32
"""With fewer pairs of equal rows, all values are assumed to be different."""
SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Sample:
    """Events of a stream: those of one run follow each other, the runs are apart."""

    rows: pa.RecordBatch
    runs: tuple[int, ...]
    """How many rows each has."""
    rate: float
    """How many come in a second, in the time that the sample is from."""

    def __len__(self) -> int:
        count: int = self.rows.num_rows
        return count

    def named(self, alias: str) -> Sample:
        """Return the events with columns as a window of that name has them."""
        names = [f"{alias}.{name}" for name in self.rows.schema.names]
        return replace(self, rows=self.rows.rename_columns(names))

    def share(self, condition: Expression) -> float:
        """Return the share of the events on which a condition is true.

        A condition that is true on none may be true on the next: half an event is counted for it.
        """
        passing: int = evaluate_predicate(condition, self.rows).true_count
        return max(float(passing), 0.5) / len(self)

    def values(self, column: str, window_rows: float) -> ColumnValues:
        """Return the values that a column has in a window of this many events."""
        return values_in(codes_of(self.rows.column(column)), self.runs, window_rows)


def sample_of(
    source: EventSource, columns: Sequence[str], within: TimeRange, window_us: int
) -> Sample | None:
    """Return the newest events of a stream, of as long a time as a window if these are more.

    None if there are none. `columns` are read.
    """
    whole = source.time_range.intersect(within)
    if whole.is_empty:
        return None
    period, slices = newest(source, whole, window_us)
    expected = sum(each.rows for each in slices)
    follow = expected <= 2 * SAMPLE_ROWS
    if follow:
        ranges = [each.time_range for each in slices] or [period]
    else:
        places = np.linspace(0, len(slices) - 1, RUNS).astype(int)
        ranges = [beginning(slices[place]) for place in dict.fromkeys(places.tolist())]
    read = last_of(source, columns, ranges)
    if not read:
        return None
    rows = pa.concat_batches(read)
    seconds = max(1.0, (period.end_us - period.start_us) / SECOND_US)
    # Parts that the index lists may lie partly before the time range.
    count = rows.num_rows if follow and len(read) == len(ranges) else expected
    runs = (rows.num_rows,) if follow else tuple(each.num_rows for each in read)
    return Sample(rows, runs, count / seconds)


def newest(
    source: EventSource, whole: TimeRange, window_us: int
) -> tuple[TimeRange, list[TimeSlice]]:
    """Return the time of the last window, longer if that has few events, and its parts."""
    parts = max(RUN_ROWS, source.row_count // MOST_PARTS)
    length_us = max(1, window_us)
    while True:
        period = TimeRange(max(whole.start_us, whole.end_us - length_us), whole.end_us)
        slices = source.slices(period, parts)
        if period == whole or sum(each.rows for each in slices) >= SAMPLE_ROWS:
            break
        length_us *= 4
    # That may be far more than a sample and a window: what is before them is left out.
    start_us = whole.end_us - window_us
    slices = enough(slices, start_us)
    if slices and len(slices) < RUNS and parts > RUN_ROWS:
        rest = TimeRange(slices[0].time_range.start_us, whole.end_us)
        slices = enough(source.slices(rest, RUN_ROWS), start_us)
    first_us = slices[0].time_range.start_us if slices else period.start_us
    return TimeRange(first_us, whole.end_us), slices


def enough(slices: Sequence[TimeSlice], latest_us: int) -> list[TimeSlice]:
    """Return the last parts, as far back as a time and as many as make a sample."""
    rows = 0
    for place in range(len(slices) - 1, -1, -1):
        rows += slices[place].rows
        if rows >= SAMPLE_ROWS and slices[place].time_range.start_us <= latest_us:
            return list(slices[place:])
    return list(slices)


def beginning(part: TimeSlice) -> TimeRange:
    """Return the time of about a run of a part, as if its events were evenly spread."""
    period = part.time_range
    share = min(1.0, RUN_ROWS / max(part.rows, 1))
    return TimeRange(
        period.start_us, period.start_us + max(1, int((period.end_us - period.start_us) * share))
    )


def last_of(
    source: EventSource, columns: Sequence[str], ranges: Sequence[TimeRange]
) -> list[pa.RecordBatch]:
    """Return the events of each time that has some, of the last ones only if they are large."""
    read: list[pa.RecordBatch] = []
    size = 0
    for period in reversed(ranges):
        batches = list(source.scan(columns, period))
        if batches:
            read.append(pa.concat_batches(batches))
            size += read[-1].nbytes
        if size > MOST_BYTES:
            break
    return read[::-1]


def codes_of(column: pa.Array) -> Int64s:
    """Return a number for each value of a column, from 0 on; -1 for null."""
    indices = column.dictionary_encode().indices
    codes: Int64s = indices.cast(pa.int64()).fill_null(-1).to_numpy()
    return codes


def values_in(codes: Int64s, runs: Sequence[int], window_rows: float) -> ColumnValues:
    """Return the values that a window of this many rows has, from a sample of codes."""
    length = max(1, round(window_rows))
    nulls = float((codes < 0).mean())
    if len(runs) == 1 and length <= len(codes):
        distinct = float(np.mean([different(run) for run in runs_of(codes, length)]))
        paired = runs_of(codes, min(len(codes), max(length, PAIRED_ROWS)))
    else:
        parts = np.array_split(codes, min(RUNS, len(codes)))
        if len(runs) > 1:
            parts = np.split(codes, np.cumsum(runs)[:-1])
        distinct, paired = extrapolated(parts, window_rows), [codes]
    distinct = max(1.0, distinct)
    return ColumnValues(distinct, evened(paired, distinct), nulls)


def runs_of(codes: Int64s, length: int) -> list[Int64s]:
    """Return runs of this many rows, spread over all."""
    count = max(1, min(MOST_RUNS, len(codes) // length))
    starts = np.linspace(0, len(codes) - length, count).astype(int)
    return [codes[start : start + length] for start in starts.tolist()]


def different(codes: Int64s) -> int:
    """Return how many values there are, null not among them."""
    return int(np.count_nonzero(counts_of(codes)))


def counts_of(codes: Int64s) -> Int64s:
    """Return how often each value is there."""
    there = codes[codes >= 0]
    counts: Int64s = np.bincount(there)
    return counts


def evened(runs: Sequence[Int64s], distinct: float) -> float:
    """Return the number of equally frequent values that would be equal in two rows as often.

    If hardly any rows have the same value, each may well occur once: then one row of another stream
    for each different value is the best guess.
    """
    alike = sum(float((counts * (counts - 1)).sum()) for counts in map(counts_of, runs))
    pairs = float(sum(len(run) * (len(run) - 1) for run in runs))
    return distinct if alike < FEW_ALIKE else pairs / alike


def extrapolated(parts: Sequence[Int64s], window_rows: float) -> float:
    """Return how many different values this many rows have, of which these parts are a sample.

    As ecologists count species by the plots that have them (Chao2, and Colwell et al. 2012 for more
    plots than there are): many values in only one part suggest many in none.
    """
    plots = np.bincount(np.concatenate([np.flatnonzero(counts_of(part)) for part in parts]))
    seen, once, twice = (float(np.sum(each)) for each in (plots > 0, plots == 1, plots == 2))
    count = len(parts)
    more = max(0.0, window_rows * count / sum(map(len, parts)) - count)
    unseen = (count - 1) / count * once * (once - 1) / (2 * (twice + 1))
    if not unseen:
        return seen
    missed: float = (1.0 - once / (count * unseen + once)) ** more
    return seen + unseen * (1.0 - missed)
