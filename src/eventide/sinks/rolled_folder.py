"""The finished files of one query in a folder.

FOLDER/<query>-<first row>-<end>.jsonl     the rows from the first one to before the end
FOLDER/.<query>-….jsonl.tmp                a file that is being written
FOLDER/.<query>-lock                       held by the sink that writes; says which query it is

A file is written under a temporary name, synced, and renamed. So the names say how many rows are
there, and a crash leaves at most a temporary file. A query without a name has no `<query>-`.
"""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet

from eventide.errors import BusyError, SinkError, StoreError
from eventide.sinks.files import Writer, write_json_lines, write_parquet
from eventide.store.files import disk
from eventide.store.files.lock import locked_until

DIGITS = 12
"""Row numbers in names have so many digits, or more: sorted names are in order of rows."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """How rows are written to a file, and counted in it."""

    suffix: str
    write: Writer
    count: Callable[[Path], int]
    """Returns how many rows a file has; raises an OSError or a ValueError if it is damaged."""

    def content(self, rows: pa.Table) -> bytes:
        """Return rows as the bytes of a file."""
        out = io.BytesIO()
        self.write(rows, out)
        return out.getvalue()


def count_lines(path: Path) -> int:
    """Return how many lines a file has."""
    content = path.read_bytes()
    if content and not content.endswith(b"\n"):
        message = "its last line has no end"
        raise ValueError(message)
    return content.count(b"\n")


def count_parquet(path: Path) -> int:
    """Return how many rows a Parquet file says it has."""
    return int(pyarrow.parquet.read_metadata(path).num_rows)


JSON_LINES = FileFormat("jsonl", write_json_lines, count_lines)
PARQUET = FileFormat("parquet", write_parquet, count_parquet)


@dataclass(frozen=True, slots=True)
class RolledFile:
    """A finished file, with the rows `first` to before `end`."""

    path: Path
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class RolledFolder:
    """The files of one query in a folder. Nobody else writes them while it is open."""

    path: Path
    prefix: str
    form: FileFormat
    lock: io.FileIO
    """Holds the lock until it is closed, at the latest when nobody refers to it."""

    @classmethod
    def open(cls, path: Path, query: str | None, form: FileFormat) -> RolledFolder:
        """Make the folder, unless it is there, and keep others from writing the same files."""
        prefix = "" if query is None else f"{file_name(query)}-"
        with reporting(path):
            path.mkdir(parents=True, exist_ok=True)
            lock = io.FileIO(path / f".{prefix}lock", "a")
        if not locked_until(lock.fileno(), time.monotonic()):
            lock.close()
            message = f"another sink writes these files to {path}"
            hint = "close it, give the query a name, or choose another folder"
            raise BusyError(message, hint=hint)
        return cls(path, prefix, form, lock)

    def belong_to(self, identity: str, found: list[RolledFile]) -> None:
        """Refuse files of another query of the same name, such as one of another database."""
        owner = self.path / f".{self.prefix}lock"
        with reporting(self.path):
            known = owner.read_text()
            if known == identity:
                return
            if known and found:
                message = f"{found[-1].path} is of another query of the same name"
                hint = "choose another folder or another name, or move its files away"
                raise SinkError(message, hint=hint, try_again=False)
            owner.write_text(identity)

    def close(self) -> None:
        """Let others write."""
        self.lock.close()

    def found(self) -> list[RolledFile]:
        """Return the finished files in order; delete those that a crash left unfinished."""
        numbers = rf"(\d{{{DIGITS},}})-(\d{{{DIGITS},}})"
        ours = re.compile(rf"{re.escape(self.prefix)}{numbers}\.{self.form.suffix}")
        files = []
        with reporting(self.path):
            for path in self.path.iterdir():
                name = path.name
                if match := ours.fullmatch(name):
                    files.append(RolledFile(path, int(match[1]), int(match[2])))
                elif ours.fullmatch(name.removeprefix(".").removesuffix(disk.TEMPORARY_SUFFIX)):
                    disk.DISK.unlink(path)
        files.sort(key=lambda each: (each.first, each.end))
        for one, other in pairwise(files):
            if other.first < one.end:
                message = f"{one.path} and {other.path.name} have rows of the same numbers"
                hint = "one of them was not written by this query: move it away"
                raise SinkError(message, hint=hint, try_again=False)
        if files:
            self.check(files[-1])
        return files

    def check(self, file: RolledFile) -> None:
        """Refuse a file that does not have the rows that its name says."""
        try:
            rows = self.form.count(file.path)
        except (OSError, ValueError) as error:
            why = f"it cannot be read: {error}"
        else:
            if rows == file.end - file.first:
                return
            why = f"it has {rows:,} rows, and its name says {file.end - file.first:,}"
        message = f"{file.path} is damaged, or was not written by this query: {why}"
        hint = "take the file from a backup, or move it away: its rows do not come again"
        raise SinkError(message, hint=hint, try_again=False)

    def write(self, first: int, rows: pa.Table) -> None:
        """Write rows to a file, all of them or none; its name is not yet safe on the disk."""
        numbers = f"{first:0{DIGITS}}-{first + rows.num_rows:0{DIGITS}}"
        path = self.path / f"{self.prefix}{numbers}.{self.form.suffix}"
        # Programs that read whole folders leave out names that begin with a dot.
        temporary = path.with_name(f".{path.name}{disk.TEMPORARY_SUFFIX}")
        content = self.form.content(rows)
        with reporting(path):
            disk.remove(temporary)
            try:
                file = disk.AppendFile.create(temporary)
                try:
                    file.append([content])
                    file.sync()
                finally:
                    file.close()
                disk.DISK.rename(temporary, path)
            except BaseException:
                disk.remove(temporary)
                raise

    def sync(self) -> None:
        """Return once the names of all files are on the disk."""
        with reporting(self.path):
            disk.sync_folder(self.path)

    def sync_above(self) -> None:
        """Return once the name of the folder is on the disk."""
        # A folder above that may not be read was not made here.
        with reporting(self.path), suppress(PermissionError):
            disk.sync_folder(self.path.parent)


def file_name(query: str) -> str:
    """Return a query's name as part of a file's name that readers of folders do not leave out.

    >>> file_name("alerts"), file_name("_my alerts")
    ('alerts', '%5Fmy%20alerts')
    """
    return re.sub(r"^[._]", lambda first: f"%{ord(first[0]):02X}", quote(query, safe=""))


@contextmanager
def reporting(path: Path) -> Iterator[None]:
    """Turn errors of the disk into errors that name the file."""
    try:
        yield
    except (SinkError, StoreError):
        raise
    except OSError as error:
        message = f"cannot write {path}: {error.strerror or error}"
        raise SinkError(message, hint="check the disk and the permissions") from error
