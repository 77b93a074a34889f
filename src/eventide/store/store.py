"""A database: a folder of streams.

DB/eventide.json           marks the folder, with the format's version
DB/lock                    held while a stream is created or dropped
DB/definitions.json        the named queries, if there are any
DB/rules.json              detection rules, if any were added; see rules/kept.py
DB/weights.json            the cost of steps of queries on this machine, if it was measured
DB/streams/<name>/         one stream: manifest and segment files, and its own lock
DB/streams/<name>/query/   how far the query is whose rows the stream stores; see progress.py
DB/dropped-<id>/           a dropped stream that is being deleted
DB/reads/                  snapshots that tasks of Spark have agreed on
"""

from __future__ import annotations

import difflib
import json
import re
import shutil
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from eventide.errors import StoreError, listed
from eventide.local_path import local_path
from eventide.schema import Schema
from eventide.store.definitions import (
    Definition,
    defined_names,
    read_definitions,
    write_definitions,
)
from eventide.store.files import disk
from eventide.store.files.disk import sync_folder, write_atomically
from eventide.store.files.json_text import read_json, whole
from eventide.store.files.lock import write_lock
from eventide.store.options import StreamOptions
from eventide.store.progress import QUERY_FOLDER, copy_progress
from eventide.store.segments.manifest import Manifest, versions_in, write_manifest
from eventide.store.segments.segment import SEGMENT_NAME
from eventide.store.snapshot import Snapshot
from eventide.store.stream import StoredStream
from eventide.store.writing.log import RecordKind, create_log
from eventide.store.writing.open_stream import forget, opened
from eventide.store.writing.view import StreamView

if TYPE_CHECKING:
    from eventide.store.upkeep.backup import Advance

FORMAT = 3
MARKER = "eventide.json"
STREAMS = "streams"
DROPPED = "dropped-"
COPY_ATTEMPTS = 100
"""How often rows are looked at again because their query has gone on meanwhile."""
STORED_KIND = "stored stream"
"""The kind of a definition whose rows are stored."""
RULES_FILE = "rules.json"
STREAM_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")


