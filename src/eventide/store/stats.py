"""Statistics of a stream: sizes, load, indexes, and decisions of the store."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.instants import ALL_TIME, TimeRange
from eventide.kernels.compiled import Int64s
from eventide.store.options import StreamOptions
from eventide.store.segments.manifest import Decision
from eventide.store.segments.tree import place
from eventide.store.snapshot import Snapshot
from eventide.store.writing.load import Load


@dataclass(frozen=True, slots=True)
class SegmentStats:
    """One segment: its period, its size, and what is special about it."""

    file: str
    time_range: TimeRange
    events: int
    bytes: int
    leaves: int
    sealed: bool
    in_order: bool
    thinned: int
    wasted: int
    """Bytes of the file that cannot be reached any more; at half, compaction rewrites it."""
    indexes: tuple[str, ...]
    correlation: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class StreamStats:
    """A stream: what it holds and where, how it is stored, and what came in lately."""

    events: int
    bytes: int
    tail_events: int
    """Events in order that are only in the log yet."""
    queued_events: int
    """Late events that are only in the log yet."""
    log_bytes: int
    segments: tuple[SegmentStats, ...]
    options: StreamOptions
    load: Load
    delay_bound: int
    """How many events an event can be behind its place, at most, if stored as they arrived."""
    reduced: str | None
    """What the segment written now leaves out, because of the load."""
    dropped_before: int | None
    expired_events: int
    """How many events have expired, and still take room."""
    decisions: tuple[Decision, ...]


def stats_of(snapshot: Snapshot, expired: int, load: Load) -> StreamStats:
    """Describe a stream, of which so many events have expired and are stored all the same."""
    view = snapshot.view
    tail, queue = view.sorted_tail, view.sorted_queue
    return StreamStats(
        events=snapshot.row_count - expired,
        expired_events=expired,
        bytes=snapshot.size,
        tail_events=tail.num_rows,
        queued_events=queue.num_rows,
        log_bytes=view.log_end,
        segments=tuple(
            SegmentStats(
                file=segment.file,
                time_range=segment.time_range,
                events=segment.rows,
                bytes=segment.bytes,
                leaves=segment.leaves,
                sealed=segment.sealed,
                in_order=segment.form.in_order,
                thinned=segment.thinned,
                wasted=segment.wasted,
                indexes=tuple(index.attribute for index in segment.indexes),
                correlation=segment.correlation,
            )
            for segment in sorted(view.segments, key=lambda each: each.first_key)
        ),
        options=view.manifest.options,
        load=load,
        delay_bound=delay_bound(snapshot),
        reduced=reduced_text(snapshot),
        dropped_before=view.manifest.dropped_before,
        decisions=view.manifest.decisions,
    )


def reduced_text(snapshot: Snapshot) -> str | None:
    """Say which of the stream's options the open segment leaves out for now."""
    view = snapshot.view
    options = view.manifest.options
    indexes: tuple[str, ...]
    if view.segment is not None:
        indexes = tuple(index.attribute for index in view.segment.indexes)
    elif view.reduced is not None:
        indexes = view.reduced.indexes
    else:
        return None
    missing = [attribute for attribute in options.indexes if attribute not in indexes]
    said = []
    if options.order == "time" and not view.in_order:
        said.append("events are kept as they arrive")
    if missing:
        said.append(f"no secondary index on {', '.join(missing)}")
    return "; ".join(said) or None


def delay_bound(snapshot: Snapshot) -> int:
    """Return how many events an event can be behind its place, at most, in stored order.

    It is computed from the index alone, over the leaves of segments that store events as they
    arrived. For each leaf, the earliest leaf before it that reaches beyond its first time is found
    with a running maximum: the events from there to the leaf's end bound how far any of its events
    is behind. A buffer of one more than this many events is enough to sort the segment while
    reading it.
    """
    bound = 0
    for segment in snapshot.segments:
        if segment.form.in_order or segment.thinned:
            continue
        leaves = list(segment.tree(snapshot.path).leaves(ALL_TIME))
        entries = pa.concat_batches(leaves)
        bound = max(
            bound,
            bound_of(place(entries, "ts_min"), place(entries, "ts_max"), place(entries, "rows")),
        )
    return bound


def bound_of(ts_min: Int64s, ts_max: Int64s, rows: Int64s) -> int:
    """Return the bound for leaves in the order of arrival; see `delay_bound`.

    >>> bound_of(np.array([1, 999]), np.array([1002, 1003]), np.array([4, 2]))
    5
    """
    ends = np.cumsum(rows)
    starts = ends - rows
    # The first leaf whose running maximum exceeds the time is the first leaf that does.
    first = np.searchsorted(np.maximum.accumulate(ts_max), ts_min, "right")
    first = np.minimum(first, np.arange(len(rows)))
    # Within one leaf the order is not known: its own events count, but one.
    return int(np.max(ends - starts[first] - 1, initial=0))
