"""One stream in this process: its newest view, and how it is changed.

A small append is one record in the log. When the log is long, or an append is large, the tail is
sorted and written to the open segment as leaves (`flush.py`), and a checkpoint goes to the log.

Several processes may read and write: a writer holds the folder's lock, and first catches up with
what others have logged. Nothing that readers look at is ever overwritten.

An append that fails removes its record. If the disk refuses that too, it is not known whether the
record will be there when the stream is opened again, and the error says so. This process does not
show it, and the next writer removes it first. A log that could not be synced is not trusted any
more: the next writer begins another.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eventide.errors import StoreError
from eventide.store.files.disk import AppendFile, remove, sync_folder
from eventide.store.files.lock import changed_ns, note_newest, write_lock
from eventide.store.files.mapped import damaged
from eventide.store.segments.listing import remove_new
from eventide.store.segments.manifest import (
    Manifest,
    is_newest,
    load_manifest,
    manifest_path,
    with_listings,
    write_manifest,
)
from eventide.store.segments.segment_writer import SegmentWriter, cannot_write
from eventide.store.writing.findings import Findings
from eventide.store.writing.group_commit import note_lost, was_lost
from eventide.store.writing.load import LoadMeter
from eventide.store.writing.log import (
    MAGIC,
    DamagedLogError,
    LogWriter,
    Record,
    RecordKind,
    Refused,
    Rows,
    create_log,
    ends_at,
    is_old,
    is_still_there,
    last_checkpoint,
    read_records,
    read_rest,
    read_whole_rest,
    stamp_of,
)
from eventide.store.writing.view import StreamView

if TYPE_CHECKING:
    from eventide.store.writing.spare_log import SpareLog

# A writer that is just adding a record can make a reader see half of it.
READ_ATTEMPTS = 5


class OpenStream:
    """The newest view of a stream that this process has seen, and the files it writes to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mutex = threading.RLock()
        self.held: StreamView | None = None
        self.log: LogWriter | None = None
        self.spare: SpareLog | None = None
        self.writer: SegmentWriter | None = None
        self.refused: Refused | None = None
        self.acknowledged = ("", 0)
        """A log, and how long it was when this process last added to it."""
        self.safe_version: int | None = None
        """The version of the manifest whose name is known to be on the disk."""
        self.noted = (0, 0)
        """The newest version that this process has noted, and when the folder had last changed."""
        self.meter = LoadMeter()
        self.findings = Findings()

    def view(self) -> StreamView:
        """Return the stream as it is now."""
        held = self.held
        if held is not None and self.is_current(held):
            return held
        with self.mutex:
            return self.refreshed()

    def is_current(self, view: StreamView) -> bool:
        """Whether no process has written since."""
        if not is_newest(self.folder, view.manifest.version):
            return False
        end = view.log_end
        try:
            found = os.stat(f"{self.folder}/{view.manifest.log}")  # noqa: PTH116
            if end in (found.st_size, self.end_of(view.manifest.log, found)):
                return True
            return ends_at(self.folder, view.manifest.log, view.log_header, end)
        except FileNotFoundError:
            return False

    def end_of(self, log: str, found: os.stat_result) -> int:
        """Return where a log ends: before what was refused, as long as that is the last."""
        refused = self.refused
        if refused is not None and refused.is_as_left(log, found):
            return refused.end
        return found.st_size

    def refreshed(self, *, locked: bool = False, whole: bool = False) -> StreamView:
        """Catch up with what is on the disk, and return it; `whole` reads what no longer counts."""
        if self.held is not None and self.is_current(self.held):
            return self.held
        for number in range(READ_ATTEMPTS):
            view = self.attempt(strict=False, whole=whole or number > 0)
            if view is not None:
                return view
        # A busy writer is always ahead; one that waits for this reader is not.
        with nullcontext() if locked else standing_still(self.folder):
            view = self.attempt(strict=True, whole=True)
        if view is not None:
            return view
        log = self.folder / load_manifest(self.folder).log
        if not log.exists():
            message = f"{log} is missing"
            raise StoreError(message, hint="`eventide repair` keeps what is in other files")
        message = f"{self.folder} changes faster than it can be read"
        raise StoreError(message, hint="try again; if nobody writes to it, run `eventide verify`")

    def attempt(self, *, strict: bool, whole: bool) -> StreamView | None:
        """Read what is on the disk; None if another process wrote in the meantime."""
        try:
            view = self.read(strict=strict, whole=whole)
        except FileNotFoundError:
            # The log was replaced between the manifest and now, or the stream dropped.
            self.held = None
            return None
        if view is None or not is_newest(self.folder, view.manifest.version):
            return None
        self.held = view
        return view

    def read(self, *, strict: bool, whole: bool) -> StreamView | None:
        """Read the manifest and the log's records; None if a record may be half written.

        Without `whole`, a log that was not read before is read from its last checkpoint on.
        """
        held = self.held
        if held is None or not is_newest(self.folder, held.manifest.version):
            manifest = load_manifest(self.folder)
            if held is None or held.manifest.log != manifest.log:
                held = StreamView(manifest)
            else:
                # The same log under another manifest: only sealed segments have come or gone.
                next_seq = max(held.next_seq, manifest.next_seq)
                held = replace(held, manifest=manifest, next_seq=next_seq)
        path = self.folder / held.manifest.log
        with path.open("rb") as file:
            if held.log_end and not is_still_there(file, held.log_header, held.log_end):
                held = StreamView(held.manifest)
            file.seek(0)
            old = is_old(file.read(len(MAGIC)))
            end = self.end_of(path.name, os.fstat(file.fileno()))
            stamp = stamp_of(path.name)
            if old:
                file.seek(held.log_end)
                content = file.read(max(0, end - held.log_end))
            elif held.log_end:
                content = read_rest(file, held.log_end, end, stamp)
            else:
                start, number = (0, 0) if whole else last_checkpoint(file, end, stamp)
                held = replace(held, log_end=start, log_records=number)
                content = read_whole_rest(file, start, end, stamp)
        if not content and held.log_header and held.log_end >= held.manifest.log_end:
            return held
        schema = held.manifest.schema.arrow
        schemas = {RecordKind.CHECKPOINT: schema, RecordKind.EVENTS: schema.remove(1)}
        try:
            for record in reader_of(old=old)(
                content,
                stamp,
                schemas,
                origin=held.log_end,
                number=held.log_records,
                synced=held.manifest.options.durability == "batch",
            ):
                held = held.after(record)
            if not held.log_header:
                # The first checkpoint is synced before a manifest names the log: it cannot be torn.
                no_checkpoint = "its first record is missing"
                raise DamagedLogError(no_checkpoint)
            check_length(held, self.acknowledged)
        except DamagedLogError as error:
            # The file may be that of another log by now, if nobody could be kept from writing.
            if strict and is_newest(self.folder, held.manifest.version):
                raise damaged(path, str(error)) from error
            return None
        return replace(held, next_seq=max(held.next_seq, held.manifest.next_seq))

    @contextmanager
    def writing(self) -> Iterator[StreamView]:
        """Hold the lock, and lend the newest view. After an error nothing has changed."""
        with self.mutex, write_lock(self.folder):
            view = self.refreshed(locked=True)
            self.keep_handles_of(view)
            try:
                self.make_safe(view)
                if was_lost(f"{self.folder}/{view.manifest.log}") or is_old(view.log_header):
                    # A new log gets all of it, from here: syncing a lost one again would only seem
                    # to help, and nothing is added to a log of an older format.
                    view = self.commit(view)
                yield view
            except BaseException as error:
                self.close()
                if isinstance(error, OSError) and not isinstance(error, StoreError):
                    raise cannot_write(self.folder, error) from error
                raise
            self.note_newest()
        close_oldest(self)

    def note_newest(self) -> None:
        """Note which version is the newest, if the folder has changed since that was done."""
        if self.held is None:
            return
        with suppress(OSError):
            newest = self.held.manifest.version, changed_ns(self.folder)
            if newest != self.noted and is_newest(self.folder, newest[0]):
                note_newest(self.folder, *newest)
                self.noted = newest

    def make_safe(self, view: StreamView) -> None:
        """Sync the name of a version that another process has committed, and those that lead to it.

        That process may have died, or failed, before doing so. Events added to a log that only this
        version names would be lost with it.
        """
        if self.safe_version == view.manifest.version:
            return
        sync_folder(self.folder)
        if self.safe_version is None:
            for above in list(self.folder.parents)[:2]:
                sync_folder(above)
        self.safe_version = view.manifest.version

    def keep_handles_of(self, view: StreamView) -> None:
        """Close files that another process has gone on without."""
        log, writer, segment = self.log, self.writer, view.segment
        if log is not None and (
            log.file.path.name != view.manifest.log or log.file.end != view.log_end
        ):
            log.file.close()
            self.log = None
        if writer is not None and (
            segment is None
            or segment.file != writer.file.path.name
            or segment.bytes != writer.file.end
        ):
            writer.close()
            self.writer = None

    def close(self) -> None:
        """Close all files; the next write opens them again."""
        if self.log is not None:
            self.log.file.close()
        if self.writer is not None:
            self.writer.close()
        if self.spare is not None:
            self.spare.file.close()
        self.log = self.writer = self.spare = None

    def opened_log(self, view: StreamView) -> LogWriter:
        """Return the log, ready for a record behind the last whole one."""
        if self.log is None:
            file = AppendFile.open(self.folder / view.manifest.log)
            if file.end != view.log_end:
                # Torn by a crash, or written by an append that failed: never acknowledged. Or of
                # an older log; a process trusts only the rest of what it has written itself.
                file.cut(view.log_end)
            self.log = LogWriter(file, view.log_records)
        return self.log

    def record(
        self,
        view: StreamView,
        following: StreamView,
        kind: RecordKind,
        facts: Mapping[str, Any],
        batches: Sequence[Rows],
        *,
        sync: bool,
    ) -> StreamView:
        """Log the change from one view to the next, and make that the newest."""
        log = self.opened_log(view)
        try:
            log.append(kind, facts, batches)
            if sync:
                self.sync_log(log)
        except BaseException as error:
            if not self.take_back(log.file, view.log_end) and isinstance(error, Exception):
                raise cannot_tell(self.folder, error) from error
            raise
        self.held = replace(
            following,
            log_end=log.file.end,
            log_records=log.number,
            log_start=log.file.end if kind == RecordKind.CHECKPOINT else view.log_start,
            log_header=log.header,
        )
        self.acknowledged = (log.file.path.name, log.file.end)
        return self.held

    def sync_log(self, log: LogWriter) -> None:
        """Return once a log is on the disk."""
        try:
            log.file.sync()
        except BaseException:
            note_lost(log.file.path)
            raise

    def take_back(self, file: AppendFile, end: int) -> bool:
        """Cut off a record that was not acknowledged; return whether it is gone for good."""
        try:
            file.cut(end)
        except BaseException as error:
            note_lost(file.path)
            found = os.fstat(file.descriptor)
            self.refused = Refused(file.path.name, end, found.st_size, found.st_mtime_ns)
            if not isinstance(error, OSError):
                raise
            return False
        return True

    def shows(self, seq: int) -> bool:
        """Whether readers see the event with a number, as far as is known."""
        with suppress(OSError):
            return self.refreshed(locked=True).next_seq > seq
        return False

    def commit(self, following: StreamView) -> StreamView:
        """Commit a manifest with a new log that holds the whole open end.

        `following.manifest` is the old one with what changed; version and log are set here.
        """
        with self.in_listings(following.manifest) as listed:
            return self.commit_log(replace(following, manifest=listed))

    def commit_log(self, following: StreamView) -> StreamView:
        """Commit a manifest, as it is, with a new log."""
        old_log = following.manifest.log
        log = self.begun_log()
        facts, batches = following.checkpoint()
        try:
            log.append(RecordKind.CHECKPOINT, facts, batches)
            log.file.sync()
            # Otherwise a power failure could leave the manifest, and not the log it names.
            sync_folder(self.folder)
            manifest = replace(
                following.manifest,
                version=following.manifest.version + 1,
                log=log.file.path.name,
                log_end=log.file.end,
                next_seq=following.next_seq,
            )
            write_manifest(self.folder, manifest)
        except BaseException:
            log.file.close()
            if not is_listed(self.folder, log.file.path.name):
                remove(log.file.path)
            raise
        self.safe_version = manifest.version
        old, self.log = self.log, log
        self.held = replace(
            following,
            manifest=manifest,
            log_end=log.file.end,
            log_records=log.number,
            log_start=log.file.end,
            log_header=log.header,
        )
        if old is not None and old.file.path.name == old_log and not was_lost(old.file.path):
            from eventide.store.writing.spare_log import kept_as_spare

            self.spare = kept_as_spare(old)
        else:
            remove(self.folder / old_log)
        if old is not None:
            old.file.close()
        return self.held

    @contextmanager
    def in_listings(self, manifest: Manifest) -> Iterator[Manifest]:
        """Lend a manifest that is to be committed, with its segments in listings.

        Those that were written for it are deleted if it is not committed.
        """
        before = manifest if self.held is None else self.held.manifest
        listed = with_listings(self.folder, manifest, before, time.time())
        try:
            yield listed
        except BaseException:
            if not manifest_path(self.folder, manifest.version + 1).exists():
                remove_new(self.folder, listed.segments, before.segments)
            raise

    def begun_log(self) -> LogWriter:
        """Begin a log, over the one before the last if that was kept."""
        spare, self.spare = self.spare, None
        begun = None if spare is None else spare.begin()
        return begun or create_log(self.folder)

    def commit_manifest(self, following: StreamView) -> StreamView:
        """Commit a manifest that changes nothing about the open end."""
        with self.in_listings(following.manifest) as listed:
            # The manifest counts what is in the log, and may say that it is always synced.
            self.sync_log(self.opened_log(following))
            manifest = replace(
                listed,
                version=listed.version + 1,
                log_end=following.log_end,
                next_seq=following.next_seq,
            )
            write_manifest(self.folder, manifest)
        self.safe_version = manifest.version
        self.held = replace(following, manifest=manifest)
        return self.held


