"""Read stored events by their numbers, in order of `_seq`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from eventide.instants import ALL_TIME
from eventide.schema import SEQ
from eventide.store import StoredStream

EVENTS_AT_ONCE = 50_000
"""So many stored events are taken in one step, at most."""
EVENTS_READ = 400_000
"""So many are read at once, at most: those of some steps."""


def read_numbered(
    stored: StoredStream, columns: Iterable[str], start: int, end: int
) -> Iterator[pa.RecordBatch]:
    """Yield the stored events of a stream with numbers from `start` to before `end`."""
    while start < end:
        # What comes while a query runs reaches it once, however soon it expires.
        snapshot = stored.everything().since(start)
        known = [name for name in columns if name in snapshot.schema.arrow.names]
        names = list(dict.fromkeys((*known, SEQ)))
        rows, start = numbered(snapshot.scan(names, ALL_TIME), start, end)
        for place in range(0, rows.num_rows, EVENTS_AT_ONCE):
            yield rows.slice(place, EVENTS_AT_ONCE)


def numbered(batches: Iterable[pa.RecordBatch], start: int, end: int) -> tuple[pa.RecordBatch, int]:
    """Return events in the order of their numbers, the first ones from `start` to before `end`.

    The number that follows comes with them. Numbers of events that are gone are passed over.
    """
    chosen: list[pa.RecordBatch] = []
    stop = min(end, start + EVENTS_READ)
    following = end
    for rows in batches:
        seq = rows.column(SEQ).to_numpy()
        later = seq[(seq >= stop) & (seq < following)]
        following = int(later.min()) if later.size else following
        chosen.append(numbered_between(rows, start, stop))
    if not chosen:
        return pa.RecordBatch.from_pylist([]), following
    return in_order(pa.concat_batches(chosen)), following


def in_order(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return events in the order of their numbers."""
    order = np.argsort(rows.column(SEQ).to_numpy(), kind="stable")
    return rows.take(pa.array(order))


def numbered_between(rows: pa.RecordBatch, start: int, end: int) -> pa.RecordBatch:
    """Return the events with numbers from `start` to before `end`."""
    seq = rows.column(SEQ).to_numpy()
    inside = (seq >= start) & (seq < end)
    return rows if inside.all() else rows.filter(pa.array(inside))


def sorted_between(rows: pa.RecordBatch, start: int, end: int) -> pa.RecordBatch:
    """Return the same of events that are in order of their numbers."""
    first, last = np.searchsorted(rows.column(SEQ).to_numpy(), [start, end])
    return rows.slice(int(first), int(last - first))
