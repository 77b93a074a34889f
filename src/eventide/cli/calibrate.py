"""`eventide calibrate`: measure this machine, so that queries are planned for it."""

from __future__ import annotations

from pathlib import Path

import click

from eventide.cli.app import Command
from eventide.cli.query import database_argument
from eventide.cli.terminal import notices, output


@click.command(cls=Command, short_help="Measure this machine, to plan queries for it.")
@database_argument
def calibrate(database: Path) -> None:
    """Measure the cost of the steps of a query on this machine, and store it with the database DB.

    It takes some seconds, on events of its own that are deleted afterwards. The costs decide
    between the ways to answer a query over history: how long it takes, never its answer. Without
    them, typical numbers are used.

    Example:
      eventide calibrate traffic.ev
    """
    from eventide.api.database import open_database
    from eventide.engines.history.calibrate import compared

    opened = open_database(database, create=False)
    before = opened.weights
    with notices().status("measuring") as status:
        after = opened.calibrate(lambda what: status.update(f"measuring: {what}"))
    terminal = output()
    terminal.print(f"{'seconds for each':<18}{'before':>12}{'now':>12}", style="bold")
    for name, was, now in compared(before, after):
        line = f"{name.replace('_', ' '):<18}{was:>12.2e}{now:>12.2e}"
        terminal.print(line, markup=False)
