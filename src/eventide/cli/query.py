"""`eventide sql`: the rows of a query."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import IO, TYPE_CHECKING, Literal

import click

from eventide.cli.app import ASKED_WRONGLY, FAILED, Command, Failure, LocalPath
from eventide.cli.parameters import Value, parameter_option, values_of
from eventide.cli.terminal import UNLIMITED, notices, output, table_of
from eventide.sinks.words import plural

if TYPE_CHECKING:
    import pyarrow as pa

    from eventide.sinks.files import Writer

FORMATS = ("table", "csv", "jsonl", "parquet")
SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}

database_argument = click.argument("database", metavar="DB", type=LocalPath())
query_argument = click.argument("query", metavar="QUERY")


format_option = click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="How to write the rows [table on a terminal, else csv; with --output, by its suffix].",
)
output_option = click.option(
    "--output",
    "target",
    metavar="FILE",
    type=LocalPath(folder=False),
    help="Write to a file. Parquet needs one.",
)
limit_option = click.option(
    "--limit-rows",
    type=click.IntRange(min=0),
    default=50,
    metavar="N",
    help="Rows that a table shows [50]. The other formats write all.",
)
time_option = click.option(
    "--time", "timed", is_flag=True, help="Say how long the query took, on stderr."
)


@click.command(cls=Command, short_help="Answer a query: a table, CSV, JSON lines or Parquet.")
@database_argument
@query_argument
@parameter_option
@format_option
@output_option
@limit_option
@time_option
def sql(  # noqa: PLR0913 - an option each
    database: Path,
    query: str,
    *,
    given: tuple[str, ...],
    form: str | None,
    target: Path | None,
    limit_rows: int,
    timed: bool,
) -> None:
    """Answer QUERY over all that the database DB has stored. With - the query comes from stdin.

    Every stream has a column ts, the time in UTC, and _seq, the order of arrival.

    Examples:
      eventide sql traffic.ev "SELECT * FROM cars WHERE speed > 130 ORDER BY ts LIMIT 10"
      eventide sql traffic.ev --format csv - < query.sql > minutes.csv
      eventide sql traffic.ev "SELECT * FROM cars" --output cars.parquet
      eventide sql traffic.ev 'SELECT * FROM cars WHERE speed > $limit' --param limit=130

    Windows:
      SELECT car, window_start, AVG(speed) AS mean FROM cars
      GROUP BY car, TUMBLE(ts, INTERVAL '1' MINUTE)

      SELECT car, window_start, COUNT(*) AS n FROM cars
      GROUP BY car, HOP(ts, INTERVAL '10' SECOND, INTERVAL '1' MINUTE)

      SELECT ts, car, AVG(speed) OVER (PARTITION BY car ORDER BY ts
        RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW) AS lately FROM cars

    Patterns of rows:
      SELECT * FROM cars MATCH_RECOGNIZE (
        PARTITION BY car
        MEASURES FIRST(ts) AS since, MAX(speed) AS top
        PATTERN (slow faster{3,})
        WITHIN INTERVAL '1' MINUTE
        DEFINE faster AS speed > PREV(speed))
    """
    answer(
        AskedQuery("sql", database, query, values_of(given)), form, target, limit_rows, timed=timed
    )


@dataclass(frozen=True, slots=True)
class AskedQuery:
    """A query on the command line, and the call that answers it."""

    call: Literal["sql", "cel"]
    database: Path
    query: str
    params: dict[str, Value] | list[Value] | None


def answer(
    asked: AskedQuery, form: str | None, target: Path | None, limit_rows: int, *, timed: bool
) -> None:
    """Answer a query, and hand its rows over."""
    form = checked_form(form or default_form(target), target)
    from eventide.api.database import open_database

    text = query_text(asked.query)
    opened = open_database(asked.database, create=False)
    started = perf_counter()
    call = opened.sql if asked.call == "sql" else opened.cel
    rows = call(text, asked.params).to_arrow()
    seconds = perf_counter() - started
    hand_over(rows, form, target, limit_rows)
    if timed:
        notices().print(f"{plural(rows.num_rows, 'row')} in {seconds:.3f} s", style="dim")


def query_text(argument: str) -> str:
    """Return the query: the argument, or stdin where the argument is a dash."""
    text = sys.stdin.read() if argument == "-" else argument
    if not text.strip():
        problem = "the query is empty\nhint: try SELECT * FROM a stream"
        raise Failure(problem, ASKED_WRONGLY)
    if argument != "-" and names_file(argument):
        problem = f"{argument} is not a query\nhint: that is a file: write - < {argument}"
        raise Failure(problem, ASKED_WRONGLY)
    return text


def names_file(text: str) -> bool:
    """Whether a text is the name of a file that exists."""
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a name, or with characters that none has
        return False


def default_form(target: Path | None) -> str:
    """Return the default format: by the file's suffix; table on a terminal, CSV otherwise."""
    if target is None:
        return "table" if output().is_terminal else "csv"
    if target.suffix.lower() in SUFFIXES:
        return SUFFIXES[target.suffix.lower()]
    text = f"cannot tell the format of {target}\nhint: add --format csv, jsonl or parquet"
    raise Failure(text, ASKED_WRONGLY)


def checked_form(form: str, target: Path | None) -> str:
    """Return the format, unless it cannot be written to its destination."""
    if form == "parquet" and target is None:
        text = "Parquet cannot go to the terminal\nhint: name a file with --output rows.parquet"
        raise Failure(text, ASKED_WRONGLY)
    return form


def hand_over(rows: pa.Table, form: str, target: Path | None, limit: int) -> None:
    """Write rows to a file, or to the terminal."""
    if form == "table" and target is None:
        show_table(rows, limit)
        return
    from eventide.sinks.files import WRITERS

    writer = partial(write_table, limit=limit) if form == "table" else WRITERS[form]
    if target is None:
        writer(rows, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    try:
        write_file(rows, writer, target)
    except OSError as error:
        what = f"cannot write {target}: {error.strerror or error}"
        text = f"{what}\nhint: check the path and its permissions"
        raise Failure(text, FAILED) from error
    notices().print(f"wrote {plural(rows.num_rows, 'row')} to {target}", markup=False)


def write_file(rows: pa.Table, writer: Writer, target: Path) -> None:
    """Write a whole file: the old one stays until the new one is complete."""
    if target.exists() and not target.is_file():
        # /dev/null, /dev/stdout or a pipe: a file in its place is not what anyone wants.
        with target.open("wb") as out:
            writer(rows, out)
        return
    place = target.resolve()  # a link stays a link
    unfinished = place.with_name(f".{place.name}.unfinished")
    try:
        with unfinished.open("wb") as out:
            writer(rows, out)
        unfinished.replace(place)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def write_table(rows: pa.Table, out: IO[bytes], limit: int) -> None:
    """Write rows for a person, without colours."""
    from rich.console import Console

    text = io.StringIO()
    Console(file=text, width=UNLIMITED).print(table_of(rows, limit))
    out.write(text.getvalue().encode())


def show_table(rows: pa.Table, limit: int) -> None:
    """Print rows for a person."""
    from eventide.sinks.text import row_count

    terminal = output()
    terminal.print(table_of(rows, limit))
    terminal.print(row_count(rows, limit), style="dim")
