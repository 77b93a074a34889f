"""A standing query: results as soon as they are complete, late events counted and kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pyarrow as pa

from eventide.batch import START_OF_TIME_US
from eventide.engines.live import Arrival, LiveEngine
from eventide.errors import EventideError, pointing_into
from eventide.result import Result

LATE_ROWS_KEPT = 100_000
"""Late events are counted for ever; this many of the newest are kept to be looked at."""

OnResult = Callable[[Result], None]


class Subscription:
    """A query that runs live over one stream; `Database.subscribe` makes it.

    A query that meets a value without an answer, such as an overflow, cannot go on: it is
    finished, and `failure` says why.
    """

    def __init__(
        self, engine: LiveEngine, on_result: OnResult | None = None, *, text: str = ""
    ) -> None:
        self.engine = engine
        self.on_result = on_result
        self.text = text
        self.state = engine.initial_state()
        self.watermark_us = START_OF_TIME_US
        self.late_count = 0
        self.kept_late: deque[pa.RecordBatch] = deque()
        self.kept_late_rows = 0
        self.finished = False
        self.failure: EventideError | None = None

    def push(self, arrived: pa.RecordBatch, newest_us: int | None = None) -> Result:
        """Take events that have just arrived; return (and report) the results they complete.

        `newest_us` is the newest time seen anywhere, where other streams share the clock.
        """
        if self.finished:
            return Result(self.engine.pipeline.output_schema.empty_table())
        try:
            with pointing_into(self.text):
                self.state, arrival = self.engine.push(self.state, arrived, newest_us)
        except EventideError as error:
            # The events that led here are lost to this query: going on would give wrong answers.
            self.finished, self.failure = True, error
            raise
        return self.report(arrival)

    def finish(self) -> Result:
        """Complete all that is open, as if the stream had ended; later events are ignored."""
        if self.finished:
            return Result(self.engine.pipeline.output_schema.empty_table())
        self.finished = True
        with pointing_into(self.text):
            self.state, arrival = self.engine.finish(self.state)
        return self.report(arrival)

    def late(self) -> Result:
        """Return the late events that are kept, with the columns that the query reads."""
        return Result(pa.Table.from_batches(self.kept_late, self.engine.ordering.schema))

    def report(self, arrival: Arrival) -> Result:
        """Count and keep what is late, hand over what is complete."""
        self.watermark_us = arrival.watermark_us
        if arrival.late.num_rows:
            self.keep_late(arrival.late)
        result = Result(pa.Table.from_batches([arrival.results]))
        if self.on_result is not None and len(result):
            self.on_result(result)
        return result

    def keep_late(self, late: pa.RecordBatch) -> None:
        """Count late events, and keep them in place of the oldest ones."""
        self.late_count += late.num_rows
        self.kept_late.append(late)
        self.kept_late_rows += late.num_rows
        while self.kept_late_rows - len(self.kept_late[0]) >= LATE_ROWS_KEPT:
            self.kept_late_rows -= len(self.kept_late.popleft())
