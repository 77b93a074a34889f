"""What a set of queries is asked for: texts, or one text with a table of parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from eventide.engines.live.sharing.planned import row_of
from eventide.errors import SchemaError
from eventide.ingest.coerce import inferred_table

Texts = str | Sequence[str] | Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AskedQueries:
    """Queries as they were asked for: texts, perhaps with names, or a text with parameters."""

    texts: tuple[str, ...]
    names: tuple[str, ...] | None = None
    parameters: pa.Table | None = None

    def __len__(self) -> int:
        return len(self.texts) if self.parameters is None else self.parameters.num_rows

    @property
    def keys(self) -> Sequence[int] | Sequence[str]:
        """What the queries are called: their names, or else their numbers."""
        return range(len(self)) if self.names is None else self.names

    def query(self, place: int) -> tuple[str, dict[str, object] | None]:
        """Return the text of a query, and its parameters if it has any."""
        if self.parameters is None:
            return self.texts[place], None
        return self.texts[0], row_of(self.parameters, place)


def asked(queries: Texts, parameters: Any = None) -> AskedQueries:  # noqa: ANN401 - any kind of table
    """Return what a user has asked for, checked.

    >>> len(asked("SELECT * FROM cars WHERE car = $car", [{"car": "a"}, {"car": "b"}]))
    2
    """
    if isinstance(queries, str):
        if parameters is None:
            return AskedQueries((queries,))
        return AskedQueries((queries,), None, table_of(queries, parameters))
    if parameters is not None:
        message = "parameters go with one text"
        raise SchemaError(message, hint='write ("… WHERE car = $car", table)')
    if isinstance(queries, Mapping):
        return AskedQueries(tuple(map(str, queries.values())), tuple(map(str, queries)))
    return AskedQueries(tuple(map(str, queries)))


def table_of(text: str, parameters: Any) -> pa.Table:  # noqa: ANN401 - any kind of table
    """Return the table of parameters, a row for each query; its columns are those of the text."""
    table = inferred_table(parameters)
    names = set(re.findall(r"\$([A-Za-z_]\w*)", text))
    missing = sorted(names - set(table.column_names))
    if missing:
        message = f"no column {missing[0]!r} in the table of parameters"
        raise SchemaError(message, hint=f"it has {', '.join(table.column_names)}")
    return table.select([name for name in table.column_names if name in names])
