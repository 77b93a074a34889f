"""The stored events that a query has not read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from eventide.api.live.numbered import in_order, numbered_between
from eventide.engines.live.engine import LiveEngine
from eventide.instants import ALL_TIME, END_OF_TIME_US, START_OF_TIME_US, TimeRange
from eventide.operators.columns import concat_batches
from eventide.store import Snapshot, StoredStream
from eventide.store.progress import TakenStep


@dataclass(frozen=True, slots=True)
class UnreadEvents:
    """What is stored of every stream, without most of what the query has read."""

    engine: LiveEngine
    next_seqs: Mapping[str, int]
    """The number of the first event that has not been read, by stream: it goes on meanwhile."""
    snapshots: Mapping[str, Snapshot]

    @classmethod
    def of(
        cls, engine: LiveEngine, inputs: Mapping[str, StoredStream], next_seqs: Mapping[str, int]
    ) -> UnreadEvents:
        """Return what is stored now."""
        found = {name: each.everything().since(next_seqs[name]) for name, each in inputs.items()}
        return cls(engine, next_seqs, found)

    def until(
        self, until: Mapping[str, int], times: TimeRange = ALL_TIME
    ) -> dict[str, pa.RecordBatch]:
        """Return the events of a period with numbers before some, in the order of arrival."""
        found = {}
        for name, end in until.items():
            schema = self.engine.feed_schema(name)
            batches = [
                numbered_between(batch, self.next_seqs[name], end)
                for batch in self.snapshots[name].scan(schema.names, times)
            ]
            found[name] = in_order(concat_batches(batches, schema))
        return found

    def parts(self, step: TakenStep) -> Iterator[dict[str, pa.RecordBatch]]:
        """Yield the events of a step in parts, one period after the other.

        No event is late because of an earlier part: the clock is never ahead of the newest event.
        """
        borders = [START_OF_TIME_US, *step.cuts, END_OF_TIME_US]
        for start, end in pairwise(borders):
            if start < end:
                yield self.until(step.until, TimeRange(start, end))
