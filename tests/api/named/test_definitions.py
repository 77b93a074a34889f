"""CREATE STREAM and CREATE VIEW: names mean their queries, and definitions stay sound."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import eventide as ev
from eventide.errors import BindError, EventideError, StoreError, UnsupportedError
from eventide.store.definitions import FILE

MATCHES = (
    "SELECT * FROM cars MATCH_RECOGNIZE (PARTITION BY car ORDER BY ts MEASURES MAX(speed) AS top, "
    "COUNT(*) AS n PATTERN (A B+) DEFINE B AS speed > PREV(speed))"
)
DEFINED = {
    "chosen": "SELECT car, speed FROM cars WHERE speed > 55",
    "timed": "SELECT car, ts, speed * 2 AS twice FROM cars",
    "grouped": (
        "SELECT car, AVG(speed) AS speed FROM cars GROUP BY car, TUMBLE(ts, INTERVAL '5' SECOND)"
    ),
    "framed": (
        "SELECT car, MAX(speed) OVER (PARTITION BY car ORDER BY ts ROWS 2 PRECEDING) AS speed "
        "FROM cars"
    ),
    "spurts": MATCHES,
    "both": "SELECT car, speed FROM cars UNION ALL SELECT car, load FROM trucks",
    "pairs": "SELECT c.car, c.speed, t.load FROM cars AS c JOIN trucks AS t ON c.car = t.car",
    "came": ("ISTREAM (SELECT car, MAX(speed) AS speed FROM cars [RANGE 5 SECONDS] GROUP BY car)"),
    "turns": (
        "FROM cars PARTITION BY car DEFINE fast AS speed > 60, slow AS speed <= 60 "
        "PATTERN fast meets slow WITHIN 1 MINUTE RETURN MAX(fast.speed) AS speed"
    ),
    "highs": (
        "SELECT car, speed FROM cars SITUATIONS (PARTITION BY car DEFINE fast AS speed > 60 "
        "RETURN MAX(speed) AS speed)"
    ),
    "named": "WITH x AS (SELECT * FROM cars WHERE speed > 50) SELECT car, speed FROM x",
}
TURNS = (
    "SELECT * FROM cars TPSTREAM (PARTITION BY car DEFINE fast AS speed > 60, slow AS speed <= 60 "
    "PATTERN fast meets slow WITHIN 1 MINUTE RETURN MAX(fast.speed) AS speed)"
)
"""The statement of the name in a form that can stand in brackets."""
READERS = [
    "SELECT * FROM {}",
    "SELECT car, ts, start_ts FROM {} WHERE car = 'a' ORDER BY ts, start_ts LIMIT 5",
    "SELECT f.*, t.load FROM {} AS f JOIN trucks AS t ON t.car = f.car AND t.ts = f.ts",
    "SELECT car, COUNT(*) AS n, MIN(start_ts) AS since FROM {} GROUP BY car, "
    "TUMBLE(ts, INTERVAL '7' SECOND)",
    "SELECT * FROM {} MATCH_RECOGNIZE (PARTITION BY car ORDER BY ts MEASURES FIRST(start_ts) AS s, "
    "LAST(ts) AS e PATTERN (A B) DEFINE B AS ts > PREV(ts))",
    "SELECT car, COUNT(*) AS n FROM {} [RANGE 10 SECONDS] AS w GROUP BY car",
    "SELECT car, COUNT(*) OVER (PARTITION BY car ORDER BY ts ROWS 3 PRECEDING) AS n FROM {}",
    "WITH y AS (SELECT * FROM {}) SELECT car, COUNT(*) AS n FROM y GROUP BY car",
]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> ev.Database:
    db = ev.open(tmp_path_factory.mktemp("named") / "db")
    cars = db.create_stream("cars", {"car": "string", "speed": "float64"})
    trucks = db.create_stream("trucks", {"car": "string", "load": "float64"})
    rows = [
        {"ts": f"2026-01-01 00:00:{i // 2:02d}", "car": "abc"[i % 3], "speed": 40.0 + i * 37 % 50}
        for i in range(100)
    ]
    cars.append(rows)
    trucks.append([{"ts": row["ts"], "car": row["car"], "load": row["speed"]} for row in rows[::3]])
    for name, query in DEFINED.items():
        db.sql(f"CREATE STREAM {name} AS {query}")
    return db


def inlined(db: ev.Database, name: str) -> str:
    """The query of a name in brackets, with the times that it hides."""
    query = TURNS if name == "turns" else DEFINED[name]
    columns = ", ".join(each for each, _ in db.named.all()[name].columns)
    inner = query if query.startswith("ISTREAM") else f"({query})"
    return f"(SELECT {columns} FROM {inner} AS inside)"


@pytest.mark.parametrize("name", DEFINED)
def test_a_name_means_its_query(filled: ev.Database, name: str) -> None:
    for reader in READERS:
        text = reader.format(name)
        plain = inlined(filled, name)
        behind = text.split(name, 1)[1].split()
        if not behind or behind[0] not in ("AS", "[RANGE"):
            plain += f" AS {name}"
        expected = filled.sql(reader.format(plain)).to_arrow()
        found = filled.sql(text).to_arrow()
        assert found.schema.names == expected.schema.names
        assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.to_pylist()))
    assert filled.sql(f"SELECT * FROM {name}").to_arrow().num_rows > 3


def test_the_columns_of_a_stream(filled: ev.Database) -> None:
    assert filled.sql("SELECT * FROM chosen").columns == ["ts", "start_ts", "car", "speed"]
    assert filled.sql("SELECT * FROM timed").columns == ["start_ts", "car", "ts", "twice"]
    assert filled.sql("SELECT * FROM turns").columns == ["start_ts", "car", "ts", "speed"]


def test_a_view_is_its_query_in_brackets(filled: ev.Database) -> None:
    filled.sql("CREATE VIEW best AS SELECT car, MAX(speed) AS top FROM chosen GROUP BY car")
    by_hand = "SELECT * FROM (SELECT car, MAX(speed) AS top FROM chosen GROUP BY car) ORDER BY car"
    assert filled.sql("SELECT * FROM best ORDER BY car").rows() == filled.sql(by_hand).rows()
    assert filled.sql("SELECT top FROM best AS b(who, top) WHERE who = 'a'").columns == ["top"]


def test_a_cte_hides_a_name(filled: ev.Database) -> None:
    text = "WITH chosen AS (SELECT 1 AS x) SELECT * FROM chosen"
    assert filled.sql(text).rows() == [{"x": 1}]
    # Inside a definition, a name does not mean the CTE of a query around it.
    text = "WITH cars AS (SELECT 1 AS x) SELECT COUNT(*) AS n FROM chosen"
    assert filled.sql(text).rows() == filled.sql("SELECT COUNT(*) AS n FROM chosen").rows()


def test_table_functions_and_short_lists_take_names(filled: ev.Database) -> None:
    grouped = (
        "SELECT window_start, COUNT(*) AS n FROM {} GROUP BY window_start, window_end "
        "ORDER BY window_start"
    )
    by_name = filled.sql(grouped.format("TUMBLE(chosen, ts, INTERVAL '5' SECOND)")).rows()
    text = "SELECT window_start, COUNT(*) AS n FROM chosen GROUP BY TUMBLE(ts, INTERVAL '5' SECOND)"
    assert by_name == sorted(filled.sql(text), key=lambda row: row["window_start"])
    assert filled.sql("SELECT t FROM chosen(t, s, c)").columns == ["t"]


@pytest.fixture
def db(tmp_path: Path) -> ev.Database:
    db = ev.open(tmp_path / "db")
    cars = db.create_stream("cars", {"car": "string", "speed": "float64"})
    cars.append([{"ts": i, "car": "a", "speed": float(i)} for i in range(10)])
    db.sql("CREATE STREAM fast AS SELECT car, speed FROM cars WHERE speed > 5")
    db.sql("CREATE STREAM faster AS SELECT car, speed FROM fast WHERE speed > 7")
    db.sql("CREATE VIEW top AS SELECT MAX(speed) AS top FROM faster")
    return db


def test_what_create_and_drop_say(db: ev.Database) -> None:
    said = db.sql("CREATE STREAM slow AS SELECT car FROM cars WHERE speed < 3")
    assert said.rows() == [{"name": "slow", "kind": "stream", "done": "created"}]
    said = db.sql("CREATE STREAM IF NOT EXISTS slow AS SELECT nonsense")
    assert said.rows() == [{"name": "slow", "kind": "stream", "done": "exists already"}]
    assert db.sql("DROP STREAM slow").rows()[0]["done"] == "dropped"
    assert db.sql("DROP STREAM IF EXISTS slow").rows()[0]["done"] == "is not there"


def test_streams_are_listed_with_their_kind(db: ev.Database) -> None:
    db.create_relation("limits", {"car": "string", "limit": "float64"}, key=["car"])
    assert db.streams() == ("cars", "limits", "fast", "faster", "top")
    kinds = [each.kind for each in db.streams()]
    assert kinds == ["stream", "relation", "derived stream", "derived stream", "view"]


def test_definitions_stay(db: ev.Database, tmp_path: Path) -> None:
    again = ev.open(db.path)
    assert again.sql("SELECT top FROM top").rows() == [{"top": 9.0}]
    again.sql("CREATE VIEW first AS SELECT MIN(speed) AS low FROM fast")
    assert db.sql("SELECT low FROM first").rows() == [{"low": 6.0}]
    copy = db.backup(tmp_path / "copy")
    assert copy.sql("SELECT top FROM top").rows() == [{"top": 9.0}]
    again.sql("DROP VIEW first")
    with pytest.raises(BindError, match="no stream 'first'"):
        db.sql("SELECT low FROM first")


def test_a_replaced_query_counts_for_its_readers(db: ev.Database) -> None:
    db.sql("CREATE OR REPLACE STREAM fast AS SELECT car, speed * 10 AS speed FROM cars")
    assert db.sql("SELECT top FROM top").rows() == [{"top": 90.0}]
    # The types of what reads it follow.
    db.sql("CREATE OR REPLACE STREAM fast AS SELECT car, CAST(speed AS BIGINT) AS speed FROM cars")
    assert dict(db.named.all()["faster"].columns)["speed"].kind == "int64"
    db.sql("CREATE OR REPLACE VIEW fast AS SELECT ts, car, speed FROM cars")
    assert db.sql("SELECT top FROM top").rows() == [{"top": 9.0}]


def test_explain_draws_through_names(db: ev.Database) -> None:
    text = str(db.explain("SELECT car FROM faster"))
    assert text.startswith(
        "Project car\n  Filter speed > 5.0 AND speed > 7.0\n    Scan cars (ts, car, speed)\n"
    ), text
    assert "\nStream faster (named query)\n  Project ts, start_ts, car, speed\n" in text
    assert "\nStream fast (named query)\n" in text
    assert "named query" not in str(db.explain("SELECT car FROM cars"))
    assert "fast (named" in str(db.explain("SELECT car FROM fast WHERE speed > ?", params=[6]))


MISTAKES: list[tuple[type[EventideError], str]] = [
    (
        StoreError,
        """\