class Store:
    """The streams of one database folder."""

    __slots__ = ("path",)

    def __init__(self, path: Path) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"<Store {self.path}>"

    @classmethod
    def open(cls, path: str | Path, *, create: bool = True) -> Store:
        """Open a database folder; make a new one if there is nothing yet."""
        folder = local_path(path).absolute()
        try:
            if not (folder / MARKER).exists():
                initialise(folder, create=create)
            check_format(folder / MARKER)
        except StoreError:
            raise
        except OSError as error:
            message = f"cannot open {folder}: {error.strerror or error}"
            raise StoreError(message, hint="check the path and its permissions") from error
        return cls(folder)

    def streams(self) -> tuple[str, ...]:
        """Return the names of the streams, sorted."""
        return tuple(entry.name for entry in self.folders() if versions_in(entry))

    def folders(self) -> list[Path]:
        """Return the folders of streams, sorted, also those that a crash left without a stream."""
        try:
            return sorted((self.path / STREAMS).iterdir())
        except FileNotFoundError:
            # The first stream makes that folder. A database that is gone must not look empty.
            if (self.path / MARKER).exists():
                return []
            message = f"{self.path} is no longer there"
            hint = "it was moved or deleted, or its disk is not mounted"
            raise StoreError(message, hint=hint) from None
        except OSError as error:
            message = f"cannot read {self.path}: {error.strerror or error}"
            raise StoreError(message, hint="check the disk and the permissions") from error

    def create_stream(
        self,
        name: str,
        schema: Schema,
        options: StreamOptions | None = None,
        *,
        defined: bool = False,
    ) -> StoredStream:
        """Make a new, empty stream; one that is `defined` is for the query of that name."""
        options = (options or StreamOptions()).checked(schema)
        if not isinstance(name, str) or not STREAM_NAME.fullmatch(name):
            message = f"{name!r} is not a stream name"
            raise StoreError(message, hint="use up to 100 letters, digits, _ and -")
        with write_lock(self.path):
            if not defined:
                refuse_defined(self.path, name)
            for existing in self.streams():
                # Some file systems, and SQL, do not tell names apart by case.
                if existing.lower() == name.lower():
                    message = f"stream {existing!r} exists already"
                    hint = (
                        f"db.stream({existing!r}) opens it, db.drop_stream({existing!r}) deletes it"
                    )
                    raise StoreError(message, hint=hint)
            folder = self.path / STREAMS / name
            try:
                folder.mkdir(parents=True, exist_ok=True)
                manifest = begin_stream(folder, schema, options)
                sync_folder(folder.parent)
                sync_folder(self.path)
            except StoreError:
                raise
            except OSError as error:
                if versions_in(folder):
                    message = f"{folder} is created, but may not survive a power failure: {error}"
                    hint = f"db.stream({name!r}) opens it; check the disk first"
                    raise StoreError(message, hint=hint) from error
                message = f"cannot create {folder}: {error}"
                raise StoreError(message, hint="check the disk and the permissions") from error
            opened(folder).safe_version = manifest.version
        return StoredStream(name, folder, manifest.stream_id)

    def stream(self, name: str) -> StoredStream:
        """Return a stream that exists."""
        folder = self.path / STREAMS / name
        # By its exact name; whether it holds a stream is asked only if it cannot be read.
        if folder in self.folders():
            try:
                return StoredStream(name, folder, opened(folder).view().manifest.stream_id)
            except StoreError:
                if versions_in(folder):
                    raise
        raise no_stream(name, self.streams())

    def snapshots(self, names: Iterable[str]) -> dict[str, Snapshot]:
        """Return what is stored now of some streams, by name."""
        return {name: self.stream(name).snapshot() for name in names}

    def backup(self, path: str | Path, advance: Advance = lambda _: None) -> Store:
        """Copy every stream as it is now into a new database, while writing goes on.

        Named queries and rules are copied too. The weights of this machine stay here, and so do
        durable queries: what they have handed over may be ahead of the copy.
        """
        target = local_path(path).absolute()
        if target.exists() or target.is_relative_to(self.path):
            problem = "exists already" if target.exists() else "lies inside the database"
            message = f"{target} {problem}"
            raise StoreError(message, hint="a backup goes into a folder of its own")
        for folder in self.folders():
            check_listed(folder)
        definitions = read_definitions(self.path)
        partial = target.with_name(f"{target.name}.{uuid.uuid4().hex}.partial")
        try:
            copy = Store.open(partial)
            from eventide.store.upkeep.backup import backup_stream

            for snapshot in self.backup_snapshots(definitions, copy):
                backup_stream(snapshot, copy.path / STREAMS / snapshot.name, advance)
            if definitions:
                write_definitions(copy.path, definitions)
            if (self.path / RULES_FILE).exists():
                write_atomically(copy.path / RULES_FILE, (self.path / RULES_FILE).read_bytes())
            # The name appears once all of it is there.
            disk.DISK.rename(partial, target)
            sync_folder(target.parent)
        except BaseException as error:
            shutil.rmtree(partial, ignore_errors=True)
            # What could not be written has a name that nobody knows, and is gone by now.
            failure = error.__cause__ if isinstance(error, StoreError) else error
            if isinstance(failure, OSError) and not isinstance(failure, FileNotFoundError):
                raise cannot_back_up(self.path, target, failure) from error
            raise
        return Store(target)

    def backup_snapshots(self, definitions: Sequence[Definition], copy: Store) -> list[Snapshot]:
        """Return snapshots of all streams; copy how far the queries of derived ones are.

        The rows that a query stores are copied before the streams that it reads, so the copy has
        every event that the query had read. A definition stands behind those that it reads.
        """
        there = self.streams()
        derived = [each for each in reversed(stored_names(definitions)) if each in there]
        snapshots = []
        for name in derived:
            while True:
                snapshot = self.stream(name).everything()
                source, target = (
                    each / STREAMS / name / QUERY_FOLDER for each in (self.path, copy.path)
                )
                if copy_progress(source, target, snapshot.view.next_seq):
                    break
            snapshots.append(snapshot)
        rest = (name for name in there if name not in derived)
        return [*snapshots, *(self.stream(name).everything() for name in rest)]

    def refuse_derived(self, name: str) -> None:
        """Refuse to append by hand to a stream whose events come from its query."""
        if name.lower() in {each.lower() for each in stored_names(read_definitions(self.path))}:
            raise not_by_hand(name)

    def drop_stream(self, name: str) -> None:
        """Delete a stream and all its events. Snapshots of it can no longer be read."""
        with write_lock(self.path):
            if name not in self.streams():
                raise no_stream(name, self.streams())
            folder = self.path / STREAMS / name
            with write_lock(folder):
                try:
                    # The rename is the moment it is gone; deleting many files is not atomic.
                    disk.DISK.rename(folder, self.path / f"{DROPPED}{uuid.uuid4().hex}")
                    forget(folder)
                    sync_folder(folder.parent)
                except OSError as error:
                    raise cannot_drop(folder, error) from error
            for leftover in self.path.glob(f"{DROPPED}*"):
                shutil.rmtree(leftover, ignore_errors=True)


