"""The streams of a live query: what has come of each, what waits for the clock, what is late."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.batch import START_OF_TIME_US
from eventide.engines.live.engine import check_present
from eventide.engines.standing.reach import scan_of
from eventide.ingest.ordering import in_order, times
from eventide.operators.columns import concat_batches
from eventide.operators.standing.tree import StandingTree
from eventide.plan.standing.nodes import RowsWindow
from eventide.schema import Schema


@dataclass(frozen=True, slots=True)
class WindowFeed:
    """The events of one stream, for some windows over it."""

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


def feeds_of(
    tree: StandingTree, catalog: Mapping[str, Schema], *, by_leaf: bool = False
) -> tuple[WindowFeed, ...]:
    """Return one feed for each stream, or for each window."""
    found: dict[object, WindowFeed] = {}
    for number, leaf in enumerate(tree.leaves):
        stream = scan_of(leaf).stream
        known = found.get(number if by_leaf else stream)
        names = dict.fromkeys(
            [*(known.schema.names if known else ()), *tree.input_schemas[number].names]
        )
        schema = catalog[stream].arrow
        fields = pa.schema([schema.field(name) for name in names])
        leaves = (*(known.leaves if known else ()), number)
        found[number if by_leaf else stream] = WindowFeed(stream, fields, leaves)
    feeds = [
        replace(feed, relation=all(is_relation(tree, leaf) for leaf in feed.leaves))
        for feed in found.values()
    ]
    # If there is nothing else, relations drive the clock.
    alone = all(feed.relation for feed in feeds)
    return tuple(replace(feed, holds_back=alone or not feed.relation) for feed in feeds)


def is_relation(tree: StandingTree, leaf: int) -> bool:
    """Whether a window has the rows of a relation."""
    window = tree.leaves[leaf].window
    return isinstance(window, RowsWindow) and window.deleted is not None


def accepted(
    held: FeedState, arrived: pa.RecordBatch, clock_us: int
) -> tuple[FeedState, pa.RecordBatch]:
    """Return a feed with the events that are in time, and the late ones."""
    ts = times(arrived)
    late = arrived.slice(arrived.num_rows)
    if not len(ts):
        return held, late
    newest_us = max(held.newest_us, int(ts.max()))
    if ts.min() < clock_us:
        on_time = pa.array(ts >= clock_us)
        late, arrived = arrived.filter(pc.invert(on_time)), arrived.filter(on_time)
    waiting = in_order(concat_batches([held.waiting, arrived], held.waiting.schema))
    return replace(held, waiting=waiting, newest_us=newest_us), late


def rest_of(rows: pa.RecordBatch, start: int) -> pa.RecordBatch:
    """Return the rows from a place on, without the memory of those before it."""
    rest = rows.slice(start)
    return rest if not start else rest.take(pa.array(np.arange(rest.num_rows)))


def watermark(held: FeedState, lateness_us: int) -> int:
    """Return the instant before which no event of a stream is waited for."""
    if held.newest_us == START_OF_TIME_US:
        return held.advanced_us
    return max(held.newest_us - lateness_us, held.advanced_us)


def checked_names(feed: WindowFeed, present: pa.Schema) -> list[str]:
    """Return the columns of a feed, unless the events no longer have them."""
    check_present(feed.schema, present, feed.stream)
    return list(feed.schema.names)
