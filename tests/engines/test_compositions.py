"""Queries over the rows of queries: the same rows as the twins give, one after another."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eventide as ev
from eventide.engines.live.engine import LiveEngine
from eventide.engines.live.start import started
from eventide.engines.standing.choice import best_plan
from eventide.lang.sql import plan_sql
from eventide.plan.standing.nodes import Standing
from eventide.store import TableSource
from tests.engines import engines
from tests.engines.compositions import COMPOSITIONS, SCHEMAS, SECOND, arrivals
from tests.engines.live.arriving import arrived, in_pieces, in_steps, lived
from tests.engines.scenarios import as_bag
from tests.exploring import EXPLORING
from tests.naive.windows import Event

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = range(3)
LATENESS_US = 60_000_000
"""More than any event is behind those that came before it."""
SHORT_US = 1_000_000
"""Less than some events are."""
BY_NAME = {case.name: case for case in COMPOSITIONS}


def tables(streams: dict[str, list[Event]]) -> dict[str, pa.Table]:
    return {
        name: pa.Table.from_pylist(events, schema=SCHEMAS[name].arrow)
        for name, events in streams.items()
    }


@pytest.mark.parametrize("name", BY_NAME)
def test_over_tables(name: str) -> None:
    case, answers = BY_NAME[name], 0
    for seed in SEEDS:
        streams = arrivals(seed)
        expected = case.answer(streams)
        answers += len(expected)
        found = engines.plain(ev.sql(case.text, **tables(streams)).to_arrow())
        assert as_bag(found) == as_bag(expected), f"seed {seed}"
    assert answers, "a case without an answer shows nothing"


@pytest.mark.parametrize("name", BY_NAME)
def test_over_a_store(name: str, tmp_path: Path) -> None:
    case, streams = BY_NAME[name], arrivals(7)
    db = ev.open(tmp_path / "db")
    for stream, table in tables(streams).items():
        stored = db.create_stream(stream, SCHEMAS[stream].to_json())
        for place in range(0, table.num_rows, 40):
            stored.append(table.slice(place, 40).drop_columns(["_seq"]))
    found = engines.plain(db.sql(case.text).to_arrow())
    assert as_bag(found) == as_bag(case.answer(streams))


@pytest.mark.spark
@pytest.mark.parametrize("name", BY_NAME)
def test_spark_batch(name: str, tmp_path: Path, spark: SparkSession) -> None:
    """Cars are stored, and trucks are a DataFrame in several partitions, in no order."""
    case, streams = BY_NAME[name], arrivals(11)
    db = ev.open(tmp_path / "db")
    given = tables(streams)
    cars = db.create_stream("cars", SCHEMAS["cars"].to_json())
    cars.append(given["cars"].drop_columns(["_seq"]))
    pq.write_table(given["trucks"], tmp_path / "trucks.parquet")
    trucks = spark.read.parquet(str(tmp_path / "trucks.parquet")).repartition(3)
    frame = ev.spark(spark, db.path).sql(case.text, trucks=trucks)
    assert as_bag(engines.collected(frame)) == as_bag(case.answer(streams))


@pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")
@pytest.mark.parametrize("name", BY_NAME)
def test_live(name: str) -> None:
    """Events as they arrive, some of several streams at once; dumped and loaded between steps."""
    case = BY_NAME[name]
    for seed in SEEDS:
        streams = arrivals(seed)
        engine = live(case.text, LATENESS_US)
        found = lived(engine, in_pieces(streams, random.Random(seed)), SCHEMAS)
        assert not found.late
        assert as_bag(found.rows) == as_bag(case.answer(streams)), f"seed {seed}"


def live(text: str, lateness_us: int) -> LiveEngine:
    return LiveEngine.of(best_plan(plan_sql(text, SCHEMAS), {}), SCHEMAS, lateness_us)


@pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")
@pytest.mark.parametrize("name", BY_NAME)
def test_late_events(name: str) -> None:
    """What is behind the watermark is handed over, and the answer is that over all others."""
    case, streams = BY_NAME[name], arrivals(7)
    found = lived(live(case.text, SHORT_US), in_steps(streams, 25), SCHEMAS)
    assert found.late, "a case without late events shows nothing"
    assert as_bag(found.rows) == as_bag(case.answer(found.on_time(streams)))


def test_standing_queries_inside_a_query_end_together() -> None:
    """Cars end at 1 s and trucks at 9 s: until then, cars leave their window, live and stored."""
    one = "SELECT * FROM ISTREAM (SELECT COUNT(*) AS n FROM cars [RANGE 3 SECONDS])"
    other = "SELECT * FROM ISTREAM (SELECT COUNT(*) AS n FROM trucks [RANGE 5 SECONDS])"
    text = f"SELECT at, n FROM ({one} UNION ALL {other})"
    streams: dict[str, list[Event]] = {
        "cars": [{"ts": ts * SECOND, "_seq": ts, "car": "a", "speed": 1.0} for ts in (0, 1)],
        "trucks": [{"ts": ts * SECOND, "_seq": ts, "car": "a", "load": 1} for ts in (0, 9)],
    }
    expected = [(0, 1), (1, 2), (3, 1), (0, 1), (9, 1)]
    rows = [{"at": at * SECOND, "n": n} for at, n in expected]
    assert as_bag(engines.plain(ev.sql(text, **tables(streams)).to_arrow())) == as_bag(rows)
    assert as_bag(lived(live(text, 0), in_steps(streams, 1), SCHEMAS).rows) == as_bag(rows)


@pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")
@pytest.mark.parametrize("name", BY_NAME)
def test_begun_with_history(name: str) -> None:
    """A query that begins with what is stored reports what one reports that saw it arrive."""
    case, streams, reports = BY_NAME[name], arrivals(5), 0
    for place in (1, 60, 149):
        engine = live(case.text, LATENESS_US)
        past = {stream: events[:place] for stream, events in streams.items()}
        future = {stream: events[place:] for stream, events in streams.items()}
        sources = {
            stream: TableSource(stream, SCHEMAS[stream], table.sort_by([("ts", "ascending")]))
            for stream, table in tables(past).items()
        }
        begun = lived(engine, in_steps(future, 7), SCHEMAS, started(engine, sources))
        state, _ = engine.take(engine.initial_state(), arrived(engine, past, SCHEMAS))
        whole = lived(engine, in_steps(future, 7), SCHEMAS, state)
        assert begun.told == whole.told, f"from {place} on"
        assert as_bag(begun.rows) == as_bag(whole.rows)
        reports += len(whole.told[-1][1])
    assert reports, "a case without reports shows nothing"


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")
def test_spark_stream(tmp_path: Path, spark: SparkSession) -> None:
    """Stored events come again as a stream, in micro-batches: the end completes what is open."""
    streams = arrivals(13, 60)
    db = ev.open(tmp_path / "db")
    for stream, table in tables(streams).items():
        db.create_stream(stream, SCHEMAS[stream].to_json()).append(table.drop_columns(["_seq"]))
    database = ev.spark(spark, db.path)
    # Live, each of them goes on from what was dumped; as batches, each is spread over Spark.
    cases = COMPOSITIONS if EXPLORING else COMPOSITIONS[::2]
    running = {}
    for number, case in enumerate(cases):
        replayed = database.replay(case.text, rows_per_batch=40, buckets=2)
        writer = replayed.writeStream.format("parquet").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(tmp_path / f"checkpoint {number}"))
        running[case.name] = writer.start(str(tmp_path / f"out {number}"))
    for number, case in enumerate(cases):
        running[case.name].awaitTermination()
        found = engines.collected(spark.read.parquet(str(tmp_path / f"out {number}")))
        plan = plan_sql(case.text, SCHEMAS)
        if isinstance(plan, Standing) and plan.report == "current":
            found = at_the_end(found)
        assert as_bag(found) == as_bag(case.answer(streams)), case.name


def at_the_end(changes: list[Event]) -> list[Event]:
    """The answer after the last change: rows that came, and neither expired nor were taken back."""
    newest = max(change["at"] for change in changes)
    left: Counter[tuple[tuple[str, object], ...]] = Counter()
    for change in changes:
        row = tuple((k, v) for k, v in change.items() if k not in ("at", "exp", "sign"))
        if change["exp"] is None or change["exp"] > newest:
            left[row] += change.get("sign", 1)
    return [dict(row) for row in left.elements()]
