"""What the pattern cases ask, in each contestant's words, and how Eventide is timed.

Every price is another than the one before, so that no ties blur what a condition means. Flink has
no PREV: in `A B+ C` the row before a B is the last B or, before the first, the A, and the row
before C is the last B. Written so, its answer is the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import eventide as ev
from benchmarks.guard import MismatchError, as_bag, difference_of
from benchmarks.measure import collector_off
from benchmarks.patterns.data import STREAM
from benchmarks.patterns.rivals import FLINK, PANDAS, AbsentError, Rival
from benchmarks.patterns.setting import ARRIVING_ROWS, PatternSetting, Question
from benchmarks.race import Finding, Target, at_least, at_most, race, timed
from eventide.api.live.query import live_query
from eventide.lang.sql import plan_sql

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

# The least ratios to the rivals, where one has to hold.
LEAST_OF_PANDAS = at_least(10)
LEAST_OF_FLINK = at_least(50)
LEAST_OF_FLINK_LIVE = at_least(20)
LEAST_OF_ALLOWED = at_least(1)
LEAST_OF_SHUFFLE = at_least(1 / 1.5)
LEAST_OF_BY_HAND = at_least(5)
MOST_P99 = at_most(0.001)
FIRST_RESULT_SECONDS = at_most(0.3)

SPARK_WARM_UPS = 3
NEW_TEXTS = 20
SINGLE_WARM_UPS = 200
DURABLE_SINGLES = 1_000

MEASURES = "A.ts AS t0, C.ts AS t1, A.price AS p0, LAST(B.price) AS low, C.price AS p1"
FALLING = "B AS B.price < PREV(B.price), C AS C.price > PREV(C.price)"
FALLING_WITHOUT_PREV = (
    "B AS (LAST(B.price, 1) IS NULL AND B.price < A.price) OR B.price < LAST(B.price, 1), "
    "C AS C.price > B.price"
)


def match(
    measures: str,
    pattern: str,
    define: str,
    rows: str = "ONE ROW PER MATCH",
    skip: str = "PAST LAST ROW",
) -> str:
    """Return a query text."""
    return (
        f"SELECT * FROM {STREAM} MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES {measures} "
        f"{rows} AFTER MATCH SKIP {skip} PATTERN ({pattern}) DEFINE {define})"
    )


DIP = Question(
    "A B+ C",
    match(MEASURES, "A B+ C", FALLING),
    match(f"{MEASURES}, MATCH_ROWTIME() AS at_time", "A B+ C", FALLING_WITHOUT_PREV),
    {
        "k": "STRING",
        "t0": "TIMESTAMP(3)",
        "t1": "TIMESTAMP(3)",
        "p0": "DOUBLE",
        "low": "DOUBLE",
        "p1": "DOUBLE",
    },
)
PERMUTED = Question(
    "PERMUTE",
    match(
        "FIRST(ts) AS t0, A.price AS pa, B.price AS pb, C.price AS pc",
        "PERMUTE(A, B, C)",
        "A AS A.volume < 300, B AS B.volume >= 300 AND B.volume < 600, C AS C.volume >= 600",
    ),
)
ALL_ROWS = Question(
    "all rows",
    match(
        "MATCH_NUMBER() AS n, CLASSIFIER() AS c, FIRST(A.price) AS p0",
        "A B+ C",
        FALLING,
        "ALL ROWS PER MATCH",
        "TO NEXT ROW",
    ),
)
# Of volumes, not of prices: a random walk stays below its own mean for so long, now and then, that
# one match would decide the time.
RUNNING_AVERAGE = Question(
    "running average",
    match(
        "FIRST(ts) AS t0, LAST(ts) AS t1, COUNT(A.volume) AS n, AVG(A.volume) AS mean",
        "A+ B",
        "A AS A.volume <= 1.5 * AVG(A.volume), B AS B.volume > 1.5 * AVG(A.volume)",
    ),
)
# Conditions that pandas-match-recognize answers on its fast path: texts are equal to constants.
TEXTS = Question(
    "A B+ C of texts",
    match(
        "FIRST(A.ts) AS t0, LAST(C.ts) AS t1",
        "A B+ C",
        "A AS A.size = 'small', B AS B.size = 'middle', C AS C.size = 'large'",
    ),
)
QUESTIONS = (DIP, PERMUTED, ALL_ROWS, RUNNING_AVERAGE, TEXTS)


@dataclass(frozen=True, slots=True)
class PatternCase:
    """Something asked about patterns, and how it is checked and measured."""

    name: str
    asked: str
    run: Callable[[PatternSetting], list[Finding]]
    spark: bool = False


def over_arrow(setting: PatternSetting, question: Question, count: int) -> pa.Table:
    """Answer over events in memory."""
    return ev.sql(question.text, **{STREAM: setting.events(count)}).to_arrow()


def against(
    setting: PatternSetting,
    rival: Rival,
    question: Question,
    ours: dict[int, tuple[Finding, int]],
    least: Target | None,
) -> Iterator[Finding]:
    """Complete lines of the table, which are by number of events, with a rival's side.

    Each comes with how many rows Eventide gave: where the rival has counted, it has as many.
    """
    try:
        runs = setting.answer(rival, question, tuple(ours)).runs
    except AbsentError as absent:
        yield from (replace(finding, rival=f"none: {absent}") for finding, _ in ours.values())
        return
    for (finding, rows), run in zip(ours.values(), runs, strict=True):
        if run.matches is not None and run.matches != rows:
            message = f"{question.name}: {rival.name} has {run.matches:,} rows, Eventide {rows:,}"
            raise MismatchError(message)
        if not run.idle:
            yield replace(finding, rival=rival.name, theirs=run.seconds, target=least)
            continue
        # Eventide's seconds are of everything, so only the rival is spared something.
        yield replace(finding, rival=f"{rival.name}, net", theirs=run.net, target=least)
        yield replace(finding, rival=f"{rival.name}, raw", theirs=run.seconds)


def history(setting: PatternSetting, question: Question, count: int) -> tuple[Finding, int]:
    """Time Eventide over events in memory, warm."""
    rows = over_arrow(setting, question, count).num_rows
    seconds = race({"": lambda: over_arrow(setting, question, count)})[""]
    return Finding(f"Arrow, {count:,}", seconds, events=count), rows


def dip_over_history(setting: PatternSetting) -> list[Finding]:
    """`A B+ C` against everybody, and over the store."""
    some, many = setting.sizes.some, setting.sizes.many
    ours = {count: history(setting, DIP, count) for count in (some, many)}
    findings = list(against(setting, PANDAS, DIP, {some: ours[some]}, LEAST_OF_PANDAS))
    findings += against(setting, FLINK, DIP, ours, LEAST_OF_FLINK)
    stored = setting.database.sql(DIP.text).to_arrow().num_rows
    if stored != ours[many][1]:
        message = f"the store gives {stored:,} rows, Arrow {ours[many][1]:,}"
        raise MismatchError(message)
    seconds = race({"": lambda: setting.database.sql(DIP.text).to_arrow()})[""]
    return [*findings, Finding(f"store, {many:,}", seconds, events=many)]


def against_pandas(question: Question, setting: PatternSetting) -> list[Finding]:
    """Ask what only pandas-match-recognize knows too."""
    some, many = setting.sizes.some, setting.sizes.many
    ours = {some: history(setting, question, some)}
    findings = list(against(setting, PANDAS, question, ours, LEAST_OF_PANDAS))
    return [*findings, history(setting, question, many)[0]]


def live(setting: PatternSetting) -> list[Finding]:
    """Push batches into a live query; Flink's job reads batches of the same size."""
    ours: dict[int, tuple[Finding, int]] = {}
    for count in (setting.sizes.some, setting.sizes.many):
        arrivals = setting.arrivals(count, ARRIVING_ROWS)
        rows = pushed(setting, arrivals).num_rows
        expected = over_arrow(setting, DIP, count).num_rows
        if rows != expected:
            message = f"live gives {rows:,} rows, history {expected:,}"
            raise MismatchError(message)
        seconds = race({"": partial(pushed, setting, arrivals)})[""]
        ours[count] = Finding(f"live, {count:,}", seconds, events=count), rows
    return list(against(setting, FLINK, DIP, ours, LEAST_OF_FLINK_LIVE))


