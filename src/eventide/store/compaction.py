"""Which segments to merge, and which files nobody needs any more.

After an append only small segments are merged (`small_run`): `FAN_IN` neighbours of one size
class become one of the next, so an event is rewritten once a class. Neighbours in time, so that
merging never makes segments overlap. `compact` also merges segments that overlap (`messy_runs`).

Files that a compaction replaced stay for `RETIRED_KEPT_S`, so that snapshots taken before it can
be read at least that long. Files that no manifest lists are leftovers of a crash, or staged for a
commit to come; they are swept when they are `ORPHANS_KEPT_S` old. Every merge sweeps, so a stream
that is only appended to does not grow by the files that its merges replaced.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from eventide.batch import ALL_TIME
from eventide.schema import Schema
from eventide.store.durable import TEMPORARY_SUFFIX, remove
from eventide.store.manifest import Manifest, Retired
from eventide.store.scan import SegmentReader, scan_segments
from eventide.store.segment import (
    SEGMENT_BYTES,
    SEGMENT_NAME,
    SEGMENT_ROWS,
    Key,
    Segment,
    write_segments,
)

FAN_IN = 8
SMALLEST_CLASS_ROWS = 4096
RETIRED_KEPT_S = 3600.0
ORPHANS_KEPT_S = 24 * 3600.0


def is_full(segment: Segment) -> bool:
    """Whether merging with neighbours would gain nothing."""
    return segment.rows >= SEGMENT_ROWS // 4 or segment.bytes >= SEGMENT_BYTES // 4


def size_class(segment: Segment) -> int:
    """Return 0 up to 4,096 rows, and one more for every factor of `FAN_IN`."""
    size, bound = 0, SMALLEST_CLASS_ROWS
    while segment.rows > bound:
        size, bound = size + 1, bound * FAN_IN
    return size


def small_run(segments: Sequence[Segment]) -> list[Segment]:
    """Return neighbours in time that are worth merging after an append, or nothing."""
    in_time = sorted(segments, key=lambda segment: segment.first_key)
    for size in sorted({size_class(segment) for segment in segments if not is_full(segment)}):
        run: list[Segment] = []
        for segment in in_time:
            if is_full(segment) or size_class(segment) > size:
                run = []
                continue
            run.append(segment)
            if sum(size_class(member) == size for member in run) >= FAN_IN:
                return run
    return []


def messy_runs(segments: Sequence[Segment]) -> Iterator[list[Segment]]:
    """Yield groups to merge until no segments overlap, and no neighbours are small."""
    run: list[Segment] = []
    last: Key | None = None
    for segment in sorted(segments, key=lambda segment: segment.first_key):
        apart = last is None or segment.first_key > last
        if run and apart and (is_full(run[-1]) or is_full(segment)):
            yield run
            run = []
        run.append(segment)
        last = segment.last_key if last is None else max(last, segment.last_key)
    yield run


def merge_segments(folder: Path, schema: Schema, run: Sequence[Segment]) -> tuple[Segment, ...]:
    """Write the events of some segments to new ones, sorted."""
    reader = SegmentReader(folder, schema, ALL_TIME)
    batches = scan_segments(reader, run, schema.arrow.names)
    return write_segments(folder, batches, min(segment.first_seq for segment in run))


def replaced(
    manifest: Manifest, run: Sequence[Segment], merged: tuple[Segment, ...], now_s: float
) -> Manifest:
    """Return the next version, in which `merged` stands for `run`."""
    gone = {segment.file for segment in run}
    kept = tuple(segment for segment in manifest.segments if segment.file not in gone)
    retired = (*unexpired(manifest, now_s), *(Retired(segment.file, now_s) for segment in run))
    return replace(
        manifest, version=manifest.version + 1, segments=(*kept, *merged), retired=retired
    )


def unexpired(manifest: Manifest, now_s: float) -> tuple[Retired, ...]:
    """Return the retired files that a snapshot may still read."""
    return tuple(r for r in manifest.retired if r.at_s > now_s - RETIRED_KEPT_S)


def without_expired(manifest: Manifest, now_s: float) -> Manifest:
    """Return the next version, without the retired files that are old enough to go."""
    kept = unexpired(manifest, now_s)
    if len(kept) == len(manifest.retired):
        return manifest
    return replace(manifest, version=manifest.version + 1, retired=kept)


def sweep(folder: Path, manifest: Manifest, was_listed: frozenset[str], now_s: float) -> None:
    """Delete the files that `manifest` does not list: at once if it used to, else when old."""
    listed = manifest.files
    for path in folder.iterdir():
        if path.name in listed:
            continue
        ours = SEGMENT_NAME.fullmatch(path.name) or path.name.endswith(TEMPORARY_SUFFIX)
        old = modified_s(path, now_s) < now_s - ORPHANS_KEPT_S
        if path.name in was_listed or (ours and old):
            remove(path)


def modified_s(path: Path, otherwise: float) -> float:
    """Return when a file last changed; a file that just vanished changed `otherwise`."""
    try:
        return path.stat().st_mtime
    except OSError:
        return otherwise