fast is read by faster
  DROP STREAM fast
              ^^^^
hint: drop faster first""",
    ),
    (
        StoreError,
        """\
fast exists already: it is a stream
  CREATE VIEW fast AS SELECT car FROM cars
              ^^^^
hint: write CREATE OR REPLACE, or drop it first""",
    ),
    (
        StoreError,
        """\
the stream 'cars' exists already
  CREATE OR REPLACE STREAM cars AS SELECT car FROM fast
                           ^^^^
hint: choose another name: a stream that holds events is not replaced""",
    ),
    (
        StoreError,
        """\
'two words' is not a name
  CREATE VIEW "two words" AS SELECT car FROM cars
              ^^^^^^^^^^^
hint: use up to 100 letters, digits, _ and -""",
    ),
    (
        BindError,
        """\
faster reads fast, and would no longer work: no column 'speed' in fast
  CREATE OR REPLACE STREAM fast AS SELECT car FROM cars
                           ^^^^
hint: keep the columns that it reads, or drop faster first""",
    ),
    (
        BindError,
        """\
fast would read itself: fast → faster → fast
  CREATE OR REPLACE STREAM fast AS SELECT car, speed FROM faster
                           ^^^^
hint: read something else""",
    ),
    (
        BindError,
        """\
own would read itself: own → own
  CREATE VIEW own AS SELECT * FROM own
              ^^^
