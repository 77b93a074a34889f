"""Ask questions while the events arrive, and compare with history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa

from eventide.api.database import Database, open_database
from eventide.api.in_memory import sql
from eventide.api.result import Result
from eventide.demo.agree import check_agree
from eventide.demo.cars import ATTRIBUTES
from eventide.demo.queries import DemoQuestion

LATENESS = "10 s"
BATCH_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class LiveAnswer:
    """What a live query gave, and the events that came too late for it."""

    question: DemoQuestion
    rows: pa.Table
    late: pa.Table


@dataclass(frozen=True, slots=True)
class LiveRun:
    """The answers of all live queries, and how long they took together."""

    answers: tuple[LiveAnswer, ...]
    seconds: float
    slowest: float
    """The longest time from the arrival of a batch to its results, in seconds."""

    @property
    def late(self) -> pa.Table:
        """The events that came too late: the same for all, as they share the lateness."""
        return self.answers[0].late


class LiveQuestion:
    """A question that runs live, and what it has given so far."""

    def __init__(self, database: Database, question: DemoQuestion) -> None:
        self.question = question
        self.parts: list[pa.Table] = []
        self.query = database.subscribe(question.text, self.take, lateness=LATENESS)

    def take(self, result: Result) -> None:
        """Keep a part of the answer."""
        self.parts.append(result.to_arrow())

    def finish(self) -> LiveAnswer:
        """End the query; return all that it gave."""
        last = self.query.finish().to_arrow()
        late = self.query.late().to_arrow()
        assert late.num_rows == self.query.late_count, "the demo has few late events: all are kept"
        return LiveAnswer(self.question, pa.concat_tables(self.parts) if self.parts else last, late)


def run_live(
    folder: Path,
    questions: Sequence[DemoQuestion],
    events: pa.Table,
    advance: Callable[[int], None],
) -> LiveRun:
    """Append events as they arrive to a new database in which the questions run live."""
    database = open_database(folder)
    stream = database.create_stream("cars", ATTRIBUTES)
    asked = [LiveQuestion(database, question) for question in questions]
    started = perf_counter()
    slowest = 0.0
    for first in range(0, events.num_rows, BATCH_ROWS):
        arrived = perf_counter()
        stream.append(events.slice(first, BATCH_ROWS))
        slowest = max(slowest, perf_counter() - arrived)
        advance(min(BATCH_ROWS, events.num_rows - first))
    answers = tuple(each.finish() for each in asked)
    return LiveRun(answers, perf_counter() - started, slowest)


def check_against_history(events: pa.Table, run: LiveRun) -> None:
    """Refuse live answers that are not those of history without the late events."""
    for answer in run.answers:
        on_time = np.ones(events.num_rows, np.bool_)
        # _seq counts arrivals from 0, and so is the row in `events`.
        on_time[answer.late["_seq"].to_numpy()] = False
        history = sql(answer.question.text, cars=events.filter(pa.array(on_time)))
        name = f"{answer.question.name}, live and over history"
        check_agree(name, answer.rows, history.to_arrow())
