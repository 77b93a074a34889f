"""One stream of a database: append, stage and commit, snapshot, compact."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, get_args

import pyarrow as pa

from eventide.errors import StoreError, listed
from eventide.instants import START_OF_TIME_US, moment
from eventide.schema import Attribute, DataType, Schema
from eventide.store.index.aggregates import registered
from eventide.store.options import StreamOptions
from eventide.store.reading.scan import StreamColumns
from eventide.store.segments.manifest import Manifest
from eventide.store.segments.segment import StagedSegment
from eventide.store.segments.segment_writer import cannot_write
from eventide.store.snapshot import Snapshot
from eventide.store.stats import StreamStats, stats_of
from eventide.store.upkeep.changes import (
    add_column,
    as_of_now,
    change_options,
    commit_jobs,
    drop_before,
    drop_column,
    noted,
    retain,
    trim,
)
from eventide.store.upkeep.maintenance import (
    Job,
    RunJobs,
    backfill_jobs,
    index_jobs,
    merge_jobs,
    run_here,
    thinning_jobs,
)
from eventide.store.upkeep.settling import after_seal, settle
from eventide.store.writing.append import Appended, Outcome, Producer, append_events
from eventide.store.writing.flush import flush
from eventide.store.writing.open_stream import OpenStream, opened
from eventide.store.writing.staging import check_staged, remove_unlisted, with_staged, write_staged
from eventide.store.writing.view import Reduced, StreamView

AddedHow = Literal["next", "split", "backfill"]


@dataclass(frozen=True, slots=True)
class StoredStream:
    """A stream in a folder. It holds no state of its own: `open_stream.py` has it."""

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
        """Append events, and return what went wrong once they were visible; raise earlier errors.

        `columns` are those that the events were made for, if others may have come or gone since:
        the events have null in new columns, and lose dropped ones, like all before them.
        """
        sender = Producer(producer, sequence)
        with self.writing() as (stream, view):
            return append_events(stream, view, events, columns, sender)

    def last_sequence(self, producer: str) -> int | None:
        """Return the highest sequence that a producer has stored, None if it is not known."""
        return self.current().producers.get(producer)

    def stage(self, events: Iterable[pa.RecordBatch]) -> StagedSegment:
        """Write events to files that are not part of the stream until `commit`.

        The result can be pickled, or sent as JSON, to the process that commits. Files that are
        neither committed nor discarded are swept after a day.
        """
        return write_staged(self.path, self.current().manifest, events)

    def commit(self, staged: Sequence[StagedSegment], commit_id: str | None = None) -> Appended:
        """Add staged events in the order given, all at once.

        A `commit_id` that the stream has seen among its last 10,000 adds nothing: the staged
        files are discarded, and the result has no rows. That makes retries safe.
        """
        with self.writing() as (stream, view):
            if commit_id is not None and commit_id in view.manifest.commit_ids:
                remove_unlisted(self.path, staged, view)
                return Appended(0, view.next_seq)
            check_staged(self.path, staged, view.manifest)
            following = with_staged(view, staged, commit_id)
            if following is not view:
                # If that fails the staged files stay: the caller commits again, or discards them.
                settle(stream, view, stream.commit_manifest(following))
            return Appended(following.next_seq - view.next_seq, view.next_seq)

    def discard(self, staged: Sequence[StagedSegment]) -> None:
        """Delete staged files. Files that were committed after all stay."""
        with self.writing() as (_, view):
            remove_unlisted(self.path, staged, view)

    def snapshot(self, least_us: int = START_OF_TIME_US) -> Snapshot:
        """Return the stream as it is now, without events that have expired.

        Now is the time of its newest event, or `least_us` if that is later.
        """
        view = self.current()
        if view.manifest.options.keep_until is not None:
            from eventide.store.lifetimes import living

            view = living(self.path, view, least_us=least_us)
        return Snapshot(self.path, view)

    def snapshot_at(self, now_us: int) -> Snapshot:
        """Return what is stored now, without the events that had expired at a time."""
        from eventide.store.lifetimes import living

        return Snapshot(self.path, living(self.path, self.current(), now_us))

    def everything(self) -> Snapshot:
        """Return all that is stored now: events too that have expired, and are not freed yet."""
        return Snapshot(self.path, self.current())

    def flush(self, *, seal: bool = False) -> None:
        """Write everything that is only in the log to segments; `seal` ends the open one."""
        with self.writing() as (stream, view):
            if view.tail or view.queue or (seal and view.segment is not None):
                settle(stream, view, flush(stream, view, everything=True, seal=seal))

    def sync(self) -> None:
        """Return once everything appended so far is on the disk, with any durability."""
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
        """End the open segment now; the next one leaves out what `reduced` says.

        With `note`, this is listed among the stream's decisions.
        """
        with self.writing() as (stream, view):
            manifest = view.manifest if note is None else noted(view.manifest, note)
            now = replace(view, manifest=manifest)
            following = flush(stream, now, everything=True, seal=True, reduced=reduced)
            after_seal(stream, following)

    def compact(self, *, run: RunJobs = run_here) -> int:
        """Merge small and overlapping segments, and delete files that are no longer needed.

        Returns how many segments were merged into others. Readers are not disturbed; see
        compaction.py for how long the replaced files stay.
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
        jobs = plan(as_of_now(self.current()))
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
        """Change how the stream is stored, from the next segment on; `split` begins one now."""
        with self.writing() as (stream, view):
            options = change(view.manifest.options) if callable(change) else change
            if options != view.manifest.options:
                change_options(stream, view, options, split=split)
            return options

    def add_aggregate(self, name: str, attribute: str, how: AddedHow = "next") -> None:
        """Keep one more aggregate in the index; see `add_index` for `how`."""
        check_how(how)
        registered(name)
        self.set_options(lambda now: now.with_aggregate(name, attribute), split=how != "next")
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
        self.set_options(lambda now: now.with_index(attribute), split=how != "next")
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
        self.set_options(lambda now: now.without_index(attribute))

    def rebuild_indexes(self, *, run: RunJobs = run_here, most: int | None = None) -> int:
        """Build the secondary indexes that segments lack, or some; return how many were built."""
        return len(self.maintain(lambda manifest: index_jobs(self.path, manifest)[:most], run))

    def add_column(self, name: str, data_type: DataType) -> None:
        """Add a nullable attribute; events stored before have null."""
        with self.writing() as (stream, view):
            add_column(stream, view, Attribute(name, data_type))

    def drop_column(self, name: str) -> None:
        """Remove an attribute, from stored events as well."""
        with self.writing() as (stream, view):
            drop_column(stream, view, name)

    def drop_before(self, ts: int) -> int:
        """Drop the segments that end before a time; return how many events that were."""
        with self.writing() as (stream, view):
            return drop_before(stream, view, ts, f"dropped events before {moment(ts)}, as asked")[1]

    def retain(self) -> int:
        """Drop the events that the stream's retention no longer keeps; return how many."""
        with self.writing() as (stream, view):
            return retain(stream, view)[1]

    def thin(self, before: int, level: int = 1, *, run: RunJobs = run_here) -> int:
        """Reduce the segments that end before a time to aggregates; return how many.

        Their events are gone; aggregates over periods that cut none of the kept entries stay exact.
        """
        note = f"thinned events before {moment(before)} to level {level}, as asked"
        plan = partial(thinning_jobs, self.path, before=before, level=level)
        return len(self.maintain(plan, run, note))

    def stats(self) -> StreamStats:
        """Describe what the stream holds, how it is stored, and what came in lately."""
        expired = self.everything().row_count - self.snapshot().row_count
        return stats_of(self.everything(), expired, opened(self.path).meter.load())

    @property
    def options(self) -> StreamOptions:
        """How the stream is stored."""
        return self.current().manifest.options

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


def check_how(how: str) -> None:
    """Refuse an unknown way of adding."""
    if how not in get_args(AddedHow):
        message = f"how is {how!r}"
        raise StoreError(message, hint=f"it is one of {listed(get_args(AddedHow))}")