hint: read something else""",
    ),
    (
        BindError,
        """\
no column 'sped' in cars
  CREATE STREAM more AS SELECT sped FROM cars
                               ^^^^
hint: did you mean 'speed'?""",
    ),
    (
        UnsupportedError,
        """\
a stream reads rows that come and stay, and those of this query go again
  CREATE STREAM more AS SELECT * FROM cars [RANGE 1 MINUTE]
                               ^^^^^^^^^^^
hint: make events of its changes: ISTREAM (SELECT …), DSTREAM (…) or RSTREAM (…)""",
    ),
    (
        StoreError,
        """\
fast is a stream, not a view
  DROP VIEW fast
            ^^^^
hint: write DROP STREAM fast""",
    ),
    (
        StoreError,
        """\
cars holds events, and no query defines it
  DROP STREAM cars
              ^^^^
hint: db.drop_stream('cars') deletes it with its events""",
    ),
    (
        StoreError,
        """\
no view 'fst'
  DROP VIEW fst
            ^^^
hint: there are fast, faster, top""",
    ),
    (
        BindError,
        """\
no column 'sped' in fast
  SELECT sped FROM fast
         ^^^^
hint: did you mean 'speed'?""",
    ),
    (
        UnsupportedError,
        """\
SAMPLE on the name of a query
  SELECT * FROM fast TABLESAMPLE 10 PERCENT
                ^^^^^^^^^^^^^^^^^^^
