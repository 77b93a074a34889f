"""The same events in every form a contestant reads; each form is made when first asked for."""

from __future__ import annotations

from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import eventide as ev
from eventide.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STREAM = "cars"
APPEND_ROWS = 1_000_000
ARRIVING_ROWS = 10_000


class Setting:
    """Where a case is run: events, and a folder to keep other forms of them in."""

    def __init__(self, events: pa.Table, folder: Path) -> None:
        self.events = events
        self.folder = folder
        self.numbers = count(1)
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def count(self) -> int:
        """How many events there are."""
        return int(self.events.num_rows)

    @cached_property
    def schema(self) -> Schema:
        """The events' attributes."""
        return Schema.from_arrow(self.events.schema)

    @cached_property
    def database(self) -> ev.Database:
        """An Eventide store on disk."""
        database = ev.open(self.folder / "cars.ev")
        append_all(database, self.schema, self.events)
        return database

    @cached_property
    def arrivals(self) -> list[pa.RecordBatch]:
        """The events as they arrive at a live query, numbered, a few at a time."""
        seq = pa.array(np.arange(self.count))
        numbered = self.events.append_column("_seq", seq).combine_chunks()
        return list(numbered.to_batches(max_chunksize=ARRIVING_ROWS))

    def new_path(self, name: str) -> Path:
        """Return a path that nothing has been written to; the folder goes when the run is over."""
        return self.folder / f"{name}-{next(self.numbers)}"

    @cached_property
    def duckdb_arrow(self) -> Any:  # noqa: ANN401
        """A DuckDB connection in which `cars` is the Arrow table."""
        connection = duckdb.connect()
        connection.register(STREAM, self.events)
        return connection

    @cached_property
    def duckdb_table(self) -> Any:  # noqa: ANN401
        """A DuckDB connection in which `cars` is a table of its own, on disk."""
        connection = duckdb.connect(str(self.folder / "cars.duckdb"))
        connection.register("arrived", self.events)
        connection.execute(f"CREATE TABLE {STREAM} AS SELECT * FROM arrived")
        connection.unregister("arrived")
        connection.execute("CHECKPOINT")
        return connection

    @cached_property
    def frame(self) -> pl.DataFrame:
        """A Polars frame that knows that it is in order of time."""
        frame = pl.from_arrow(self.events)
        assert isinstance(frame, pl.DataFrame)
        return frame.sort("ts", maintain_order=True).with_columns(pl.col("ts").set_sorted())

    @cached_property
    def parquet(self) -> Path:
        """A Parquet file in row groups that Spark can share among its tasks."""
        path = self.folder / "cars.parquet"
        pq.write_table(self.events, path, row_group_size=APPEND_ROWS)
        return path

    @cached_property
    def spark(self) -> SparkSession:
        """A Spark session on this machine's cores."""
        from eventide.engines.spark.session import local_session

        return local_session("eventide-bench")

    def spark_frame(self) -> DataFrame:
        """Return the Parquet file as a DataFrame."""
        return self.spark.read.parquet(str(self.parquet))


def append_all(
    database: ev.Database, schema: Schema, events: pa.Table, rows: int = APPEND_ROWS
) -> None:
    """Create the stream and append all events, `rows` at a time."""
    stream = database.create_stream(STREAM, schema.to_json())
    for start in range(0, events.num_rows, rows):
        stream.append(events.slice(start, rows))
