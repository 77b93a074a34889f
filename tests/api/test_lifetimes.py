"""`keep="expires_at"`: what users see of events that expire."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import eventide as ev
from eventide.errors import SchemaError

SCHEMA = {"host": "string", "expires_at": "timestamp"}


def lease(ts: int, host: str, expires_at: int | None) -> dict[str, object]:
    return {"ts": ts, "host": host, "expires_at": expires_at}


@pytest.fixture
def db(tmp_path: Path) -> Iterator[ev.Database]:
    database = ev.open(tmp_path / "net.ev")
    leases = database.create_stream("leases", SCHEMA, keep="expires_at")
    leases.append([lease(0, "a", 10), lease(1, "b", 100), lease(2, "c", None)])
    leases.split()
    leases.append([lease(10, "d", 40)])
    yield database
    database.close()


def hosts(db: ev.Database) -> list[object]:
    return [row["host"] for row in db.stream("leases").events().rows()]


def test_it_is_an_option(db: ev.Database) -> None:
    leases = db.stream("leases")
    assert leases.options.keep_until == "expires_at"
    assert leases.configure(keep="90 days").keep_until is None
    assert hosts(db) == ["a", "b", "c", "d"]  # what was not freed is there again
    leases.configure(keep="expires_at")
    assert leases.configure(keep=None) == leases.options
    assert leases.options.keep_us is None
    with pytest.raises(SchemaError, match="no attribute of type timestamp"):
        leases.configure(keep="host")
    with pytest.raises(SchemaError, match="a relation cannot"):
        db.create_relation("r", SCHEMA, key=["host"], keep="expires_at")


def test_every_answer_is_without_it(db: ev.Database) -> None:
    leases = db.stream("leases")
    assert hosts(db) == ["b", "c", "d"]
    assert len(leases) == 3
    assert leases.aggregate("count(*)", "max(host)").rows() == [{"count(*)": 3, "max(host)": "d"}]
    found = db.sql("SELECT host, COUNT(*) AS n FROM leases GROUP BY host ORDER BY host")
    assert [row["host"] for row in found.rows()] == ["b", "c", "d"]
    assert len(leases.at(0)) == 0
    snapshot = leases.snapshot(now="1970-01-01T00:00:00.000040")
    assert snapshot.row_count == 2
    assert hosts(db) == ["b", "c", "d"]


def test_a_live_query_begins_with_what_is_there_and_gets_what_comes(db: ev.Database) -> None:
    counts: list[object] = []
    text = "SELECT COUNT(*) AS n FROM leases [RANGE 1 HOUR]"
    query = db.subscribe(
        text, lambda found: counts.extend(row["n"] for row in found.rows()), from_history=True
    )
    db.stream("leases").append([lease(200, "e", 200), lease(201, "f", None)])
    query.finish()
    assert counts[-1] == 5  # b, c and d were there when it began
    assert hosts(db) == ["c", "f"]


def test_a_durable_query_starts_now(db: ev.Database) -> None:
    with pytest.raises(SchemaError, match="events of leases expire"):
        db.live("SELECT host FROM leases", name="q", start="beginning")


def test_a_stored_stream_has_what_comes(db: ev.Database) -> None:
    db.sql("CREATE STORED STREAM copies AS SELECT host FROM leases")
    db.stream("leases").append([lease(11, "e", 12), lease(20, "f", None), lease(21, "g", 22)])
    assert [row["host"] for row in db.sql("SELECT host FROM copies").rows()][:2] == ["e", "f"]
