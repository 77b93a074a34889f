"""One stream of a database: append, stage and commit, snapshot, compact."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, get_args

import pyarrow as pa

from eventide.batch import moment
from eventide.errors import SchemaError, StoreError, listed
from eventide.schema import MAX_TS_US, MIN_TS_US, TS, Attribute, DataType, Schema
from eventide.store.files.disk import remove
from eventide.store.index.aggregates import registered
from eventide.store.options import StreamOptions
from eventide.store.order import int64_view, sort_rows
from eventide.store.reading.scan import StreamColumns
from eventide.store.segments.manifest import Manifest
from eventide.store.segments.segment import Segment, StagedSegment, placed
from eventide.store.segments.segment_writer import (
    SEGMENT_BYTES,
    SEGMENT_ROWS,
    cannot_write,
    write_segments,
)
from eventide.store.snapshot import Snapshot
from eventide.store.stats import StreamStats, stats_of
from eventide.store.upkeep.changes import (
    add_column,
    change_options,
    choose_by_correlation,
    commit_jobs,
    drop_before,
    drop_column,
    noted,
    retain,
    trim,
)
from eventide.store.upkeep.compaction import small_run
from eventide.store.upkeep.maintenance import (
    Job,
    RunJobs,
    backfill_jobs,
    index_jobs,
    merge_jobs,
    run_here,
    thinning_jobs,
)
from eventide.store.writing.flush import LOG_BYTES, flush
from eventide.store.writing.group_commit import sync_soon
from eventide.store.writing.log import RecordKind
from eventide.store.writing.open_stream import OpenStream, opened
from eventide.store.writing.view import Reduced, StreamView, numbered, rows_in

# A retry comes soon after the first try. Ten thousand ids are half a megabyte of manifest.
REMEMBERED_COMMIT_IDS = 10_000
MOST_LOG_BYTES = 4 * LOG_BYTES
BULK_BYTES = LOG_BYTES // 4
"""An append of this size goes to the segment at once: the log would only carry it twice."""

AddedHow = Literal["next", "split", "backfill"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Appended:
    """What a commit added: `rows` events, numbered from `first_seq`."""

    rows: int
    first_seq: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an append: what readers see of it, and what went wrong after that."""

    appended: Appended
    events: pa.RecordBatch
    """The added events as they are stored, without their numbers."""
    error: BaseException | None = None
    """Why they may not be as safe as the stream's durability says, if something failed."""


