"""A derived stream while live queries read it: it runs once for all of them.

It is a live query itself, whose rows go to its readers: with numbers like those of stored events,
and with the instant before which all of them have come.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from eventide.api.live.query import LiveQuery, Step
from eventide.api.result import Result
from eventide.api.stream import with_seq_from
from eventide.engines.live.engine import LiveEngine
from eventide.instants import START_OF_TIME_US
from eventide.plan.named import NamedQuery
from eventide.schema import Schema
from eventide.store import TableSource


@dataclass(frozen=True, slots=True)
class EmittedRows:
    """The rows of a step of a derived stream, and the instant before which all have come."""

    rows: pa.RecordBatch
    reached_us: int


class RunningStream(LiveQuery):
    """A derived stream that runs. Its rows are certain, so they are never late for a reader."""

    def __init__(self, definition: NamedQuery, schema: Schema, engine: LiveEngine) -> None:
        super().__init__(engine, text=definition.text)
        self.definition = definition
        self.schema = schema
        self.next_seq = 0
        """The number of the next row."""
        self.steps = 0
        """How many steps it has taken."""
        self.wanted = True
        """Whether a query that starts will read it: until then it stays, though nobody does."""
        self.reached_us = START_OF_TIME_US
        self.emitted = self.numbered(engine.output_schema.empty_table(), self.reached_us)

    def copy(self) -> RunningStream:
        """Return another one that goes on from here by itself."""
        other = RunningStream(self.definition, self.schema, self.engine)
        other.wanted = False
        with self.stepping:
            other.state = self.engine.load(self.engine.dump(self.state))
            other.watermark_us, other.reached_us = self.watermark_us, self.reached_us
            other.next_seq, other.steps = self.next_seq, self.steps
            other.finished, other.failure = self.finished, self.failure
        other.sources = self.sources
        return other

    def nothing(self) -> TableSource:
        """Return what a query that begins now knows of its rows: none."""
        return TableSource(self.definition.name, self.schema, self.schema.arrow.empty_table())

    def stepped(self, step: Step) -> Result:
        """Take a step, and keep its rows for the readers until the next one."""
        result = super().stepped(step)
        self.steps += 1
        self.reached_us = max(self.reached_us, self.engine.complete_until(self.state))
        self.emitted = self.numbered(result.to_arrow(), self.reached_us)
        self.next_seq += len(result)
        return result

    def numbered(self, rows: pa.Table, reached_us: int) -> EmittedRows:
        """Return rows as events, with numbers."""
        events = pa.RecordBatch.from_arrays(
            [column.combine_chunks() for column in rows.columns], schema=rows.schema
        )
        return EmittedRows(with_seq_from(events, self.next_seq), reached_us)

    def ended(self) -> EmittedRows:
        """Return the rows that it would still emit if its streams ended here; it goes on.

        The instant is that of the newest of all events.
        """
        engine = self.engine
        state = engine.load(engine.dump(self.state))
        below = {name: source.ended() for name, source in self.sources.items()}
        rows = {name: each.rows for name, each in below.items()}
        newest = {name: each.reached_us for name, each in below.items()}
        state, before = engine.take_last(state, rows, newest)
        newest_us = max(held.newest_us for held in state.feeds)
        _, last = engine.finish(state)
        return self.numbered(pa.Table.from_batches([before.rows, last.rows]), newest_us)
