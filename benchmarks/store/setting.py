"""Where the store's cases run: how many events, and the data sets that several cases read."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.sensors import COLUMNS, EVENT_BYTES, MEASURED, STREAM, sensor_chunks
from eventide.instants import TimeRange
from eventide.schema import Schema
from eventide.store import Store, StoredStream, StreamOptions
from eventide.store.files.mapped import MAPPED
from eventide.store.writing.open_stream import OPENED, forget

MANY = 100_000_000
GROUP_ROWS = 131_072
"""Rows of a Parquet row group: about as many as in one of DuckDB's, so that few are read."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many events a case is over, from how many the largest is."""

    many: int = MANY

    @property
    def bulk(self) -> int:
        """What is ingested and scanned: 10 million."""
        return max(1_000, self.many // 10)

    @property
    def some(self) -> int:
        """What many variants are ingested of: 2 million."""
        return max(1_000, self.many // 50)

    @property
    def few(self) -> int:
        """The small database that opening the large one is compared with: a million."""
        return max(1_000, self.many // 100)

    @property
    def batches(self) -> int:
        """Durable appends of 1,000 rows: 500."""
        return max(3, self.many // 200_000)

    @property
    def chunk(self) -> int:
        """Rows of a bulk append: a million."""
        return max(1_000, min(1_000_000, self.bulk // 5))

    @property
    def kills(self) -> int:
        """How often a writer is killed: each time takes seconds, however few the events are."""
        return 3 if self.many >= 1_000_000 else 1

    @property
    def segments(self) -> int:
        """The segments of a stream that has many: a thousand."""
        return max(20, min(1_000, self.some // 1_000))

    @property
    def append(self) -> int:
        """Rows of an append that is not bulk: 10,000."""
        return max(100, min(10_000, self.some // 20))


class StoreSetting:
    """A folder to work in, and data sets in it, each made when first asked for."""

    def __init__(self, sizes: Sizes, folder: Path) -> None:
        self.sizes = sizes
        self.folder = folder
        self.numbers = count(1)
        self.temporary: list[Path] = []
        folder.mkdir(parents=True, exist_ok=True)

    @cached_property
    def schema(self) -> Schema:
        """The sensors' attributes."""
        return Schema.of(dict.fromkeys(COLUMNS[1:], "float64"))

    @cached_property
    def tables(self) -> list[pa.Table]:
        """The bulk: tables in memory."""
        return list(sensor_chunks(self.sizes.bulk, self.sizes.chunk))

    @cached_property
    def some(self) -> pa.Table:
        """The first few million of them, as one table."""
        return pa.concat_tables(self.tables).slice(0, self.sizes.some).combine_chunks()

    @cached_property
    def bulk(self) -> StoredStream:
        """The bulk in a stream."""
        return self.ingested(self.tables, path=self.folder / "bulk.ev")

    @cached_property
    def bulk_parquet(self) -> Path:
        """The bulk as a Parquet file."""
        return write_parquet(self.folder / "bulk.parquet", self.tables)

    @cached_property
    def few(self) -> StoredStream:
        """A small database."""
        tables = sensor_chunks(self.sizes.few, self.sizes.chunk)
        return self.ingested(tables, path=self.folder / "few.ev")

    @cached_property
    def many(self) -> StoredStream:
        """The large database; its Parquet copy is written in the same go."""
        path = self.folder / "many.parquet"
        stream = self.new_stream(self.folder / "many.ev")
        with parquet_writer(path) as writer:
            for table in sensor_chunks(self.sizes.many, self.sizes.chunk):
                stream.append(table)
                writer.write_table(table, row_group_size=GROUP_ROWS)
        return stream

    @cached_property
    def many_parquet(self) -> Path:
        """The large database as a Parquet file."""
        return self.many.path.parents[2] / "many.parquet"

    @cached_property
    def many_range(self) -> TimeRange:
        """The time of the large database, before anybody appends to it."""
        return self.many.snapshot().time_range

    @cached_property
    def many_duckdb(self) -> Any:  # noqa: ANN401
        """A DuckDB table of its own with the columns that are asked about."""
        connection = duckdb.connect(str(self.folder / "many.duckdb"))
        connection.execute(
            f"CREATE TABLE {STREAM} AS SELECT ts, {MEASURED} FROM '{self.many_parquet}'"
        )
        connection.execute("CHECKPOINT")
        return connection

    def touch_memory(self) -> None:
        """Use memory once, as much as the largest case will, so that nobody has to be the first.

        Measured on a virtual machine: bulk ingest spent up to seven times as long in the system
        before memory had been used once, and Parquet's first run four times as long.
        """
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        np.ones(min(free // 2, self.sizes.many * EVENT_BYTES), np.uint8)

    def new_path(self, name: str) -> Path:
        """Return a path for something that `clear` deletes."""
        path = self.folder / f"{name}-{next(self.numbers)}"
        self.temporary.append(path)
        return path

    def new_stream(
        self, path: Path | None = None, options: StreamOptions | None = None
    ) -> StoredStream:
        """Return an empty stream in a database of its own."""
        store = Store.open(path or self.new_path("ev"))
        return store.create_stream(STREAM, self.schema, options)

    def ingested(
        self,
        tables: Iterable[pa.Table],
        options: StreamOptions | None = None,
        path: Path | None = None,
    ) -> StoredStream:
        """Return a new stream with events in it, all on the disk."""
        stream = self.new_stream(path, options)
        for table in tables:
            stream.append(table)
        return stream

    def clear(self) -> None:
        """Delete what was written to new paths."""
        for path in self.temporary:
            remove(path)
        self.temporary.clear()

    def close(self) -> None:
        """Delete everything."""
        if "many_duckdb" in vars(self):
            self.many_duckdb.close()
        remove(self.folder)


def remove(path: Path) -> None:
    """Delete a file or a folder, and let go of what this process still has open of it.

    An open file keeps its pages when it is deleted. Then Eventide's next run would get memory that
    nobody has touched, a rival's the pages that its last run gave back, and the machine would fill.
    """
    for folder in [each for each in OPENED if path in each.parents]:
        forget(folder)
    for mapped in [each for each in MAPPED.files if path in each.parents]:
        MAPPED.forget(mapped)
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def slices(events: pa.Table, rows: int) -> list[pa.Table]:
    """Cut a table into pieces, one after the other."""
    return [events.slice(start, rows) for start in range(0, events.num_rows, rows)]


def parquet_writer(path: Path) -> pq.ParquetWriter:
    """Return a writer of LZ4 Parquet; dictionaries of such values only cost time and space."""
    fields = [pa.field("ts", pa.timestamp("us"))]
    fields += [pa.field(name, pa.float64()) for name in COLUMNS[1:]]
    return pq.ParquetWriter(path, pa.schema(fields), compression="lz4", use_dictionary=False)


def write_parquet(path: Path, tables: Iterable[pa.Table]) -> Path:
    """Write a Parquet file, and return when it is on the disk."""
    with parquet_writer(path) as writer:
        for table in tables:
            writer.write_table(table, row_group_size=GROUP_ROWS)
    with path.open("rb+") as file:
        os.fsync(file.fileno())
    return path


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder."""
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return sum(each.stat().st_size for each in files)
