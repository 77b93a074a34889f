"""NEXMark over made-up events: history against DuckDB, live against history."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

import eventide as ev
from eventide.api.database import Database
from tests.nexmark.data import SIDE_INPUT, STREAMS, made_events
from tests.nexmark.queries import DOCS, UNENDING, Query, for_duckdb, queries
from tests.nexmark.table import table_cells, table_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS = made_events(700)
SIDE = [{"key": number, "value": f"side {number}"} for number in range(1107, 1130)]
NAMES = [f"q{number}" for number in range(23)]

pytestmark = pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")


def filled(path: Path) -> Database:
    db = empty(path)
    for name, rows in EVENTS.items():
        db.stream(name).append(rows)
    return db


def empty(path: Path) -> Database:
    db = ev.open(path)
    for name, attributes in STREAMS.items():
        db.create_stream(name, attributes)
    db.create_relation("side_input", SIDE_INPUT, key=["key"]).upsert(SIDE, at="2026-01-01")
    return db


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Database:
    return filled(tmp_path_factory.mktemp("nexmark") / "db")


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    for name, rows in EVENTS.items():
        connection.register(name, pa.Table.from_pylist(rows))
        view = f"CREATE VIEW {name[:-1]} AS SELECT * EXCLUDE (ts), ts AS dateTime FROM {name}"
        if name == "auctions":
            # In the order of the published attributes, which q9 reads with *.
            columns = "id, itemName, description, initialBid, reserve, ts AS dateTime, expires, "
            view = f"CREATE VIEW auction AS SELECT {columns} seller, category, extra FROM auctions"
        if name == "bids":
            columns = "auction, bidder, price, channel, url, ts AS dateTime, extra"
            view = f"CREATE VIEW bid AS SELECT {columns} FROM bids"
        connection.sql(view)
    connection.register("side_input", pa.Table.from_pylist(SIDE))
    yield connection
    connection.close()


def bag(rows: list[tuple[Any, ...]]) -> list[str]:
    return sorted(repr(tuple(map(plain, row))) for row in rows)


def plain(value: Any) -> Any:  # noqa: ANN401
    """Averages of integers are the same to a few digits less."""
    return f"{float(value):.9g}" if isinstance(value, float) else value


def values(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in rows]


def test_the_page_has_them_all() -> None:
    assert list(queries()) == NAMES
    live = [query for query in queries().values() if query.live is not None]
    assert {*UNENDING, *(query.name for query in live)} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_over_history_as_duckdb_answers(
    name: str, db: Database, oracle: duckdb.DuckDBPyConnection
) -> None:
    expected = oracle.sql(for_duckdb(queries()[name])).fetchall()
    assert expected, "a query without rows shows nothing"
    assert bag(values(db.sql(queries()[name].text).rows())) == bag(expected)


@pytest.mark.parametrize("name", NAMES)
def test_live_as_over_history(name: str, tmp_path: Path, db: Database) -> None:
    query = queries()[name]
    text = query.live or query.text
    live_db = empty(tmp_path / "db")
    got: list[dict[str, Any]] = []
    live = live_db.subscribe(text, lambda result: got.extend(result.rows()))
    merged = sorted(
        ((row["ts"], stream, row) for stream, rows in EVENTS.items() for row in rows),
        key=lambda event: event[0],
    )
    for start in range(0, len(merged), 90):
        part = merged[start : start + 90]
        for stream in EVENTS:
            rows = [row for _, of, row in part if of == stream]
            live_db.stream(stream).append(rows)
    expected = bag(values(db.sql(text).rows()))
    if live.engine.tree.reporter is not None:
        live.advance(merged[-1][0] + timedelta(microseconds=1))
        assert bag(values(live.current().rows())) == expected
    else:
        live.advance("2027-01-01")
        live.wait()
        assert bag(values(got)) == expected


@pytest.mark.parametrize("name", ["q3", "q4", "q15", "q16", "q17", "q18", "q20"])
def test_with_unbounded_windows_the_answer_is_the_published_one(name: str, db: Database) -> None:
    query = queries()[name]
    assert query.live is not None
    published, standing = (bag(values(db.sql(text).rows())) for text in (query.text, query.live))
    assert standing == published


def test_the_ten_highest_bids_are_the_published_ones_without_their_numbers(db: Database) -> None:
    query = queries()["q19"]
    assert query.live is not None
    published = [row[:-1] for row in values(db.sql(query.text).rows())]
    assert bag(values(db.sql(query.live).rows())) == bag(published)


@pytest.mark.spark
@pytest.mark.parametrize("name", NAMES)
def test_on_spark(name: str, db: Database, spark: SparkSession) -> None:
    query: Query = queries()[name]
    found = ev.spark(spark, db.path).sql(query.text).collect()
    expected = values(db.sql(query.text).rows())
    assert bag([tuple(row) for row in found]) == bag(expected)


def test_the_table_of_the_page_is_that_of_the_script() -> None:
    page = DOCS.read_text()
    written = page.split("<!-- table -->\n")[1].split("<!-- end of table -->")[0]
    found = table_cells(written)
    assert list(found) == NAMES
    assert table_text(found) == written
    for name in NAMES:
        assert found[name][:2] == ["yes", "yes"]
