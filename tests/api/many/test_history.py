"""Many queries over history: what they are asked for, their rows, and those that fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import eventide as ev
from eventide.engines.history.sharing import many
from eventide.errors import BindError, EventideError, SchemaError
from eventide.instants import TimeRange
from eventide.store import Snapshot

TEXT = "SELECT symbol, price FROM trades WHERE symbol = $symbol AND price > $least"
ROWS = [{"symbol": "a", "least": 5}, {"symbol": "b", "least": 2.5}, {"symbol": "a", "least": 8}]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[ev.Database]:
    with ev.open(tmp_path / "db") as opened:
        trades = opened.create_stream("trades", {"symbol": "string", "price": "float64"})
        prices = [4.0, 6.0, 9.0, 3.0]
        trades.append(
            [{"ts": i * 1_000_000, "symbol": "aaab"[i], "price": p} for i, p in enumerate(prices)]
        )
        yield opened


def test_a_query_for_each_row_of_a_table(db: ev.Database) -> None:
    found = db.sql_many(TEXT, ROWS)
    assert found.to_arrow().to_pylist() == [
        {"query": 0, "symbol": "a", "price": 6.0},
        {"query": 0, "symbol": "a", "price": 9.0},
        {"query": 1, "symbol": "b", "price": 3.0},
        {"query": 2, "symbol": "a", "price": 9.0},
    ]
    assert found.queries == [0, 1, 2]
    assert [(query, len(rows)) for query, rows in found] == [(0, 2), (1, 1), (2, 1)]
    assert len(found.to_pandas()) == len(found.to_polars()) == 4
    assert "query │ symbol │ price" in repr(found)


def test_queries_by_name_with_different_columns(db: ev.Database) -> None:
    found = db.sql_many(
        {
            "high": "SELECT price FROM trades WHERE price > 8",
            "none": "SELECT price FROM trades WHERE price > 80",
            "all": "SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol",
        }
    )
    assert found.rows_of("high").rows() == [{"price": 9.0}]
    assert found.rows_of("none").columns == ["price"]
    assert {row["symbol"]: row["n"] for row in found.rows_of("all")} == {"a": 3, "b": 1}
    assert [each.columns for each in found.tables()] == [
        ["query", "price"],
        ["query", "symbol", "n"],
    ]
    with pytest.raises(SchemaError, match="2 different sets of columns"):
        found.to_arrow()
    with pytest.raises(SchemaError, match="no query 'hihg'") as error:
        found.rows_of("hihg")
    assert error.value.hint == "did you mean 'high'?"


def test_no_query_at_all(db: ev.Database) -> None:
    found = db.sql_many([])
    assert len(found) == 0
    assert found.to_arrow().column_names == ["query"]


def test_a_text_that_is_wrong_is_refused_with_its_name(db: ev.Database) -> None:
    with pytest.raises(BindError, match="no column 'prise'") as error:
        db.sql_many({"right": "SELECT * FROM trades", "wrong": "SELECT prise FROM trades"})
    assert error.value.__notes__[-1] == "in the query 'wrong'"


def test_a_query_that_fails_does_not_keep_others_from_their_rows(db: ev.Database) -> None:
    own = "SELECT symbol FROM trades WHERE symbol = 'b' AND CAST(symbol AS BIGINT) > {}"
    found = db.sql_many(
        {
            "one": own.format(1),
            "two": own.format(2),
            "right": "SELECT symbol FROM trades WHERE price > 8",
            "also": "SELECT symbol FROM trades WHERE price > 5",
        }
    )
    assert found.failures.keys() == {"one", "two"}
    assert [len(found.rows_of(name)) for name in ("right", "also")] == [1, 2]
    for ask in (found.to_arrow, found.tables, lambda: found.rows_of("one")):
        with pytest.raises(EventideError, match="BIGINT"):
            ask()


def test_each_stream_is_read_once_and_no_more_than_is_needed(
    db: ev.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[tuple[list[str], int, int]] = []
    scan = Snapshot.scan

    def counted(self: Snapshot, names: list[str], period: TimeRange) -> object:
        reads.append((list(names), period.start_us, period.end_us))
        return scan(self, names, period)

    monkeypatch.setattr(Snapshot, "scan", counted)
    text = (
        "SELECT price FROM trades WHERE price > {} AND ts >= TIMESTAMP '1970-01-01 00:00:0{}' "
        "AND ts < TIMESTAMP '1970-01-01 00:00:0{}'"
    )
    found = db.sql_many([text.format(5, 1, 2), text.format(5, 0, 3)])
    assert [len(rows) for _, rows in found] == [1, 2]
    assert reads == [(["ts", "_seq", "price"], 0, 3_000_000)]


@pytest.mark.parametrize("rows", [1, 2])
def test_steps_of_any_length(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "FEWEST_ROWS", rows)
    monkeypatch.setattr(many, "MOST_PAIRS", 2)
    step = many.StepSize(rows)
    batch = pa.record_batch({"a": list(range(50))})
    cut = []
    for each in step.cut(iter([batch, batch])):
        cut += each.column(0).to_pylist()
        step.fit(step.pairs + len(cut) % 5)
    assert cut == 2 * list(range(50))
