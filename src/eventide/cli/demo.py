"""`eventide demo`: the product in two minutes."""

from __future__ import annotations

from pathlib import Path

import click

from eventide.cli.app import Command, LocalPath
from eventide.cli.terminal import output


@click.command(cls=Command, short_help="Show what Eventide does, in two minutes.")
@click.option(
    "--events",
    type=click.IntRange(min=1_000),
    default=3_000_000,
    metavar="N",
    help="How many events the cars send [3000000].",
)
@click.option(
    "--folder",
    type=LocalPath(file=False),
    default=Path("demo"),
    metavar="PATH",
    help="Where to put the events, the database and the page [demo]. "
    "Replaced only if an earlier demo wrote it.",
)
@click.option("--no-spark", is_flag=True, help="Leave Spark out: no Java, half the time.")
def demo(events: int, folder: Path, no_spark: bool) -> None:
    """Show what Eventide does, in two minutes, and write a page about it.

    200 connected cars send position, speed and acceleration, some of it minutes late. The events
    go into a database. Windows, a row pattern, a temporal pattern, a standing join and a question
    through the index run over history, here and on Spark, and have to agree row by row; windows
    and the join run live while the events arrive again. The page has the charts.

    Examples:
      eventide demo
      eventide demo --events 200000 --no-spark --folder /tmp/demo
    """
    from eventide.demo.story import run_demo

    run_demo(folder, events, with_spark=not no_spark, console=output())
