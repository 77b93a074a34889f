"""`eventide queries`: the durable queries of a database."""

from __future__ import annotations

from pathlib import Path

import click

from eventide.cli.app import Command
from eventide.cli.query import database_argument
from eventide.cli.terminal import output

TEXT_SHOWN = 80


@click.command(cls=Command, short_help="List the durable queries of a database.")
@database_argument
@click.option("--drop", metavar="NAME", help="Forget a query for good; it must not run.")
def queries(database: Path, *, drop: str | None) -> None:
    """List the durable queries of the database DB: which run where, and how far they are.

    A query is durable if it has a name: eventide watch --name, or db.subscribe(text, name=...). So
    is a set of queries, db.subscribe_many(texts, name=...), listed with the number of its queries.
    "behind" is the number of stored events that its newest checkpoint does not have. A query whose
    files are damaged is listed with what would help.

    Examples:
      eventide queries traffic.ev
      eventide queries traffic.ev --drop fast
    """
    from textwrap import shorten

    from rich import box
    from rich.table import Table
    from rich.text import Text

    from eventide.api.database import open_database

    terminal = output()
    opened = open_database(database, create=False)
    if drop is not None:
        opened.drop_query(drop)
        terminal.print(f"dropped {drop}", markup=False)
        return
    kept = opened.kept_queries()
    if not kept:
        terminal.print("no durable queries yet; eventide watch --name starts one", style="dim")
        return
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("runs in", no_wrap=True)
    table.add_column("rows received", justify="right", no_wrap=True)
    table.add_column("behind", justify="right", no_wrap=True)
    table.add_column("query")
    for each in kept:
        where = (each.process or "another process") if each.running else ""
        text = Text(shorten(each.text, TEXT_SHOWN, placeholder=" …"))
        if each.damage is not None:
            text = Text(each.damage, style="red")
        table.add_row(each.name, where, f"{each.rows:,}", f"{each.behind:,}", text)
    terminal.print(table)
