"""Ask a question through the index, and by a replay of all events, and compare.

The index is not asked about few events; `Indexed` says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import pyarrow as pa

from eventide.api.database import Database
from eventide.demo.agree import check_agree
from eventide.demo.history import Answer, ask_spark
from eventide.demo.queries import DemoQuestion
from eventide.demo.spark import SparkSide

ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Indexed:
    """The answer, how long its replay took, and why the index was not asked, if so."""

    answer: Answer
    replay_seconds: float
    refused: str | None


def ask_indexed(database: Database, question: DemoQuestion, spark: SparkSide | None) -> Indexed:
    """Return the answer; raise `DisagreementError` if the replay's or Spark's differs."""

    def replay() -> pa.Table:
        return pa.concat_tables([each.to_arrow() for each in database.replay(question.text)])

    rows, seconds = best_of(lambda: database.sql(question.text).to_arrow())
    replayed, replay_seconds = best_of(replay)
    check_agree(f"{question.name}, through the index and by replay", rows, replayed)
    spark_seconds = ask_spark(database, question, rows, spark)
    (block,) = database.explain(question.text).seen.blocks
    answer = Answer(question, rows, seconds, spark_seconds)
    return Indexed(answer, replay_seconds, block.ways.refused)


def best_of(work: Callable[[], pa.Table]) -> tuple[pa.Table, float]:
    """Return the rows and the shortest time of some rounds: the first one loads kernels."""
    spent = []
    for _ in range(ROUNDS):
        started = perf_counter()
        rows = work()
        spent.append(perf_counter() - started)
    return rows, min(spent)
