"""`eventide tpstream`: the matches of a temporal pattern, as rows and drawn."""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import click

from eventide.cli.app import ASKED_WRONGLY, Command, Failure, asked_path
from eventide.cli.explain import PICTURES
from eventide.cli.parameters import parameter_option, values_of
from eventide.cli.query import (
    checked_form,
    database_argument,
    default_form,
    format_option,
    hand_over,
    limit_option,
    output_option,
    query_argument,
    query_text,
    time_option,
)
from eventide.cli.terminal import notices, output
from eventide.sinks.words import plural

if TYPE_CHECKING:
    from eventide.drawing.situations import SituationPicture

HERE = "-"


@click.command(cls=Command, short_help="Find situations that lie in time as a pattern says.")
@database_argument
@query_argument
@parameter_option
@format_option
@output_option
@limit_option
@time_option
@click.option(
    "--plot",
    "plot",
    metavar="FILE",
    help="Draw the first matches as well: FILE.svg, FILE.html, or - for this terminal.",
)
@click.option(
    "--most",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many matches --plot draws at most.",
)
def tpstream(  # noqa: PLR0913 - an option each
    database: Path,
    query: str,
    *,
    given: tuple[str, ...],
    form: str | None,
    target: Path | None,
    limit_rows: int,
    timed: bool,
    plot: str | None,
    most: int | None,
) -> None:
    """Answer a TPStream QUERY over all that the database DB has stored. With - it is on stdin.

    A situation is a condition that holds for a while; a pattern says how situations lie to each
    other in time: before, meets, overlaps, starts, during, finishes, equals, and the inverses
    after, met by, overlapped by, started by, contains, finished by.

    Examples:
      eventide tpstream traffic.ev "FROM cars PARTITION BY car
                                    DEFINE fast  AS speed > 130 AT LEAST 4 SECONDS,
                                           brake AS accel < -4
                                    PATTERN fast meets brake; fast overlaps brake
                                    WITHIN 5 MINUTES
                                    RETURN MAX(fast.speed) AS top, DURATION(fast) AS held"
      eventide tpstream traffic.ev --plot matches.html - < query.tp
      eventide tpstream traffic.ev --plot - - < query.tp
    """
    form = checked_form(form or form_beside(plot, target), target)
    check_plot(plot, form, target)
    from eventide.api.database import open_database

    text = query_text(query)
    opened = open_database(database, create=False)
    started = perf_counter()
    matches = opened.tpstream(text, values_of(given))
    rows = matches.to_arrow()
    seconds = perf_counter() - started
    hand_over(rows, form, target, limit_rows)
    if timed:
        notices().print(f"{plural(rows.num_rows, 'row')} in {seconds:.3f} s", style="dim")
    if plot is not None:
        show(matches.plot() if most is None else matches.plot(most=most), plot)


def form_beside(plot: str | None, target: Path | None) -> str:
    """Return the default format: a table if a drawing goes to the terminal too."""
    return "table" if plot == HERE and target is None else default_form(target)


def check_plot(plot: str | None, form: str, target: Path | None) -> None:
    """Refuse a picture of an unknown kind, or one in the middle of rows for a program."""
    if plot is None:
        return
    if plot == HERE:
        if form != "table" and target is None:
            text = f"a drawing among {form} is neither\nhint: add --output rows.{form}"
            raise Failure(text, ASKED_WRONGLY)
    elif asked_path(plot).suffix.lower() not in PICTURES:
        text = f"cannot tell what to draw into {plot}\nhint: name a file .svg or .html, or -"
        raise Failure(text, ASKED_WRONGLY)


def show(picture: SituationPicture, plot: str) -> None:
    """Draw into a file, or into the terminal with the letters that it has."""
    if plot == HERE:
        terminal = output()
        width = terminal.width if terminal.is_terminal else None
        drawn = picture.text(width, ascii_only=not has_lines(sys.stdout.encoding))
        terminal.print(f"\n{drawn}", markup=False, soft_wrap=True)
        return
    picture.save(plot)
    notices().print(f"drew it into {plot}", markup=False, soft_wrap=True)


def has_lines(encoding: str | None) -> bool:
    """Whether an encoding has the characters of lines and boxes."""
    try:
        "━╺│".encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
