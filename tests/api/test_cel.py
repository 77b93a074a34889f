"""CEL through the calls that take queries, and what it publishes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import eventide as ev
from eventide.errors import BindError, EventideError, StoreError, UnboundedStateWarning

MINUTE = 60_000_000
QUOTES = [("IBM", 80), ("Dell", 22), ("IBM", 82), ("Dell", 24), ("IBM", 84), ("Dell", 22)]
RISING = """
SELECT name, price_1 AS since, price AS until
FROM stocks FOLD{$2.name = $.name AND DUR <= 1 hour, $2.price > $.price} stocks
"""


def rows() -> list[dict[str, Any]]:
    return [
        {"ts": minute * MINUTE, "name": name, "price": float(price)}
        for minute, (name, price) in enumerate(QUOTES, 1)
    ]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[ev.Database]:
    with ev.open(tmp_path) as opened:
        stocks = opened.create_stream("stocks", {"name": "string", "price": "float64"})
        stocks.append(rows())
        yield opened


def values(found: ev.Result, *names: str) -> list[tuple[Any, ...]]:
    table = found.to_arrow().select(names)
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def minutes(found: ev.Result) -> list[tuple[int, int]]:
    """Return where each event begins and ends, in minutes."""
    table = found.to_arrow()
    times = [table[name].cast(pa.int64()).to_pylist() for name in ("start_ts", "ts")]
    return [(start // MINUTE, end // MINUTE) for start, end in zip(*times, strict=True)]


def test_the_monotone_rise_of_the_paper(db: ev.Database) -> None:
    found = db.cel(RISING)
    assert found.to_arrow().column_names == ["ts", "start_ts", "name", "since", "until"]
    assert minutes(found) == [(1, 3), (2, 4), (1, 5), (3, 5)]
    assert values(found, "name", "until") == [
        *(("IBM", 82.0), ("Dell", 24.0)),
        *(("IBM", 84.0), ("IBM", 84.0)),
    ]
    assert db.sql(RISING).rows() == found.rows()


def test_sequences_are_not_associative(db: ev.Database) -> None:
    quotes = db.create_stream("quotes", {"name": "string"})
    names = ["IBM", "MSFT", "MSFT", "Dell"]
    quotes.append([{"ts": at, "name": name} for at, name in enumerate(names)])
    ibm, msft, dell = (f"(SELECT name AS {n} FROM FILTER{{name = '{s}'}} quotes)" for n, s in (
        ("a", "IBM"), ("b", "MSFT"), ("c", "Dell"),
    ))  # fmt: skip
    assert len(db.cel(f"{ibm} NEXT{{}} ({msft} NEXT{{}} {dell})")) == 2
    assert len(db.cel(f"({ibm} NEXT{{}} {msft}) NEXT{{}} {dell}")) == 1


def test_attributes_that_a_side_leaves_out_are_none(tmp_path: Path) -> None:
    """A stream with a `start_ts` of its own has the columns that events have, and some more."""
    with ev.open(tmp_path) as db:
        calls = db.create_stream("calls", {"start_ts": "timestamp", "n": "int64", "v": "int64"})
        calls.append([{"ts": at, "start_ts": at, "n": at, "v": 10 * at} for at in range(3)])
        chains = db.cel("FILTER{n_1 = 0} (calls FOLD{} (SELECT n FROM calls))")
        assert values(chains, "v", "n_1", "n") == [(0, 0, 1), (0, 0, 2)]
        pairs = db.cel("(SELECT n FROM calls) NEXT{} (SELECT v FROM calls)")
        assert values(pairs, "n", "v") == [(0, 10), (1, 20)]


def test_tables_in_memory() -> None:
    table = pa.table({"ts": [0, 1, 2, 2], "a": [1, 2, 3, 4]})
    found = ev.cel("s NEXT{$2.a >= ?} s", params=[3], s=table)
    assert values(found, "a_1", "a") == [(1, 3), (1, 4), (2, 3), (2, 4)]
    assert ev.sql("FILTER{a > 3} s", s=table).rows() == ev.cel("FILTER{a > 3} s", s=table).rows()
    with pytest.raises(BindError, match="no database to publish in"):
        ev.cel("FROM s PUBLISH t", s=table)
    with pytest.raises(BindError, match="needs times"):
        ev.cel("s NEXT{} s", s=pa.table({"a": [1]}))


def test_a_text_that_is_sql_too_means_events_in_cel(db: ev.Database) -> None:
    text = "SELECT name FROM stocks"
    assert db.sql(text).to_arrow().column_names == ["name"]
    assert db.cel(text).to_arrow().column_names == ["ts", "start_ts", "name"]
    assert db.sql(text).to_arrow().column_names == ["name"]


def test_live_rows_are_those_of_history(db: ev.Database) -> None:
    with db.live(RISING, from_history=True) as live:
        db.stream("stocks").append([{"ts": 7 * MINUTE, "name": "IBM", "price": 90.0}])
        db.stream("stocks").append([{"ts": 8 * MINUTE, "name": "none", "price": 0.0}])
        found = live.next(timeout=60.0)
        assert found is not None
        assert sorted(minutes(found)) == [(1, 7), (3, 7), (5, 7)]
    assert [row for row in minutes(db.cel(RISING)) if row[1] == 7] == [(1, 7), (3, 7), (5, 7)]


def test_an_event_that_waits_for_ever_is_warned_of(db: ev.Database) -> None:
    text = "stocks NEXT{$1.name = $2.name} stocks"
    with pytest.warns(UnboundedStateWarning, match="DUR <= 10 min"), db.live(text):
        pass
    assert "waits for ever" in str(db.explain(text))


def test_a_replay(db: ev.Database) -> None:
    found = [row for each in db.replay(RISING) for row in minutes(each)]
    assert sorted(found) == sorted(minutes(db.cel(RISING)))


def test_explain_does_not_publish(db: ev.Database) -> None:
    text = f"{RISING} PUBLISH rises"
    assert "Iterate on name_1 = name" in str(db.explain(text))
    assert "Iterate" in str(db.cel(f"EXPLAIN ANALYZE {text}"))
    assert db.streams() == ("stocks",)


def test_a_published_stream_is_read_in_sql_and_cel(db: ev.Database) -> None:
    db.cel(f"{RISING} PUBLISH rises")
    assert db.streams() == ("rises", "stocks") or db.streams() == ("stocks", "rises")
    counted = db.sql("SELECT name, COUNT(*) AS n FROM rises GROUP BY name ORDER BY name")
    assert values(counted, "name", "n") == [("Dell", 1), ("IBM", 3)]
    after = db.cel("rises NEXT{$1.name = $2.name} (SELECT name FROM stocks)")
    assert minutes(after) == [(1, 5), (2, 6)]


def test_the_parts_of_a_text_publish_as_well(db: ev.Database) -> None:
    text = """
    SELECT name FROM (SELECT name AS who FROM FILTER{price > 80} stocks PUBLISH "Dear")
                NEXT{who = name} dear PUBLISH pairs
    """
    with pytest.raises(BindError, match="who is an attribute of both sides"):
        db.cel(text)
    assert db.streams() == ("stocks",)
    better = text.replace(" dear ", " (SELECT who AS name FROM dear) ")
    assert values(db.cel(better), "name") == [("IBM",)]
    assert [each.kind for each in db.streams()] == ["stream", "derived stream", "derived stream"]
    assert values(db.cel("dear"), "who") == [("IBM",), ("IBM",)]


def test_publishing_the_same_again(db: ev.Database) -> None:
    text = "SELECT name FROM FILTER{price > 80} stocks PUBLISH dear"
    assert db.cel(text).rows() == db.cel(text).rows()
    db.sql(
        "select NAME from filter{price>80}(stocks) -- again\nPUBLISH DEAR".replace("NAME", "name")
    )
    with db.live(text):
        pass
    with pytest.raises(StoreError, match="exists already") as caught:
        db.cel("SELECT name FROM FILTER{price > 81} stocks PUBLISH dear")
    assert "CREATE OR REPLACE STREAM dear" in str(caught.value)
    assert "^^^^" in str(caught.value)
    with pytest.raises(StoreError, match="exists already"):
        db.cel("FROM FILTER{price > 81} stocks PUBLISH stocks")
    db.sql("CREATE OR REPLACE STREAM dear AS SELECT name FROM FILTER{price > 81} stocks")
    assert db.cel(text.replace("80", "81")).rows() == db.cel("dear").rows()
    db.sql("DROP STREAM dear")
    assert db.streams() == ("stocks",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("FROM loop NEXT{} stocks PUBLISH loop", "loop would read itself: loop → loop"),
        ("FROM FILTER{price > ?} stocks PUBLISH dear", "a definition has no parameters"),
        ("CREATE STREAM dear AS FROM FILTER{price > 1} stocks PUBLISH x", "it is dear"),
        ("CREATE STREAM dear AS FILTER{price > ?} stocks", "a definition has no parameters"),
        ("CREATE STREAM dear AS FILTER{prize > 1} stocks", "no attribute 'prize' in stocks"),
    ],
)
def test_what_cannot_be_published(db: ev.Database, text: str, said: str) -> None:
    with pytest.raises(EventideError, match=said) as caught:
        db.sql(text, [1] if "?" in text and "CREATE" not in text else None)
    assert "^" in str(caught.value)
    assert db.streams() == ("stocks",)


def test_a_circle_of_two(db: ev.Database) -> None:
    db.cel("FROM FILTER{price > 1} stocks PUBLISH one")
    db.cel("FROM FILTER{price > 2} one PUBLISH two")
    with pytest.raises(BindError, match="one would read itself: one → two → one"):
        db.sql("CREATE OR REPLACE STREAM one AS FILTER{price > 1} two")


def test_an_error_in_a_definition_points_into_it(db: ev.Database) -> None:
    db.cel("SELECT name, price AS p FROM stocks PUBLISH named")
    with pytest.raises(BindError, match="no attribute 'price' in named"):
        db.cel("FILTER{price > 3} named")
    db.cel("SELECT p FROM FILTER{p > 3} named PUBLISH high")
    with pytest.raises(BindError, match="would no longer work"):
        db.sql("CREATE OR REPLACE STREAM named AS SELECT name FROM FILTER{price > 1} stocks")


def test_a_stored_stream_may_be_cel(db: ev.Database) -> None:
    db.sql(f"CREATE STORED STREAM kept AS {RISING}")
    db.stream("stocks").append([{"ts": 7 * MINUTE, "name": "IBM", "price": 90.0}])
    db.stream("stocks").append([{"ts": 8 * MINUTE, "name": "none", "price": 0.0}])
    assert db.wait(60.0)
    stored = db.sql("SELECT ts, start_ts FROM kept ORDER BY ts, start_ts")
    found = db.cel("SELECT name FROM kept")
    assert minutes(found) == minutes(stored)
    assert set(minutes(found)) <= set(minutes(db.cel(RISING)))


def test_cel_reads_views_and_what_is_computed_in_sql(db: ev.Database) -> None:
    db.sql("CREATE VIEW dear AS SELECT name, price FROM stocks WHERE price > 80")
    db.sql("""CREATE STREAM hourly AS SELECT name, COUNT(*) AS n FROM stocks
              GROUP BY name, TUMBLE(ts, INTERVAL '2' MINUTE)""")
    assert minutes(db.cel("SELECT name FROM dear")) == [(3, 3), (5, 5)]
    assert minutes(db.cel("FILTER{DUR = 2 min AND name = 'IBM'} hourly")) == [
        *((0, 2), (2, 4), (4, 6)),
    ]
    db.sql("CREATE VIEW top AS SELECT name FROM stocks ORDER BY price LIMIT 1")
    with pytest.raises(EventideError, match="CEL reads a plain SELECT from one stream"):
        db.cel("FROM top NEXT{} stocks")


SOURCES = [
    ("SELECT name, until FROM {} AS r WHERE r.until > 83 AND start_ts < ts", [("IBM",)] * 2),
    ("SELECT name FROM {} GROUP BY name, TUMBLE(ts, INTERVAL '1' HOUR)", [("IBM",), ("Dell",)]),
    ("SELECT r.name FROM {} AS r JOIN stocks AS s ON s.ts = r.ts AND s.name <> 'IBM'", [("Dell",)]),
    (
        """SELECT * FROM {} MATCH_RECOGNIZE (PARTITION BY name MEASURES COUNT(*) AS n
           PATTERN (A B) DEFINE B AS until > A.until)""",
        [("IBM",)],
    ),
    (
        """SELECT name FROM {} TPSTREAM (PARTITION BY name DEFINE low AS until < 83,
           high AS until > 83 PATTERN low meets high WITHIN 1 HOUR RETURN max(low.until) AS top)""",
        [("IBM",)],
    ),
    ("SELECT name, COUNT(*) AS n FROM {} [RANGE 1 HOUR] GROUP BY name", [("Dell",), ("IBM",)]),
    (
        "WITH r AS (SELECT name FROM {}) SELECT DISTINCT name FROM r ORDER BY name",
        [("Dell",), ("IBM",)],
    ),
    ("SELECT name FROM (SELECT * FROM {}) AS r ORDER BY until DESC LIMIT 1", [("IBM",)]),
]


@pytest.mark.parametrize(("text", "wanted"), SOURCES)
def test_cel_stands_in_sql(db: ev.Database, text: str, wanted: list[tuple[str]]) -> None:
    found = db.sql(text.format(f"CEL ({RISING})"))
    assert sorted(values(found, "name")) == sorted(wanted)


def test_cel_reads_a_cte(db: ev.Database) -> None:
    text = """WITH dear AS (SELECT name, price FROM stocks WHERE price > 80)
              SELECT name FROM CEL (dear NEXT{$1.name = $2.name} dear)"""
    assert values(db.sql(text), "name") == [("IBM",)]


def test_cel_reads_a_cte_that_reads_cel_over_a_cte(db: ev.Database) -> None:
    text = """WITH dear AS (SELECT ts, name FROM stocks WHERE price > 80),
                   again AS (SELECT ts, name FROM CEL (dear NEXT{$1.name = $2.name} dear))
              SELECT name, n FROM CEL (AT INSTANT{name, COUNT(*) AS n} again)"""
    assert db.sql(text).rows() == [{"name": "IBM", "n": 1}]


def test_an_error_in_cel_in_sql_shows_its_place(db: ev.Database) -> None:
    text = "SELECT name\nFROM CEL (stocks\n NEXT{$1.prize > 3} stocks) AS x"
    with pytest.raises(BindError) as caught:
        db.sql(text)
    assert str(caught.value).splitlines()[:3] == [
        "no attribute 'prize' in stocks",
        "   NEXT{$1.prize > 3} stocks) AS x",
        "        ^^^^^^^^",
    ]


def test_what_is_found_is_drawn_from_its_start_to_its_end(db: ev.Database) -> None:
    picture = ev.plot_lifetimes({"rising": db.cel(RISING)})
    drawn = [line.split()[:3] for line in picture.text(80).splitlines() if "━" in line]
    assert [line[0] for line in drawn] == ["IBM,", "IBM,", "Dell,", "IBM,"]
    assert "4 rows, 1970-01-01 00:01:00 to 00:05:00" in picture.text(80)
