"""`eventide verify` and `eventide repair`: check whether a database is whole, and repair it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eventide.cli.app import FAILED, Command, Failure
from eventide.cli.query import database_argument
from eventide.cli.terminal import notices, output
from eventide.errors import StoreError
from eventide.sinks.words import plural

if TYPE_CHECKING:
    from eventide.store.upkeep.repair import Repair
    from eventide.store.upkeep.verify import Finding

MOST_SHOWN = 20

stream_option = click.option(
    "--stream", "name", metavar="NAME", help="Only this stream [all of the database]."
)


@click.command(cls=Command, short_help="Read everything, and say what is damaged.")
@database_argument
@stream_option
@click.option("--no-progress", is_flag=True, help="Show no progress bar.")
def verify(database: Path, name: str | None, no_progress: bool) -> None:
    """Read all of the database DB, and report what is damaged. Nothing is changed.

    It checks the manifest, the log, every leaf and index of every segment, and that the indexes
    agree with the events. The exit code is 0 if everything is whole, and 1 if not. A log that was
    cut off behind its length at the last commit cannot be detected; the output says so.

    Examples:
      eventide verify traffic.ev
      eventide verify traffic.ev --stream cars
    """
    from eventide.sinks.progress import counting
    from eventide.store.upkeep.verify import not_known, verify_stream

    damaged = 0
    for folder in folders_of(database, name):
        with counting(notices(), folder.name, rows_of(folder), shown=not no_progress) as advance:
            found = list(verify_stream(folder, advance))
        damage = [finding for finding in found if finding.severity == "damage"]
        damaged += bool(damage)
        unknown = not_known(folder)
        notes = () if damage or unknown is None else (f"not known: {unknown}",)
        print_findings(folder.name, damage, len(found) - len(damage))
        print_lines(notes)
    if damaged:
        text = (
            f"{plural(damaged, 'stream')} damaged\nhint: see what `eventide repair --dry-run` says"
        )
        raise Failure(text, FAILED)


@click.command(cls=Command, short_help="Make damaged streams whole; what is lost is said.")
@database_argument
@stream_option
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def repair(database: Path, name: str | None, dry_run: bool, yes: bool) -> None:
    """Make the damaged streams of the database DB whole again, losing as little as possible.

    Whole parts are not touched. Damaged files are kept, with the suffix .damaged. A backup may have
    events that a repair cannot bring back: look at --dry-run first.

    Examples:
      eventide repair traffic.ev --dry-run
      eventide repair traffic.ev --stream cars --yes
    """
    from eventide.store.upkeep.repair import repair_stream

    failed = 0
    for folder in folders_of(database, name):
        try:
            planned = repair_stream(folder, dry_run=True)
        except StoreError as error:
            failed += 1
            print_list(f"{folder.name}: cannot be repaired", str(error).splitlines())
            continue
        print_repair(folder.name, planned)
        if dry_run or not planned.steps:
            continue
        if not yes:
            click.confirm(f"repair {folder.name}?", abort=True, err=True)
        done = repair_stream(folder)
        print_list(f"{folder.name}: repaired", done.hints)
    if failed:
        text = f"{plural(failed, 'stream')} cannot be repaired"
        raise Failure(text, FAILED)


def folders_of(database: Path, name: str | None) -> Iterator[Path]:
    """Yield the folders of the streams that are meant, also of those without a manifest."""
    from eventide.store import Store
    from eventide.store.store import STREAMS, no_stream

    folder = Store.open(database, create=False).path / STREAMS
    entries = sorted(folder.iterdir()) if folder.is_dir() else ()
    names = tuple(entry.name for entry in entries if has_stream_files(entry))
    if name is not None and name not in names:
        raise no_stream(name, names)
    for each in names if name is None else (name,):
        yield folder / each


def has_stream_files(folder: Path) -> bool:
    """Whether a folder has a file that only a stream has."""
    from eventide.store.segments.manifest import LOG_NAME, MANIFEST_NAME
    from eventide.store.segments.segment import SEGMENT_NAME

    patterns = (MANIFEST_NAME, SEGMENT_NAME, LOG_NAME)
    return folder.is_dir() and any(
        pattern.fullmatch(path.name) for path in folder.iterdir() for pattern in patterns
    )


def rows_of(folder: Path) -> int | None:
    """Return how many events a stream has, if it can be opened."""
    from eventide.store.snapshot import Snapshot
    from eventide.store.writing.open_stream import OpenStream

    with suppress(StoreError):
        return Snapshot(folder, OpenStream(folder).view()).row_count
    return None


def print_findings(name: str, damage: Sequence[Finding], notes: int) -> None:
    """Say what is wrong with a stream."""
    rest = f" ({plural(notes, 'file')} left over)" if notes else ""
    state = f"damaged in {plural(len(damage), 'place')}" if damage else "whole"
    print_list(f"{name}: {state}{rest}", damage)


def print_repair(name: str, planned: Repair) -> None:
    """Say what a repair does, and what is lost."""
    if not planned.steps:
        print_list(f"{name}: whole", ())
        return
    print_list(f"{name}: to do", planned.steps)
    print_list(f"{name}: lost" if planned.losses else f"{name}: nothing is lost", planned.losses)


def print_list(title: str, lines: Sequence[object]) -> None:
    """Print a title and what belongs to it; a long list is cut short."""
    print_lines((title,), "")
    print_lines(lines[:MOST_SHOWN])
    if len(lines) > MOST_SHOWN:
        print_lines((f"… and {len(lines) - MOST_SHOWN:,} more",))


def print_lines(lines: Sequence[object], margin: str = "  ") -> None:
    """Print lines as they are."""
    for line in lines:
        output().print(f"{margin}{line}", markup=False, soft_wrap=True)
