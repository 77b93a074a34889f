"""`eventide explain`: how a query would be answered, as text and as a picture."""

from __future__ import annotations

from pathlib import Path

import click

from eventide.cli.app import ASKED_WRONGLY, Command, Failure, LocalPath
from eventide.cli.parameters import parameter_option, values_of
from eventide.cli.query import database_argument, query_argument, query_text
from eventide.cli.terminal import notices, output

PICTURES = (".svg", ".html")


@click.command(cls=Command, short_help="Show how a query would be answered.")
@database_argument
@query_argument
@parameter_option
@click.option("--analyze", is_flag=True, help="Run it, and show what each step really took.")
@click.option(
    "--plot",
    "target",
    metavar="FILE",
    type=LocalPath(folder=False),
    help="Draw it as well: FILE.svg, or FILE.html with the text.",
)
def explain(
    database: Path, query: str, given: tuple[str, ...], analyze: bool, target: Path | None
) -> None:
    """Show how QUERY would be answered, without running it. With - it comes from stdin.

    The last step comes first, its sources are indented below it. Then come the ways to answer it
    that were considered, cheapest first, with the expected cost of each.

    Examples:
      eventide explain traffic.ev "SELECT car, MAX(speed) AS top FROM cars
                                   WHERE ts >= TIMESTAMP '2026-03-02 08:00:00'
                                   GROUP BY car, TUMBLE(ts, INTERVAL '1' MINUTE)"
      eventide explain traffic.ev --analyze --plot plan.svg - < query.sql
    """
    if target is not None and target.suffix.lower() not in PICTURES:
        text = f"cannot tell what to draw into {target}\nhint: name a file .svg or .html"
        raise Failure(text, ASKED_WRONGLY)
    from eventide.api.database import open_database

    asked = query_text(query)
    opened = open_database(database, create=False)
    plan = opened.explain(asked, values_of(given), analyze=analyze)
    output().print(str(plan), markup=False, soft_wrap=True)
    if target is None:
        return
    plan.save(target)
    notices().print(f"drew it into {target}", markup=False, soft_wrap=True)
