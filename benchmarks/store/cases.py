"""The store against named rivals: ingest, appends, scans, late events, conditions, size.

Every case first compares what it reads back with what was written, or with what the rival answers,
and only then is anything timed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.race import Finding, at_least, at_most, check_same, race
from benchmarks.sensors import (
    ATTRIBUTES,
    COLUMNS,
    MEASURED,
    NOISE,
    STREAM,
    WEAR,
    as_they_arrive,
    exponential,
    in_bursts,
    uniform,
)
from benchmarks.store.setting import (
    GROUP_ROWS,
    StoreSetting,
    size_of,
    slices,
    write_parquet,
)
from eventide.store import Snapshot, StoredStream, StreamOptions

BATCH_ROWS = 1_000
LATE = 0.1
TABLE = f"CREATE TABLE {STREAM} (ts TIMESTAMP, {', '.join(f'{a} DOUBLE' for a in ATTRIBUTES)})"


@dataclass(frozen=True, slots=True)
class StoreCase:
    """Something the store does, and how it is checked and measured."""

    name: str
    asked: str
    run: Callable[[StoreSetting], list[Finding]]


def bulk_ingest(setting: StoreSetting) -> list[Finding]:
    """Write tables of a million rows; all are on the disk at the end."""
    tables = setting.tables
    check_same("Eventide", setting.bulk.snapshot().scan(COLUMNS), tables)
    check_same("Parquet", pq.ParquetFile(setting.bulk_parquet).iter_batches(), tables)
    written = insert_into_duckdb(setting.new_path("duckdb"), tables)
    check_same("DuckDB", from_duckdb(written), tables)
    setting.clear()
    seconds = race(
        {
            "Eventide": lambda: setting.ingested(tables),
            "Parquet": lambda: write_parquet(setting.new_path("parquet"), tables),
            "DuckDB": lambda: insert_into_duckdb(setting.new_path("duckdb"), tables),
        },
        after=setting.clear,
    )
    ours, events = seconds["Eventide"], setting.sizes.bulk
    return [
        Finding("indexed", ours, "Parquet LZ4", seconds["Parquet"], at_least(1), events),
        Finding("indexed", ours, "DuckDB", seconds["DuckDB"], at_least(3), events),
    ]


def insert_into_duckdb(path: Path, tables: Iterable[pa.Table]) -> Path:
    """Insert tables into one of DuckDB's, each in a transaction of its own."""
    with duckdb.connect(str(path)) as connection:
        connection.execute(TABLE)
        for table in tables:
            connection.register("arrived", table)
            connection.execute(f"INSERT INTO {STREAM} SELECT * FROM arrived")
            connection.unregister("arrived")
        connection.execute("CHECKPOINT")
    return path


def from_duckdb(path: Path) -> Iterator[pa.RecordBatch]:
    """Yield the rows of DuckDB's table in the order in which they were inserted."""
    with duckdb.connect(str(path)) as connection:
        rows: Iterator[pa.RecordBatch] = connection.sql(f"FROM {STREAM}").to_arrow_reader()
        yield from rows


def durable_appends(setting: StoreSetting) -> list[Finding]:
    """Append 1,000 rows at a time; each batch is on the disk before the next."""
    events = pa.concat_tables(setting.tables).slice(0, setting.sizes.batches * BATCH_ROWS)
    batches = slices(events.combine_chunks(), BATCH_ROWS)
    # SQLite takes Python values. Making them is not its fault, and not counted.
    rows = [as_tuples(batch) for batch in batches]
    check_same("Eventide", setting.ingested(batches).snapshot().scan(COLUMNS), batches)
    check_same("DuckDB", from_duckdb(append_to_duckdb(setting, batches)), batches)
    check_same("SQLite", from_sqlite(append_to_sqlite(setting, rows)), [raw_times(events)])
    setting.clear()
    seconds = race(
        {
            "Eventide": lambda: setting.ingested(batches),
            "SQLite": lambda: append_to_sqlite(setting, rows),
            "DuckDB": lambda: append_to_duckdb(setting, batches),
        },
        after=setting.clear,
    )
    ours = seconds["Eventide"]
    return [
        Finding("1,000 rows", ours, "SQLite", seconds["SQLite"], at_least(2), events.num_rows),
        Finding("1,000 rows", ours, "DuckDB", seconds["DuckDB"], at_least(2), events.num_rows),
    ]


