"""A standing query: results as soon as they are complete, late events counted and kept."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from eventide.batch import START_OF_TIME_US
from eventide.engines.live import Arrival, LiveEngine
from eventide.result import Result

LATE_ROWS_KEPT = 100_000
"""Late events are counted for ever; this many of the newest are kept to be looked at."""

OnResult = Callable[[Result], None]


class Subscription:
    """A query that runs live over one stream; `Database.subscribe` makes it."""

    def __init__(self, engine: LiveEngine, on_result: OnResult | None = None) -> None:
        self.engine = engine
        self.on_result = on_result
        self.state = engine.initial_state()
        self.watermark_us = START_OF_TIME_US
        self.late_count = 0
        self.kept_late: list[pa.RecordBatch] = []
        self.finished = False

    def push(self, arrived: pa.RecordBatch) -> Result:
        """Take events that have just arrived; return (and report) the results they complete."""
        self.state, arrival = self.engine.push(self.state, arrived)
        return self.report(arrival)

    def finish(self) -> Result:
        """Complete all that is open, as if the stream had ended; later events are ignored."""
        self.state, arrival = self.engine.finish(self.state)
        self.finished = True
        return self.report(arrival)

    def late(self) -> Result:
        """Return the late events that are kept, with the columns that the query reads."""
        return Result(pa.Table.from_batches(self.kept_late, self.engine.ordering.schema))

    def report(self, arrival: Arrival) -> Result:
        """Count and keep what is late, hand over what is complete."""
        self.watermark_us = arrival.watermark_us
        if arrival.late.num_rows:
            self.late_count += arrival.late.num_rows
            self.kept_late.append(arrival.late)
            while sum(map(len, self.kept_late[1:])) >= LATE_ROWS_KEPT:
                self.kept_late.pop(0)
        result = Result(pa.Table.from_batches([arrival.results]))
        if self.on_result is not None and len(result):
            self.on_result(result)
        return result
