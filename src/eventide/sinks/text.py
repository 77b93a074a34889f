"""Rows as a table in a terminal or a notebook."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.sinks.words import cut, escape, pad, text_width
from eventide.visible import visible

SHOWN_ROWS = 20
SHOWN_WIDTH = 40
WHOLE_WIDTH = 200


def as_text(table: pa.Table, limit: int = SHOWN_ROWS) -> str:
    """Return the first rows as aligned columns, numbers to the right."""
    names, cells = shown_names(table), shown_cells(table, limit)
    widths = [max(map(text_width, column)) for column in zip(names, *cells, strict=True)]
    right = [is_number(field.type) for field in table.schema]
    lines = [" │ ".join(pad(*each) for each in zip(names, widths, right, strict=True)).rstrip()]
    lines.append("─┼─".join("─" * width for width in widths))
    for row in cells:
        lines.append(
            " │ ".join(pad(*each) for each in zip(row, widths, right, strict=True)).rstrip()
        )
    return "\n".join([*lines, row_count(table, limit)])


def as_html(table: pa.Table, limit: int = SHOWN_ROWS) -> str:
    """Return the first rows as an HTML table."""
    head = "".join(f"<th>{escape(name)}</th>" for name in shown_names(table))
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in shown_cells(table, limit)
    )
    note = escape(row_count(table, limit))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{note}</p>"


def row_count(table: pa.Table, limit: int) -> str:
    """Say how many rows there are, and how many of them are shown."""
    rows = f"{table.num_rows:,} row{'' if table.num_rows == 1 else 's'}"
    return rows if table.num_rows <= limit else f"{rows}, the first {limit} shown"


def shown_names(table: pa.Table) -> list[str]:
    """Return the names of the columns as text."""
    return [visible(name) for name in table.column_names]


def shown_cells(table: pa.Table, limit: int) -> list[list[str]]:
    """Return the first rows as text."""
    columns = [python_values(table.column(i).slice(0, limit)) for i in range(table.num_columns)]
    # A single column, such as the lines of EXPLAIN, has the whole width.
    width = SHOWN_WIDTH if table.num_columns > 1 else WHOLE_WIDTH
    return [[cell(value, width) for value in row] for row in zip(*columns, strict=True)]


def python_values(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column; times after 9999, which Python cannot hold, are text.

    >>> python_values(pa.chunked_array([pa.array([0, 2**60], pa.timestamp("us"))]))
    [datetime.datetime(1970, 1, 1, 0, 0), '38504-08-17 21:30:06.846976']
    """
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        if not pa.types.is_timestamp(column.type):
            raise
        values = [_time_or_text(value) for value in column]
    return values


def _time_or_text(value: pa.TimestampScalar) -> object:
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        text = str(np.datetime64(value.value, value.type.unit))
        return text.replace("T", " ").removesuffix(".000000")


def cell(value: object, width: int = SHOWN_WIDTH) -> str:
    """Return one value as text, short enough for a column."""
    match value:
        case None:
            text = "null"
        case float():
            text = f"{value:.6g}"
        case datetime():
            text = value.isoformat(sep=" ")
        case bytes():
            text = value.hex()
        case list():
            # Every value takes three characters at least.
            text = f"[{', '.join(cell(each, width) for each in value[:width])}]"
        case _:
            # A long text is cut first: most of it is not shown anyway.
            text = visible(str(value)[: width + 1])
    return cut(text, width)


def is_number(kind: pa.DataType) -> bool:
    """Whether a column should be aligned to the right."""
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )
