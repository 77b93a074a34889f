"""`eventide streams`: what a database holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from eventide.cli.app import Command
from eventide.cli.query import database_argument
from eventide.cli.terminal import output
from eventide.sinks.words import rough_period_text, size_text

if TYPE_CHECKING:
    from eventide.store import Snapshot


@click.command(cls=Command, short_help="List what a database holds.")
@database_argument
def streams(database: Path) -> None:
    """List the streams of the database DB: number of events, period, size, attributes.

    Example:
      eventide streams traffic.ev
    """
    from rich import box
    from rich.table import Table

    from eventide.store import Store

    store = Store.open(database, create=False)
    terminal = output()
    if not store.streams():
        terminal.print("no streams yet; eventide ingest creates one", style="dim")
        return
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    table.add_column("stream", style="bold", no_wrap=True)
    table.add_column("events", justify="right", no_wrap=True)
    table.add_column("time (UTC)", no_wrap=True)
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("attributes")
    for name in store.streams():
        table.add_row(*described(store.stream(name).snapshot()))
    terminal.print(table)


def described(snapshot: Snapshot) -> tuple[str, ...]:
    """Return a stream as a row of the table."""
    times = snapshot.time_range
    return (
        snapshot.name,
        f"{snapshot.row_count:,}",
        "" if times.is_empty else rough_period_text(times.start_us, times.end_us - 1),
        size_text(snapshot.size),
        ", ".join(f"{each.name} {each.type}" for each in snapshot.schema.attributes),
    )
