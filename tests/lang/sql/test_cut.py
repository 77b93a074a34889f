"""Queries cut into our operators and the engine's SQL, against DuckDB doing all of it."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlglot

import eventide
from eventide.lang.sql import plan_sql
from eventide.plan.nodes import Relational
from tests.golden.plans import CATALOG, planned, read

START = datetime(2026, 1, 1)


def events(schema: str, seed: int) -> pa.Table:
    """Return a table of random events: few keys, equal times, nulls."""
    chance = random.Random(seed)
    times = sorted(START + timedelta(seconds=chance.randrange(0, 90)) for _ in range(60))
    columns: dict[str, list[Any]] = {"ts": times}
    choices: dict[str, list[Any]] = {
        "string": ["a", "b", "c", "B", None],
        "float64": [0.0, 1.5, 2.0, 50.0, 120.25, None],
        "int64": [0, 1, 2, 3, None],
        "decimal": [None],
    }
    for name, data_type in CATALOG[schema].fields():
        if name not in ("ts", "_seq"):
            columns[name] = [chance.choice(choices[data_type.kind]) for _ in times]
    types = [(name, kind.arrow) for name, kind in CATALOG[schema].fields() if name != "_seq"]
    return pa.table(columns, schema=pa.schema(types))


CARS, TRUCKS = events("cars", 1), events("trucks", 2)

QUERIES = (Path(__file__).parents[2] / "golden" / "queries.txt").read_text().strip().split("\n\n")
"""Each is a query; where DuckDB has no TUMBLE, its own form follows below a rule."""


def by_duckdb(query: str) -> list[tuple[Any, ...]]:
    connection = duckdb.connect()
    connection.register("cars", CARS)
    connection.register("trucks", TRUCKS)
    return in_any_order(connection.sql(query).to_arrow_table())


def by_us(query: str) -> list[tuple[Any, ...]]:
    return in_any_order(eventide.sql(query, cars=CARS, trucks=TRUCKS).to_arrow())


def in_any_order(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = [_rounded(column.to_pylist()) for column in table.columns]
    rows = list(zip(*columns, strict=True))
    return [tuple(table.column_names), *sorted(rows, key=repr)]


def _rounded(values: list[Any]) -> list[Any]:
    return [round(value, 9) if isinstance(value, float) else value for value in values]


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_has_duckdbs_answer(query: str) -> None:
    ours, _, theirs = query.partition("\n----\n")
    assert by_us(ours) == by_duckdb(theirs or ours)


def test_what_is_ordered_stays_ordered() -> None:
    query = "SELECT car, speed FROM cars WHERE car = 'a' ORDER BY lane DESC, ts, speed"
    connection = duckdb.connect()
    connection.register("cars", CARS)
    ours = eventide.sql(query, cars=CARS).to_arrow()
    assert ours.to_pylist() == connection.sql(query).to_arrow_table().to_pylist()


@pytest.mark.parametrize("query", [query for query, _ in read()])
def test_the_rest_is_sql_for_duckdb_and_for_spark(query: str) -> None:
    text = "\n".join(line for line in query.splitlines() if not line.startswith("#"))
    plan = plan_sql(text, CATALOG)
    assert planned(query)
    if isinstance(plan, Relational):
        assert sqlglot.parse_one(plan.duckdb_sql, dialect="duckdb")
        spark = sqlglot.parse_one(plan.spark_sql, dialect="spark")
        streams = {table.name for table in spark.find_all(sqlglot.exp.Table)} & set(CATALOG)
        assert not streams, "the rest may read inputs only"
