"""Segment files mapped into memory, and the index nodes and columns read from them lately.

A segment's frames never change once they are written, and its file is only ever appended to. So
what was read stays true, even if others append; a file that has grown is mapped again when a frame
lies behind the mapping.
"""

from __future__ import annotations

import os
import socket
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from threading import Lock

import pyarrow as pa

from eventide.errors import StoreError
from eventide.kernels.compiled import Bools, Numbers
from eventide.store.files.frame import DamagedFrameError, Frame, Kind, read_frame

OPEN_FILES = 256
CACHED_NODES = 4096
"""About 64 entries each: with ten attributes some 40 KiB, so 160 MiB at most."""
CACHED_BYTES = 64 << 20
"""How much the columns of leaves that were decoded lately take at most."""

Decoded = tuple[Numbers, Bools]
"""The values of a column and which are valid; an empty `Bools` if all are."""


class MappedFiles:
    """The files of all streams that this process has read from lately."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.files: OrderedDict[Path, pa.Buffer] = OrderedDict()
        self.nodes: OrderedDict[tuple[Path, int], pa.RecordBatch] = OrderedDict()
        self.columns: OrderedDict[tuple[Path, int, str], Decoded] = OrderedDict()
        self.column_bytes = 0

    def content(self, path: Path, end: int) -> pa.Buffer:
        """Return a file as one buffer of at least `end` bytes."""
        with self.lock:
            content = self.files.get(path)
            if content is not None and content.size >= end:
                self.files.move_to_end(path)
                return content
        content = map_file(path)
        if content.size < end:
            raise damaged(path, f"it has {content.size} bytes, and {end} were written")
        with self.lock:
            self.files[path] = content
            self.files.move_to_end(path)
            while len(self.files) > OPEN_FILES:
                self.files.popitem(last=False)
        return content

    def frame(self, path: Path, address: int, length: int, kind: Kind) -> Frame:
        """Return the frame of a kind that begins at an address; refuse a damaged one."""
        try:
            frame = read_frame(self.content(path, address + length), address, stamp_of(path.name))
        except DamagedFrameError as error:
            raise damaged(path, str(error)) from error
        if frame.kind != kind:
            raise damaged(path, f"the frame at byte {address} is a {frame.kind.name.lower()}")
        return frame

    def node(self, path: Path, address: int, length: int, schema: pa.Schema) -> pa.RecordBatch:
        """Return the entries of an index node."""
        key = (path, address)
        with self.lock:
            found = self.nodes.get(key)
            if found is not None:
                self.nodes.move_to_end(key)
                return found
        payload = self.frame(path, address, length, Kind.NODE).payload
        try:
            found = pa.ipc.read_record_batch(pa.ipc.read_message(payload), schema)
        except (pa.ArrowException, OSError) as error:
            raise damaged(path, f"the node at byte {address}: {error}") from error
        with self.lock:
            self.nodes[key] = found
            while len(self.nodes) > CACHED_NODES:
                self.nodes.popitem(last=False)
        return found

    def column(self, path: Path, address: int, name: str, decode: Callable[[], Decoded]) -> Decoded:
        """Return a column of the leaf at an address, decoded once."""
        key = (path, address, name)
        with self.lock:
            held = self.columns.get(key)
            if held is not None:
                self.columns.move_to_end(key)
                return held
        found = decode()
        with self.lock:
            if key not in self.columns:
                self.columns[key] = found
                self.column_bytes += bytes_of(found)
            while self.column_bytes > CACHED_BYTES:
                self.column_bytes -= bytes_of(self.columns.popitem(last=False)[1])
        return found

    def forget(self, path: Path) -> None:
        """Forget a file that is deleted, or may be replaced."""
        with self.lock:
            self.files.pop(path, None)
            for key in [key for key in self.nodes if key[0] == path]:
                del self.nodes[key]
            for column in [key for key in self.columns if key[0] == path]:
                self.column_bytes -= bytes_of(self.columns.pop(column))


def bytes_of(column: Decoded) -> int:
    """Return how much memory a column takes."""
    return column[0].nbytes + column[1].nbytes


MAPPED = MappedFiles()


def renew_lock() -> None:
    """Make a new lock in a forked child: one that another thread held is never freed there."""
    MAPPED.lock = Lock()


os.register_at_fork(after_in_child=renew_lock)


def stamp_of(name: str) -> bytes:
    """Return the stamp that all frames of a segment carry: it is part of the file's name."""
    return bytes.fromhex(name.removeprefix("seg-").removesuffix(".ev"))


def map_file(path: Path) -> pa.Buffer:
    """Map a whole file into memory."""
    try:
        if path.stat().st_size == 0:
            return pa.py_buffer(b"")
        return pa.memory_map(str(path)).read_buffer()
    except FileNotFoundError as error:
        if not path.parent.exists():
            message = f"there is no folder {path.parent} on {socket.gethostname()}"
            hint = "the database was moved; or other machines, such as workers of Spark, have to "
            raise StoreError(message, hint=f"{hint}see it under the same path") from error
        message = f"{path} is missing"
        hint = (
            "if a compaction replaced it, the snapshot is over an hour old: take a new one; "
            "otherwise restore the file from a backup"
        )
        raise StoreError(message, hint=hint) from error
    except OSError as error:
        raise damaged(path, str(error)) from error


def damaged(path: Path, reason: str) -> StoreError:
    """Return the error for a file that cannot be read."""
    message = f"{path} is damaged: {reason}"
    hint = "`eventide verify` says what is lost, `eventide repair` keeps what is whole"
    return StoreError(message, hint=hint)
