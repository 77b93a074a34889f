"""What engines read, and how a period is cut into balanced slices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide.instants import ALL_TIME, TimeRange
from eventide.schema import Schema

NO_TIME = TimeRange(0, 0)
"""The time range of a source without rows."""
SCAN_ROWS = 1 << 19
"""How many rows a scanned batch has, about: enough for kernels, little enough for caches."""

MOST_SLICES = 10_000
"""There are at most about this many slices, even if they are asked to have few rows."""


Where = Mapping[str, object]
"""Conditions by attribute: a value, a (low, high) pair, or a `ValueRange`."""


@dataclass(frozen=True, slots=True)
class TimeSlice:
    """A part of a source, and about how many rows it has."""

    time_range: TimeRange
    rows: int


class EventSource(Protocol):
    """Events in order of (ts, _seq). Sources are immutable, and can be pickled."""

    @property
    def name(self) -> str:
        """The stream's name."""
        ...

    @property
    def schema(self) -> Schema:
        """The stream's schema."""
        ...

    @property
    def row_count(self) -> int:
        """How many events there are."""
        ...

    @property
    def time_range(self) -> TimeRange:
        """[first ts, last ts + 1), or an empty range if there are no events."""
        ...

    def scan(
        self,
        columns: Sequence[str],
        time_range: TimeRange = ALL_TIME,
        where: Where | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the events of a time range in order of (ts, _seq), in batches, none empty.

        Events that do not meet a condition of `where` may be left out, but need not be.
        """
        ...

    def slices(self, time_range: TimeRange, target_rows: int) -> list[TimeSlice]:
        """Cut a time range into disjoint, ordered slices of about `target_rows` rows each.

        Together they hold every event of the range; their row counts are estimates.
        """
        ...


def balanced_slices(
    periods: Sequence[tuple[int, int, int]], time_range: TimeRange, target_rows: int
) -> list[TimeSlice]:
    """Cut time so that each slice has about `target_rows` rows.

    A period is (min_ts, max_ts, rows), its rows assumed to be evenly spread.

    >>> balanced_slices([(0, 9, 100)], TimeRange(0, 5), 25)
    [TimeSlice(time_range=TimeRange(start_us=0, end_us=2), rows=20),
     TimeSlice(time_range=TimeRange(start_us=2, end_us=5), rows=30)]
    """
    periods = [s for s in periods if time_range.overlaps(TimeRange(s[0], s[1] + 1))]
    if not periods:
        return []
    start = min(period[0] for period in periods)
    covered = time_range.intersect(TimeRange(start, max(period[1] for period in periods) + 1))
    times, rows_before = cumulative_rows(periods, start)
    lowest, highest = np.interp(
        [covered.start_us - start, covered.end_us - start], times, rows_before
    )
    count = min(MOST_SLICES, max(1, round((highest - lowest) / max(1, target_rows))))
    wanted = np.linspace(lowest, highest, count + 1)[1:-1]
    # Whole microseconds only; where many rows share an instant, several cuts fall together. Over
    # centuries the arithmetic is coarser than a microsecond, and may land outside.
    inner = {start + int(offset) for offset in np.interp(wanted, rows_before, times)}
    cuts = sorted({covered.start_us, covered.end_us} | {c for c in inner if in_range(c, covered)})
    rows = np.rint(np.interp([cut - start for cut in cuts], times, rows_before)).astype(int)
    return [
        TimeSlice(TimeRange(begin, end), int(after - before))
        for begin, end, before, after in zip(cuts, cuts[1:], rows, rows[1:], strict=False)
    ]


def in_range(ts: int, time_range: TimeRange) -> bool:
    """Whether an instant lies inside."""
    return time_range.start_us <= ts < time_range.end_us


def cumulative_rows(
    periods: Sequence[tuple[int, int, int]], start: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return instants after `start`, and how many rows lie before each."""
    table = np.array(periods, dtype=np.int64)
    begins, ends, rows = table[:, 0] - start, table[:, 1] + 1 - start, table[:, 2]
    density = rows / (ends - begins)
    times, place = np.unique(np.concatenate([begins, ends]), return_inverse=True)
    change = np.zeros(len(times))
    np.add.at(change, place, np.concatenate([density, -density]))
    gained = np.cumsum(change)[:-1] * np.diff(times)
    # Rounding may leave a gap between periods with a density a hair below zero.
    rows_before = np.concatenate([[0.0], np.cumsum(np.maximum(gained, 0.0))])
    return times.astype(np.float64), rows_before