def reader_of(*, old: bool) -> Callable[..., Iterator[Record]]:
    """Return what reads the records of a log."""
    if old:
        from eventide.store.writing.old_log import read_old_records

        return read_old_records
    return read_records


def check_length(view: StreamView, acknowledged: tuple[str, int]) -> None:
    """Refuse a log that ends before what it is known to have held: it was cut off."""
    log, end = acknowledged
    known = max(view.manifest.log_end, end if log == view.manifest.log else 0)
    if view.log_end < known:
        message = f"it ends at byte {view.log_end}, and {known} were acknowledged"
        raise DamagedLogError(message)


def cannot_tell(folder: Path, error: BaseException) -> StoreError:
    """Return the error for a record that could be neither stored nor removed."""
    message = f"cannot write to {folder}, and not take back what was written: {error}"
    hint = (
        "this process shows none of it, but it may be there when the stream is opened again: look "
        "before you append it again, or append with a producer and a sequence"
    )
    return StoreError(message, hint=hint)


def is_listed(folder: Path, log: str) -> bool:
    """Whether the newest manifest names a log: once it does, its file must stay."""
    try:
        return load_manifest(folder).log == log
    except StoreError:
        return True


@contextmanager
def standing_still(folder: Path) -> Iterator[None]:
    """Keep writers out while a reader catches up, if this process may lock the folder at all."""
    with ExitStack() as lock:
        # Without it (a folder that is read-only) the reader has to win a race, as before.
        with suppress(StoreError):
            lock.enter_context(write_lock(folder))
        yield