@dataclass(frozen=True, slots=True)
class StoredStream:
    """A stream in a folder. Holds no state of its own: `open_stream.py` has it."""

    name: str
    path: Path
    stream_id: str

    @property
    def schema(self) -> Schema:
        """The attributes of the events, as they are now."""
        return self.current().manifest.schema

    @property
    def columns(self) -> StreamColumns:
        """The columns as they are now, with the identities that outlive their names."""
        manifest = self.current().manifest
        return StreamColumns(manifest.schema, manifest.column_ids)

    def append(
        self, events: pa.Table, *, producer: str | None = None, sequence: int | None = None
    ) -> Appended:
        """Add events, in any order of time; `_seq` numbers follow the order of the rows.

        The events are `ts` and the attributes, with exactly the schema's types. When this returns
        they are as safe as the stream's durability says; if it raises, none of them is visible,
        unless the error says otherwise.

        With `producer` and `sequence`, a batch whose sequence is not above the producer's last
        one was stored before: it adds nothing, so that a retry is safe.
        """
        outcome = self.store(events, producer=producer, sequence=sequence)
        if outcome.error is not None:
            raise outcome.error
        return outcome.appended

    def store(
        self,
        events: pa.Table,
        columns: StreamColumns | None = None,
        *,
        producer: str | None = None,
        sequence: int | None = None,
    ) -> Outcome:
        """Append events, and say what went wrong once they were visible; raise what did before.

        `columns` are those that the events were made for, if others may have come or gone since:
        the events have null in those that came, and lose those that went, like all before them.
        """
        check_producer(producer, sequence)
        with self.writing() as (stream, found):
            view = found
            present = StreamColumns(view.manifest.schema, view.manifest.column_ids)
            rows = fitted(checked_rows(events, (columns or present).schema), columns, present)
            nothing = Outcome(Appended(0, view.next_seq), rows.slice(0, 0))
            if producer is not None and sequence is not None:
                if sequence <= view.producers.get(producer, -1):
                    return nothing
            elif not rows.num_rows:
                return nothing
            if view.log_growth >= MOST_LOG_BYTES:
                # Earlier appends could not make segments of it: better refused than ever slower.
                view = flush(stream, view)
            appended = Appended(rows.num_rows, view.next_seq)
            try:
                self.add(stream, view, rows, producer, sequence)
            except BaseException as error:
                stream.close()
                if not stream.shows(view.next_seq):
                    raise
                return Outcome(appended, rows, error)
            return Outcome(appended, rows)

    def add(
        self,
        stream: OpenStream,
        view: StreamView,
        events: pa.RecordBatch,
        producer: str | None,
        sequence: int | None,
    ) -> None:
        """Store checked events: many at once in the segment, a few in the log."""
        stream.meter.observe(events)
        if events.nbytes >= BULK_BYTES:
            rows = numbered(events, view.next_seq, view.manifest)
            following = view.with_rows(rows).with_producer(producer, sequence)
            self.settle(stream, view, flush(stream, following))
            return
        # What stays in memory is what goes to the log: the caller may write into its own arrays.
        message = events.serialize()
        rows = numbered(rows_in(message, events.schema), view.next_seq, view.manifest)
        following = view.with_rows(rows).with_producer(producer, sequence)
        facts = {"first_seq": view.next_seq, "producer": producer, "sequence": sequence}
        durability = view.manifest.options.durability
        synced = durability == "batch"
        done = stream.record(view, following, RecordKind.EVENTS, facts, [message], sync=synced)
        if durability == "group" and stream.log is not None:
            sync_soon(stream.log.file, view.manifest.options.commit_interval_ms / 1000)
        if done.log_growth >= LOG_BYTES:
            try:
                self.settle(stream, view, flush(stream, done))
            except Exception as error:
                # The events are in the log. The next append tries again, and in the end refuses.
                log.warning("stream %s could not be written to segments: %s", self.name, error)
                stream.close()

    def settle(self, stream: OpenStream, before: StreamView, after: StreamView) -> None:
        """Do what is due if a flush has sealed segments. The events are safe either way."""
        if len(after.manifest.segments) == len(before.manifest.segments):
            return
        try:
            self.after_seal(stream, after)
        except (OSError, StoreError) as error:
            log.warning("stream %s could not be tidied up: %s", self.name, error)

    def stage(self, events: Iterable[pa.RecordBatch]) -> StagedSegment:
        """Write events to files that are not part of the stream until `commit`.

        The result can be pickled, or sent as JSON, to the process that commits. What is neither
        committed nor discarded is swept after a day.
        """
        manifest = self.current().manifest
        form = replace(manifest.form, in_order=True)
        segments: list[Segment] = []
        first_seq = 0
        try:
            for chunk in chunks(events, manifest.schema):
                rows = sort_rows(numbered(chunk, first_seq, manifest))
                first_seq += rows.num_rows
                segments += write_segments(self.path, form, [rows], manifest.options.indexes)
        except BaseException:
            self.remove_files(segments)
            raise
        return StagedSegment(tuple(segments))

    def commit(self, staged: Sequence[StagedSegment], commit_id: str | None = None) -> Appended:
        """Add staged events in the order given, all at once.

        A `commit_id` that the stream has seen among its last 10,000 adds nothing: the staged
        files are discarded, and the result has no rows. That makes retries safe.
        """
        with self.writing() as (stream, view):
            if commit_id is not None and commit_id in view.manifest.commit_ids:
                self.remove_unlisted(staged, view)
                return Appended(0, view.next_seq)
            self.check_staged(staged, view.manifest)
            following = with_staged(view, staged, commit_id)
            if following is not view:
                # If that fails the staged files stay: the caller commits again, or discards them.
                self.settle(stream, view, stream.commit_manifest(following))
            return Appended(following.next_seq - view.next_seq, view.next_seq)

    def discard(self, staged: Sequence[StagedSegment]) -> None:
        """Delete staged files. Files that were committed after all stay."""
        with self.writing() as (_, view):
            self.remove_unlisted(staged, view)

    def snapshot(self) -> Snapshot:
        """Return the stream as it is now."""
        return Snapshot(self.path, self.current())

    def flush(self, *, seal: bool = False) -> None:
        """Write everything that is only in the log to segments; `seal` ends the open one."""
        with self.writing() as (stream, view):
            if view.tail or view.queue or (seal and view.segment is not None):
                self.settle(stream, view, flush(stream, view, everything=True, seal=seal))

    def sync(self) -> None:
        """Return once everything appended so far is on the disk, whatever the durability."""
        with self.writing() as (stream, view):
            try:
                stream.sync_log(stream.opened_log(view))
            except OSError as error:
                message = f"cannot sync {self.path}: {error}"
                hint = (
                    "all events are visible, but the last may not survive a power failure; the "
                    "next append writes them anew"
                )
                raise StoreError(message, hint=hint) from error

    def split(self, reduced: Reduced | None = None, note: str | None = None) -> None:
        """End the open segment now; the next one does without what `reduced` says.

        With `note`, that is listed among the stream's decisions.
        """
        with self.writing() as (stream, view):
            manifest = view.manifest if note is None else noted(view.manifest, note)
            now = replace(view, manifest=manifest)
            following = flush(stream, now, everything=True, seal=True, reduced=reduced)
            self.after_seal(stream, following)

    def compact(self, *, run: RunJobs = run_here) -> int:
        """Merge small and overlapping segments, and delete files nobody needs any more.

        Returns how many segments were merged into others. Readers are not disturbed; see
        compaction.py for how long they can count on the replaced files.
        """
        done = self.maintain(lambda manifest: merge_jobs(self.path, manifest), run)
        with self.writing() as (stream, view):
            trim(stream, view)
        return sum(len(job.segments) for job in done)

    def maintain(
        self, plan: Callable[[Manifest], Sequence[Job]], run: RunJobs, note: str | None = None
    ) -> Sequence[Job]:
        """Run jobs over sealed segments, which never change, and then commit what still fits.

        Others may write meanwhile: the lock is held only for the commit. Returns the jobs that
        were committed; one whose segments have been replaced by then is not.
        """
        jobs = plan(self.current().manifest)
        try:
            results = run(jobs)
        except StoreError:
            raise
        except OSError as error:
            raise cannot_write(self.path, error) from error
        with self.writing() as (stream, view):
            return commit_jobs(stream, view, jobs, results, note=note)

    def set_options(
        self,
        change: StreamOptions | Callable[[StreamOptions], StreamOptions],
        *,
        split: bool = False,
    ) -> StreamOptions:
        """Keep the stream in another way from the next segment on; `split` begins one now."""
        with self.writing() as (stream, view):
            options = change(view.manifest.options) if callable(change) else change
            if options != view.manifest.options:
                change_options(stream, view, options, split=split)
            return options

    def add_aggregate(self, name: str, attribute: str, how: AddedHow = "next") -> None:
        """Keep one more aggregate in the index; see `add_index` for `how`."""
        check_how(how)
        registered(name)

        def added(options: StreamOptions) -> StreamOptions:
            wanted = dict.fromkeys((*options.aggregates, (name, attribute)))
            return replace(options, aggregates=tuple(wanted))

        self.set_options(added, split=how != "next")
        if how == "backfill":
            self.backfill()

    def backfill(self, *, run: RunJobs = run_here) -> int:
        """Rewrite the segments whose index lacks aggregates of the stream; return how many."""
        return len(self.maintain(lambda manifest: backfill_jobs(self.path, manifest), run))

    def add_index(self, attribute: str, how: AddedHow = "next") -> None:
        """Keep a secondary index of an attribute.

        `next`: from the next segment on. `split`: from now on, in a new segment. `backfill`: for
        everything that is stored as well. Answers are the same in all three.
        """
        check_how(how)

        def added(options: StreamOptions) -> StreamOptions:
            return replace(options, indexes=tuple(dict.fromkeys((*options.indexes, attribute))))

        self.set_options(added, split=how != "next")
        if how == "backfill":
            try:
                self.rebuild_indexes()
            except StoreError as error:
                message = (
                    f"{attribute!r} is indexed from now on, but not all that was stored before: "
                    f"{error.message}"
                )
                hint = "rebuild_indexes() builds the rest once that is mended"
                raise StoreError(message, hint=hint) from error

    def drop_index(self, attribute: str) -> None:
        """Keep no secondary index of an attribute from the next segment on."""

        def dropped(options: StreamOptions) -> StreamOptions:
            kept = tuple(each for each in options.indexes if each != attribute)
            if kept == options.indexes:
                message = f"there is no index on {attribute!r}"
                raise StoreError(message, hint=f"there are indexes on {listed(kept) or 'nothing'}")
            return replace(options, indexes=kept)

        self.set_options(dropped)

    def rebuild_indexes(self, *, run: RunJobs = run_here, most: int | None = None) -> int:
        """Build the secondary indexes that segments lack, or some; return how many were built."""
        return len(self.maintain(lambda manifest: index_jobs(self.path, manifest)[:most], run))

    def add_column(self, name: str, data_type: DataType) -> None:
        """Add a nullable attribute; events stored before have null."""
        with self.writing() as (stream, view):
            add_column(stream, view, Attribute(name, data_type))

    def drop_column(self, name: str) -> None:
        """Take an attribute away, from stored events as well."""
        with self.writing() as (stream, view):
            drop_column(stream, view, name)

    def drop_before(self, ts: int) -> int:
        """Drop the segments that end before a time; return how many events that were."""
        with self.writing() as (stream, view):
            return drop_before(stream, view, ts, f"dropped events before {moment(ts)}, as asked")[1]

    def retain(self) -> int:
        """Drop what the stream's retention lets go; return how many events that were."""
        with self.writing() as (stream, view):
            return retain(stream, view)[1]

    def thin(self, before: int, level: int = 1, *, run: RunJobs = run_here) -> int:
        """Reduce the segments that end before a time to aggregates; return how many.

        Their events are gone; aggregates over spans that cut none of the kept entries stay exact.
        """
        note = f"thinned events before {moment(before)} to level {level}, as asked"
        plan = partial(thinning_jobs, self.path, before=before, level=level)
        return len(self.maintain(plan, run, note))

    def stats(self) -> StreamStats:
        """Describe what the stream holds, how it is kept, and what came in lately."""
        return stats_of(self.snapshot(), opened(self.path).meter.load())

    @property
    def options(self) -> StreamOptions:
        """How the stream is kept."""
        return self.current().manifest.options

    def after_seal(self, stream: OpenStream, view: StreamView) -> None:
        """Do what is due when segments were sealed: choose indexes, retain, merge small ones."""
        view = choose_by_correlation(stream, view)
        retain(stream, view)
        self.merge_small(stream)

    def current(self) -> StreamView:
        """Return the newest view, making sure that it is still the same stream."""
        view = opened(self.path).view()
        self.check_same(view)
        return view

    @contextlib.contextmanager
    def writing(self) -> Iterator[tuple[OpenStream, StreamView]]:
        """Hold the write lock, with the newest view."""
        stream = opened(self.path)
        with stream.writing() as view:
            self.check_same(view)
            yield stream, view

    def check_same(self, view: StreamView) -> None:
        """Refuse a stream that has been created anew under the same name."""
        if view.manifest.stream_id != self.stream_id:
            message = f"stream {self.name!r} was dropped, and another created in its place"
            raise StoreError(message, hint="open the stream again")

    def check_staged(self, staged: Sequence[StagedSegment], manifest: Manifest) -> None:
        """Refuse files that are gone, cut short, in the stream already, or given twice."""
        seen = set(manifest.files)
        for segment in (segment for part in staged for segment in part.segments):
            path = self.path / segment.file
            if segment.file in seen:
                message = f"{path} was committed before"
                raise StoreError(message, hint="stage again, or pass a commit_id to retry safely")
            if not path.exists() or path.stat().st_size != segment.bytes:
                message = f"staged file {path} is missing or incomplete"
                raise StoreError(
                    message, hint="it was discarded, or staged over a day ago: stage again"
                )
            seen.add(segment.file)

    def merge_small(self, stream: OpenStream) -> None:
        """Merge small segments where many have piled up. The events are safe either way."""
        view = stream.view()
        try:
            while small := small_run(view.manifest.segments, view.manifest.options.split_us):
                job = Job("merge", self.path, view.manifest, tuple(small))
                commit_jobs(stream, view, [job], run_here([job]))
                view = stream.view()
        except (OSError, StoreError) as error:
            log.warning("stream %s could not be compacted: %s", self.name, error)

    def remove_unlisted(self, staged: Sequence[StagedSegment], view: StreamView) -> None:
        """Delete staged files unless they are part of the stream."""
        files = view.manifest.files
        self.remove_files([s for part in staged for s in part.segments if s.file not in files])

    def remove_files(self, segments: Iterable[Segment]) -> None:
        """Delete the files of segments that no manifest lists."""
        for segment in segments:
            for name in segment.files:
                remove(self.path / name)


