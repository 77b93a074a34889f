"""Standing queries on Spark: how they are distributed, and the same answers as everywhere else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eventide as ev
from eventide.api.live.query import live_query
from eventide.engines.partitioning import leaf_keys, spread_line
from eventide.errors import StateLimitError
from eventide.plan.render import render
from eventide.plan.standing.choose import choose_plan
from tests.engines.engines import plain
from tests.engines.standing.queries import (
    AS_OF,
    CATALOG,
    CHAIN,
    DECAYED,
    DISTINCT,
    EXCEPT_ALL,
    FILTER,
    FULL_GROUP,
    FULL_RESIDUAL,
    GROUP,
    GROUP_JOIN,
    JOIN,
    JOIN_3,
    LEFT,
    LEFT_OF_LEFT,
    NOT_EXISTS,
    RELATION_JOIN,
    SELF_JOIN,
    TOP,
    TOP_TIES,
    TOTAL,
    UNION,
    WINDOWS,
    asking,
    history,
)
from tests.engines.standing.runs import plan_of
from tests.naive.standing.answers import Question, Streams, Truth, accumulated
from tests.naive.standing.windows import SECOND

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Bag = Counter[tuple[Any, ...]]


GROUP_OF_NULLS = asking(
    "group_of_nulls",
    "SELECT y.k, COUNT(*) AS n FROM {x} LEFT JOIN {y} ON x.k = y.k GROUP BY y.k",
    x="a RANGE 4 SECONDS", y="b RANGE 6 SECONDS",
)  # fmt: skip
"""Rows beside nulls are of any key, but make one group."""


def keys_of(question: Question) -> list[list[str]] | None:
    plan = choose_plan(plan_of(question.text)).plan
    keys = leaf_keys(plan)
    return None if keys is None else [[render(key) for key in own] for own in keys]


@pytest.mark.parametrize(
    ("question", "keys"),
    [
        (FILTER, [["_seq"]]),
        (UNION, [["_seq"], ["_seq"]]),
        (JOIN, [["k"], ["k"]]),
        (JOIN_3, [["k"], ["k"], ["k"]]),
        (SELF_JOIN, [["k"], ["k"]]),
        (AS_OF, [["k"], ["k"]]),
        (CHAIN, None),
        (DISTINCT, [["k", "g"]]),
        (EXCEPT_ALL, [["k", "g"], ["k", "g"]]),
        (NOT_EXISTS, [["k"], ["k"]]),
        (LEFT, [["k"], ["k"]]),
        (LEFT_OF_LEFT, None),
        (FULL_RESIDUAL, [["k"], ["k"]]),
        (FULL_GROUP, [["k"], ["k"]]),
        (GROUP_OF_NULLS, None),
        (GROUP, [["k"]]),
        (GROUP_JOIN, [["k"], ["k"]]),
        (TOTAL, None),
        (TOP, None),
        (JOIN.reporting("RSTREAM"), None),
        (JOIN.sliding(3).reporting("RSTREAM"), [["k"], ["k"]]),
        (GROUP.reporting("ISTREAM"), [["k"]]),
    ],
    ids=lambda value: value.name if isinstance(value, Question) else "",
)
def test_the_keys_that_all_operators_share(
    question: Question, keys: list[list[str]] | None
) -> None:
    assert keys_of(question) == keys


def test_windows_of_rows_are_spread_by_their_keys() -> None:
    by_name = {question.name: question for question in WINDOWS}
    assert keys_of(by_name["rows"]) is None
    assert keys_of(by_name["partition_rows"]) == [["k"]]
    assert keys_of(by_name["session"]) is None
    assert keys_of(by_name["partition_session"]) == [["k"]]


def test_why_everything_is_in_one_bucket_is_said() -> None:
    assert "RSTREAM without SLIDE" in spread_line(plan_of(JOIN.reporting("RSTREAM").text))
    assert "share no key" in spread_line(plan_of(TOTAL.text))
    assert "x by k" in spread_line(plan_of(JOIN.text))


BATCH = (
    JOIN, AS_OF, EXCEPT_ALL, FULL_GROUP, DECAYED.sliding(2), TOP_TIES, GROUP.reporting("ISTREAM"),
)  # fmt: skip
STREAMED = (JOIN, GROUP_JOIN)
SEED = 9


def tables_of(streams: Streams) -> dict[str, pa.Table]:
    return {name: pa.Table.from_pylist(streams[name], schema=CATALOG[name].arrow) for name in "abr"}


def expected(question: Question, streams: Streams) -> Bag:
    names = {window.stream for window in question.windows.values()}
    newest = max(event["ts"] for name in names for event in streams[name])
    truth = Truth(question, streams)
    return truth.reports(newest + 1) if question.report else truth.answer(newest)


def bag(rows: list[dict[str, Any]]) -> Bag:
    from tests.naive.standing.answers import plain as comparable

    return Counter(tuple(comparable(value) for value in row.values()) for row in rows)


def stored(streams: Streams, folder: Path) -> ev.Database:
    db = ev.open(folder / "db")
    for name, table in tables_of(streams).items():
        db.store.create_stream(name, CATALOG[name])
        db.stream(name).append(table.drop_columns(["_seq"]))
    return db


@pytest.fixture(scope="module")
def streams() -> Streams:
    return history(SEED)


def live(question: Question, streams: Streams) -> list[dict[str, Any]]:
    """What a live query says whose streams come one after the other."""
    query = live_query(plan_of(question.text), CATALOG, None, "0 s")
    reports = []
    for name in sorted(query.streams, reverse=True):
        rows = pa.RecordBatch.from_pylist(streams[name], schema=CATALOG[name].arrow)
        reports += query.push(rows, stream=name).rows()
    reports += query.finish().rows()
    return reports if question.report else query.current().rows()


def test_spark_live_and_history_answer_alike(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    db = stored(streams, tmp_path)
    frames = {name: spark.createDataFrame(table) for name, table in tables_of(streams).items()}
    on_frames, on_store = ev.spark(spark), ev.spark(spark, db.path)
    for number, question in enumerate((*BATCH, RELATION_JOIN)):
        wanted = expected(question, streams)
        assert bag(db.sql(question.text).rows()) == wanted, question.name
        assert bag(live(question, streams)) == wanted, question.name
        # Each of them one way, for a job takes a second; a DataFrame has no key.
        by_frame = number % 2 == 0 and question is not RELATION_JOIN
        answer = on_frames.sql(question.text, **frames) if by_frame else on_store.sql(question.text)
        assert bag(plain(answer.toArrow())) == wanted, question.name
    assert "one bucket" in on_store.explain(TOP.text)


APART = """
SELECT p.v, q.v AS w FROM (SELECT k, v FROM a [RANGE 4 SECONDS]) p
LEFT JOIN (SELECT k, v FROM b [RANGE 4 SECONDS]) q ON p.k = q.k
"""


def test_spark_answers_all_parts_of_a_query_at_one_instant(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    newest = max(event["ts"] for event in streams["b"])
    ahead = {**streams, "a": [{**each, "ts": each["ts"] + newest} for each in streams["a"]]}
    db = stored(ahead, tmp_path)
    wanted = bag(db.sql(APART).rows())
    assert {row[1] for row in wanted} == {None}
    frames = {name: spark.createDataFrame(table) for name, table in tables_of(ahead).items()}
    answers = [
        ev.spark(spark).sql(APART, a=frames["a"], b=frames["b"]),
        ev.spark(spark, db.path).sql(APART, a=frames["a"]),
    ]
    for answer in answers:
        assert bag(plain(answer.toArrow())) == wanted


def test_spark_buckets_have_a_limit_and_need_not_wait(streams: Streams) -> None:
    from eventide.engines.spark.stream import Going, live_by_leaf

    plan = choose_plan(plan_of(JOIN.text)).plan
    rows = pa.RecordBatch.from_pylist(streams["a"], schema=CATALOG["a"].arrow)
    newest = max(event["ts"] for event in streams["a"])
    waiting = live_by_leaf(plan, CATALOG, Going(max_lag_us=SECOND))
    state, _ = waiting.take(waiting.initial_state(), {"a": rows})
    assert state.clock_us == newest - SECOND
    limited = live_by_leaf(plan, CATALOG, Going(max_lag_us=SECOND, max_state_bytes=100))
    with pytest.raises(StateLimitError, match="more than the 100 it may"):
        limited.take(limited.initial_state(), {"a": rows})


def arriving(
    session: SparkSession, streams: Streams, folder: Path
) -> Iterator[tuple[str, DataFrame]]:
    """Streams of files, two for each stream."""
    for name in "ab":
        table = tables_of(streams)[name]
        (folder / name).mkdir()
        as_numbers = table.set_column(0, "ts", table.column("ts").cast(pa.int64()))
        half = table.num_rows // 2
        pq.write_table(as_numbers.slice(0, half), folder / name / "0.parquet")
        pq.write_table(as_numbers.slice(half), folder / name / "1.parquet")
        source = session.readStream.schema("ts long, _seq long, k string, g long, v long, f double")
        yield (
            name,
            source.option("maxFilesPerTrigger", 1).parquet(str(folder / name / "*.parquet")),
        )


@pytest.mark.parametrize("question", STREAMED, ids=lambda question: question.name)
def test_spark_streams_go_by_one_clock(
    spark: SparkSession, streams: Streams, tmp_path: Path, question: Question
) -> None:
    frames: Mapping[str, DataFrame] = dict(arriving(spark, streams, tmp_path))
    changes = ev.spark(spark).stream(frames, question.text, buckets=2)
    out = tmp_path / "out"
    (
        changes.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(out))
        .awaitTermination()
    )
    reports = plain(spark.read.parquet(str(out)).toArrow())
    clock = min(max(event["ts"] for event in streams[name]) for name in "ab")
    assert max(row["at"] for row in reports) < clock
    for now in range(clock - 5 * SECOND, clock, SECOND):
        assert accumulated(reports, now) == Truth(question, streams).answer(now)


def test_spark_replays_a_standing_query(
    spark: SparkSession, streams: Streams, tmp_path: Path
) -> None:
    db = stored(streams, tmp_path)
    question = JOIN.reporting("ISTREAM")
    replayed = ev.spark(spark, db.path).replay(question.text, rows_per_batch=12, buckets=2)
    out = tmp_path / "out"
    (
        replayed.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(out))
        .awaitTermination()
    )
    found = plain(spark.read.parquet(str(out)).toArrow())
    assert bag(found) == expected(question, streams)
