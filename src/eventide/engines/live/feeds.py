"""The streams of a live query: what has come of each, what waits for the clock, what is late."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.errors import SchemaError
from eventide.ingest.ordering import in_order, times, words_of
from eventide.instants import ALL_TIME, START_OF_TIME_US, TimeRange
from eventide.kernels.compiled import frozen
from eventide.kernels.ordering import survey
from eventide.operators.checking import require, require_ascending
from eventide.operators.columns import concat_batches
from eventide.operators.tree import OperatorTree
from eventide.schema import SEQ, TS, Schema

MOST_HELD = 16
"""Events that wait are copied if so many times their own memory would be held for them. The next
events that come are put behind them in new memory anyway.
"""
SPARE_BYTES = 1 << 18
"""So much memory of events that have left may be held by those that wait."""


@dataclass(frozen=True, slots=True)
class LiveFeed:
    """The events of one stream, for some leaves of a tree."""

    stream: str
    schema: pa.Schema
    leaves: tuple[int, ...]
    relation: bool = False
    """Whether its events are the changes of a relation."""
    holds_back: bool = True
    """Whether the clock waits for its events."""


@dataclass(frozen=True, slots=True)
class FeedState:
    """Events that wait for the clock, in order, and how far the stream is."""

    waiting: pa.RecordBatch
    newest_us: int = START_OF_TIME_US
    advanced_us: int = START_OF_TIME_US
    """No event before this will come: `advance` said so."""

    def holding(self, waiting: pa.RecordBatch) -> FeedState:
        """Return the same feed with other events that wait."""
        return FeedState(waiting, self.newest_us, self.advanced_us)

    def stands_like(self, other: FeedState) -> bool:
        """Whether another feed is as far, and the same events wait in it."""
        marks = (self.newest_us, self.advanced_us) == (other.newest_us, other.advanced_us)
        return marks and bool(self.waiting.equals(other.waiting))


def feeds_of(
    tree: OperatorTree, catalog: Mapping[str, Schema], *, by_leaf: bool = False
) -> tuple[LiveFeed, ...]:
    """Return one feed for each stream, or for each leaf."""
    found: dict[object, LiveFeed] = {}
    for number, leaf in enumerate(tree.leaves):
        stream = leaf.scan.stream
        known = found.get(number if by_leaf else stream)
        names = dict.fromkeys([TS, SEQ, *(known.schema.names if known else ()), *leaf.schema.names])
        schema = catalog[stream].arrow
        fields = pa.schema([schema.field(name) for name in names])
        relation = leaf.relation and (known is None or known.relation)
        leaves = (*(known.leaves if known else ()), number)
        found[number if by_leaf else stream] = LiveFeed(stream, fields, leaves, relation)
    feeds = list(found.values())
    # If there is nothing else, relations drive the clock.
    alone = all(feed.relation for feed in feeds)
    return tuple(replace(feed, holds_back=alone or not feed.relation) for feed in feeds)


def accepted(
    held: FeedState, arrived: pa.RecordBatch, clock_us: int
) -> tuple[FeedState, pa.RecordBatch]:
    """Return a feed with the events that are in time, and the late ones."""
    ts = times(arrived)
    late = arrived.slice(arrived.num_rows)
    if not len(ts):
        return held, late
    oldest_us, arrived_us, ascends = survey(frozen(ts), frozen(words_of(arrived.column(SEQ))))
    newest_us = max(held.newest_us, arrived_us)
    if oldest_us < clock_us:
        on_time = pa.array(ts >= clock_us)
        late, arrived = arrived.filter(pc.invert(on_time)), arrived.filter(on_time)
    waiting = concat_batches([held.waiting, arrived], held.waiting.schema)
    if not ascends or (oldest_us <= held.newest_us and not follows(held.waiting, arrived)):
        waiting = in_order(waiting)
    return FeedState(waiting, newest_us, held.advanced_us), late


def follows(before: pa.RecordBatch, rows: pa.RecordBatch) -> bool:
    """Whether the first one of some rows is behind the last one of others, by (ts, _seq)."""
    if not (before.num_rows and rows.num_rows):
        return True
    last, first = (
        (int(times(each)[place]), int(words_of(each.column(SEQ))[place]))
        for each, place in ((before, -1), (rows, 0))
    )
    return last <= first


def rest_of(rows: pa.RecordBatch, start: int) -> pa.RecordBatch:
    """Return the rows from a place on, without much memory of those before it."""
    rest = rows.slice(start)
    if not start:
        return rest
    held = rest.get_total_buffer_size()
    # The size of a part is slow to ask for.
    if held <= SPARE_BYTES or held <= MOST_HELD * rest.nbytes:
        return rest
    return rest.take(pa.array(np.arange(rest.num_rows)))


def watermark(held: FeedState, lateness_us: int) -> int:
    """Return the instant before which no event of a stream is waited for."""
    if held.newest_us == START_OF_TIME_US:
        return held.advanced_us
    return max(held.newest_us - lateness_us, held.advanced_us)


def check_in_order(waiting: pa.RecordBatch) -> None:
    """Refuse a written state whose waiting events are not in order of time."""
    for name in (TS, SEQ):
        require(waiting.column(name).null_count == 0, f"a null among the {name} of events")
    require_ascending(times(waiting), "the times of events that wait")


def check_present(wanted: pa.Schema, present: pa.Schema, stream: str) -> None:
    """Refuse events without columns that a query reads: the stream has changed since it began."""
    for field in wanted:
        now = present.get_field_index(field.name)
        if now < 0:
            what = "is no longer there"
        elif present.field(now).type != field.type:
            what = f"is {present.field(now).type} now, it was {field.type}"
        else:
            continue
        message = f"the attribute {field.name!r} of {stream}, which the query reads, {what}"
        raise SchemaError(message, hint="subscribe again, with a query over what is there now")


def within(rows: pa.RecordBatch, time_range: TimeRange) -> pa.RecordBatch:
    """Return the rows of a time range; rows come in order."""
    if time_range == ALL_TIME:
        return rows
    bounds = [time_range.start_us, max(time_range.start_us, time_range.end_us)]
    start, end = np.searchsorted(times(rows), bounds)
    return rows.slice(int(start), int(end - start))
