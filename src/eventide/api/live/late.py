"""Late events of a live query."""

from __future__ import annotations

from collections import deque

import pyarrow as pa

LATE_ROWS_KEPT = 100_000
"""Late events are always counted; this many of the newest are kept."""

LATE_ROWS_TOGETHER = 1_000
"""Late events are put together in batches of this many."""


class LateEvents:
    """Late events of a stream: all are counted, the newest ones are kept."""

    def __init__(self) -> None:
        self.count = 0
        self.kept: deque[pa.RecordBatch] = deque()
        self.kept_rows = 0

    def add(self, late: pa.RecordBatch) -> None:
        """Count late events, and keep them in place of the oldest ones."""
        self.count += late.num_rows
        self.kept_rows += late.num_rows
        if self.kept and len(self.kept[-1]) + late.num_rows <= LATE_ROWS_TOGETHER:
            # Each batch takes about a kilobyte beside its rows, and events may come one by one.
            late = pa.concat_batches([self.kept.pop(), late])
        self.kept.append(late)
        while self.kept_rows - len(self.kept[0]) >= LATE_ROWS_KEPT:
            self.kept_rows -= len(self.kept.popleft())
