"""What a set of queries is asked for: texts, or one text with a table of parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from eventide.engines.live.sharing.planned import PARAMETER, row_of
from eventide.errors import EventideError, SchemaError, listed
from eventide.ingest.coerce import inferred_table

Texts = str | Iterable[str] | Mapping[str, str]
_KINDS = "a list of texts, a dict of names and texts, or a text with a table of parameters"


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
    given: object = queries
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        message = f"queries are texts, not {type(given).__name__}"
        raise SchemaError(message, hint=f"give {_KINDS}")
    if not isinstance(queries, Mapping):
        return AskedQueries(tuple(map(str, queries)))
    names = tuple(map(str, queries))
    for name, count in Counter(names).items():
        if count > 1:
            message = f"{count} queries are called {name!r}"
            raise SchemaError(message, hint="give each a name of its own; a name is a text")
    return AskedQueries(tuple(map(str, queries.values())), names)


def table_of(text: str, parameters: Any) -> pa.Table:  # noqa: ANN401 - any kind of table
    """Return the table of parameters, a row for each query; its columns are those of the text."""
    names = dict.fromkeys(PARAMETER.findall(text))
    if isinstance(parameters, list | tuple) and not parameters:
        return pa.table({name: pa.nulls(0) for name in names})
    try:
        table = inferred_table(parameters)
    except EventideError as error:
        error.add_note("in the table of parameters")
        raise
    for name in names:
        count = table.column_names.count(name)
        if count != 1:
            which = f"{count} columns" if count else "no column"
            message = f"{which} {name!r} in the table of parameters"
            raise SchemaError(message, hint=f"it has {listed(table.column_names)}")
    return table.select([name for name in table.column_names if name in names])
