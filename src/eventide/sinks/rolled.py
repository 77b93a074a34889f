"""Rows in files of JSON lines or Parquet, each row exactly once.

Rows wait in memory until their file is full, or old enough. A file gets its name when it is
complete, and the name says which rows it has: `rolled_folder.py`. Readers may take files away, all
but the newest one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from eventide.errors import SinkError
from eventide.local_path import local_path
from eventide.plan.times import Duration, duration_us
from eventide.sinks.contract import Sink, rows_from
from eventide.sinks.rolled_folder import (
    JSON_LINES,
    PARQUET,
    FileFormat,
    RolledFile,
    RolledFolder,
)

Clock = Callable[[], float]
"""Returns seconds since any instant."""

ROWS = 100_000
EVERY = "1 min"


class RolledFiles(Sink):
    """Writes rows to files of a folder, each row exactly once.

    A file is finished when it has `rows` rows, or when its first row came `every` ago; with
    `every=None`, only when it is full. Queries with different names may share a folder.
    """

    form: ClassVar[FileFormat]

    def __init__(
        self,
        folder: str | Path,
        *,
        rows: int = ROWS,
        every: Duration | None = EVERY,
        clock: Clock = time.monotonic,
    ) -> None:
        if rows < 1:
            message = f"a file has at least one row, not {rows:,}"
            raise SinkError(message, hint=f"write rows={ROWS}", try_again=False)
        self.path = local_path(folder).absolute()
        self.rows = rows
        self.every_s = None if every is None else duration_us(every) / 1e6
        self.clock = clock
        self.identity: str | None = None
        self.folder: RolledFolder | None = None
        self.finished = 0
        """The number behind the last row of a finished file."""
        self.safe_rows = 0
        """The same, of files whose names are on the disk for good."""
        self.uncertain = False
        """Whether a file was not finished: it may have got its name all the same."""
        self.waiting: list[pa.RecordBatch] = []
        self.waiting_rows = 0
        self.waiting_since = 0.0

    @property
    def next_row(self) -> int:
        """The number of the next row to take."""
        return self.finished + self.waiting_rows

    def identify(self, identity: str) -> None:
        """Take no files of another query of the same name for those of this one."""
        self.identity = identity

    def begin(self, query: str | None, schema: pa.Schema) -> int:  # noqa: ARG002
        """Find out from the names of files how many rows of the query are there."""
        folder = RolledFolder.open(self.path, query, self.form)
        try:
            found = folder.found()
            if found and query is None:
                raise has_rows(self.path, found)
            if self.identity is not None:
                folder.belong_to(self.identity, found)
            # A process that died may not have got to this.
            folder.sync()
            folder.sync_above()
        except BaseException:
            folder.close()
            raise
        self.folder = folder
        self.finished = self.safe_rows = found[-1].end if found else 0
        self.uncertain = False
        self.keep(0, 0)
        return self.finished

    def take(self, rows: pa.RecordBatch, first_row: int) -> None:
        """Take rows, and finish the files that are full."""
        folder = self.begun()
        self.tick()
        before = self.next_row
        fresh = rows_from(rows, first_row, before)
        if not fresh.num_rows:
            return
        if not self.waiting:
            self.waiting_since = self.clock()
        self.waiting.append(fresh)
        self.waiting_rows += fresh.num_rows
        try:
            while self.waiting_rows >= self.rows:
                self.finish(folder, self.rows)
        except BaseException:
            # These rows come again, or go elsewhere: they must not be written with later ones.
            self.keep(0, before - self.finished)
            raise

    def skip(self, until: int) -> None:
        """Finish the open file, and go on at a later row."""
        self.begun()
        if until > self.next_row:
            self.flush()
            self.finished = self.safe_rows = until

    def tick(self) -> None:
        """Finish the open file if it is old enough."""
        if self.folder is not None:
            self.settle(self.folder)
            if self.is_due():
                self.finish(self.folder, self.waiting_rows)

    def is_due(self) -> bool:
        """Whether the open file is old enough."""
        if not self.waiting or self.every_s is None:
            return False
        return self.clock() - self.waiting_since >= self.every_s

    def safe(self) -> int:
        """Return the number behind the last row of a finished file."""
        return self.safe_rows

    def flush(self) -> None:
        """Finish the open file, however few rows it has."""
        folder = self.begun()
        self.settle(folder)
        if self.waiting:
            self.finish(folder, self.waiting_rows)

    def close(self) -> None:
        """Finish the open file, and let others write to the folder."""
        folder = self.folder
        if folder is None:
            return
        try:
            self.flush()
        finally:
            self.folder = None
            folder.close()

    def begun(self) -> RolledFolder:
        """Return the folder; refuse rows before `begin` and after `close`."""
        if self.folder is None:
            message = f"nothing is written to {self.path} now"
            raise SinkError(message, hint="call begin first", try_again=False)
        return self.folder

    def finish(self, folder: RolledFolder, count: int) -> None:
        """Write the first waiting rows to a file of their own."""
        self.uncertain = True
        folder.write(self.finished, pa.Table.from_batches(self.waiting).slice(0, count))
        self.go_on_at(self.finished + count)
        self.uncertain = False
        self.settle(folder)

    def settle(self, folder: RolledFolder) -> None:
        """Do what failed before: see which files are finished, and make their names safe."""
        if self.uncertain:
            found = folder.found()
            if found and found[-1].end > self.finished:
                self.go_on_at(found[-1].end)
            self.uncertain = False
        if self.safe_rows < self.finished:
            folder.sync()
            self.safe_rows = self.finished

    def go_on_at(self, end: int) -> None:
        """Go on behind a finished file."""
        self.keep(end - self.finished, self.waiting_rows)
        self.waiting_since = self.clock()
        self.finished = end

    def keep(self, start: int, end: int) -> None:
        """Keep some of the waiting rows, counted from the first of them."""
        if self.waiting:
            kept = pa.Table.from_batches(self.waiting).slice(start, max(0, end - start))
            self.waiting = kept.to_batches()
        self.waiting_rows = sum(batch.num_rows for batch in self.waiting)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.path}>"


class JsonLines(RolledFiles):
    """Writes rows to files of JSON lines, one object a line; see `RolledFiles`."""

    form = JSON_LINES


class Parquet(RolledFiles):
    """Writes rows to Parquet files; see `RolledFiles`."""

    form = PARQUET


def has_rows(folder: Path, found: list[RolledFile]) -> SinkError:
    """Return the error for files of an earlier query, where the query has no name."""
    message = f"{folder} has rows {found[0].first:,} to {found[-1].end - 1:,} of an earlier query"
    hint = "give the query a name, so that it goes on there; or choose an empty folder"
    return SinkError(message, hint=hint, try_again=False)