def refuse_defined(folder: Path, name: str) -> None:
    """Refuse a name that a query has."""
    known = defined_names(folder).get(name.lower())
    if known is not None:
        message = f"{known!r} is the name of a query"
        raise StoreError(message, hint="choose another name, or drop that one first")


def not_by_hand(name: str) -> StoreError:
    """Return the error for events that are not those of a stream's query."""
    message = f"{name} stores the rows of a query: events come from nowhere else"
    return StoreError(message, hint="append to the streams that its query reads")


def stored_names(definitions: Sequence[Definition]) -> list[str]:
    """Return the names of the queries whose rows are stored."""
    return [str(each["name"]) for each in definitions if each.get("kind") == STORED_KIND]


def check_listed(folder: Path) -> None:
    """Refuse a folder with events that no manifest lists: a backup would be without them."""
    if folder.is_dir() and not versions_in(folder):
        for path in folder.iterdir():
            if SEGMENT_NAME.fullmatch(path.name):
                message = f"{folder} has {path.name}, but no manifest"
                hint = "run `eventide repair` first, or the backup would lack its events"
                raise StoreError(message, hint=hint)


def cannot_back_up(source: Path, target: Path, error: OSError) -> StoreError:
    """Return the error for a backup that failed."""
    if target.exists():
        message = f"{target} is written, but may not survive a power failure: {error}"
        return StoreError(message, hint="check the disk, and take the backup again")
    message = f"cannot back up {source} to {target}: {error}"
    return StoreError(message, hint="nothing is left of it; check the disk's free space")


def cannot_drop(folder: Path, error: OSError) -> StoreError:
    """Return the error for a stream that could not be dropped for good."""
    if folder.exists():
        message = f"cannot drop {folder}: {error}"
        return StoreError(message, hint="nothing was dropped; check the disk and the permissions")
    message = f"{folder} is dropped, but may be back after a power failure: {error}"
    return StoreError(message, hint="check the disk")


def begin_stream(folder: Path, schema: Schema, options: StreamOptions) -> Manifest:
    """Write the first log and the first manifest of a stream."""
    log = create_log(folder)
    manifest = Manifest(
        version=1,
        stream_id=uuid.uuid4().hex,
        schema=schema,
        column_ids=tuple(range(len(schema.names))),
        log=log.file.path.name,
        options=options,
        next_column_id=len(schema.names),
    )
    facts, batches = StreamView(manifest).checkpoint()
    log.append(RecordKind.CHECKPOINT, facts, batches)
    log.file.sync()
    log.file.close()
    sync_folder(folder)
    manifest = replace(manifest, log_end=log.file.end)
    write_manifest(folder, manifest)
    return manifest


def initialise(folder: Path, *, create: bool) -> None:
    """Make an empty database, refusing a folder that holds something else."""
    if not create:
        message = f"{folder} is not an Eventide database"
        hint = "check the path" if folder.exists() else "there is no such folder"
        raise StoreError(message, hint=hint)
    if folder.exists() and not folder.is_dir():
        message = f"{folder} is a file, not a database folder"
        raise StoreError(message, hint="an Eventide database is a folder of its own")
    folder.mkdir(parents=True, exist_ok=True)
    # A crash while the marker is written leaves a temporary file of its name.
    if any(not entry.name.startswith(MARKER) for entry in folder.iterdir()):
        if (folder / MARKER).exists():
            return
        message = f"{folder} is not an Eventide database, and not empty"
        raise StoreError(message, hint="choose a new folder for the database")
    write_atomically(folder / MARKER, json.dumps({"format": FORMAT}).encode())
    sync_folder(folder.parent)


def check_format(marker: Path) -> None:
    """Refuse a database from a later Eventide, and one whose marker is damaged."""
    try:
        version = whole(read_json(marker.read_bytes())["format"])
    except (ValueError, LookupError, TypeError) as error:
        message = f"{marker} is damaged: {error}"
        hint = f'if the folder is a database, write {{"format": {FORMAT}}} into it'
        raise StoreError(message, hint=hint) from error
    if version > FORMAT:
        message = f"{marker.parent} has format {version}; this Eventide reads up to {FORMAT}"
        raise StoreError(message, hint="open it with the version that wrote it")


def no_stream(name: str, names: tuple[str, ...]) -> StoreError:
    """Return the error for a stream that does not exist."""
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    guess = f"did you mean {close[0]!r}? " if close else ""
    there_are = f"the streams are {listed(names)}" if names else "there are no streams yet"
    return StoreError(f"no stream {name!r}", hint=guess + there_are)
