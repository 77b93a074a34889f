"""Where the pattern cases run: the events in every form, and what the rivals made of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import eventide as ev
from benchmarks.guard import MismatchError, as_bag, difference_of
from benchmarks.patterns.data import STREAM, kept
from benchmarks.patterns.rivals import AbsentError, Answer, Job, Rival, Task, ask
from eventide.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MANY = 10_000_000
ARRIVING_ROWS = 1_000
CHUNK_ROWS = 1_000_000


@dataclass(frozen=True, slots=True)
class PatternSizes:
    """How many events a case is over, from how many the largest is."""

    many: int = MANY

    @property
    def some(self) -> int:
        """What a rival in Python is asked about: a million."""
        return max(1_000, self.many // 10)

    @property
    def sample(self) -> int:
        """What is compared row by row."""
        return min(self.some, 20_000)

    @property
    def singles(self) -> int:
        """How many events arrive one at a time."""
        return min(self.some // 10, 10_000)


@dataclass(frozen=True, slots=True)
class Question:
    """A pattern in everybody's words; Flink has words for few.

    `flink_columns` are what Flink returns, with their types.
    """

    name: str
    text: str
    flink: str = ""
    flink_columns: dict[str, str] = field(default_factory=dict)

    def to(self, rival: Rival) -> str:
        """Return its text for a rival."""
        return self.flink if rival.name == "PyFlink" else self.text


class PatternSetting:
    """A folder to work in, one to keep the rivals' environments in, and forms of the events."""

    def __init__(self, sizes: PatternSizes, folder: Path, rivals: Path) -> None:
        self.sizes = sizes
        self.folder = folder
        self.rivals = rivals
        self.versions: dict[str, str] = {}
        self.tables: dict[int, pa.Table] = {}
        self.answers: dict[tuple[str, str], Answer | AbsentError] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def parquet(self, count: int) -> Path:
        """Return so many events as a file."""
        return kept(self.folder, count)

    def events(self, count: int) -> pa.Table:
        """Return so many events in memory."""
        if count not in self.tables:
            self.tables[count] = pq.read_table(self.parquet(count)).combine_chunks()
        return self.tables[count]

    @cached_property
    def schema(self) -> Schema:
        """The events' attributes."""
        return Schema.from_arrow(self.events(self.sizes.sample).schema)

    def arrivals(self, count: int, rows: int) -> list[pa.RecordBatch]:
        """Return events as they arrive at a live query, numbered, so many at a time."""
        numbered = self.events(count).append_column("_seq", pa.array(np.arange(count)))
        return list(numbered.combine_chunks().to_batches(max_chunksize=rows))

    @cached_property
    def database(self) -> ev.Database:
        """All events in a store on disk."""
        database = ev.open(self.folder / "ticks.ev")
        stream = database.create_stream(STREAM, self.schema.to_json())
        events = self.events(self.sizes.many)
        for start in range(0, events.num_rows, CHUNK_ROWS):
            stream.append(events.slice(start, CHUNK_ROWS))
        return database

    @cached_property
    def spark(self) -> SparkSession:
        """A Spark session on this machine's cores."""
        from eventide.engines.spark.session import local_session

        return local_session("eventide-bench")

    def spark_frame(self) -> DataFrame:
        """Return the file of all events as a DataFrame."""
        return self.spark.read.parquet(str(self.parquet(self.sizes.many)))

    def answer(self, rival: Rival, question: Question, counts: tuple[int, ...]) -> Answer:
        """Return how a rival did over a sample and then over so many events, asked only once.

        The rows that it gives for the sample have to be Eventide's. A small run comes before a
        large one, so that the large one is warm.
        """
        key = (rival.name, question.name)
        if key not in self.answers:
            try:
                self.answers[key] = self.ask(rival, question, counts)
            except AbsentError as absent:
                self.answers[key] = absent
        answer = self.answers[key]
        if isinstance(answer, AbsentError):
            raise answer
        return answer

    def ask(self, rival: Rival, question: Question, counts: tuple[int, ...]) -> Answer:
        """Start a rival's process, check its rows, and return its times; not the sample's."""
        sample, rows = self.sizes.sample, self.folder / f"{rival.name}-{len(self.answers)}.parquet"
        jobs = [Job(str(self.parquet(sample)), rows=str(rows))]
        for count in counts:
            most = count == self.sizes.many
            # The largest takes minutes: once is enough, and nobody counts its rows in a run more.
            repeats = 1 if most else rival.repeats
            jobs.append(Job(str(self.parquet(count)), repeats, count=not most))
        text = question.to(rival)
        task = Task(text, STREAM, question.flink_columns, ARRIVING_ROWS, tuple(jobs))
        answer = ask(rival, task, self.rivals)
        self.versions[rival.name] = answer.version
        expected = ev.sql(question.text, **{STREAM: self.events(sample)}).to_arrow()
        found = pq.read_table(rows).select(expected.column_names)
        difference = difference_of(as_bag(expected), as_bag(found))
        if difference:
            message = f"{question.name}: {rival.name} and Eventide differ: {difference}"
            raise MismatchError(message)
        return Answer(answer.version, answer.runs[1:])

    def close(self) -> None:
        """Stop Spark, if it was started."""
        if "spark" in vars(self):
            self.spark.stop()