hint: leave it out, or use it on a subquery""",
    ),
]


@pytest.mark.parametrize(("kind", "paragraph"), MISTAKES, ids=lambda each: str(each).split("\n")[0])
def test_a_mistake_is_explained(db: ev.Database, kind: type[EventideError], paragraph: str) -> None:
    before = db.named.all()
    with pytest.raises(kind) as caught:
        db.sql(paragraph.split("\n")[1].removeprefix("  "))
    assert str(caught.value) == paragraph
    assert db.named.all() == before


def test_an_error_in_a_definition_is_shown_there(db: ev.Database) -> None:
    db.sql("CREATE STREAM odd AS SELECT car, speed FROM cars WHERE CAST(car AS BIGINT) > 0")
    db.sql("CREATE VIEW mean AS SELECT car, AVG(speed) AS mean FROM cars GROUP BY car")
    with pytest.raises(EventideError) as caught:
        db.sql("SELECT * FROM mean MATCH_RECOGNIZE (ORDER BY ts PATTERN (A) DEFINE A AS mean > 1)")
    assert str(caught.value).startswith(
        "in the definition of mean: MATCH_RECOGNIZE reads a plain SELECT from one stream\n"
        "  SELECT car, AVG(speed) AS mean FROM cars GROUP BY car\n"
    )
    db.stream("cars").drop_attribute("speed")
    with pytest.raises(BindError) as caught:
        db.sql("SELECT car FROM faster")
    assert str(caught.value).startswith(
        "in the definition of fast: no column 'speed' in cars\n"
        "  SELECT car, speed FROM cars WHERE speed > 5\n"
        "              ^^^^^\n"
    )


def test_streams_and_names_share_one_name_space(db: ev.Database) -> None:
    with pytest.raises(StoreError, match="'fast' is the name of a query"):
        db.create_stream("Fast", {"x": "int64"})
    with pytest.raises(StoreError, match="cars is read by fast"):
        db.drop_stream("cars")
    with pytest.raises(StoreError, match="fast is a stream that a query defines"):
        db.drop_stream("fast")


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.replace(b"speed > 5", b"speed > 6"),
        lambda content: content[:-10],
        lambda content: content.replace(b'"kind":"view"', b'"kind":"vier"'),
        lambda _: b"[]",
    ],
)
def test_a_damaged_file_is_refused(db: ev.Database, change: object) -> None:
    assert callable(change)
    path = db.path / FILE
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(StoreError, match=r"definitions\.json is damaged"):
        ev.open(db.path).sql("SELECT 1")


def test_a_file_of_a_later_version_is_refused(db: ev.Database) -> None:
    path = db.path / FILE
    entry = json.loads(path.read_bytes())
    path.write_text(json.dumps({**entry, "format": 2}))
    with pytest.raises(StoreError, match="has format 2; this Eventide reads up to 1"):
        ev.open(db.path).sql("SELECT 1")
