"""The four ways to run a query, behind one call each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

import eventide as ev
from tests.engines.scenarios import SCHEMA, Scenario
from tests.naive.windows import Event

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def to_table(events: list[Event] | tuple[Event, ...]) -> pa.Table:
    return pa.Table.from_pylist(list(events), schema=SCHEMA.arrow)


def plain(table: pa.Table) -> list[Event]:
    """Rows with times and durations as microseconds, as the twins have them."""
    for place, field in enumerate(table.schema):
        if pa.types.is_duration(field.type):
            column = table.column(place).cast(pa.duration("us")).cast(pa.int64())
            table = table.set_column(place, field.name, column)
        if pa.types.is_timestamp(field.type):
            column = table.column(place).cast(pa.timestamp("us")).cast(pa.int64())
            table = table.set_column(place, field.name, column)
    rows: list[Event] = table.to_pylist()
    return rows


def stored(scenario: Scenario, folder: Path) -> ev.Database:
    """A database into which the scenario's batches were appended as they arrived."""
    db = ev.open(folder / "db")
    cars = db.create_stream("cars", SCHEMA.to_json())
    for batch in scenario.batches:
        cars.append(to_table(batch).drop_columns(["_seq"]))
    return db


def run_table(text: str, events: list[Event]) -> list[Event]:
    return plain(ev.sql(text, cars=to_table(events)).to_arrow())


def run_history(text: str, scenario: Scenario, folder: Path) -> list[Event]:
    return plain(stored(scenario, folder).sql(text).to_arrow())


def run_live(text: str, scenario: Scenario, folder: Path) -> list[Event]:
    db = ev.open(folder / "db")
    cars = db.create_stream("cars", SCHEMA.to_json())
    rows: list[Event] = []
    lateness = f"{scenario.lateness_us} us"
    query = db.subscribe(
        text, lambda result: rows.extend(plain(result.to_arrow())), lateness=lateness
    )
    for batch in scenario.batches:
        cars.append(to_table(batch).drop_columns(["_seq"]))
        query.state = query.engine.load(query.engine.dump(query.state))
    query.finish()
    late = [row["_seq"] for row in query.late().rows()]
    assert late == [event["_seq"] for event in scenario.late()]
    return rows


def run_spark_store(
    text: str, scenario: Scenario, folder: Path, session: SparkSession
) -> list[Event]:
    return collected(ev.spark(session, stored(scenario, folder).path).sql(text))


def run_spark_frame(
    text: str, scenario: Scenario, folder: Path, session: SparkSession
) -> list[Event]:
    path = folder / "events.parquet"
    pq.write_table(to_table(scenario.events()), path, row_group_size=50_000)
    frame = session.read.parquet(str(path)).repartition(3)
    return collected(ev.spark(session).sql(text, cars=frame))


def run_spark_stream(
    text: str, scenario: Scenario, folder: Path, session: SparkSession, runs: int = 1
) -> list[Event]:
    """The query over files that arrive one by one; with `runs`, stopped and started in between.

    A last event, far ahead, lets all others leave; itself it waits for ever.
    """
    last = max(event["ts"] for event in scenario.events()) + 10**12
    flush = {"ts": last, "_seq": 10**9, "car": "flush", "lane": None, "speed": None}
    batches = [*scenario.batches, (flush,)]
    late = 0
    for run in range(runs):
        for number, batch in enumerate(batches):
            if number * runs // len(batches) == run:
                write_arrivals(batch, folder / f"{number}.parquet")
        late += run_once(text, scenario, folder, session)
    assert late == len(scenario.late())
    return collected(session.read.parquet(str(folder / "out")))


def write_arrivals(batch: tuple[Event, ...], path: Path) -> None:
    table = to_table(batch)
    pq.write_table(table.set_column(0, "ts", table.column("ts").cast(pa.int64())), path)


def run_once(text: str, scenario: Scenario, folder: Path, session: SparkSession) -> int:
    """Run over all files that are there; return how many events were late."""
    arriving = (
        session.readStream.schema("ts long, _seq long, car string, lane long, speed double")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder / "*.parquet"))
    )
    lateness = f"{scenario.lateness_us} us"
    results = ev.spark(session).stream(text, lateness=lateness, cars=arriving)
    query = (
        results.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "out"))
    )
    query.awaitTermination()
    reports = [progress["observedMetrics"] for progress in query.recentProgress]
    return sum(
        found["late_events"]
        for report in reports
        for name, found in report.items()
        if name.startswith("eventide")
    )


def collected(frame: DataFrame) -> list[Event]:
    return plain(frame.toArrow())


def worn_store(scenario: Scenario, folder: Path, order: str) -> ev.Database:
    """A store that has seen much: splits, staged segments, columns gone and come, an open end."""
    db = ev.open(folder / "db")
    attributes = {"gone": "int64", **SCHEMA.to_json()}
    cars = db.create_stream("cars", attributes, split="1 min", order=order, durability="none")
    events = to_table(scenario.events()).drop_columns(["_seq"])
    size = -(-events.num_rows // 6)
    parts = [events.slice(place * size, size) for place in range(6)]
    cars.append(parts[0].append_column("gone", pa.array(range(size))))
    cars.split()
    cars.drop_attribute("gone")
    stored = cars.stored
    halves = (parts[1].slice(0, size // 2), parts[1].slice(size // 2))
    stored.commit([stored.stage(half.to_batches()) for half in halves])
    cars.append(parts[2])
    cars.add_attribute("weather", "string")
    wet = [part.append_column("weather", pa.array(["wet"] * len(part))) for part in parts[3:]]
    stored.commit([stored.stage(wet[0].to_batches())])
    cars.append(wet[1])
    cars.flush()
    cars.append(wet[2])
    view = cars.snapshot().view
    assert view.segment is not None
    assert view.tail
    assert bool(view.queue) == (order == "time")
    assert cars.options.order == order
    return db