OPENED: dict[Path, OpenStream] = {}
WRITTEN: dict[Path, OpenStream] = {}
"""Those that may have open files, the last written one last."""
OPENING = threading.Lock()
MOST_WRITTEN = 64
"""So many streams keep the files they write to open: a process may not have too many, and some
libraries cannot wait for a file that has a number over 1,023."""


def forget_parent() -> None:
    """Begin anew in a forked child: a lock that another thread held there is never freed here."""
    global OPENING  # noqa: PLW0603
    OPENED.clear()
    WRITTEN.clear()
    OPENING = threading.Lock()


def close_oldest(written: OpenStream) -> None:
    """Close the files of the streams that were not written to for longest, if there are many."""
    with OPENING:
        WRITTEN.pop(written.folder, None)
        WRITTEN[written.folder] = written
        many = len(WRITTEN) - MOST_WRITTEN
        old = [WRITTEN.pop(folder) for folder in list(WRITTEN)[: max(0, many)]]
    for stream in old:
        # Who is writing to it now comes by here as well.
        if stream.mutex.acquire(blocking=False):
            try:
                if stream.spare is not None:
                    stream.spare.discard()
                stream.close()
            finally:
                stream.mutex.release()


os.register_at_fork(after_in_child=forget_parent)


def forget(folder: Path) -> None:
    """Close the files of a stream that is dropped."""
    with OPENING:
        gone = OPENED.pop(folder, None)
        WRITTEN.pop(folder, None)
    if gone is not None:
        with gone.mutex:
            gone.close()


def opened(folder: Path) -> OpenStream:
    """Return the one `OpenStream` of a folder in this process."""
    with OPENING:
        found = OPENED.get(folder)
        if found is None:
            found = OPENED[folder] = OpenStream(folder)
        return found
