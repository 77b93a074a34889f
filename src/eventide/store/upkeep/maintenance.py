"""Work on sealed segments that changes how a stream is stored, never what it answers.

Each kind of work is a list of independent `Job`s. A job reads some segments and writes others; it
can be pickled, and run anywhere the folder is seen: in this process, or as a task on Spark. The
output of jobs counts once all of them are committed together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from eventide.errors import StoreError
from eventide.instants import ALL_TIME
from eventide.schema import SEQ, TS
from eventide.store.files.disk import AppendFile, remove, sync_folder
from eventide.store.files.frame import Kind
from eventide.store.index.aggregates import registered
from eventide.store.reading.scan import StreamColumns, Wanted, scan_parts
from eventide.store.segments.manifest import Manifest
from eventide.store.segments.segment import Segment
from eventide.store.segments.segment_writer import IndexWriter, SegmentWriter
from eventide.store.segments.tree import parent_entries, with_entries
from eventide.store.upkeep.compaction import is_messy, merge_segments, messy_runs

Work = Literal["merge", "rebuild", "index", "thin"]
NO_ADDRESS = -1


@dataclass(frozen=True)
class Job:
    """Some segments, and what to make of them."""

    work: Work
    folder: Path
    manifest: Manifest
    segments: tuple[Segment, ...]
    attribute: str = ""
    level: int = 0

    def run(self) -> tuple[Segment, ...]:
        """Write the segments that replace them from now on. Files that stay are not written."""
        match self.work:
            case "merge" | "rebuild":
                return merge_segments(self.folder, self.manifest, self.segments)
            case "index":
                return tuple(
                    with_index(self.folder, self.manifest, segment, self.attribute)
                    for segment in self.segments
                )
            case "thin":
                return tuple(thinned(self.folder, each, self.level) for each in self.segments)


RunJobs = Callable[[Sequence[Job]], Sequence[tuple[Segment, ...]]]
"""Runs jobs, and returns what each has written in their order."""


def run_here(jobs: Sequence[Job]) -> list[tuple[Segment, ...]]:
    """Run jobs one after the other; each uses all cores by itself."""
    results: list[tuple[Segment, ...]] = []
    try:
        for job in jobs:
            results.append(job.run())
    except BaseException:
        for job, written in zip(jobs, results, strict=False):
            remove_written(job, written)
        raise
    return results


def remove_written(job: Job, written: Sequence[Segment]) -> None:
    """Delete the files that a job has written and that will not be listed."""
    before = {name for segment in job.segments for name in segment.files}
    for name in {name for segment in written for name in segment.files} - before:
        remove(job.folder / name)


def merge_jobs(folder: Path, manifest: Manifest) -> list[Job]:
    """Return jobs that merge small, overlapping and outdated segments."""
    runs = messy_runs(manifest.segments, manifest.options.split_us)
    return [Job("merge", folder, manifest, tuple(run)) for run in runs if is_messy(run, manifest)]


def backfill_jobs(folder: Path, manifest: Manifest) -> list[Job]:
    """Return jobs that rewrite the segments whose index lacks an aggregate that the stream has."""
    form = manifest.form
    return [
        Job("rebuild", folder, manifest, (segment,))
        for segment in manifest.segments
        if not segment.thinned
        and not (
            set(form.summaries) <= set(segment.form.summaries)
            and set(form.aggregates) <= set(segment.form.aggregates)
        )
    ]


def index_jobs(folder: Path, manifest: Manifest) -> list[Job]:
    """Return jobs that build the secondary indexes that segments lack."""
    columns = StreamColumns(manifest.schema, manifest.column_ids)
    return [
        Job("index", folder, manifest, (segment,), attribute=attribute)
        for attribute in manifest.options.indexes
        for segment in manifest.segments
        if not segment.thinned
        and attribute not in {index.attribute for index in segment.indexes}
        and columns.stored_in(segment, [attribute])
    ]


def thinning_jobs(folder: Path, manifest: Manifest, before: int, level: int) -> list[Job]:
    """Return jobs that thin the segments that end before a time."""
    if level < 1:
        message = f"cannot thin to level {level}"
        hint = "1 keeps the aggregates of each block of rows, 2 those of each 64 blocks, and so on"
        raise StoreError(message, hint=hint)
    if manifest.options.keep_until is not None:
        message = f"events of {folder.name} expire one by one: aggregates cannot stand for them"
        raise StoreError(message, hint="compact() frees what has expired")
    return [
        Job("thin", folder, manifest, (segment,), level=level)
        for segment in manifest.segments
        if segment.ts_max < before and segment.thinned < level
    ]


def with_index(folder: Path, manifest: Manifest, segment: Segment, attribute: str) -> Segment:
    """Build a secondary index of a sealed segment, and return the segment with it."""
    file = new_index_file(folder, segment)
    index = IndexWriter(attribute, manifest.schema.type_of(attribute), file, ())
    wanted = Wanted(
        StreamColumns(manifest.schema, manifest.column_ids), (TS, SEQ, attribute), ALL_TIME, {}
    )
    # The index has the segment's own numbers, as the file has them.
    own = replace(segment, seq_offset=0)
    try:
        for rows in scan_parts(folder, [own], (), wanted):
            index.add(rows)
        file.sync()
        sync_folder(folder)
    except BaseException:
        remove(file.path)
        raise
    finally:
        file.close()
    return replace(segment, indexes=(*segment.indexes, index.listed()))


def new_index_file(folder: Path, segment: Segment) -> AppendFile:
    """Create a file for one more index; jobs for others of the segment may run at this moment."""
    taken = {index.file for index in segment.indexes}
    stem = segment.file.removesuffix(".ev")
    for number in count():
        name = f"{stem}-{number}.ix"
        if name not in taken:
            with suppress(FileExistsError):
                return AppendFile.create(folder / name)
    raise AssertionError


def thinned(folder: Path, segment: Segment, level: int) -> Segment:
    """Write a segment that keeps only the index nodes of a level and above."""
    form = segment.form
    for name, _ in form.aggregates:
        registered(name)  # or say which aggregate this process cannot merge
    writer = SegmentWriter.create(folder, form)
    try:
        entries = entries_at(folder, segment, level - 1)
        writer.levels = with_entries((), level - 1, entries, form.layout, writer.write)
        kept = writer.root(Kind.SEAL)
        writer.sync()
        writer.close()
        sync_folder(folder)
    except BaseException:
        writer.discard()
        raise
    return replace(
        kept,
        seq_offset=segment.seq_offset,
        rows=segment.rows,
        thinned=level,
        correlation=segment.correlation,
    )


def entries_at(folder: Path, segment: Segment, level: int) -> pa.RecordBatch:
    """Return the entries of one level, whose children are gone, in order.

    Entries of the flank below that level become one entry of it.
    """
    tree = segment.tree(folder)
    found: list[pa.RecordBatch] = []
    for at in reversed(range(level, len(tree.levels))):
        found += tree.entries_below(tree.levels[at], at, level)
    lower = [entries for entries in tree.levels[:level][::-1] if entries.num_rows]
    if lower:
        entries = pa.concat_batches(lower)
        bounds = np.array([0, entries.num_rows], np.int64)
        found.append(parent_entries(entries, bounds, [(NO_ADDRESS, 0)], segment.form.layout))
    together = pa.concat_batches(found)
    nowhere = pa.array(np.full(together.num_rows, NO_ADDRESS, np.int64))
    return together.set_column(0, together.schema.field(0), nowhere)
