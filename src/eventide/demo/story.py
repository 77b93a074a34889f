"""The demo in order: make events, store them, ask over history and live, write a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from time import perf_counter

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.markup import escape

from eventide.api.database import Database, open_database
from eventide.api.stream import Stream
from eventide.demo.cars import ATTRIBUTES, CARS, make_events, write_files
from eventide.demo.folder import fresh_folder
from eventide.demo.history import Answer, ask
from eventide.demo.index import Indexed, ask_indexed
from eventide.demo.live import LiveRun, check_against_history, run_live
from eventide.demo.queries import INDEXED, KINDS, LIVE
from eventide.demo.report import DemoFindings, demo_page
from eventide.demo.spark import SparkSide, spark_is_installed, start_spark
from eventide.demo.telling import DemoStep, Teller
from eventide.drawing.page import render
from eventide.ingest.files import read_events
from eventide.sinks.words import rough_period_text, size_text

STREAM = "cars"


def run_demo(folder: Path, events: int, *, with_spark: bool, console: Console) -> Path:
    """Run the demo into a folder; return its page. Raise `DisagreementError` if answers differ."""
    started = perf_counter()
    story = Story(Teller(console), fresh_folder(folder))
    console.print(f"[bold]Eventide[/bold] with {CARS} connected cars\n", highlight=False)
    made, files = story.make(events)
    spark = story.start_spark() if with_spark else None
    try:
        database, seconds = story.store(files, events, spark)
        answers = story.ask(database, spark)
        indexed = story.ask_index(database, spark)
    finally:
        if spark is not None:
            spark.stop()
    story.show_times(answers, indexed)
    live = story.ask_live(made)
    found = DemoFindings(
        answers=answers,
        indexed=indexed,
        live=live,
        events=events,
        stored_bytes=stored_bytes(database),
        store_seconds=seconds,
        store_means="The embedded engine" if spark is None else "A Spark job",
        spark_version=None if spark is None else spark.version,
    )
    page = story.write_page(database, found)
    done = f"\nDone in {perf_counter() - started:.0f} s. Now open [bold]{escape(str(page))}[/bold]"
    console.print(done, highlight=False, soft_wrap=True)
    command = f'eventide sql {quote(str(story.path))} "SELECT * FROM cars LIMIT 5"'  # noqa: S608
    console.print(f"or ask: [cyan]{escape(command)}[/cyan]", highlight=False, soft_wrap=True)
    return page


@dataclass(frozen=True, slots=True)
class Story:
    """The steps, and where they put things."""

    teller: Teller
    folder: Path

    @property
    def path(self) -> Path:
        """The database of the demo."""
        return self.folder / "traffic.ev"

    def make(self, count: int) -> tuple[pa.Table, list[Path]]:
        """Make the events and write them as files, in the order of their arrival."""
        with self.teller.step("making events") as step:
            events = make_events(count)
            files = write_files(events, self.folder / "arrived")
            ts = pc.min_max(events["ts"].cast(pa.int64())).as_py()
            step.say(f"{count:,} events, {rough_period_text(ts['min'], ts['max'])}")
        return events, files

    def start_spark(self) -> SparkSide | None:
        """Start Spark, or say why there is none."""
        if not spark_is_installed():
            self.teller.note("no Spark here; pip install 'eventide[spark]' adds it")
            return None
        with self.teller.step("starting Spark") as step:
            spark = start_spark(self.folder / "spark.log")
            step.say(f"Spark {spark.version} started on this machine")
        return spark

    def store(
        self, files: Sequence[Path], rows: int, spark: SparkSide | None
    ) -> tuple[Database, float]:
        """Ingest the files, by a Spark job if there is Spark; return how long it took as well."""
        database = open_database(self.path)
        stream = database.create_stream(STREAM, ATTRIBUTES)
        means = "here" if spark is None else "by a Spark job"
        with self.teller.step(f"storing {means}", rows) as step:
            if spark is None:
                ingest_here(stream, files, step)
            else:
                spark.ingest(files, self.path, STREAM, lambda share: step.reach(int(share * rows)))
            seconds = step.seconds
            size = size_text(stored_bytes(database))
            step.say(f"stored {means}: {size}, {rows / seconds:,.0f} events/s")
        assert len(stream) == rows, f"{len(stream):,} of {rows:,} events were stored"
        return database, seconds

    def ask(self, database: Database, spark: SparkSide | None) -> list[Answer]:
        """Ask all questions over history, a step for each kind."""
        answers = []
        for kind, questions in KINDS.items():
            with self.teller.step(f"asking: {kind}") as step:
                found = [ask(database, question, spark) for question in questions]
                step.say(f"{kind}: {what_was_found(found)}{the_same(spark)}")
            answers += found
        return answers

    def ask_index(self, database: Database, spark: SparkSide | None) -> Indexed:
        """Ask a question through the index, and by a replay of all events."""
        with self.teller.step("asking: the index") as step:
            found = ask_indexed(database, INDEXED, spark)
            index, replay = found.answer.seconds * 1000, found.replay_seconds * 1000
            if found.refused is None:
                step.say(
                    f"through the index {index:,.0f} ms, by replay {replay:,.0f} ms: the same rows"
                )
            else:
                step.say(f"the index was not asked, because {found.refused}: {index:,.0f} ms")
        return found

    def show_times(self, answers: Sequence[Answer], indexed: Indexed) -> None:
        """Show how long each question took."""
        columns = ("question", "rows", "embedded", "on Spark", "the same")
        rows = [answer_row(answer) for answer in (*answers, indexed.answer)]
        with_spark = indexed.answer.spark_seconds is not None
        self.teller.table(columns if with_spark else columns[:3], rows)

    def ask_live(self, events: pa.Table) -> LiveRun:
        """Ask some questions while the events arrive again, and compare with history."""
        rows = events.num_rows
        with self.teller.step("live", rows) as step:
            run = run_live(self.folder / "live.ev", LIVE, events, step.advance)
            windows, pairs = (answer.rows.num_rows for answer in run.answers)
            step.say(
                f"live: {windows:,} windows, {pairs:,} rows of the join, "
                f"{rows / run.seconds:,.0f} events/s stored"
            )
        with self.teller.step("comparing") as step:
            check_against_history(events, run)
            step.say(f"{run.late.num_rows:,} events came too late; without them history agrees")
        return run

    def write_page(self, database: Database, found: DemoFindings) -> Path:
        """Write the page."""
        path = self.folder / "index.html"
        with self.teller.step("drawing") as step:
            path.write_text(render(demo_page(database, found)), encoding="utf-8")
            step.say("a page with charts")
        return path


def what_was_found(answers: Sequence[Answer]) -> str:
    """Return the one question and its rows, or how many there were."""
    rows = sum(answer.rows.num_rows for answer in answers)
    asked = answers[0].question.name if len(answers) == 1 else f"{len(answers)} questions"
    return f"{asked}, {rows:,} rows"


def the_same(spark: SparkSide | None) -> str:
    """Return the end of a sentence about answers that were compared."""
    return "" if spark is None else ", the same on Spark"


def answer_row(answer: Answer) -> tuple[str, ...]:
    """Return an answer as a row for the terminal."""
    here = (answer.question.name, f"{answer.rows.num_rows:,}", f"{answer.seconds:.2f} s")
    if answer.spark_seconds is None:
        return here
    return (*here, f"{answer.spark_seconds:.2f} s", "[green]✓[/green]")


def ingest_here(stream: Stream, files: Sequence[Path], step: DemoStep) -> None:
    """Stage all files, commit once."""

    def batches(path: Path) -> Iterator[pa.RecordBatch]:
        for table in read_events(path, stream.schema):
            yield from table.to_batches()
            step.advance(table.num_rows)

    stream.stored.commit([stream.stored.stage(batches(path)) for path in files])


def stored_bytes(database: Database) -> int:
    """Return how much of the disk the stream takes."""
    return database.stream(STREAM).stats().bytes
