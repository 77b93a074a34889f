"""Trees of queries drawn at random, every query inside by name: the rows of the twins."""

from __future__ import annotations

import random
from dataclasses import replace
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

import eventide as ev
from tests.engines import engines
from tests.engines.compositions import SCHEMAS, Streams, arrivals
from tests.engines.scenarios import as_bag
from tests.engines.test_random_trees import OPERATORS, Query, cars, tables, trucks, united

DEPTH = 3
NAMES = [f"q{number}" for number in range(2 * 2**DEPTH)]


def database(folder: str, streams: Streams = {}) -> ev.Database:  # noqa: B006 - never changed
    db = ev.open(folder)
    for name, schema in SCHEMAS.items():
        db.create_stream(name, schema.to_json())
    for name, table in tables(streams).items():
        db.stream(name).append(table.drop_columns(["_seq"]))
    return db


def drawn(
    db: ev.Database, choose: random.Random, names: list[str], depth: int, kind: str = "STREAM"
) -> Query:
    """A query that reads a stream, or named queries that read others."""

    def named(query: Query) -> Query:
        name = names.pop()
        db.sql(f"CREATE {kind} {name} AS {query.text}")
        return replace(query, text=f"SELECT car, value FROM {name}")

    if depth == 0 or choose.random() < 0.1:
        return choose.choice([cars, trucks])(choose)
    below = named(drawn(db, choose, names, depth - 1, kind))
    if choose.random() < 0.25:
        below = named(united(below, drawn(db, choose, names, depth - 1, kind)))
    return choose.choice(OPERATORS)(below, choose)


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 2**32), st.sampled_from(["STREAM", "VIEW"]))
def test_trees_of_names_over_history(seed: int, kind: str) -> None:
    choose = random.Random(seed)
    streams = arrivals(seed, 60)
    with TemporaryDirectory() as folder:
        db = database(folder, streams)
        query = choose.choice(OPERATORS)(drawn(db, choose, list(NAMES), DEPTH, kind), choose)
        expected = query.rows(streams)
        found = engines.plain(db.sql(query.text).to_arrow())
    assert as_bag(found) == expected, query.text