def check_how(how: str) -> None:
    """Refuse a way of adding that there is not."""
    if how not in get_args(AddedHow):
        message = f"how is {how!r}"
        raise StoreError(message, hint=f"it is one of {listed(get_args(AddedHow))}")


def check_producer(producer: object, sequence: object) -> None:
    """Refuse half an identity."""
    hint = 'append(batch, producer="sensor 7", sequence=41)'
    if (producer is None) != (sequence is None):
        message = "a producer and a sequence go together"
        raise StoreError(message, hint=hint)
    if producer is not None and not isinstance(producer, str):
        message = f"a producer is named by text, not by {producer!r}"
        raise StoreError(message, hint=hint)
    whole = isinstance(sequence, int) and not isinstance(sequence, bool)
    if sequence is not None and not (whole and sequence in range(2**63)):
        message = f"a sequence is a whole number from 0 up, not {sequence!r}"
        raise StoreError(message, hint=hint)


def with_staged(
    view: StreamView, staged: Sequence[StagedSegment], commit_id: str | None
) -> StreamView:
    """Return the view with staged segments in their places; the same one if there is nothing."""
    segments = list(view.manifest.segments)
    next_seq = view.next_seq
    for part in staged:
        for segment in part.segments:
            segments.append(placed(segment, next_seq))
        next_seq += part.rows
    if next_seq == view.next_seq and commit_id is None:
        return view
    ids = view.manifest.commit_ids
    manifest = replace(
        view.manifest,
        segments=tuple(segments),
        commit_ids=ids if commit_id is None else (*ids, commit_id)[-REMEMBERED_COMMIT_IDS:],
    )
    return replace(view, manifest=manifest, next_seq=next_seq)


