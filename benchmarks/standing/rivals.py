"""A join of two streams within 60 s: as events arrive, in Spark and in Flink.

Each event meets those of the other stream with its key that came less than 60 s before: 1.5 on
average. A result is found once, when the later of the two arrives.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.patterns.rivals import FLINK, AbsentError, Job, Task, ask
from benchmarks.race import Finding, at_least, race, timed
from benchmarks.situations.setting import arrivals, check_counts, check_rows
from benchmarks.standing.data import sided
from benchmarks.standing.setting import StandingCase, StandingSetting, catalog_of
from eventide.api.live.query import live_query
from eventide.lang.sql import plan_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ARRIVING_ROWS = 10_000
"""Of both streams together."""
SPARK_BATCHES = 4
"""Spark takes the streams in so many parts: each has a price of its own, so they are few."""
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
IN_MEMORY = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
"""Spark's default, with which this join takes half the time that it takes with RocksDB."""
FLINK_BATCH = 1_000
WINDOW_S = 60
OURS = (
    f"SELECT a.ts, b.ts AS other, a.x, b.x AS y FROM a [RANGE {WINDOW_S} SECONDS] a "
    f"JOIN b [RANGE {WINDOW_S} SECONDS] b ON a.key = b.key"
)
WITHIN = "a.key = b.key AND a.ts > b.ts - {0} AND a.ts < b.ts + {0}"
DUCKDB = "SELECT a.ts, b.ts AS other, a.x, b.x AS y FROM a JOIN b ON " + WITHIN.format(
    f"INTERVAL {WINDOW_S} SECOND"
)
FLINK_COLUMNS = {"at_time": "TIMESTAMP(3)", "other": "TIMESTAMP(3)", "x": "DOUBLE", "y": "DOUBLE"}
FLINK_TEXT = (
    "SELECT a.ts AS at_time, CAST(b.ts AS TIMESTAMP(3)) AS other, a.x, b.x AS y "
    "FROM (SELECT * FROM pairs WHERE side = 0) a, (SELECT * FROM pairs WHERE side = 1) b "
    "WHERE " + WITHIN.format(f"INTERVAL '{WINDOW_S}' SECOND")
)
LEAST_OF_SPARK, LEAST_OF_FLINK = at_least(10), at_least(20)


def side_of(events: pa.Table, side: int) -> pa.Table:
    """Return the events of one stream."""
    return events.filter(pc.equal(events.column("side"), side)).drop_columns(["side"])


