"""The rows of a query, as Arrow, pandas, polars or dictionaries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from eventide.sinks.text import as_html, as_text, python_values

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class Result:
    """The rows of a query. It holds an Arrow table and costs nothing to make.

    >>> result = Result(pa.table({"car": ["a", "b"], "n": [1, 2]}))
    >>> result.rows()
    [{'car': 'a', 'n': 1}, {'car': 'b', 'n': 2}]
    >>> print(result)
    car │ n
    ────┼──
    a   │ 1
    b   │ 2
    2 rows
    """

    __slots__ = ("table",)

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.table.column_names)

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        return self.table

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas frame."""
        frame: pd.DataFrame = self.table.to_pandas()
        return frame

    def to_polars(self) -> pl.DataFrame:
        """Return the rows as a polars frame."""
        import polars as pl

        frame = pl.from_arrow(self.table)
        assert isinstance(frame, pl.DataFrame)
        return frame

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries; times after 9999, which Python cannot hold, are text."""
        names = self.columns
        columns = [python_values(column) for column in self.table.columns]
        if not columns:
            return [{} for _ in range(len(self))]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return as_text(self.table)

    def _repr_html_(self) -> str:
        return as_html(self.table)
