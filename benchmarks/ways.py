"""One way to get an answer: somebody's engine over one form of the events.

Embedded ways all end in an Arrow table in memory. Spark ways all end in Spark's `noop` sink, so
that every row is made and none is kept. Threads are whatever each library takes by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

import eventide as ev
from benchmarks.setting import STREAM, Setting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Polars = Callable[[pl.DataFrame], pl.DataFrame]


@dataclass(frozen=True, slots=True)
class Way:
    """`work` is what is timed, and may return its rows.

    `answer` returns the rows, for the guard. `count` says how many they are, for work that keeps
    none.
    """

    name: str
    work: Callable[[Setting], object]
    answer: Callable[[Setting], pa.Table] | None = None
    count: Callable[[Setting], int] | None = None


def embedded(name: str, answer: Callable[[Setting], pa.Table]) -> Way:
    """Return a way whose work is to make the answer."""
    return Way(name, answer, answer)


def on_spark(name: str, plan: Callable[[Setting], DataFrame]) -> Way:
    """Return a way whose work is a Spark job."""
    return Way(
        name,
        lambda setting: plan(setting).write.format("noop").mode("overwrite").save(),
        lambda setting: plan(setting).toArrow(),
        lambda setting: plan(setting).count(),
    )


def eventide_arrow(text: str) -> Way:
    """Eventide over the Arrow table."""
    return embedded(
        "Eventide, Arrow", lambda setting: ev.sql(text, **{STREAM: setting.events}).to_arrow()
    )


def eventide_store(text: str) -> Way:
    """Eventide over its store."""
    return embedded("Eventide, store", lambda setting: setting.database.sql(text).to_arrow())


def eventide_spark_store(text: str) -> Way:
    """Eventide on Spark, over its store."""
    return on_spark(
        "Eventide, store", lambda setting: ev.spark(setting.spark, setting.database.path).sql(text)
    )


def eventide_spark_parquet(text: str) -> Way:
    """Eventide on Spark, over a DataFrame."""
    return on_spark(
        "Eventide, Parquet",
        lambda setting: ev.spark(setting.spark).sql(text, **{STREAM: setting.spark_frame()}),
    )


def duckdb_arrow(name: str, text: str) -> Way:
    """DuckDB over the Arrow table."""
    return embedded(name, lambda setting: fetched(setting.duckdb_arrow, text))


def duckdb_table(name: str, text: str) -> Way:
    """DuckDB over a table of its own."""
    return embedded(name, lambda setting: fetched(setting.duckdb_table, text))


def fetched(connection: Any, text: str) -> pa.Table:  # noqa: ANN401
    """Return the rows of a DuckDB query as an Arrow table, made in one go."""
    return connection.sql(text).to_arrow_table()


def polars(name: str, ask: Polars) -> Way:
    """Polars over a frame in memory; strings leave as views, which costs it no copy."""
    return embedded(
        name,
        lambda setting: ask(setting.frame).to_arrow(compat_level=pl.CompatLevel.newest()),
    )


def spark_sql(text: str) -> Way:
    """Spark's own SQL over the Parquet file."""

    def plan(setting: Setting) -> DataFrame:
        setting.spark_frame().createOrReplaceTempView(STREAM)
        return setting.spark.sql(text)

    return on_spark("Spark SQL, Parquet", plan)
