"""The page that the demo writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

import pyarrow as pa

from eventide.api.database import Database
from eventide.demo.history import Answer
from eventide.demo.index import Indexed
from eventide.demo.live import BATCH_ROWS, LATENESS, LiveRun
from eventide.demo.patterns import (
    row_pattern,
    standing_join,
    temporal_pattern,
    through_the_index,
)
from eventide.demo.pictures import arrivals_chart, cars_chart, results_chart
from eventide.demo.queries import (
    BRAKING,
    HURRY,
    MINUTES,
    SLIPPERY,
    SPEEDING,
    STOPS,
    SUDDEN,
    DemoQuestion,
)
from eventide.drawing.page import (
    Block,
    CodeBlock,
    Figure,
    Heading,
    KeyFigures,
    Page,
    Paragraph,
    TextTable,
)


@dataclass(frozen=True, slots=True)
class DemoFindings:
    """The findings of the demo, for the page."""

    answers: Sequence[Answer]
    indexed: Indexed
    live: LiveRun
    events: int
    stored_bytes: int
    store_seconds: float
    store_means: str
    """What wrote the store: "A Spark job", "The embedded engine"."""
    spark_version: str | None

    def rows_of(self, question: DemoQuestion) -> pa.Table:
        """Return the rows of a question."""
        return next(each.rows for each in self.answers if each.question == question)

    @property
    def over_history(self) -> tuple[Answer, ...]:
        """The answers of all questions over history."""
        return (*self.answers, self.indexed.answer)


def demo_page(database: Database, found: DemoFindings) -> Page:
    """Return the whole page."""
    return Page(
        "Two hundred cars, every kind of question, asked every way",
        "What `eventide demo` just did on this machine: it stored a morning of reports from "
        "connected cars, asked about them over history and live, and compared the answers.",
        (
            facts(found),
            *what_arrived(database, found),
            *what_windows_found(database, found),
            *row_pattern(found.rows_of(STOPS)),
            *temporal_pattern(database, found.rows_of(HURRY)),
            *standing_join(found.rows_of(SLIPPERY)),
            *through_the_index(found.indexed, found.events),
            *how_it_compares(found),
            *while_it_happened(found),
            Heading("The questions"),
            *(
                CodeBlock(
                    each.question.text, each.question.words, unfolded=each.question is MINUTES
                )
                for each in found.over_history
            ),
        ),
        footer=f"Written by Eventide {version('eventide')}. Times are UTC. "
        "Point at a chart to read its values.",
    )


def facts(found: DemoFindings) -> KeyFigures:
    """Return the numbers at the top."""
    minutes = next(each for each in found.answers if each.question is MINUTES)
    return KeyFigures(
        (
            (f"{found.events:,}", "events stored"),
            (f"{found.stored_bytes / found.events:.1f} bytes", "on disk for each"),
            (rate(found.events, minutes.seconds), "events a second, over history"),
            (rate(found.events, found.live.seconds), "events a second, stored and live"),
            (f"{found.live.late.num_rows:,}", "events too late for the live query"),
        )
    )


def what_arrived(database: Database, found: DemoFindings) -> list[Block]:
    """Return the section about the events."""
    return [
        Heading("What arrived"),
        Paragraph(
            "A moving car reports every second: position, speed, acceleration. Reports arrive in "
            "nearly the right order, except where a car lost the network: it sends what it kept "
            f"once it is back, minutes late. {found.store_means} stored them in "
            f"{found.store_seconds:.1f} seconds, ordered by time."
        ),
        Figure(
            arrivals_chart(database, found.live.late),
            f"Late means more than {LATENESS} behind the newest event when it arrived.",
        ),
    ]


def what_windows_found(database: Database, found: DemoFindings) -> list[Block]:
    """Return the section about the questions over windows."""
    minutes, braking = found.rows_of(MINUTES), found.rows_of(BRAKING)
    top, sudden = found.rows_of(SPEEDING), found.rows_of(SUDDEN)
    return [
        Heading("Windows"),
        Paragraph(
            "One query gives the average speed of every car in every minute: steps, over the "
            "single reports behind them."
        ),
        Figure(cars_chart(database, minutes, top)),
        Paragraph(
            "Others look for minutes above 140 km/h, half minutes with hard braking, and reports "
            "far above what the same car did in the five minutes before."
        ),
        Figure(
            results_chart(minutes, braking, sudden, top),
            "The ten cars that were above 140 km/h in the most minutes.",
        ),
    ]


def how_it_compares(found: DemoFindings) -> list[Block]:
    """Return the section about how long it took, each way."""
    if found.spark_version is None:
        columns = ("question", "rows", "time")
        rows = tuple(embedded_cells(answer) for answer in found.over_history)
        sentence = "Embedded, on this machine. This run left Spark out."
        return [
            Heading("How long it took"),
            Paragraph(sentence),
            TextTable(columns, rows, right=frozenset(columns[1:])),
        ]
    both = ("question", "rows", "embedded", f"Spark {found.spark_version}", "rows agree")
    compared = tuple(
        (*embedded_cells(answer), f"{answer.spark_seconds:.2f} s", "✓ all")
        for answer in found.over_history
    )
    return [
        Heading("Here and on Spark"),
        Paragraph(
            "Spark ran the same texts over the same store. Every row was compared, bit by bit."
        ),
        TextTable(both, compared, right=frozenset(both[1:4])),
    ]


def embedded_cells(answer: Answer) -> tuple[str, ...]:
    """Return a question, its rows and how long they took here."""
    return answer.question.name, f"{answer.rows.num_rows:,}", f"{answer.seconds:.2f} s"


def while_it_happened(found: DemoFindings) -> list[Block]:
    """Return the section about the live run."""
    live = found.live
    windows, pairs = (answer.rows.num_rows for answer in live.answers)
    return [
        Heading("Live"),
        Paragraph(
            f"Then the events arrived once more, {BATCH_ROWS:,} at a time, at a database in which "
            f"two of the questions run live. “{MINUTES.name}” gave {windows:,} windows, each as "
            f"soon as it was complete, “{SLIPPERY.name}” {pairs:,} rows of its join. It never "
            f"took longer than {live.slowest * 1000:.0f} ms from a batch to its results, storing "
            f"included. {live.late.num_rows:,} events came too late; they are stored and counted. "
            "The answers equal those of history without them, row by row."
        ),
        CodeBlock(
            'db.subscribe(text, on_result=show, lateness="10 s")\n'
            "cars.append(events)        # stored when this returns; `show` is called soon"
        ),
    ]


def rate(events: int, seconds: float) -> str:
    """Return events a second, rounded to what is certain."""
    per_second = events / max(seconds, 1e-9)
    return f"{per_second / 1e6:.1f} M" if per_second >= 1e6 else f"{per_second / 1e3:,.0f} k"
