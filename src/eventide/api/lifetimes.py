"""Draw when the rows of standing queries came and went: one bar for each row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from eventide.api.result import Result
from eventide.drawing.picture_file import checked_path
from eventide.drawing.situations import SituationPicture, scene_of_lifetimes
from eventide.errors import SchemaError, UnsupportedError
from eventide.schema import INT64, NULL, START_TS, TIMESTAMP, TS, DataType

MOST_LANES = 12
"""This many lanes are drawn of each query: those of the rows that came first."""

ANSWER = "the answer"
"""The title of the changes of a single query."""

Changes = Result | Iterable[Result]
"""The changes of a query: one table, or several, as `db.replay(text)` yields them."""


def plot_lifetimes(
    changes: Changes | Mapping[str, Changes], path: str | Path | None = None, most: int = MOST_LANES
) -> SituationPicture:
    """Draw when rows came into the answers of standing queries and when they left.

    `changes` are the changes of a query, or of several queries, each under a title. They need the
    columns `at` and `exp`, which a `current` query reports. Events with a start are drawn as well,
    such as those that CEL finds: from `start_ts` to `ts`. With `path`, such as "lives.svg" or
    "lives.html", the picture is saved too.

    >>> rows = pa.table({"at": [0, 2_000_000], "car": ["a", "b"], "exp": [3_000_000, None]})
    >>> picture = plot_lifetimes({"cars": Result(rows)})
    >>> "a" in picture.text(80)
    True
    """
    if not isinstance(most, int) or most < 1:
        message = f"at least one lane has to be drawn, not {most!r}"
        raise UnsupportedError(message, hint="leave `most` out")
    if path is not None:
        checked_path(path)
    titled = changes if isinstance(changes, Mapping) else {ANSWER: changes}
    tables = {str(title): table_of(str(title), changes) for title, changes in titled.items()}
    picture = SituationPicture(scene_of_lifetimes(tables, most))
    if path is not None:
        picture.save(path)
    return picture


def table_of(title: str, changes: Changes) -> pa.Table:
    """Return all changes of a query as one table; it has to say when rows come and go."""
    tables = [with_lifetimes(each.to_arrow()) for each in results_of(changes)]
    for table in tables:
        missing = [name for name in ("at", "exp") if name not in table.column_names]
        if missing:
            message = f"the report of {title!r} has no column {missing[0]!r}"
            hint = "draw changes of a query without ISTREAM or its like: db.replay(text), or live"
            raise SchemaError(message, hint=hint)
        for name in ("at", "exp"):
            kind = table.schema.field(name).type
            if DataType.from_arrow(kind) not in (TIMESTAMP, INT64, NULL):
                message = f"column {name!r} of the report of {title!r} has type {kind}, not times"
                raise SchemaError(message, hint="draw what db.replay(text) gives, or a live query")
    return pa.concat_tables(tables) if tables else pa.table({"at": [], "exp": []})


def with_lifetimes(table: pa.Table) -> pa.Table:
    """Return events with a start as rows that came then, and left at their end."""
    names = table.column_names
    if "at" in names or "exp" in names or not {START_TS, TS} <= {*names}:
        return table
    periods = {START_TS: "at", TS: "exp"}
    return table.rename_columns([periods.get(name, name) for name in names])


def results_of(changes: Changes) -> Iterator[Result]:
    """Yield the changes of a query, table by table."""
    given: object = changes
    for result in (
        given if isinstance(given, Iterable) and not isinstance(given, Result) else [given]
    ):
        if not isinstance(result, Result):
            message = f"a {type(result).__name__} is no result of a query"
            hint = "pass a result, or db.replay(text), or several by title: {'views': result}"
            raise SchemaError(message, hint=hint)
        yield result
