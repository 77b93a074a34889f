"""`eventide replay`: a query over stored events as if they came again, rows as they come."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import click

from eventide.cli.app import ASKED_WRONGLY, Command, Failure
from eventide.cli.parameters import parameter_option, values_of
from eventide.cli.query import database_argument, query_argument, query_text
from eventide.cli.terminal import notices, output
from eventide.errors import EvaluationError, EventideError, PlanError
from eventide.sinks.words import plural

if TYPE_CHECKING:
    import pyarrow as pa

    from eventide.api.replay.run import Replay, ReplayProgress

FORMATS = ("table", "csv", "jsonl")

Print = Callable[["pa.Table"], None]


@click.command(cls=Command, short_help="Run a query over stored events as if they came again.")
@database_argument
@query_argument
@parameter_option
@click.option("--from", "start", metavar="TIME", help="Begin with the events of this time.")
@click.option("--to", "end", metavar="TIME", help="End before the events of this time.")
@click.option(
    "--speed",
    metavar="10x",
    help="How much faster than the clock the time of events goes [as fast as it can].",
)
@click.option(
    "--lateness",
    default="0 s",
    metavar="TIME",
    help="How long the query waits for late events [0 s]; rows come that much later.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="How to write the rows [table on a terminal, else csv].",
)
@click.option("--no-progress", is_flag=True, help="Show no progress bar.")
def replay(  # noqa: PLR0913 - an option each
    database: Path,
    query: str,
    *,
    given: tuple[str, ...],
    start: str | None,
    end: str | None,
    speed: str | None,
    lateness: str,
    form: str | None,
    no_progress: bool,
) -> None:
    """Run QUERY over the stored events of the database DB as a live query, from TIME to TIME.

    The events come again in order of time; every row is printed when the query would have had it
    live. With --speed 1x it takes as long as it took then; without --speed it is as fast as
    possible. Times are ISO-8601, such as 2026-03-02T08:00:00, and UTC without a zone. With - the
    query comes from stdin. Ctrl-C ends it, and prints how far it was.

    Examples:
      eventide replay traffic.ev "SELECT * FROM cars WHERE speed > 130" --speed 60x
      eventide replay traffic.ev --from 2026-03-02 --to 2026-03-03 --format jsonl
          "SELECT car, window_start, AVG(speed) AS mean FROM cars
           GROUP BY car, TUMBLE(ts, INTERVAL '1' MINUTE)" > minutes.jsonl
    """
    from eventide.api.database import open_database

    text = query_text(query)
    form = form or ("table" if output().is_terminal else "csv")
    opened = open_database(database, create=False)
    try:
        replayed = opened.replay(
            text, params=values_of(given), start=start, end=end, speed=speed, lateness=lateness
        )
    except (EvaluationError, PlanError) as error:
        raise Failure(in_options(error), ASKED_WRONGLY) from error
    (schema,) = replayed.schemas.values()
    printer = printer_of(form, schema)
    replayed.on_result = lambda result: printer(result.to_arrow())
    began = perf_counter()
    try:
        # On a terminal only a table makes room for the bar.
        shown = not no_progress and (form == "table" or not output().is_terminal)
        run_with_bar(replayed, shown=shown)
    except KeyboardInterrupt:
        notices().print(f"stopped: {progress_text(replayed.progress)}", markup=False)
        raise
    took = f"{progress_text(replayed.progress)}, in {perf_counter() - began:.1f} s"
    notices().print(f"replayed {took}", style="dim", markup=False)


def in_options(error: EventideError) -> str:
    """Return an error in the words of the command line."""
    return str(error).replace("exchange start and end", "exchange --from and --to")


def progress_text(progress: ReplayProgress) -> str:
    """Return the progress of a replay as text."""
    if progress.clock_us is None:
        return "no events"
    share = "" if progress.events == progress.total else f" of {progress.total:,}"
    counted = f"{progress.events:,}{share} events" if share else plural(progress.events, "event")
    return f"{counted} up to {progress.clock}, {plural(progress.rows, 'row')}"


def run_with_bar(replayed: Replay, *, shown: bool) -> None:
    """Run a replay, with a bar on stderr that counts its events."""
    from eventide.sinks.progress import counting

    with counting(notices(), "replaying", replayed.progress.total, shown=shown) as advance:
        counted = 0

        def count(progress: ReplayProgress) -> None:
            nonlocal counted
            advance(progress.events - counted)
            counted = progress.events

        replayed.on_step = count
        replayed.run()


def printer_of(form: str, schema: pa.Schema) -> Print:
    """Return a function that prints rows below those printed before."""
    from eventide.sinks.files import csv_header, csv_lines, json_lines, write_lines
    from eventide.sinks.growing_table import GrowingTable

    # Taken now: a bar puts itself in the place of sys.stdout, to have lines printed above it.
    out = sys.stdout.buffer

    def write_text(text: str) -> None:
        if output().is_terminal:
            sys.stdout.write(text)
        else:
            out.write(text.encode())
            out.flush()

    def write(rows: pa.Table) -> None:
        write_lines(rows, csv_lines if form == "csv" else json_lines, out)
        out.flush()

    if form == "table":
        table = GrowingTable()
        return lambda rows: write_text(table.text(rows))
    if form == "csv":
        out.write(csv_header(schema.names).encode())
    return write
