"""`eventide cel`: the events of a CEL query, as rows."""

from __future__ import annotations

from pathlib import Path

import click

from eventide.cli.app import Command
from eventide.cli.parameters import parameter_option, values_of
from eventide.cli.query import (
    AskedQuery,
    answer,
    database_argument,
    format_option,
    limit_option,
    output_option,
    query_argument,
    time_option,
)


@click.command(cls=Command, short_help="Find events that follow each other, in CEL.")
@database_argument
@query_argument
@parameter_option
@format_option
@output_option
@limit_option
@time_option
def cel(  # noqa: PLR0913 - an option each
    database: Path,
    query: str,
    *,
    given: tuple[str, ...],
    form: str | None,
    target: Path | None,
    limit_rows: int,
    timed: bool,
) -> None:
    """Answer a CEL QUERY over all that the database DB has stored. With - it is on stdin.

    FILTER{condition} stream chooses events. left NEXT{condition} right follows each left event by
    the next right one that fits; $1. and $2. are their attributes, DUR is how long both take. left
    FOLD{condition, as long as, value AS name} right goes on so; $. is the chain so far. AT
    INSTANT{COUNT(*) AS n} stream is one event for each instant. PUBLISH gives the events a name
    that other queries read.

    Examples:
      eventide cel traffic.ev "SELECT car, speed FROM FILTER{speed > 130} cars"
      eventide cel traffic.ev 'FILTER{speed > 130} cars
                               NEXT{$1.car = $2.car AND $2.speed < 30 AND DUR <= 60 s} cars'
      eventide cel traffic.ev --format csv - < query.cel > rows.csv

    The commands sql, explain, watch and replay take such a query as well.
    """
    answer(
        AskedQuery("cel", database, query, values_of(given)), form, target, limit_rows, timed=timed
    )
