"""Which segments to merge, and which files are no longer needed.

After a commit only small segments are merged (`small_run`): `FAN_IN` neighbours of one size class
become one of the next, so an event is rewritten once a class. Only neighbours in time are merged,
so that merging never makes segments overlap. `compact` also merges segments that overlap, and
rewrites those whose form is out of date or whose file consists mostly of unreachable frames
(`messy_runs`).

Files that a compaction replaced stay for `RETIRED_KEPT_S`, so that earlier snapshots can be read at
least that long. Files that no manifest lists are leftovers of a crash, or staged for a later
commit; they are swept when they are `ORPHANS_KEPT_S` old. Every merge sweeps, so a stream that is
only appended to does not grow by the files that its merges replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pyarrow as pa

from eventide.instants import ALL_TIME
from eventide.schema import TS
from eventide.store.files.disk import TEMPORARY_SUFFIX, remove
from eventide.store.files.mapped import MAPPED
from eventide.store.order import int64_view
from eventide.store.reading.scan import StreamColumns, Wanted, scan_parts
from eventide.store.segments.listing import LISTING_NAME, SegmentList
from eventide.store.segments.manifest import LOG_NAME, Manifest, Retired
from eventide.store.segments.segment import INDEX_NAME, SEGMENT_NAME, Key, Segment
from eventide.store.segments.segment_writer import SEGMENT_BYTES, SEGMENT_ROWS, write_segments
from eventide.store.writing.flush import split_regularly
from eventide.store.writing.log import SPARE_NAME

FAN_IN = 8
SMALLEST_CLASS_ROWS = 4096
MOST_WASTED = 0.5
"""A file with more than this share unreachable is rewritten."""
RETIRED_KEPT_S = 3600.0
ORPHANS_KEPT_S = 24 * 3600.0


def is_full(segment: Segment) -> bool:
    """Whether merging with neighbours would gain nothing."""
    return segment.rows >= SEGMENT_ROWS // 4 or segment.bytes >= SEGMENT_BYTES // 4


def period_of(segment: Segment, split_us: int | None) -> int:
    """Return which regular split a segment lies in: only segments of the same one are merged."""
    return 0 if split_us is None else segment.ts_min // split_us


def size_class(segment: Segment) -> int:
    """Return 0 up to 4,096 rows, and one more for every factor of `FAN_IN`."""
    size, bound = 0, SMALLEST_CLASS_ROWS
    while segment.rows > bound:
        size, bound = size + 1, bound * FAN_IN
    return size


def small_run(segments: Sequence[Segment], split_us: int | None = None) -> list[Segment]:
    """Return neighbours in time that are worth merging after a commit, or nothing."""
    whole = [segment for segment in segments if not segment.thinned]
    in_time = sorted(whole, key=lambda segment: segment.first_key)
    for size in sorted({size_class(segment) for segment in whole if not is_full(segment)}):
        run: list[Segment] = []
        for segment in in_time:
            if run and period_of(segment, split_us) != period_of(run[-1], split_us):
                run = []
            if is_full(segment) or size_class(segment) > size:
                run = []
                continue
            run.append(segment)
            if sum(size_class(member) == size for member in run) >= FAN_IN:
                return run
    return []


def messy_runs(segments: Sequence[Segment], split_us: int | None = None) -> Iterator[list[Segment]]:
    """Yield groups to merge until no segments overlap, and no neighbours are small."""
    run: list[Segment] = []
    last: Key | None = None
    whole = [segment for segment in segments if not segment.thinned]
    for segment in sorted(whole, key=lambda segment: segment.first_key):
        apart = last is None or segment.first_key > last
        other = bool(run) and period_of(segment, split_us) != period_of(run[-1], split_us)
        if run and apart and (other or is_full(run[-1]) or is_full(segment)):
            yield run
            run = []
        run.append(segment)
        last = segment.last_key if last is None else max(last, segment.last_key)
    if run:
        yield run


def is_messy(run: Sequence[Segment], manifest: Manifest) -> bool:
    """Whether rewriting a run gains anything."""
    if len(run) > 1 or not run[0].form.in_order:
        return True
    (segment,) = run
    has_dropped_columns = not set(segment.form.column_ids) <= set(manifest.column_ids)
    is_dead = False
    if manifest.options.keep_until is not None:
        from eventide.store.lifetimes import share_gone

        is_dead = share_gone(manifest, segment) > MOST_WASTED
    return has_dropped_columns or is_dead or segment.wasted > MOST_WASTED * segment.bytes


def merge_segments(folder: Path, manifest: Manifest, run: Sequence[Segment]) -> tuple[Segment, ...]:
    """Write the events of some segments to new ones, sorted, in the stream's present form."""
    form = replace(manifest.form, in_order=True)
    names = tuple(manifest.schema.arrow.names)
    wanted = Wanted(StreamColumns(manifest.schema, manifest.column_ids), names, ALL_TIME, {})
    batches: Iterable[pa.RecordBatch] = scan_parts(folder, run, (), wanted)
    if manifest.options.keep_until is not None:
        from eventide.store.lifetimes import without_gone

        batches = without_gone(manifest, batches)
    indexes, split_us = manifest.options.indexes, manifest.options.split_us
    if split_us is None:
        return write_segments(folder, form, batches, indexes)
    # One late segment may overlap many regular ones, which must not be merged into one for that.
    parts = (rows for batch in batches for rows in split_regularly(batch, split_us, in_order=True))
    periods = groupby(parts, key=lambda part: int(int64_view(part.column(TS))[0]) // split_us)
    written: list[Segment] = []
    try:
        for _, period in periods:
            written += write_segments(folder, form, period, indexes)
    except BaseException:
        for name in {name for segment in written for name in segment.files}:
            remove(folder / name)
        raise
    return tuple(written)


def replaced(
    manifest: Manifest, gone: Sequence[Segment], come: Sequence[Segment], now_s: float
) -> Manifest:
    """Return the manifest in which some segments replace others."""
    names = {segment.file for segment in gone}
    kept = tuple(segment for segment in manifest.segments if segment.file not in names)
    files = {name for segment in gone for name in segment.files}
    still = {name for segment in (*kept, *come) for name in segment.files}
    retired = (
        *unexpired(manifest, now_s),
        *(Retired(file, now_s) for file in sorted(files - still)),
    )
    clock = manifest.clock_us
    if manifest.options.keep_until is not None:
        # What has expired stays so, even if the newest event is among what goes.
        clock = max(segment.ts_max for segment in gone)
        clock = clock if manifest.clock_us is None else max(clock, manifest.clock_us)
    segments = SegmentList((*kept, *come))
    return replace(manifest, segments=segments, retired=retired, clock_us=clock)


def unexpired(manifest: Manifest, now_s: float) -> tuple[Retired, ...]:
    """Return the retired files that a snapshot may still read."""
    return tuple(r for r in manifest.retired if r.at_s > now_s - RETIRED_KEPT_S)


def without_expired(manifest: Manifest, now_s: float) -> Manifest:
    """Return the manifest without the retired files that are old enough to go."""
    kept = unexpired(manifest, now_s)
    return manifest if len(kept) == len(manifest.retired) else replace(manifest, retired=kept)


def sweep(folder: Path, listed: frozenset[str], was_listed: frozenset[str], now_s: float) -> None:
    """Delete the files that are not listed: at once if they used to be, else when old."""
    for path in folder.iterdir():
        if path.name in listed:
            continue
        old = modified_s(path, now_s) < now_s - ORPHANS_KEPT_S
        if path.name in was_listed or (is_ours(path.name) and old):
            remove(path)
            MAPPED.forget(path)


def is_ours(name: str) -> bool:
    """Whether a file name is one that streams write, but that no manifest lists."""
    patterns = (SEGMENT_NAME, INDEX_NAME, LOG_NAME, LISTING_NAME)
    is_other = name == SPARE_NAME or name.endswith(TEMPORARY_SUFFIX)
    return is_other or any(each.fullmatch(name) for each in patterns)


def modified_s(path: Path, otherwise: float) -> float:
    """Return when a file last changed; a file that just vanished changed `otherwise`."""
    try:
        return path.stat().st_mtime
    except OSError:
        return otherwise
