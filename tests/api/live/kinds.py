"""Queries of several kinds over two streams, and the rows that they should give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import eventide as ev
from eventide.api.live.row_queue import LiveRows
from eventide.api.result import Result

Bag = Counter[tuple[Any, ...]]

RANGE_US = 5
WINDOW = (
    "SELECT window_start, k, COUNT(*) AS n, SUM(v) AS s FROM a "
    "GROUP BY k, TUMBLE(ts, INTERVAL '10 us')"
)
KINDS = {
    "plain": "SELECT k, v FROM a WHERE v % 2 = 0",
    "window": WINDOW,
    "pattern": "SELECT * FROM a MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts "
    "MEASURES FIRST(u.v) AS low, LAST(w.v) AS high "
    "ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (u w) "
    "DEFINE w AS w.v > u.v)",
    "join": f"SELECT a.v AS left_v, b.v AS right_v FROM a [RANGE {RANGE_US} MICROSECONDS], "
    f"b [RANGE {RANGE_US} MICROSECONDS] WHERE a.k = b.k",
    "named": "SELECT window_start, COUNT(*) AS n FROM odd GROUP BY TUMBLE(ts, INTERVAL '20 us')",
}


def database(path: Path, lateness: str = "0 s") -> ev.Database:
    """Return a new database with two streams, and a derived stream over one of them."""
    db = ev.open(path / "db")
    for name in "ab":
        db.create_stream(name, {"k": "string", "v": "int64"}, durability="none")
    db.sql(
        f"CREATE STREAM odd WITH (lateness = '{lateness}') AS "
        "SELECT ts, k, v FROM a WHERE v % 2 = 1"
    )
    return db


def events(times: Iterable[int]) -> list[dict[str, Any]]:
    """Return events at some times, whose values follow from their times."""
    return [{"ts": ts, "k": "xyz"[ts % 3], "v": ts * 7 % 11} for ts in times]


def bag(rows: Iterable[Mapping[str, Any]]) -> Bag:
    """Return rows in no order."""
    return Counter(tuple(row.values()) for row in rows)


def expected(db: ev.Database, kind: str) -> Bag:
    """Return the rows of a query of some kind over all that is stored."""
    if kind != "join":
        return bag(db.sql(KINDS[kind]).rows())
    left, right = (db.sql(f"SELECT ts, k, v FROM {name}").rows() for name in "ab")
    return Counter(
        (moment(start), a["v"], b["v"], moment(end))
        for a in left
        for b in right
        if a["k"] == b["k"]
        and (start := max(micros(a["ts"]), micros(b["ts"])))
        < (end := min(micros(a["ts"]), micros(b["ts"])) + RANGE_US)
    )


def micros(ts: datetime) -> int:
    """Return a time as microseconds since 1970."""
    return (ts.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def moment(us: int) -> datetime:
    """Return a time of rows."""
    return datetime(1970, 1, 1) + timedelta(microseconds=us)


class Rows:
    """Receives rows, and keeps them."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def __call__(self, rows: Result) -> None:
        """Take rows, which have to follow those before."""
        assert isinstance(rows, LiveRows)
        assert rows.first_row == len(self.rows)
        self.rows.extend(rows.rows())
