"""A table that is printed row by row, while its rows come."""

from __future__ import annotations

import pyarrow as pa

from eventide.sinks.text import is_number, shown_cells, shown_names
from eventide.sinks.words import pad, text_width


class GrowingTable:
    """Aligned columns under one line of names; columns grow wider if later rows need it."""

    def __init__(self) -> None:
        self.widths: list[int] = []

    def text(self, rows: pa.Table) -> str:
        """Return lines for rows; the first call returns the names as well."""
        names, cells = shown_names(rows), shown_cells(rows, rows.num_rows)
        wanted = [max(map(text_width, column)) for column in zip(names, *cells, strict=True)]
        first = not self.widths
        self.widths = wanted if first else list(map(max, self.widths, wanted))
        right = [is_number(field.type) for field in rows.schema]
        lines = [
            " │ ".join(pad(*each) for each in zip(line, self.widths, right, strict=True)).rstrip()
            for line in ([names, *cells] if first else cells)
        ]
        if first:
            lines.insert(1, "─┼─".join("─" * width for width in self.widths))
        return "".join(f"{line}\n" for line in lines)
