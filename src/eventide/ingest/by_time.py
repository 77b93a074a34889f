"""Take stored events of several streams in order of time, as they may have come."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import numpy as np
import pyarrow as pa

from eventide.ingest.ordering import times
from eventide.instants import END_OF_TIME_US


class ReadAhead:
    """The events of one stream in order of arrival, read a batch ahead."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self.batches = batches
        self.rows: pa.RecordBatch | None = None
        self.place = 0
        self.read()

    def read(self) -> None:
        """Read the next batch that has events; None if there is none."""
        self.place = 0
        self.rows = next((rows for rows in self.batches if rows.num_rows), None)
        if self.rows is not None:
            self.ts = times(self.rows)
            self.newest = np.maximum.accumulate(self.ts)

    def next_us(self) -> int:
        """Return the time of the next event."""
        return int(self.ts[self.place])

    def taken(self, until_us: int, most: int) -> pa.RecordBatch:
        """Return the events before the first one behind an instant; at least one, some at most."""
        assert self.rows is not None
        behind = int(np.searchsorted(self.newest, until_us, side="right"))
        end = min(max(behind, self.place + 1), self.place + most)
        rows = self.rows.slice(self.place, end - self.place)
        self.place = end
        if end >= self.rows.num_rows:
            self.read()
        return rows


def by_time(
    streams: Mapping[str, Iterator[pa.RecordBatch]],
    first: Collection[str],
    lag_us: int | None,
    most: int,
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the events of several streams, each in its order, the stream that is behind first.

    No stream goes further than `lag_us` beyond the next event of another, unless a single event
    does. Of the same time, events of the streams `first` come first. `most` events come together.
    """
    ahead = {name: ReadAhead(batches) for name, batches in streams.items()}
    while ahead := {name: each for name, each in ahead.items() if each.rows is not None}:
        stream = min(ahead, key=lambda name: (ahead[name].next_us(), name not in first))
        others = [each.next_us() for name, each in ahead.items() if name != stream]
        until_us = END_OF_TIME_US
        if others and lag_us is not None:
            until_us = min(until_us, min(others) + lag_us)
        yield stream, ahead[stream].taken(until_us, most)
