"""The rows of many queries: of each by itself, or of all in one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from eventide.api.result import Result
from eventide.arrays import to_arrow
from eventide.engines.live.sharing.many import ManyRows
from eventide.errors import SchemaError
from eventide.kernels.compiled import Int64s
from eventide.plan.bind import suggestion
from eventide.schema import DataType
from eventide.sinks.text import as_text

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

QUERY_COLUMN = "query"
"""The first column of the rows of many queries: which query a row is of. It has `_` before it
where the queries have such a column themselves.
"""


@dataclass(frozen=True, slots=True)
class AlikeRows:
    """Rows of queries with the same columns, in order of the queries' numbers."""

    numbers: Int64s
    rows: pa.Table

    @classmethod
    def of(cls, schema: pa.Schema, parts: Sequence[ManyRows]) -> AlikeRows:
        """Put the rows of each query together, in the order in which they were found."""
        numbers = np.concatenate([np.empty(0, np.int64), *(each.numbers for each in parts)])
        order = np.argsort(numbers, kind="stable")
        whole = pa.Table.from_batches([each.rows for each in parts], schema)
        return cls(numbers[order], whole.take(to_arrow(order)))

    def of_query(self, number: int) -> pa.Table:
        """Return the rows of one query."""
        first, end = np.searchsorted(self.numbers, [number, number + 1])
        return self.rows.slice(int(first), int(end - first))


class ManyResult:
    """The rows of many queries; `Database.sql_many` makes it.

    Queries are called by their names, or by their numbers if they have none. Where all have the
    same columns, `to_arrow` and the like give one table with a first column `query`; `tables` gives
    one for each set of columns. A query that has failed is in `failures`, and raises its error when
    its rows are asked for.
    """

    def __init__(
        self,
        keys: Sequence[int] | Sequence[str],
        schemas: Mapping[int, pa.Schema],
        parts: Sequence[ManyRows],
        failures: Mapping[int, Exception],
    ) -> None:
        self.keys = keys
        self.schemas = schemas
        """The columns of each query's rows, by its number."""
        self.errors = failures
        found: dict[pa.Schema, list[ManyRows]] = {each: [] for each in schemas.values()}
        for part in parts:
            schema = plain_schema(part.rows.schema)
            found[schema].append(ManyRows(part.numbers, part.rows.cast(schema)))
        self.alike = {schema: AlikeRows.of(schema, own) for schema, own in found.items()}

    @property
    def queries(self) -> list[int | str]:
        """What the queries are called, in order."""
        return list(self.keys)

    @property
    def failures(self) -> dict[int | str, Exception]:
        """The queries that have failed, and why."""
        return {self.keys[number]: error for number, error in self.errors.items()}

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[tuple[int | str, Result]]:
        return ((self.keys[number], self.of_number(number)) for number in range(len(self.keys)))

    def rows_of(self, query: int | str) -> Result:
        """Return the rows of one query, as `sql` gives them; their order may differ."""
        if query not in self.keys:
            message = f"no query {query!r} among these"
            names = [each for each in self.keys if isinstance(each, str)]
            hint = suggestion(str(query), names, "query") if names else f"there are {len(self)}"
            raise SchemaError(message, hint=hint)
        return self.of_number(self.keys.index(query))

    def of_number(self, number: int) -> Result:
        """Return the rows of a query by its number."""
        if number in self.errors:
            raise self.errors[number]
        return Result(self.alike[self.schemas[number]].of_query(number))

    def tables(self) -> list[Result]:
        """Return the rows of all queries, those with different columns apart."""
        self.check_all()
        return [Result(self.with_query(each)) for each in self.alike.values()]

    def to_arrow(self) -> pa.Table:
        """Return the rows of all queries as one Arrow table, if they have the same columns."""
        self.check_all()
        if len(self.alike) > 1:
            message = f"the queries have {len(self.alike)} different sets of columns"
            hint = "tables() gives a table for each, rows_of(query) the rows of one query"
            raise SchemaError(message, hint=hint)
        for each in self.alike.values():
            return self.with_query(each)
        return pa.table({QUERY_COLUMN: pa.array([], pa.int64())})

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows of all queries as a pandas frame, if they have the same columns."""
        return Result(self.to_arrow()).to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Return the rows of all queries as a polars frame, if they have the same columns."""
        return Result(self.to_arrow()).to_polars()

    def check_all(self) -> None:
        """Refuse to give the rows of all queries if some have failed."""
        for number, error in self.errors.items():
            error.add_note(f"in the query {self.keys[number]!r}")
            raise error

    def with_query(self, found: AlikeRows) -> pa.Table:
        """Return rows with a first column that says which query each is of."""
        return with_query(self.keys, found.numbers, found.rows)

    def __repr__(self) -> str:
        failed = f"{len(self.errors)} queries have failed" if self.errors else ""
        shown = [as_text(self.with_query(each)) for each in self.alike.values()]
        return "\n".join(each for each in (*shown, failed) if each)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return columns of the types of streams, also where operators had shorter ones."""
    types = {field.name: DataType.from_arrow(field.type) for field in schema}
    return pa.schema(
        [
            (field.name, field.type if (found := types[field.name]) is None else found.arrow)
            for field in schema
        ]
    )


def schema_with_query(key: pa.DataType, schema: pa.Schema) -> pa.Schema:
    """Return the columns of queries with a first one that says which query a row is of."""
    name = QUERY_COLUMN
    while name in schema.names:
        name = f"_{name}"
    return pa.schema([pa.field(name, key), *schema])


def with_query(
    keys: Mapping[int, str] | Sequence[int] | Sequence[str],
    numbers: Int64s,
    rows: pa.Table | pa.RecordBatch,
) -> pa.Table:
    """Return rows with a first column that says which query each is of."""
    key = to_arrow(numbers)
    if not isinstance(keys, range):
        which, places = np.unique(numbers, return_inverse=True)
        called = pa.array([keys[number] for number in which.tolist()], pa.string())
        key = called.take(pa.array(places))
    schema = schema_with_query(key.type, rows.schema)
    return pa.Table.from_arrays([key, *rows.columns], schema=schema)
