"""Drive a live query: events arrive in steps, its state is dumped and loaded in between."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from eventide.engines.live.engine import LiveEngine, LiveState, Reported
from eventide.operators.columns import concat_batches
from eventide.schema import Schema
from tests.engines.engines import plain
from tests.naive.windows import Event

Step = Mapping[str, Sequence[Event]]
"""The events of each stream that arrive together."""


@dataclass
class Lived:
    """What a live query has reported."""

    rows: list[Event] = field(default_factory=list)
    late: set[tuple[str, int]] = field(default_factory=set)
    """The stream and the number of each event that was late."""
    told: list[tuple[int, list[Event]]] = field(default_factory=list)
    """After each step, the watermark and all rows so far."""

    def add(self, reported: Reported) -> None:
        self.rows += plain(pa.Table.from_batches([reported.rows]))
        for stream, rows in reported.late.items():
            self.late |= {(stream, seq) for seq in rows.column("_seq").to_pylist()}
        self.told.append((reported.watermark_us, list(self.rows)))

    def on_time(self, streams: Step) -> dict[str, list[Event]]:
        """The events that were not late."""
        return {
            stream: [event for event in events if (stream, event["_seq"]) not in self.late]
            for stream, events in streams.items()
        }


def lived(
    engine: LiveEngine,
    steps: Iterable[Step],
    schemas: Mapping[str, Schema],
    state: LiveState | None = None,
) -> Lived:
    """Run a query to its end. The rows of a standing query are those of its answer at the end."""
    state, found = state or engine.initial_state(), Lived()
    for step in steps:
        state, reported = engine.take(state, arrived(engine, step, schemas))
        found.add(reported)
        state = engine.load(engine.dump(state))
    state, reported = engine.finish(state)
    found.add(reported)
    if engine.tree.reporter is not None and engine.tree.reporter.report == "current":
        found.rows = plain(pa.Table.from_batches([engine.current(state)]))
    return found


def arrived(
    engine: LiveEngine, step: Step, schemas: Mapping[str, Schema]
) -> dict[str, pa.RecordBatch]:
    """The events of a step as an engine takes them."""
    batches = {}
    for stream in engine.streams:
        table = pa.Table.from_pylist(list(step[stream]), schema=schemas[stream].arrow)
        rows = table.select(engine.feed_schema(stream).names)
        batches[stream] = concat_batches(rows.to_batches(), rows.schema)
    return batches


def in_pieces(streams: Step, choose: random.Random) -> Iterator[Step]:
    """The events of all streams in steps of any length; some steps bring nothing of a stream."""
    waiting = {name: list(events) for name, events in streams.items()}
    while any(waiting.values()):
        step = {}
        for name, events in waiting.items():
            count = choose.choice([0, 1, 3, 20])
            step[name], waiting[name] = events[:count], events[count:]
        yield step


def in_steps(streams: Step, length: int) -> Iterator[Step]:
    """The events of all streams in steps of one length."""
    for start in range(0, max(map(len, streams.values())), length):
        yield {name: events[start : start + length] for name, events in streams.items()}
