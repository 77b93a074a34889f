"""A bar that counts events: how far, how many, how fast. It disappears at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

Advance = Callable[[int], None]


def silently(_: int) -> None:
    """Count nothing: what `counting` yields when there is no terminal to show a bar on."""


class Rate(ProgressColumn):
    """How many events a second."""

    def render(self, task: Task) -> Text:
        """Return the speed, once there is one."""
        return Text(f"{task.speed:,.0f}/s" if task.speed else "", "dim")


@contextmanager
def counting(
    console: Console, title: str, total: int | None, *, shown: bool = True
) -> Iterator[Advance]:
    """Show a bar towards `total` events, or one that only moves if the total is not known."""
    if not shown or not console.is_terminal:
        yield silently
        return
    counted = TextColumn("{task.completed:,.0f} events")
    columns = (TextColumn("  {task.description}"), BarColumn(28), counted, Rate())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda rows: progress.advance(task, rows)


def rows_in(files: Sequence[Path]) -> int | None:
    """Return how many rows the files have, if they all say so."""
    import pyarrow as pa
    from pyarrow.parquet import read_metadata

    if not all(path.suffix.lower() == ".parquet" for path in files):
        return None
    try:
        return sum(int(read_metadata(path).num_rows) for path in files)
    except (pa.ArrowException, OSError):
        return None  # reading the file will say what is wrong with it
