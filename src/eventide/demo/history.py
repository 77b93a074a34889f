"""Ask questions over history, here and on Spark, and compare."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import pyarrow as pa

from eventide.api.database import Database
from eventide.demo.agree import check_agree
from eventide.demo.queries import DemoQuestion
from eventide.demo.spark import SparkSide


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of a question, and how long it took each way."""

    question: DemoQuestion
    rows: pa.Table
    seconds: float
    spark_seconds: float | None


def ask(database: Database, question: DemoQuestion, spark: SparkSide | None) -> Answer:
    """Return the answer; raise `DisagreementError` if Spark's differs."""
    started = perf_counter()
    rows = database.sql(question.text).to_arrow()
    seconds = perf_counter() - started
    return Answer(question, rows, seconds, ask_spark(database, question, rows, spark))


def ask_spark(
    database: Database, question: DemoQuestion, rows: pa.Table, spark: SparkSide | None
) -> float | None:
    """Return how long Spark takes for the same rows, None if there is no Spark."""
    if spark is None:
        return None
    started = perf_counter()
    by_spark = spark.sql(database.path, question.text)
    seconds = perf_counter() - started
    check_agree(f"{question.name}, embedded and on Spark", rows, by_spark)
    return seconds
