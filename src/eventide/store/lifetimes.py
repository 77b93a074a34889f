"""What is left of a stream whose events name the time until which they are kept.

An event is there at `now` if the time it names is later, or null. Now is a time of events, never
that of a clock on the wall: the newest event that the stream has had. So it only grows, every
process that sees the same events gives the same answers, and an event that comes may end others.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from eventide.instants import START_OF_TIME_US
from eventide.kernels.compiled import Bools, Int64s
from eventide.schema import TS
from eventide.store.order import int64_view
from eventide.store.reading.expiring import ExpiringSegments, alive
from eventide.store.reading.scan import StreamColumns
from eventide.store.segments.listing import SegmentList
from eventide.store.segments.manifest import Manifest
from eventide.store.segments.segment import Segment
from eventide.store.segments.tree import place
from eventide.store.writing.view import StreamView

NEVER = np.iinfo(np.int64).max
ALWAYS = np.iinfo(np.int64).min
KEPT = "living"


@dataclass(frozen=True, slots=True)
class SegmentEnds:
    """When the first and the last event of each segment are gone."""

    attribute: str
    column_ids: tuple[int, ...]
    sealed: SegmentList
    open: Segment | None
    segments: tuple[Segment, ...]
    first: Int64s
    last: Int64s
    newest_us: int

    @classmethod
    def of(cls, view: StreamView, attribute: str) -> SegmentEnds:
        """Return the lifetimes of a stream's segments, from their totals."""
        first, last = ends_of(view.manifest, view.segments, attribute)
        return cls(
            attribute,
            view.manifest.column_ids,
            view.manifest.segments,
            view.segment,
            view.segments,
            first,
            last,
            newest_of(view),
        )

    def fits(self, view: StreamView, attribute: str) -> bool:
        """Whether they are those of a view."""
        return (
            self.sealed is view.manifest.segments
            and self.open is view.segment
            and self.column_ids == view.manifest.column_ids
            and self.attribute == attribute
        )

    def those(self, chosen: Bools) -> tuple[Segment, ...]:
        """Return some of the segments."""
        return tuple(self.segments[each] for each in np.flatnonzero(chosen))


@dataclass(frozen=True, slots=True)
class Living:
    """What was left of a view."""

    ends: SegmentEnds
    asked: StreamView
    now_us: int
    found: StreamView


def living(
    folder: Path, view: StreamView, at_us: int | None = None, least_us: int = START_OF_TIME_US
) -> StreamView:
    """Return a view without what is gone: now, but not before `least_us`, or at a time."""
    attribute = view.manifest.options.keep_until
    assert attribute is not None
    kept = view.directories.get(KEPT)
    held = kept if isinstance(kept, Living) else None
    if held is not None and held.ends.fits(view, attribute):
        ends = held.ends
    else:
        ends, held = SegmentEnds.of(view, attribute), None
    if at_us is None:
        at_us = max(clock_of(view, ends.newest_us), least_us)
    if held is not None and held.asked is view and held.now_us == at_us:
        return held.found
    found = with_segments(folder, view, ends, at_us, held)
    found = replace(
        found,
        tail=living_parts(view.tail, attribute, at_us),
        queue=living_parts(view.queue, attribute, at_us),
        now_us=at_us,
    )
    view.directories[KEPT] = Living(ends, view, at_us, found)
    return found


def living_parts(
    parts: Sequence[pa.RecordBatch], attribute: str, now_us: int
) -> tuple[pa.RecordBatch, ...]:
    """Return batches without the events that are gone."""
    left = (alive(part, attribute, now_us) for part in parts)
    return tuple(part for part in left if part.num_rows)


def clock_of(view: StreamView, newest_us: int) -> int:
    """Return the time of the newest event that the stream has had, from that of its segments."""
    times = [int(int64_view(rows.column(TS)).max()) for rows in (*view.tail, *view.queue)]
    gone_us = view.manifest.clock_us
    return max(newest_us, START_OF_TIME_US if gone_us is None else gone_us, *times)


def newest_of(view: StreamView) -> int:
    """Return the time of the newest event in segments."""
    return max((segment.ts_max for segment in view.segments), default=START_OF_TIME_US)


