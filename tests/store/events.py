"""Events for the tests of the store, as rows and as Arrow."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
from hypothesis import strategies as st

from eventide.instants import ALL_TIME, TimeRange
from eventide.schema import Schema
from eventide.store import EventSource, Store, StoredStream
from eventide.store.files.mapped import MAPPED
from eventide.store.options import StreamOptions
from eventide.store.writing.open_stream import OPENED, WRITTEN
from tests.naive.store import Row

SCHEMA = Schema.of({"car": "string", "speed": "float64", "lane": "int64"})
COLUMNS = ["ts", "_seq", "car", "speed", "lane"]

rows = st.fixed_dictionaries(
    {
        "ts": st.integers(-20, 40),
        "car": st.none() | st.sampled_from(["a", "b", ""]),
        "speed": st.none() | st.integers(0, 9).map(float),
        "lane": st.none() | st.integers(-(2**63), 2**63 - 1),
    }
)
time_ranges = st.just(ALL_TIME) | st.builds(
    lambda start, length: TimeRange(start, start + length),
    st.integers(-25, 45),
    st.integers(-1, 40),
)
column_lists = st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=5, unique=True)


def table(events: Sequence[Row]) -> pa.Table:
    """Return rows as `append` takes them."""
    expected = SCHEMA.arrow.remove(1)
    return pa.Table.from_pylist(list(events), schema=expected)


def at(*times: int) -> pa.Table:
    """Return one event at each time, its lane counting up."""
    return table([{"ts": ts, "lane": lane} for lane, ts in enumerate(times)])


def scanned(
    source: EventSource, columns: Sequence[str] = COLUMNS, time_range: TimeRange = ALL_TIME
) -> list[tuple[object, ...]]:
    """Return a scan as tuples, `ts` in microseconds, checking the form of its batches."""
    found: list[tuple[object, ...]] = []
    for batch in source.scan(columns, time_range):
        assert batch.num_rows > 0
        assert batch.schema.names == list(columns)
        assert batch.schema.types == [SCHEMA.arrow.field(name).type for name in columns]
        found += zip(*(values(column) for column in batch.columns), strict=True)
    return found


def values(column: pa.Array) -> list[object]:
    """Return a column as Python values, times as integers."""
    plain = column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
    result: list[object] = plain.to_pylist()
    return result


def times(source: EventSource) -> list[object]:
    """Return the time of every event."""
    return [row[0] for row in scanned(source, ["ts"])]


def new_stream(
    folder: Path,
    name: str = "cars",
    options: StreamOptions | None = None,
    schema: Schema = SCHEMA,
) -> StoredStream:
    """Create a stream in a database."""
    return Store.open(folder / "db").create_stream(name, schema, options)


def reopened(stream: StoredStream) -> StoredStream:
    """Return the stream as another process would open it, after this one is gone."""
    for gone in (*OPENED.values(), *WRITTEN.values()):
        gone.close()
    OPENED.clear()
    WRITTEN.clear()
    MAPPED.__init__()  # type: ignore[misc]
    return Store.open(stream.path.parent.parent, create=False).stream(stream.name)


def segment_files(stream: StoredStream) -> list[Path]:
    """Return every segment file in the stream's folder."""
    return sorted(stream.path.glob("seg-*.ev"))


@contextlib.contextmanager
def tiny_files() -> Iterator[None]:
    """Make blocks, segments and scanned batches so small that a few rows have many of each."""
    sizes: Iterable[tuple[str, int]] = [
        ("segments.segment_writer.LEAF_ROWS", 3),
        ("segments.segment_writer.GROUP_LEAVES", 2),
        ("segments.segment_writer.SEGMENT_ROWS", 40),
        ("segments.tree.FAN_OUT", 3),
        ("writing.late.FAN_OUT", 3),
        ("writing.flush.LOG_BYTES", 6000),
        ("writing.append.LOG_BYTES", 6000),
        ("writing.flush.QUEUED_ROWS", 4),
        ("writing.append.BULK_BYTES", 400),
        ("writing.spare_log.LEAST_BYTES", 600),
        ("writing.staging.SEGMENT_ROWS", 12),
        ("upkeep.compaction.SEGMENT_ROWS", 12),
        ("upkeep.compaction.FAN_IN", 3),
        ("upkeep.compaction.SMALLEST_CLASS_ROWS", 2),
        ("reading.scan.SCAN_ROWS", 5),
        ("reading.scan.MOST_OVERLAPPING_ROWS", 30),
        ("files.mapped.OPEN_FILES", 2),
        ("files.mapped.CACHED_NODES", 3),
        ("memory.SLICE_ROWS", 5),
    ]
    with contextlib.ExitStack() as stack:
        for name, value in sizes:
            stack.enter_context(patch(f"eventide.store.{name}", value))
        stack.enter_context(patch("os.fsync"))
        stack.enter_context(patch("os.fdatasync"))
        yield