def as_tuples(events: pa.Table) -> list[tuple[object, ...]]:
    """Return rows as SQLite takes them."""
    return list(zip(*(column.to_pylist() for column in raw_times(events).columns), strict=True))


def from_sqlite(path: Path) -> Iterator[pa.RecordBatch]:
    """Yield the rows of SQLite's table in the order in which they were inserted."""
    connection = sqlite3.connect(path)
    rows = connection.execute(f"SELECT * FROM {STREAM} ORDER BY rowid").fetchall()
    connection.close()
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    yield pa.record_batch(columns, list(COLUMNS))


def raw_times(events: pa.Table) -> pa.Table:
    """Return events whose times are integers."""
    return events.set_column(0, "ts", events.column("ts").cast(pa.int64()))


def append_to_sqlite(
    setting: StoreSetting, batches: Iterable[Sequence[tuple[object, ...]]]
) -> Path:
    """Insert batches, each a transaction that waits for the disk."""
    path = setting.new_path("sqlite")
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    names = ", ".join(f"{name} REAL" for name in ATTRIBUTES)
    connection.execute(f"CREATE TABLE {STREAM} (ts INTEGER, {names})")
    places = ", ".join("?" for _ in COLUMNS)
    for batch in batches:
        connection.execute("BEGIN")
        connection.executemany(f"INSERT INTO {STREAM} VALUES ({places})", batch)
        connection.execute("COMMIT")
    connection.close()
    return path


def append_to_duckdb(setting: StoreSetting, batches: Iterable[pa.Table]) -> Path:
    """Insert batches, each a transaction; strace shows that DuckDB syncs its log for each."""
    path = setting.new_path("duckdb")
    with duckdb.connect(str(path)) as connection:
        connection.execute(TABLE)
        for batch in batches:
            connection.register("arrived", batch)
            connection.execute(f"INSERT INTO {STREAM} SELECT * FROM arrived")
    return path


def full_scan(setting: StoreSetting) -> list[Finding]:
    """Read everything in order of time, a batch at a time, and one column of ten."""
    tables, snapshot, path = setting.tables, setting.bulk.snapshot(), setting.bulk_parquet
    check_same("Eventide", snapshot.scan(COLUMNS), tables)
    one = [table.select([MEASURED]) for table in tables]
    check_same("one column", snapshot.scan([MEASURED]), one)
    check_same("Parquet", pq.ParquetFile(path).iter_batches(), tables)
    seconds = race(
        {
            "Eventide": lambda: count_rows(snapshot.scan(COLUMNS)),
            "one": lambda: count_rows(snapshot.scan([MEASURED])),
            "Parquet": lambda: count_rows(pq.ParquetFile(path).iter_batches(GROUP_ROWS)),
            "Parquet dataset": lambda: count_rows(ds.dataset(path).to_batches()),
        },
        rounds=5,
    )
    rival = min("Parquet", "Parquet dataset", key=lambda name: seconds[name])
    events, ours = setting.sizes.bulk, seconds["Eventide"]
    return [
        Finding("all columns", ours, rival, seconds[rival], at_least(0.5), events),
        Finding("1 column", seconds["one"], "all 10 columns", ours, at_least(4), events),
    ]


def count_rows(batches: Iterable[pa.RecordBatch]) -> int:
    """Take every batch, keep none."""
    return sum(batch.num_rows for batch in batches)


def late_events(setting: StoreSetting) -> list[Finding]:
    """Ingest when a tenth is late, against the same in order."""
    events = setting.some
    arrivals = {
        "in order": events,
        "exponential": as_they_arrive(events, LATE, exponential),
        "uniform": as_they_arrive(events, LATE, uniform),
        "bursts": in_bursts(events, LATE),
    }
    findings: list[Finding] = []
    for rows, size in (("bulk", setting.sizes.chunk), ("appends", setting.sizes.append)):
        pieces = {name: slices(table, size) for name, table in arrivals.items()}
        for name, tables in pieces.items():
            scan = setting.ingested(tables).snapshot().scan(COLUMNS)
            check_same(f"late, {name}, {rows}", scan, [events])
            setting.clear()
        seconds = race(
            {name: partial(setting.ingested, tables) for name, tables in pieces.items()},
            after=setting.clear,
        )
        in_order = seconds.pop("in order")
        findings += [
            Finding(
                f"{name}, {rows}", spent, "in order", in_order, at_least(0.5), setting.sizes.some
            )
            for name, spent in seconds.items()
        ]
    return findings