def with_clock(view: StreamView) -> Manifest:
    """Return the manifest of a view, for work on its segments, with the time that it is."""
    return replace(view.manifest, clock_us=clock_of(view, newest_of(view)))


def with_segments(
    folder: Path, view: StreamView, ends: SegmentEnds, now_us: int, held: Living | None
) -> StreamView:
    """Return a view with the segments that are alive, and those that partly are apart."""
    whole = ends.first > now_us
    if whole.all():
        return view
    partly = ends.those(~whole & (ends.last > now_us))
    columns = StreamColumns(view.manifest.schema, view.manifest.column_ids)
    expiring = ExpiringSegments(folder, columns, ends.attribute, now_us, partly) if partly else None
    if held is not None and held.found.expiring is not None and held.now_us <= now_us and partly:
        expiring = held.found.expiring.later(now_us, partly)
    if held is not None and np.array_equal(ends.first > held.now_us, whole):
        # The same segments are whole: what was computed of them still holds.
        known = held.found
        manifest = replace(view.manifest, segments=known.manifest.segments)
        return replace(
            view,
            manifest=manifest,
            segment=known.segment,
            expiring=expiring,
            directories=known.directories,
        )
    left = ends.those(whole)
    sealed = SegmentList(each for each in left if each is not view.segment)
    return replace(
        view,
        manifest=replace(view.manifest, segments=sealed),
        segment=view.segment if len(sealed) < len(left) else None,
        expiring=expiring,
        directories={},
    )


def ends_of(manifest: Manifest, segments: Sequence[Segment], attribute: str) -> Int64s:
    """Return when the first and when the last event of each segment are gone, in two rows."""
    ends = np.full((2, len(segments)), NEVER, np.int64)
    columns = StreamColumns(manifest.schema, manifest.column_ids)
    for number, segment in enumerate(segments):
        if not columns.stored_in(segment, [attribute]):
            continue  # the attribute came later: it is null in every event
        if attribute not in segment.form.summaries:
            ends[0, number] = ALWAYS
            continue
        totals = segment.summary()
        count = totals.column(f"{attribute}.count")[0].as_py()
        if count:
            ends[0, number] = int(place(totals, f"{attribute}.min")[0])
        if count == segment.rows:
            ends[1, number] = int(place(totals, f"{attribute}.max")[0])
    return ends


def freed_before(manifest: Manifest) -> int:
    """Return the time up to which segments can be freed of what is gone.

    No event is newer than now: one from the future hides all others, but must not destroy them.
    """
    clock_us = START_OF_TIME_US if manifest.clock_us is None else manifest.clock_us
    return min(clock_us, int(time.time() * 1e6))


def gone_segments(manifest: Manifest) -> list[Segment]:
    """Return the sealed segments of which every event is gone."""
    attribute = manifest.options.keep_until
    if attribute is None:
        return []
    segments = manifest.segments.every
    gone = ends_of(manifest, segments, attribute)[1] <= freed_before(manifest)
    return [segments[each] for each in np.flatnonzero(gone)]


def without_gone(manifest: Manifest, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield what is left of rows whose segments are rewritten."""
    attribute, border = manifest.options.keep_until, freed_before(manifest)
    assert attribute is not None
    for rows in batches:
        left = alive(rows, attribute, border)
        if left.num_rows:
            yield left


def share_gone(manifest: Manifest, segment: Segment) -> float:
    """Return about which share of a segment's events is gone, if their ends are spread evenly."""
    attribute = manifest.options.keep_until
    if attribute is None:
        return 0.0
    columns = StreamColumns(manifest.schema, manifest.column_ids)
    if attribute not in segment.form.summaries or not columns.stored_in(segment, [attribute]):
        return 0.0
    totals = segment.summary()
    count = totals.column(f"{attribute}.count")[0].as_py()
    if not count:
        return 0.0
    first, last = (int(place(totals, f"{attribute}.{end}")[0]) for end in ("min", "max"))
    passed = (freed_before(manifest) - first + 1) / (last - first + 1)
    return min(max(passed, 0.0), 1.0) * float(count) / segment.rows
