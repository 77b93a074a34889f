"""Parquet and Arrow files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def parquet_schema(path: Path) -> pa.Schema:
    """Return the file's Arrow schema."""
    return pq.read_schema(path)


def parquet_batches(path: Path, chunk_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file."""
    with pq.ParquetFile(path) as file:
        yield from file.iter_batches(batch_size=chunk_rows)


def arrow_schema(path: Path) -> pa.Schema:
    """Return the schema of an Arrow file or stream."""
    with pa.memory_map(str(path)) as source:
        return open_arrow(source).schema


def arrow_batches(path: Path, chunk_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an Arrow file or stream."""
    with pa.memory_map(str(path)) as source:
        reader = open_arrow(source)
        if isinstance(reader, pa.RecordBatchFileReader):
            batches = (reader.get_batch(index) for index in range(reader.num_record_batches))
        else:
            batches = iter(reader)
        for batch in batches:
            for start in range(0, batch.num_rows, chunk_rows):
                yield batch.slice(start, chunk_rows)


def open_arrow(source: pa.NativeFile) -> pa.RecordBatchFileReader | pa.RecordBatchStreamReader:
    """Open the random-access form, which Feather is, or the stream form."""
    magic = source.read(6)
    source.seek(0)
    return pa.ipc.open_file(source) if magic == b"ARROW1" else pa.ipc.open_stream(source)