def index_overhead(setting: StoreSetting) -> list[Finding]:
    """Ingest with aggregates of all attributes in the index, against none."""
    tables = slices(setting.some, setting.sizes.chunk)
    without = StreamOptions(summaries=())
    check_same("without", setting.ingested(tables, without).snapshot().scan(COLUMNS), tables)
    setting.clear()
    seconds = race(
        {
            "all": lambda: setting.ingested(tables),
            "none": lambda: setting.ingested(tables, without),
        },
        rounds=5,
        after=setting.clear,
    )
    events = setting.sizes.some
    return [
        Finding(
            "all summaries", seconds["all"], "no summaries", seconds["none"], at_most(1.25), events
        )
    ]


def conditions(setting: StoreSetting) -> list[Finding]:
    """Read the thousandth of the events whose attribute lies in a range."""
    tables, indexed = setting.tables, indexed_stream(setting)
    snapshot = setting.bulk.snapshot()
    wear, noise = middle(tables, WEAR, 1e-3), middle(tables, NOISE, 1e-3)
    rare = middle(tables, NOISE, 10 / setting.sizes.bulk)
    plain = indexed.snapshot()
    ways: dict[str, Callable[[], object]] = {}
    for name, source, attribute, bounds in (
        ("wear", snapshot, WEAR, wear),
        ("noise", snapshot, NOISE, noise),
        ("noise, indexed", plain, NOISE, noise),
        ("ten", snapshot, NOISE, rare),
        ("ten, indexed", plain, NOISE, rare),
    ):
        expected = filtered(snapshot, attribute, bounds)
        check_same(name, source.scan(COLUMNS, where={attribute: bounds}), [expected])
        where = {attribute: bounds}
        ways[name] = partial(lambda s, w: count_rows(s.scan(COLUMNS, where=w)), source, where)
    ways["full scan"] = lambda: filtered(snapshot, WEAR, wear)
    seconds = race(ways)
    setting.clear()
    return [
        Finding("wear", seconds["wear"], "scan, filter", seconds["full scan"], at_least(20)),
        Finding("noise, indexed", seconds["noise, indexed"], "no index", seconds["noise"]),
        Finding("noise, 10 events, indexed", seconds["ten, indexed"], "no index", seconds["ten"]),
    ]


def indexed_stream(setting: StoreSetting) -> StoredStream:
    """Return the bulk with a secondary index on the attribute that is all noise."""
    return setting.ingested(setting.tables, StreamOptions(indexes=(NOISE,)))


def middle(tables: Iterable[pa.Table], attribute: str, share: float) -> tuple[float, float]:
    """Return the bounds between which about a share of the values lie."""
    values = np.concatenate([table.column(attribute).to_numpy() for table in tables])
    low, high = np.quantile(values, [0.5 - share / 2, 0.5 + share / 2])
    return float(low), float(high)


def filtered(snapshot: Snapshot, attribute: str, bounds: tuple[float, float]) -> pa.Table:
    """Read everything, and keep what lies between the bounds."""
    kept = []
    for batch in snapshot.scan(COLUMNS):
        values = batch.column(attribute)
        inside = pc.and_(pc.greater_equal(values, bounds[0]), pc.less_equal(values, bounds[1]))
        kept.append(batch.filter(inside))
    return pa.Table.from_batches(kept)


def disk_size(setting: StoreSetting) -> list[Finding]:
    """Compare bytes on the disk, in megabytes."""
    parquet, stream = setting.bulk_parquet, setting.bulk
    check_same("Eventide", stream.snapshot().scan(COLUMNS), setting.tables)
    ours, theirs = size_of(stream.path) / 1e6, size_of(parquet) / 1e6
    return [Finding("MB, index and all", ours, "MB, Parquet LZ4", theirs, at_most(1.05))]


STORE_CASES = (
    StoreCase("bulk ingest", "write all events, a million at a time, to the disk", bulk_ingest),
    StoreCase(
        "durable appends", "write 1,000 events at a time, waiting for the disk", durable_appends
    ),
    StoreCase("full scan", "read all events in order of time, batch by batch", full_scan),
    StoreCase("late events", "write events of which a tenth is late", late_events),
    StoreCase("index overhead", "write with and without aggregates in the index", index_overhead),
    StoreCase("conditions", "read a thousandth of the events by a range of values", conditions),
    StoreCase("disk size", "bytes of the same events", disk_size),
)
