"""How far a query is whose rows must not be lost: a checkpoint, and a journal of steps since.

FOLDER/lock           held by the process that takes a step
FOLDER/checkpoint     checksum │ length of the facts │ facts (JSON) │ rows that wait │ state
FOLDER/journal-<n>    the steps since checkpoint n, a line each: checksum, and JSON
FOLDER/acknowledged   how many rows have been received, and a checksum

The folder is STREAM/query for a stored derived stream, and queries/NAME for a durable live query.

A step is written to the journal before it is taken, and is on the disk before its rows are. So
whoever goes on after a crash takes the same steps again and gets the same rows; it drops those
that are stored already.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import google_crc32c

from eventide.errors import StoreError
from eventide.store.files.disk import DISK, AppendFile, remove, sync_folder, write_atomically
from eventide.store.files.json_text import read_json, whole

QUERY_FOLDER = "query"
FORMAT = 1
CHECKPOINT = "checkpoint"
JOURNAL = "journal-"

ACKNOWLEDGED = "acknowledged"

_HEAD = struct.Struct("<II")
_ACKNOWLEDGED = struct.Struct("<QI")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a query behind some events of every stream that it reads."""

    number: int
    definition: str
    """The text and the lateness of the query, as its definition has them."""
    next_seqs: Mapping[str, int]
    """The number of the first event that has not been read, by stream."""
    rows: int
    """How many rows the query has emitted up to here."""
    state: bytes
    waiting: bytes = b""
    """Rows that have been emitted and wait for their receiver, if that is not a stream."""


@dataclass(frozen=True, slots=True)
class TakenStep:
    """The events that a query takes together."""

    until: Mapping[str, int]
    """The number behind the last event, by stream; streams without new events are left out."""
    rows: int | None
    """How many events they are; None if they are not counted before they are read."""
    cuts: tuple[int, ...] = ()
    """Instants at which many events are cut into parts, which are taken in order of time."""
    moved: Mapping[str, int] = field(default_factory=dict)
    """Instants that streams have reached without events, by stream."""
    change: Mapping[str, Any] = field(default_factory=dict)
    """What has changed instead, without events: the queries of a set."""


@dataclass(frozen=True, slots=True)
class QueryProgress:
    """What the files say: a checkpoint, the steps since, and where the journal ends."""

    checkpoint: Checkpoint
    steps: tuple[TakenStep, ...]
    journal_end: int


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint; its journal is empty, and that of the one before is deleted."""
    facts = {
        "format": FORMAT,
        "number": checkpoint.number,
        "definition": checkpoint.definition,
        "next_seqs": dict(checkpoint.next_seqs),
        "rows": checkpoint.rows,
        "waiting": len(checkpoint.waiting),
    }
    text = json.dumps(facts, separators=(",", ":")).encode()
    body = struct.pack("<I", len(text)) + text + checkpoint.waiting + checkpoint.state
    write_atomically(folder / CHECKPOINT, struct.pack("<I", google_crc32c.value(body)) + body)
    for path in folder.glob(f"{JOURNAL}*"):
        if path.name != f"{JOURNAL}{checkpoint.number}":
            remove(path)


def read_checkpoint(folder: Path) -> Checkpoint | None:
    """Return the checkpoint, None if there is none yet."""
    path = folder / CHECKPOINT
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        message = f"cannot read {path}: {error.strerror or error}"
        raise StoreError(message, hint="check the disk and the permissions") from error
    try:
        return parsed_checkpoint(path, content)
    except (ValueError, LookupError, TypeError, struct.error) as error:
        raise damaged(path, error) from error


def parsed_checkpoint(path: Path, content: bytes) -> Checkpoint:
    """Return the checkpoint that a file holds."""
    checksum, length = _HEAD.unpack_from(content)
    if google_crc32c.value(content[4:]) != checksum:
        raise damaged(path, "its checksum does not match")
    facts = read_json(content[_HEAD.size : _HEAD.size + length])
    if whole(facts["format"]) > FORMAT:
        message = f"{path} has format {facts['format']}; this Eventide reads up to {FORMAT}"
        raise StoreError(message, hint="open the database with the version that wrote it")
    place = _HEAD.size + length
    state = place + whole(facts["waiting"])
    return Checkpoint(
        whole(facts["number"]),
        str(facts["definition"]),
        {str(name): whole(seq) for name, seq in facts["next_seqs"].items()},
        whole(facts["rows"]),
        content[state:],
        content[place:state],
    )


def next_number(folder: Path) -> int:
    """Return a number for a checkpoint that no journal has, even if the last one is damaged."""
    return 1 + max((journal_number(path) for path in folder.glob(f"{JOURNAL}*")), default=-1)


def journal_number(path: Path) -> int:
    """Return the number of the checkpoint that a journal follows; -1 if it is no journal."""
    number = path.name.removeprefix(JOURNAL)
    return int(number) if number.isdecimal() else -1


def read_progress(folder: Path) -> QueryProgress | None:
    """Return how far a query is, None if it has not begun."""
    checkpoint = read_checkpoint(folder)
    if checkpoint is None:
        return None
    return QueryProgress(checkpoint, *read_steps(folder / f"{JOURNAL}{checkpoint.number}"))


def read_steps(path: Path, start: int = 0) -> tuple[tuple[TakenStep, ...], int]:
    """Return the steps of a journal from a place on, and where the last whole one ends."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            content = file.read()
    except FileNotFoundError:
        return (), 0
    except OSError as error:
        message = f"cannot read {path}: {error.strerror or error}"
        raise StoreError(message, hint="check the disk and the permissions") from error
    steps: list[TakenStep] = []
    end = start
    lines = content.splitlines(keepends=True)
    for place, line in enumerate(lines):
        step = parsed_step(line)
        if step is None:
            if any(parsed_step(each) is not None for each in lines[place + 1 :]):
                raise damaged(path, f"a step at byte {end} cannot be read")
            # A crash cut the last one short: it was not taken.
            break
        steps.append(step)
        end += len(line)
    return tuple(steps), end