def pushed(setting: PatternSetting, arrivals: list[pa.RecordBatch]) -> pa.Table:
    """Return all results of a live query."""
    catalog = {STREAM: setting.schema}
    query = live_query(plan_sql(DIP.text, catalog), catalog, None, "0 s")
    results = [query.push(batch).to_arrow() for batch in arrivals]
    return pa.concat_tables([*results, query.finish().to_arrow()])


def one_at_a_time(setting: PatternSetting) -> list[Finding]:
    """Push events one by one: seconds from an event to all results that it completes."""
    catalog = {STREAM: setting.schema}
    query = live_query(plan_sql(DIP.text, catalog), catalog, None, "0 s")
    arrivals = setting.arrivals(setting.sizes.some, 1)[: setting.sizes.singles]
    by_hand = percentiles([partial(answered, query.push, batch) for batch in arrivals])
    database = ev.open(setting.folder / "singles.ev")
    stream = database.create_stream(STREAM, setting.schema.to_json())
    found: list[pa.Table] = []
    query = database.subscribe(DIP.text, lambda result: found.append(result.to_arrow()))
    events = setting.events(setting.sizes.some)
    durable = min(DURABLE_SINGLES, setting.sizes.singles)
    stored = percentiles([partial(stream.append, events.slice(n, 1)) for n in range(durable)])
    query.finish()
    return [
        Finding("pushed, p50", by_hand[0]),
        Finding("pushed, p99", by_hand[1], target=MOST_P99),
        Finding("appended to the disk, p50", stored[0]),
        Finding("appended to the disk, p99", stored[1]),
    ]