def parts_of(events: pa.Table) -> list[dict[str, pa.RecordBatch]]:
    """Return the events of both streams as they arrive, numbered."""
    batches = [arrivals(side_of(events, side), ARRIVING_ROWS // 2) for side in (0, 1)]
    return [dict(zip("ab", pair, strict=True)) for pair in zip(*batches, strict=True)]


def pushed(
    events: pa.Table, parts: Sequence[dict[str, pa.RecordBatch]], keep: Callable[[pa.Table], None]
) -> int:
    """Feed a live query; return how many results it reported."""
    catalog = catalog_of({"a": side_of(events.slice(0, 2), 0), "b": side_of(events.slice(0, 2), 1)})
    query = live_query(plan_sql(OURS, catalog), catalog, None, "0 s")
    count = 0
    for part in parts:
        found = query.take(part).to_arrow()
        count += found.num_rows
        keep(found)
    last = query.finish().to_arrow()
    keep(last)
    return count + int(last.num_rows)


def nowhere(_: pa.Table) -> None:
    """Drop results."""


def check_pairs(events: pa.Table) -> None:
    """Compare all results over a few events with DuckDB's."""
    found: list[pa.Table] = []
    pushed(events, parts_of(events), found.append)
    connection = duckdb.connect()
    for side, name in enumerate("ab"):
        connection.register(name, side_of(events, side))
    expected = connection.sql(DUCKDB).to_arrow_table()
    check_rows("join of two", expected, pa.concat_tables(found).select(expected.column_names))


def write_parts(events: pa.Table, folder: Path) -> None:
    """Write both streams as files that follow each other in time."""
    for side, name in enumerate("ab"):
        own = side_of(events, side)
        # Spark's watermarks are of times with a zone.
        zoned = own.column("ts").cast(pa.timestamp("us", tz="UTC"))
        own = own.set_column(own.column_names.index("ts"), "ts", zoned)
        rows = -(-own.num_rows // SPARK_BATCHES)
        (folder / name).mkdir(parents=True)
        for number in range(SPARK_BATCHES):
            path = folder / name / f"{number:02}.parquet"
            pq.write_table(own.slice(number * rows, rows), path)
            # Spark takes files in order of these times.
            os.utime(path, (number + 1, number + 1))


def spark_stream(session: SparkSession, folder: Path, name: str) -> DataFrame:
    """Return a stream of files, one in each batch."""
    columns = "ts TIMESTAMP, key LONG, x DOUBLE"
    reader = session.readStream.schema(columns).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder / name)).withWatermark("ts", "0 seconds").alias(name)


def run_spark(session: SparkSession, folder: Path) -> int:
    """Join the streams to the end; return how many results there were."""
    from pyspark.sql.functions import col, count, expr, lit

    a, b = (spark_stream(session, folder, name) for name in "ab")
    joined = a.join(b, expr(WITHIN.format(f"INTERVAL {WINDOW_S} SECONDS"))).select(
        col("a.ts"), col("b.ts").alias("other"), col("a.x"), col("b.x").alias("y")
    )
    counted = joined.observe("results", count(lit(1)).alias("count"))
    checkpoint = folder / "checkpoint"
    shutil.rmtree(checkpoint, ignore_errors=True)
    writer = counted.writeStream.format("noop").outputMode("append").trigger(availableNow=True)
    usual = session.conf.get(PROVIDER)
    session.conf.set(PROVIDER, IN_MEMORY)
    try:
        query = writer.option("checkpointLocation", str(checkpoint)).start()
        query.awaitTermination()
    finally:
        session.conf.set(PROVIDER, usual or IN_MEMORY)
    told = (progress.observedMetrics.get("results") for progress in query.recentProgress)
    return sum(row["count"] for row in told if row is not None)


def against_spark(setting: StandingSetting) -> list[Finding]:
    """Time ours, then Spark once; it has been warmed by a run over a sample."""
    events = sided(2 * setting.sizes.many)
    sample = sided(2 * setting.sizes.of(0.1))
    check_pairs(sided(2 * setting.sizes.of(0.02)))
    folders = {}
    for name, table in (("sample", sample), ("all", events)):
        folders[name] = setting.folder / f"pairs-{name}"
        write_parts(table, folders[name])
    parts = parts_of(events)
    counts = {
        "Eventide": pushed(sample, parts_of(sample), nowhere),
        "Spark": run_spark(setting.spark, folders["sample"]),
    }
    check_counts("join of two, sample", counts)
    found: dict[str, int] = {}
    ours = race({"": lambda: found.update(ours=pushed(events, parts, nowhere))})[""]
    # It takes minutes: once has to do.
    theirs = timed(lambda: found.update(spark=run_spark(setting.spark, folders["all"])))
    check_counts("join of two", found)
    count = events.num_rows
    return [
        Finding(
            f"live, {ARRIVING_ROWS:,} at a time, {found['ours']:,} results",
            ours,
            f"Spark, {SPARK_BATCHES} batches",
            theirs,
            LEAST_OF_SPARK,
            count,
        )
    ]


def against_flink(setting: StandingSetting) -> list[Finding]:
    """Time ours, then Flink in a process of its own."""
    events = sided(2 * setting.sizes.many)
    parts = parts_of(events)
    results = pushed(events, parts, nowhere)
    seconds = race({"": lambda: pushed(events, parts, nowhere)})[""]
    what = f"live, {ARRIVING_ROWS:,} at a time, {results:,} results"
    ours = Finding(what, seconds, events=events.num_rows)
    return list(beside_flink(setting, events, ours, results))


def beside_flink(
    setting: StandingSetting, events: pa.Table, ours: Finding, results: int
) -> Iterator[Finding]:
    """Complete a line with Flink's side, if it found as many results."""
    jobs = (
        Job(str(setting.parquet("pairs", events.slice(0, events.num_rows // 10))), count=False),
        Job(str(setting.parquet("pairs", events))),
    )
    try:
        answer = ask(
            FLINK, Task(FLINK_TEXT, "pairs", FLINK_COLUMNS, FLINK_BATCH, jobs), setting.rivals
        )
    except AbsentError as absent:
        yield replace(ours, rival=f"none: {absent}")
        return
    run = answer.runs[-1]
    check_counts("join of two, Flink", {"Eventide": results, "PyFlink": run.matches or 0})
    setting.versions["PyFlink"] = answer.version
    yield replace(ours, rival="PyFlink, net", theirs=run.net, target=LEAST_OF_FLINK)
    yield replace(ours, rival="PyFlink, raw", theirs=run.seconds)


RIVAL_CASES = (
    StandingCase(
        "join of two, Spark",
        "events of two streams with one of 1,000 keys in common that come less than 60 s apart, "
        "1.5 results an event; Spark's join of streams with watermarks and a condition on time "
        "reads files that are there already, and its results are counted and dropped",
        against_spark,
        spark=True,
    ),
    StandingCase(
        "join of two, Flink",
        "the same against the interval join of Flink SQL; both streams "
        "come from one table in memory, and what reading it takes is not in net",
        against_flink,
    ),
)