def chunks(events: Iterable[pa.RecordBatch], schema: Schema) -> Iterator[pa.RecordBatch]:
    """Yield checked events in batches of about a segment's size."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in events:
        checked = checked_rows(pa.Table.from_batches([batch]), schema)
        for start in range(0, checked.num_rows, SEGMENT_ROWS):
            waiting.append(checked.slice(start, SEGMENT_ROWS))
            rows, size = rows + waiting[-1].num_rows, size + waiting[-1].nbytes
            if rows >= SEGMENT_ROWS or size >= SEGMENT_BYTES:
                yield pa.concat_batches(waiting)
                waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.concat_batches(waiting)


def checked_rows(events: pa.Table, schema: Schema) -> pa.RecordBatch:
    """Return events as one batch, refusing rows that do not fit the stream."""
    expected = schema.arrow.remove(1)
    if events.schema.names != expected.names or events.schema.types != expected.types:
        found = listed([f"{field.name} {field.type}" for field in events.schema])
        message = f"the events have {found}"
        wanted = listed([f"{field.name} {field.type}" for field in expected])
        raise SchemaError(message, hint=f"the stream takes {wanted}, in this order")
    if events.column(TS).null_count:
        message = "ts is null in some row"
        raise SchemaError(message, hint="every event has a time")
    columns = [joined_chunks(column) for column in events.columns]
    ts = int64_view(columns[0])
    if len(ts) and not (ts.min() >= MIN_TS_US and ts.max() <= MAX_TS_US):
        message = "ts lies outside the years 0001 to 9999 in some row"
        raise SchemaError(message, hint="ts counts microseconds since 1970-01-01 UTC")
    return pa.RecordBatch.from_arrays(columns, schema=expected)


def fitted(
    rows: pa.RecordBatch, made_for: StreamColumns | None, present: StreamColumns
) -> pa.RecordBatch:
    """Return rows that were made for some columns with those that there are now."""
    if made_for is None or made_for.ids == present.ids:
        return rows
    known = dict(zip(made_for.ids, rows.columns[1:], strict=True))
    expected = present.schema.arrow.remove(1)
    columns = [
        known[identity] if identity in known else pa.nulls(rows.num_rows, field.type)
        for identity, field in zip(present.ids, list(expected)[1:], strict=True)
    ]
    return pa.RecordBatch.from_arrays([rows.column(0), *columns], schema=expected)


def joined_chunks(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, copying only to join several."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
