"""What the commands print: results, notices, errors in colour."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.table import Table


UNLIMITED = 10_000
"""Columns, where lines go to a file or a pipe."""


class Terminal(Console):
    """A rich console that leaves a closed pipe to the command."""

    def on_broken_pipe(self) -> NoReturn:
        """Let the command end quietly, instead of ending the process here."""
        self.quiet = True
        raise BrokenPipeError


def output() -> Terminal:
    """Return the console for results; without a terminal, lines have no maximum width."""
    terminal = Terminal(highlight=False)
    return terminal if terminal.is_terminal else Terminal(highlight=False, width=UNLIMITED)


def notices() -> Terminal:
    """Return the console for all that is not a result: progress, notes, errors."""
    return Terminal(stderr=True, highlight=False)


def print_error(paragraph: str) -> None:
    """Print an error on stderr: the caret line in red, the hint apart."""
    text = Text().append("error: ", "bold red")
    for line in paragraph.splitlines(keepends=True):
        if line.startswith("hint: "):
            text.append("hint: ", "bold cyan").append(line.removeprefix("hint: "), "default")
        elif set(line.strip()) == {"^"}:
            text.append(line, "bold red")
        else:
            text.append(line, "default")
    notices().print(text, soft_wrap=True)


def table_of(rows: pa.Table, limit: int) -> Table:
    """Return the first rows as a rich table: numbers to the right, nulls dim."""
    from rich import box
    from rich.table import Table

    from eventide.sinks.text import is_number, shown_cells, shown_names

    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    for name, field in zip(shown_names(rows), rows.schema, strict=True):
        right = is_number(field.type)
        table.add_column(Text(name), justify="right" if right else "left", no_wrap=True)
    nulls = [column.slice(0, limit).is_null().to_pylist() for column in rows.columns]
    for index, cells in enumerate(shown_cells(rows, limit)):
        missing = [column[index] for column in nulls]
        table.add_row(
            *(Text(cell, "dim" if null else "") for cell, null in zip(cells, missing, strict=True))
        )
    return table
