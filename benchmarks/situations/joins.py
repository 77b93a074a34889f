"""Situations beside other engines of ours and other words: on Spark, and joins by a relation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa

import eventide as ev
from benchmarks.race import Finding, at_least, race
from benchmarks.situations.cases import SituationCase
from benchmarks.situations.data import SECOND_US, SEED, START_US, Kind
from benchmarks.situations.queries import aggressive
from benchmarks.situations.setting import SituationSetting, check_rows, over_store
from benchmarks.situations.sql import MEANINGS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LEAST_OF_ALLOWED = at_least(1)
SPARK_WARM_UPS = 3
JOIN_KEYS = {"100 keys": 100, "without key": 1}
JOINED_BY = ("overlaps", "during", "meets")


def on_spark(setting: SituationSetting) -> list[Finding]:
    """W1 over the store on Spark: against the same embedded, on the same cores."""
    pattern, database = aggressive(), setting.database

    def spread() -> DataFrame:
        return ev.spark(setting.spark, database.path).sql(pattern.text)

    check_rows("on Spark", over_store(pattern, database), spread().toArrow())
    ways: dict[str, Callable[[], object]] = {
        "Spark": lambda: spread().write.format("noop").mode("overwrite").save(),
        "embedded": partial(over_store, pattern, database),
    }
    for way in ways.values():
        for _ in range(SPARK_WARM_UPS):
            way()
    seconds = race(ways)
    count = setting.drivers.num_rows
    # Starting tasks and collecting results costs the same, however many events there are.
    allowed = 1.5 * seconds["embedded"] + 2
    line = partial(Finding, "store", seconds["Spark"], events=count)
    return [
        line("1.5 × embedded + 2 s", allowed, LEAST_OF_ALLOWED),
        line("embedded", seconds["embedded"]),
    ]


def period_joins(setting: SituationSetting) -> list[Finding]:
    """Join two tables of periods by a relation: against DuckDB's inequalities."""
    findings = []
    for name, keys in JOIN_KEYS.items():
        rows = setting.sizes.of(0.02)
        sides = {side: period_table(rows, keys, number) for number, side in enumerate("xy")}
        connection = duckdb.connect()
        for side, table in sides.items():
            connection.register(side, table)
        for relation in JOINED_BY:
            by_key = keys > 1
            text = join_text(f"a {relation.upper()} b", by_key=by_key)
            plain = join_text(MEANINGS[relation].format(a="a", b="b"), by_key=by_key)
            ways: dict[str, Callable[[], pa.Table]] = {
                "Eventide": partial(joined, text, sides),
                "DuckDB": partial(fetched, connection, plain),
            }
            answers = {who: way() for who, way in ways.items()}
            check_rows(f"{relation}, {name}", answers["DuckDB"], answers["Eventide"])
            seconds = race(ways)
            what = f"{relation}, {name}, {rows:,} a side"
            findings.append(Finding(what, seconds["Eventide"], "DuckDB", seconds["DuckDB"]))
    return findings


def join_text(condition: str, *, by_key: bool) -> str:
    """Return the query: with a relation by name, or by inequalities."""
    key = "a.device = b.device AND " if by_key else ""
    return (
        "SELECT a.device AS device, a.start_ts AS a_start, b.start_ts AS b_start "
        f"FROM x a JOIN y b ON {key}{condition}"
    )


def joined(text: str, sides: dict[str, pa.Table]) -> pa.Table:
    """Answer over tables in memory."""
    return ev.sql(text, **sides).to_arrow()


def fetched(connection: duckdb.DuckDBPyConnection, text: str) -> pa.Table:
    """Return DuckDB's answer."""
    return connection.sql(text).to_arrow_table()


def period_table(count: int, keys: int, number: int) -> pa.Table:
    """Return about so many periods of some keys; of one key they share no instant."""
    random = np.random.default_rng((SEED, number))
    kind, each = Kind(), -(-count // keys)
    drawn = [kind.periods(random, 85 * each) for _ in range(keys)]
    starts = np.concatenate([start[:each] for start, _ in drawn])
    ends = np.concatenate([end[:each] for _, end in drawn])
    device = np.repeat(np.arange(keys, dtype=np.int64), [len(start[:each]) for start, _ in drawn])
    times = {
        name: pa.array(START_US + SECOND_US * seconds).cast(pa.timestamp("us"))
        for name, seconds in (("ts", ends), ("start_ts", starts), ("end_ts", ends))
    }
    return pa.table({"device": device, **times}).sort_by("ts")


OTHER_CASES = (
    SituationCase(
        "periods joined",
        "two tables of periods, joined by key and relation; DuckDB has inequalities for it",
        period_joins,
    ),
    SituationCase(
        "drivers on Spark",
        "aggressive drivers over the stored stream, warm, on all cores; against the same embedded",
        on_spark,
        spark=True,
    ),
)
