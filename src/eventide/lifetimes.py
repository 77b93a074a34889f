"""When the rows of standing queries came and went, drawn: one bar for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from eventide.errors import SchemaError, UnsupportedError
from eventide.result import Result
from eventide.sinks.picture_file import checked_path
from eventide.sinks.situation_picture import SituationPicture, scene_of_lifetimes

MOST_LANES = 12
"""As many lanes are drawn of each query, those of the rows that came first."""

Told = Result | Iterable[Result]
"""What a query has told: all of it, or piece by piece, as `db.replay(text)` gives it."""


def plot_lifetimes(
    changes: Mapping[str, Told], path: str | Path | None = None, most: int = MOST_LANES
) -> SituationPicture:
    """Draw when rows came into the answers of standing queries and when they left.

    `changes` are what the queries told, each under a title; a `current` query tells `at` and
    `exp`, which are needed. With `path`, such as "lives.svg" or "lives.html", it is saved too.

    >>> rows = pa.table({"at": [0, 2_000_000], "car": ["a", "b"], "exp": [3_000_000, None]})
    >>> picture = plot_lifetimes({"cars": Result(rows)})
    >>> "a" in picture.text(80)
    True
    """
    if most < 1:
        message = f"at least one lane has to be drawn, not {most}"
        raise UnsupportedError(message, hint="leave `most` out")
    if path is not None:
        checked_path(path)
    tables = {title: table_of(title, told) for title, told in changes.items()}
    picture = SituationPicture(scene_of_lifetimes(tables, most))
    if path is not None:
        picture.save(path)
    return picture


def table_of(title: str, told: Told) -> pa.Table:
    """Return all that a query told as one table, if it says when rows come and go."""
    tables = [each.to_arrow() for each in pieces(told)]
    for table in tables:
        missing = [name for name in ("at", "exp") if name not in table.column_names]
        if missing:
            message = f"what {title!r} told has no column {missing[0]!r}"
            hint = "draw changes of a query without ISTREAM or its like: db.replay(text), or live"
            raise SchemaError(message, hint=hint)
    return pa.concat_tables(tables) if tables else pa.table({"at": [], "exp": []})


def pieces(told: Told) -> Iterator[Result]:
    """Yield what a query told, piece by piece."""
    if isinstance(told, Result):
        yield told
    else:
        yield from told
