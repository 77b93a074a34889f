"""`eventide backup`, `compact` and `stats`: copy a database, tidy it up, look inside."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eventide.cli.app import Command, LocalPath
from eventide.cli.query import database_argument
from eventide.cli.terminal import notices, output
from eventide.sinks.words import plural, rough_period_text, size_text

if TYPE_CHECKING:
    from rich.table import Table

    from eventide.store import Store, StoredStream
    from eventide.store.stats import StreamStats


@click.command(cls=Command, short_help="Copy a database while others write to it.")
@database_argument
@click.argument("target", metavar="COPY", type=LocalPath())
def backup(database: Path, target: Path) -> None:
    """Copy the database DB, as it is now, into the new folder COPY.

    Others may go on writing. COPY appears once it is complete, and is a database of its own. It is
    without the durable queries of DB, which may have handed over more than it has.

    Example:
      eventide backup traffic.ev /backups/traffic-2026-03-02.ev
    """
    from eventide.api.live.kept.listed import kept_queries
    from eventide.store import Store

    store = Store.open(database, create=False)
    with notices().status("copying"):
        copy = store.backup(target)
    text = f"copied {plural(len(copy.streams()), 'stream')} to {target}"
    output().print(text, markup=False, soft_wrap=True)
    left = kept_queries(store)
    if left:
        names = ", ".join(each.name for each in left)
        notices().print(f"not copied, durable queries: {names}", markup=False, soft_wrap=True)


@click.command(cls=Command, short_help="Merge small and overlapping segments.")
@database_argument
@click.option("--stream", "name", metavar="NAME", help="Only this stream [all of the database].")
def compact(database: Path, name: str | None) -> None:
    """Merge small and overlapping segments of the database DB, and delete files no longer needed.

    Also applies the streams' retention, and builds missing indexes. Readers and their answers are
    not disturbed.

    Example:
      eventide compact traffic.ev --stream cars
    """
    from eventide.store import Store

    for stream in streams_of(Store.open(database, create=False), name):
        with notices().status(f"compacting {stream.name}"):
            dropped = stream.retain()
            merged = stream.compact()
            built = stream.rebuild_indexes()
        said = [f"{plural(merged, 'segment')} merged"]
        said += [f"{plural(dropped, 'event')} dropped"] if dropped else []
        said += [f"{built:,} missing indexes built"] if built else []
        output().print(f"{stream.name}: {', '.join(said)}", markup=False, soft_wrap=True)


@click.command(cls=Command, short_help="Look inside a stream: segments, indexes, decisions.")
@database_argument
@click.option("--stream", "name", metavar="NAME", help="Only this stream [all of the database].")
def stats(database: Path, name: str | None) -> None:
    """Show how the streams of the database DB are stored: segments, indexes, decisions.

    Example:
      eventide stats traffic.ev --stream cars
    """
    from eventide.store import Store

    for stream in streams_of(Store.open(database, create=False), name):
        print_stats(stream.name, stream.stats())


def streams_of(store: Store, name: str | None) -> Sequence[StoredStream]:
    """Return the streams that are meant."""
    names = store.streams() if name is None else (name,)
    return [store.stream(each) for each in names]


def print_stats(name: str, found: StreamStats) -> None:
    """Show one stream."""
    terminal = output()
    terminal.print(f"[bold]{name}[/]  {found.events:,} events, {size_text(found.bytes)}")
    waiting = f"{found.tail_events:,} in order and {found.queued_events:,} late"
    terminal.print(f"  in the log only: {waiting}, {size_text(found.log_bytes)}", markup=False)
    options = found.options
    kept = f"durability {options.durability}, order of {options.order}, {options.codec}"
    terminal.print(f"  kept with {kept}", markup=False)
    if found.reduced:
        terminal.print(f"  under load: {found.reduced}", markup=False)
    if found.segments:
        terminal.print(segment_table(found))
    for decision in found.decisions:
        at = datetime.fromtimestamp(decision.at_s, UTC).isoformat(" ", "seconds")
        terminal.print(f"  {at}  {decision.what}", markup=False, soft_wrap=True)


def segment_table(found: StreamStats) -> Table:
    """Return the segments as a table."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    table.add_column("segment, time (UTC)", no_wrap=True)
    for title in ("events", "size", "blocks"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("indexes")
    for segment in found.segments:
        state = "sealed" if segment.sealed else "open"
        state += "" if segment.in_order else ", as arrived"
        state += f", thinned to level {segment.thinned}" if segment.thinned else ""
        table.add_row(
            rough_period_text(segment.time_range.start_us, segment.time_range.end_us - 1),
            f"{segment.events:,}",
            size_text(segment.bytes),
            f"{segment.leaves:,}",
            state,
            ", ".join(segment.indexes),
        )
    return table
