"""What the commands print: errors in colour, tables, numbers a person can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.table import Table


class Terminal(Console):
    """A rich console that leaves a closed pipe to the command."""

    def on_broken_pipe(self) -> NoReturn:
        """Let the command end quietly, instead of ending the process here."""
        self.quiet = True
        raise BrokenPipeError


def output() -> Terminal:
    """Return the console for results."""
    return Terminal(highlight=False)


def notices() -> Terminal:
    """Return the console for all that is not a result: progress, notes, errors."""
    return Terminal(stderr=True, highlight=False)


def print_error(paragraph: str) -> None:
    """Print an error on stderr: the caret line in red, the hint apart."""
    text = Text("error: ", style="bold red")
    for line in paragraph.splitlines(keepends=True):
        if line.startswith("hint: "):
            text.append("hint: ", "bold cyan").append(line.removeprefix("hint: "), "default")
        elif set(line.strip()) == {"^"}:
            text.append(line, "bold red")
        else:
            text.append(line, "default not bold")
    notices().print(text, soft_wrap=True)


def table_of(rows: pa.Table, limit: int) -> Table:
    """Return the first rows as a rich table: numbers to the right, nulls dim."""
    from rich import box
    from rich.table import Table

    from eventide.sinks.text import is_number, shown_cells

    # Without a terminal there is no width to fit into.
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for field in rows.schema:
        right = is_number(field.type)
        table.add_column(Text(field.name), justify="right" if right else "left", no_wrap=True)
    nulls = [column.slice(0, limit).is_null().to_pylist() for column in rows.columns]
    for index, cells in enumerate(shown_cells(rows, limit)):
        missing = [column[index] for column in nulls]
        table.add_row(
            *(Text(cell, "dim" if null else "") for cell, null in zip(cells, missing, strict=True))
        )
    return table


def size_text(count: int) -> str:
    """Return a number of bytes as a person says it.

    >>> size_text(71_403_112)
    '71.4 MB'
    >>> size_text(512)
    '512 bytes'
    """
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> plural(1, "event"), plural(1200, "event")
    ('1 event', '1,200 events')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def span_text(start_us: int, end_us: int) -> str:
    """Return the time from the first to the last event; the date is not said twice.

    >>> span_text(0, 90_000_000)
    '1970-01-01 00:00:00 to 00:01:30'
    """
    first, last = time_text(start_us), time_text(end_us)
    if first[:11] == last[:11]:
        last = last[11:]
    return first if first.endswith(last) else f"{first} to {last}"


def time_text(ts_us: int) -> str:
    """Return a time to the second, in UTC."""
    from datetime import datetime, timedelta

    moment = datetime(1970, 1, 1) + timedelta(microseconds=ts_us)
    return moment.isoformat(sep=" ", timespec="seconds")