def answered(push: Callable[[pa.RecordBatch], ev.Result], batch: pa.RecordBatch) -> pa.Table:
    """Push and take the results."""
    return push(batch).to_arrow()


def percentiles(works: list[Callable[[], object]]) -> tuple[float, float]:
    """Return the median and the 99th percentile of the seconds of each, the first few left out."""
    seconds = []
    with collector_off():
        for work in works:
            start = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - start)
    warm = seconds[min(SINGLE_WARM_UPS, len(seconds) // 2) :]
    return float(np.percentile(warm, 50)), float(np.percentile(warm, 99))


def new_texts() -> Iterator[Question]:
    """Yield texts of ever new form: other quantifiers, conditions and measures."""
    for number in range(NEW_TEXTS):
        shape = ("B+", "B*", "B+?", "(B | D)+", "B{2,}")[number % 5]
        define = (
            f"B AS B.price < PREV(B.price) + 0.{number:03}, D AS D.volume > {900 + number}, "
            "C AS C.price > PREV(C.price)"
        )
        define = define if "D" in shape else define.replace(f"D AS D.volume > {900 + number}, ", "")
        measures = f"A.ts AS t0, COUNT(*) AS n{number}, MAX(B.price) - A.price AS rise"
        yield Question(f"text {number}", match(measures, f"A {shape} C", define))


def first_result(setting: PatternSetting) -> list[Finding]:
    """Ask queries never seen before over 1,000 events: the process is warm, the text is not."""
    over_arrow(setting, DIP, 1_000)
    seconds = [timed(partial(over_arrow, setting, question, 1_000)) for question in new_texts()]
    return [
        Finding("median", float(np.median(seconds))),
        Finding("slowest", max(seconds), target=FIRST_RESULT_SECONDS),
    ]


def on_spark(setting: PatternSetting) -> list[Finding]:
    """`A B+ C` on Spark: over the store against embedded, over a DataFrame against Spark itself."""
    many, text = setting.sizes.many, DIP.text
    stored = setting.database
    plans: dict[str, Callable[[], DataFrame]] = {
        "store": lambda: ev.spark(setting.spark, stored.path).sql(text),
        "DataFrame": lambda: ev.spark(setting.spark).sql(text, **{STREAM: setting.spark_frame()}),
        "applyInPandas": lambda: by_hand_on_spark(setting.spark_frame()),
    }
    expected = as_bag(stored.sql(text).to_arrow())
    for name, plan in plans.items():
        difference = difference_of(expected, as_bag(plan().toArrow()))
        if difference:
            message = f"on Spark: {name} and embedded differ: {difference}"
            raise MismatchError(message)
    ways: dict[str, Callable[[], object]] = {
        name: partial(run_plan, plan) for name, plan in plans.items()
    }
    ways["shuffle"] = partial(run_plan, lambda: shuffled(setting.spark_frame()))
    ways["embedded"] = lambda: stored.sql(text).to_arrow()
    for name, way in ways.items():
        # By hand is slow because of Python, not because a JVM is cold.
        for _ in range(SPARK_WARM_UPS if name != "applyInPandas" else 0):
            way()
    seconds = race(ways)
    frame, store = seconds["DataFrame"], seconds["store"]
    # Starting tasks and collecting results costs the same, however many events there are.
    allowed = 1.5 * seconds["embedded"] + 2
    on_frame = partial(Finding, "DataFrame", frame, events=many)
    return [
        Finding("store", store, "embedded", seconds["embedded"], events=many),
        Finding("store", store, "1.5 × embedded + 2 s", allowed, LEAST_OF_ALLOWED, many),
        on_frame("bare shuffle", seconds["shuffle"], LEAST_OF_SHUFFLE),
        on_frame("applyInPandas, by hand", seconds["applyInPandas"], LEAST_OF_BY_HAND),
    ]


def run_plan(plan: Callable[[], DataFrame]) -> None:
    """Make every row and keep none."""
    plan().write.format("noop").mode("overwrite").save()


def shuffled(frame: DataFrame) -> DataFrame:
    """Bring the needed columns together by key, which is the least that anybody has to do."""
    partitions = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or "2")
    return frame.select("ts", "k", "price").repartition(partitions, "k")


def by_hand_on_spark(frame: DataFrame) -> DataFrame:
    """`A B+ C` as one writes it on Spark without a language for patterns."""
    columns = "k string, t0 timestamp_ntz, t1 timestamp_ntz, p0 double, low double, p1 double"
    needed = frame.select("ts", "k", "price")
    return needed.groupBy("k").applyInPandas(by_hand, columns)


def by_hand(events: pd.DataFrame) -> pd.DataFrame:
    """Find `A B+ C` among the events of one key, in one pass."""
    ordered = events.sort_values("ts")
    prices = ordered["price"].tolist()
    starts: list[int] = []
    ends: list[int] = []
    start, row, count = 0, 1, len(prices)
    while row < count:
        while row < count and prices[row] < prices[row - 1]:
            row += 1
        if row < count and row > start + 1 and prices[row] > prices[row - 1]:
            starts.append(start)
            ends.append(row)
            start = row + 1
        else:
            start = row
        row = start + 1
    first, last = ordered.iloc[starts], ordered.iloc[ends]
    low = ordered["price"].to_numpy()[np.asarray(ends, dtype=np.int64) - 1]
    found = first.rename(columns={"ts": "t0", "price": "p0"}).reset_index(drop=True)
    found = found.assign(t1=last["ts"].to_numpy(), low=low, p1=last["price"].to_numpy())
    return found[["k", "t0", "t1", "p0", "low", "p1"]]


PATTERN_CASES = (
    PatternCase(
        "A B+ C",
        "a price falls at least once and then rises; Flink's net time is without starting its job "
        "and reading its events, which are in memory, as measured with a filter that keeps nothing",
        dip_over_history,
    ),
    PatternCase(
        "A B+ C of texts",
        "conditions that compare texts with constants, which the rival has a fast path for",
        partial(against_pandas, TEXTS),
    ),
    PatternCase(
        "PERMUTE", "three classes of volume in any order", partial(against_pandas, PERMUTED)
    ),
    PatternCase(
        "all rows",
        "A B+ C with ALL ROWS PER MATCH, AFTER MATCH SKIP TO NEXT ROW",
        partial(against_pandas, ALL_ROWS),
    ),
    PatternCase(
        "running average",
        "A+ B with a condition on the average of the A so far",
        partial(against_pandas, RUNNING_AVERAGE),
    ),
    PatternCase(
        "live",
        f"A B+ C as a standing query, {ARRIVING_ROWS:,} events at a time; Flink's job reads as "
        "many at a time",
        live,
    ),
    PatternCase(
        "one event at a time",
        "A B+ C as a standing query: seconds until an event's results are there",
        one_at_a_time,
    ),
    PatternCase(
        "first result",
        "patterns never seen before, over 1,000 events, in a warm process",
        first_result,
    ),
    PatternCase(
        "A B+ C on Spark",
        "over the store against the same embedded, and over a Parquet file against bringing ts, k "
        "and price together by key, and against the pattern written by hand",
        on_spark,
        spark=True,
    ),
)