def parsed_step(line: bytes) -> TakenStep | None:
    """Return the step of a line, None if the line is not whole."""
    checksum, _, text = line.removesuffix(b"\n").partition(b" ")
    if not line.endswith(b"\n") or checksum != _checksum(text):
        return None
    entry = read_json(text)
    rows = entry["rows"]
    return TakenStep(
        {str(name): whole(seq) for name, seq in entry["until"].items()},
        None if rows is None else whole(rows),
        tuple(whole(each) for each in entry["cuts"]),
        {str(name): whole(until_us) for name, until_us in entry["moved"].items()},
        entry.get("change", {}),
    )


class Journal:
    """The journal of a checkpoint, open to add steps; only who holds the lock does."""

    def __init__(self, folder: Path, number: int, end: int) -> None:
        self.path = folder / f"{JOURNAL}{number}"
        self.end = end
        self.file: AppendFile | None = None
        self.synced = True

    def add(self, step: TakenStep) -> None:
        """Write a step at the end."""
        entry = {
            "until": dict(step.until),
            "rows": step.rows,
            "cuts": list(step.cuts),
            "moved": dict(step.moved),
            **({"change": dict(step.change)} if step.change else {}),
        }
        text = json.dumps(entry, separators=(",", ":")).encode()
        file = self.opened()
        if file.end != self.end:
            DISK.truncate(file.descriptor, self.end)
            file.end = self.end
        self.synced = False
        file.append([_checksum(text) + b" " + text + b"\n"])
        self.end = file.end

    def sync(self) -> None:
        """Return once all steps are on the disk."""
        if not self.synced and self.file is not None:
            self.file.sync()
            self.synced = True

    def opened(self) -> AppendFile:
        """Return the file, which is created when it is needed first."""
        if self.file is None:
            if self.path.exists():
                self.file = AppendFile.open(self.path)
                # Another process may have written steps that are not on the disk yet.
                self.synced = False
            else:
                self.file = AppendFile.create(self.path)
                sync_folder(self.path.parent)
        return self.file

    def close(self) -> None:
        """Close the file."""
        if self.file is not None:
            self.file.close()
            self.file = None


class Acknowledged:
    """How many rows of a query have been received.

    It is written in place and not synced: if the newest number is lost, rows come again, with the
    numbers that they had.
    """

    def __init__(self, folder: Path) -> None:
        self.descriptor = os.open(folder / ACKNOWLEDGED, os.O_RDWR | os.O_CREAT, 0o666)

    def read(self) -> int:
        """Return the number of rows; 0 if none is known."""
        content = os.pread(self.descriptor, _ACKNOWLEDGED.size, 0)
        if len(content) != _ACKNOWLEDGED.size:
            return 0
        rows, checksum = _ACKNOWLEDGED.unpack(content)
        return int(rows) if google_crc32c.value(content[:8]) == checksum else 0

    def write(self, rows: int) -> None:
        """Replace the number of rows."""
        number = rows.to_bytes(8, "little")
        os.pwrite(self.descriptor, number + struct.pack("<I", google_crc32c.value(number)), 0)

    def close(self) -> None:
        """Close the file."""
        os.close(self.descriptor)


def received_rows(folder: Path) -> int:
    """Return how many rows of a query have been received; nothing is changed."""
    if not (folder / ACKNOWLEDGED).exists():
        return 0
    acknowledged = Acknowledged(folder)
    try:
        return acknowledged.read()
    finally:
        acknowledged.close()


def place_of(folder: Path, number: int) -> tuple[object, int]:
    """Return what changes when another process goes on: the checkpoint, the journal's length."""
    try:
        found = (folder / CHECKPOINT).stat()
    except OSError:
        return None, 0
    size = 0
    with contextlib.suppress(OSError):
        size = (folder / f"{JOURNAL}{number}").stat().st_size
    return (found.st_mtime_ns, found.st_ino, found.st_size), size


def copy_progress(source: Path, target: Path, rows: int) -> bool:
    """Copy how far a query is, beside `rows` copied rows; whether the two fit.

    The rows were copied before. If a checkpoint has been written since, they are too few.
    """
    progress = read_progress(source)
    if progress is None:
        return True
    number, after = progress.checkpoint.number, read_checkpoint(source)
    if progress.checkpoint.rows > rows or after is None or after.number != number:
        return False
    target.mkdir(parents=True)
    write_checkpoint(target, progress.checkpoint)
    journal = Journal(target, progress.checkpoint.number, 0)
    for step in progress.steps:
        journal.add(step)
    journal.sync()
    journal.close()
    sync_folder(target)
    return True


def damaged(path: Path, why: object) -> StoreError:
    """Return the error for a file that cannot be read."""
    message = f"{path} is damaged: {why}"
    if path.parent.name == QUERY_FOLDER:
        hint = "drop the stored stream and create it again, or take the file from a backup"
    else:
        hint = "subscribe with replace=True and say from where it starts, or drop the query"
    return StoreError(message, hint=hint)


def _checksum(text: bytes) -> bytes:
    return f"{google_crc32c.value(text):08x}".encode()
