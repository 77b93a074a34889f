"""Double tops in five formulations: the same rows, unless prices stay the same for a day."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from benchmarks.algebra.cases import AlgebraSetting, rows_of
from benchmarks.algebra.data import closes
from benchmarks.algebra.templates import QUERIES, TEMPLATES, queries_of
from benchmarks.algebra.tops import FOLDED, MATCHED, RESUBSCRIBED, SELF_JOINED, WINDOWED

import eventide as ev

Rows = list[tuple[object, ...]]
DAY_US = 86_400_000_000
RISES = [12.0, 11, 10, 11, 12, 13, 12, 11, 10.5, 11, 12, 12.8, 12, 11, 9, 9.5, 9.8, 9.7]


def found(table: pa.Table) -> dict[str, Rows]:
    connection = duckdb.connect()
    connection.register("closes", table)
    tables = {
        "FOLD": ev.cel(FOLDED, closes=table).to_arrow(),
        "resubscription": ev.cel(RESUBSCRIBED, closes=table).to_arrow(),
        "MATCH_RECOGNIZE": ev.sql(MATCHED, closes=table).to_arrow(),
        "DuckDB, windows": connection.sql(WINDOWED).to_arrow_table(),
        "DuckDB, self-join": connection.sql(SELF_JOINED).to_arrow_table(),
    }
    return {name: rows_of(rows) for name, rows in tables.items()}


def prices(values: list[float]) -> pa.Table:
    times = pa.array([day * DAY_US for day in range(len(values))]).view(pa.timestamp("us"))
    names = pa.array(["firm"] * len(values))
    return pa.table({"ts": times, "name": names, "price": pa.array(values)})


def test_all_formulations_give_the_same_rows() -> None:
    answers = found(closes(firms=4, days=400))
    assert answers["FOLD"]
    assert all(rows == answers["FOLD"] for rows in answers.values())
    assert found(prices(RISES))["FOLD"] == [("firm", 10.0, 13.0, 10.5, 12.8, 9.0)]


@pytest.mark.parametrize(
    ("day", "by_legs", "by_extrema"),
    [
        (4, False, True),  # on the way up: legs of a FOLD rise strictly, extrema do not see it
        (5, False, False),  # at the top, which is then no extremum either
    ],
)
def test_formulations_differ_where_a_price_stays(day: int, by_legs: bool, by_extrema: bool) -> None:
    """The document takes them for equal. Legs that go on with equal prices are `>=` in a FOLD."""
    values = [*RISES[:day], RISES[day], *RISES[day:]]
    answers = found(prices(values))
    legs, extrema = answers.pop("FOLD"), answers.pop("resubscription")
    assert (bool(legs), bool(extrema)) == (by_legs, by_extrema)
    assert answers["MATCH_RECOGNIZE"] == legs
    assert answers["DuckDB, windows"] == answers["DuckDB, self-join"] == extrema


def test_queries_of_a_template_differ() -> None:
    """Each is read; three events hardly ever meet six equalities."""
    events = AlgebraSetting(2_000).uniform
    for name in TEMPLATES:
        queries = [*queries_of(name)]
        assert len({*queries}) == QUERIES
        for text in queries:
            assert ev.cel(text, s=events).columns[:2] == ["ts", "start_ts"], text
