"""`eventide watch`: the rows of a live query as they come, whoever appends the events."""

from __future__ import annotations

import select
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eventide.cli.app import ASKED_WRONGLY, Command, Failure
from eventide.cli.parameters import parameter_option, values_of
from eventide.cli.query import database_argument, query_argument, query_text
from eventide.cli.replay import FORMATS, printer_of
from eventide.cli.terminal import notices, output
from eventide.errors import EvaluationError, PlanError
from eventide.sinks.words import plural

if TYPE_CHECKING:
    from eventide.api.live.subscription import Subscription

LOOK_S = 1.0
"""How often to see whether the reader of a pipe has left, while no rows come."""


@click.command(cls=Command, short_help="Print the rows of a live query as they come.")
@database_argument
@query_argument
@parameter_option
@click.option(
    "--lateness",
    default="0 s",
    metavar="TIME",
    help="How long the query waits for late events [0 s]; rows come that much later.",
)
@click.option(
    "--idle",
    metavar="TIME",
    help="After so long without events a stream goes on with the clock: windows close by it.",
)
@click.option(
    "--from-history",
    is_flag=True,
    help="Begin as if the query had run from the first stored event on.",
)
@click.option(
    "--name",
    help="Keep position and state in the database under this name: the next call goes on there.",
)
@click.option(
    "--start",
    metavar="TIME",
    help="Where a query with a new name starts: now, beginning or a time [now].",
)
@click.option("--replace", is_flag=True, help="Take the name from the query that has it.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="How to write the rows [table on a terminal, else csv].",
)
def watch(  # noqa: PLR0913 - an option each
    database: Path,
    query: str,
    *,
    given: tuple[str, ...],
    lateness: str,
    idle: str | None,
    from_history: bool,
    name: str | None,
    start: str | None,
    replace: bool,
    form: str | None,
) -> None:
    """Run QUERY live over the database DB, and print every row as soon as it is certain.

    It sees the events that any process appends from now on: an ingest, a program, Spark. With
    --from-history windows and patterns that are open now are completed; rows that were certain
    before are not printed. With - the query comes from stdin. Ctrl-C ends it, and prints how much
    it has seen.

    With --name nothing is missed between two calls: the rows of events that came meanwhile are
    printed first.

    Examples:
      eventide watch traffic.ev "SELECT * FROM cars WHERE speed > 130"
      eventide watch traffic.ev --format jsonl --lateness "5 s"
          "SELECT car, window_start, AVG(speed) AS mean FROM cars
           GROUP BY car, TUMBLE(ts, INTERVAL '1' MINUTE)" | while read row; do ...; done
      eventide watch traffic.ev --name fast "SELECT * FROM cars WHERE speed > 130" >> fast.csv
    """
    from eventide.api.database import open_database

    if name is None and (replace or start is not None):
        problem = "--start and --replace are for queries with a name\nhint: add --name NAME"
        raise Failure(problem, ASKED_WRONGLY)
    text = query_text(query)
    form = form or ("table" if output().is_terminal else "csv")
    opened = open_database(database, create=False)
    try:
        live = opened.live(
            text,
            params=values_of(given),
            lateness=lateness,
            idle=idle,
            from_history=from_history,
            name=name,
            start=start or "now",
            replace=replace,
        )
    except (EvaluationError, PlanError) as error:
        raise Failure(str(error), ASKED_WRONGLY) from error
    try:
        with live:
            follow(live, form)
    except KeyboardInterrupt:
        notices().print(f"stopped: {seen_text(live)}", markup=False)
        raise


def follow(live: Subscription, form: str) -> None:
    """Print the rows of a live query until it is over."""
    printed = printer_of(form, live.output_schema)
    sys.stdout.flush()
    notices().print(f"watching {', '.join(live.streams)}; Ctrl-C ends it", style="dim")
    while True:
        rows = live.next(timeout=LOOK_S)
        if rows is not None:
            printed(rows.to_arrow())
        elif live.finished:
            return
        elif reader_left():
            raise BrokenPipeError


def seen_text(live: Subscription) -> str:
    """Return how much a live query has seen, as text."""
    seen = [plural(live.counters.events, "event"), plural(live.counters.rows, "row")]
    if live.late_count:
        seen.append(f"{live.late_count:,} too late")
    return ", ".join(seen)


def reader_left() -> bool:
    """Whether stdout is a pipe whose reader has left: without rows, no write would fail."""
    if not hasattr(select, "poll"):
        return False
    try:
        place = sys.stdout.fileno()
    except (OSError, ValueError):
        return False
    poll = select.poll()
    poll.register(place, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))
