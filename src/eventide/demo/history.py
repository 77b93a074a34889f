"""Ask the questions over history, here and on Spark, and compare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


def ask_all(
    database: Database, questions: Sequence[DemoQuestion], spark: SparkSide | None
) -> Iterator[Answer]:
    """Yield the answers; raise `DisagreementError` if Spark's differ."""
    for question in questions:
        started = perf_counter()
        rows = database.sql(question.text).to_arrow()
        seconds = perf_counter() - started
        spark_seconds = None
        if spark is not None:
            started = perf_counter()
            by_spark = spark.sql(database.path, question.text)
            spark_seconds = perf_counter() - started
            check_agree(f"{question.name}, embedded and on Spark", rows, by_spark)
        yield Answer(question, rows, seconds, spark_seconds)
