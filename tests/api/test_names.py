"""User columns with names that we use ourselves: they are kept, or refused by name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import eventide as ev
from eventide.errors import EventideError, SchemaError

SECOND = 1_000_000
TIMES = [0, SECOND, 2 * SECOND, 3 * SECOND]
FAST = [1.0, 5.0, 6.0, 1.0]

CHANGES = ("at", "exp", "sign", "live")
SITUATIONS = ("situation", "start_ts", "end_ts")
OURS = ("seq", "deleted", "stream", "window_start", "window_end", *CHANGES, *SITUATIONS)
"""What we call columns of our own: tried everywhere, and with all types in turn."""
NAMES = [
    *OURS,
    *(
        "id",
        "confirmed",
        "timed_out",
        "_shown",
        "_id",
        "__index_level_0__",
        "eventide_0",
        "eventide_clock",
        "order_by",
        "over_0",
    ),
    *("bucket", "payload", "newest_us", "late_events", "period", "value", "rows", "first_seq"),
    *("v.count", "t.v", "t", "key", "rowid", "count", "select", "Window_Start"),
]
VALUES: dict[str, list[object]] = {
    "string": ["d", "c", "b", None],
    "int64": [40, 30, 20, None],
    "timestamp": [datetime(2030, 1, 4), datetime(2030, 1, 3), datetime(2030, 1, 2), None],
}


def kinds_of(name: str, turn: int) -> list[str]:
    """Return the types to try: all for the commonest name, else one, another at each turn."""
    kinds = list(VALUES)
    return kinds if name == "seq" else [kinds[(len(name) + turn) % len(kinds)]]


ALL, KNOWN, FIRST = slice(0, 4), slice(0, 3), slice(0, 1)


def quoted(name: str) -> str:
    return f'"{name}"'


WINDOW = "TUMBLE(ts, INTERVAL '10' SECOND)"
QUERIES: dict[str, tuple[str, slice]] = {
    "all": ("SELECT * FROM t", ALL),
    "ordered": ("SELECT * FROM t ORDER BY ts + INTERVAL '1' SECOND LIMIT 4", ALL),
    "filtered": ("SELECT {n}, v AS w FROM t WHERE {n} IS NOT NULL", KNOWN),
    "qualified": ("SELECT z.{n} FROM t AS z WHERE z.{n} IS NOT NULL", KNOWN),
    "joined": ("SELECT a.* FROM t a JOIN t b ON a.ts = b.ts ORDER BY a.ts", ALL),
    "common": ("WITH c AS (SELECT * FROM t) SELECT {n} FROM c ORDER BY ts", ALL),
    "inner": ("SELECT * FROM (SELECT {n}, ts FROM t) ORDER BY ts", ALL),
    "window by key": (f"SELECT {{n}}, COUNT(*) AS c FROM t GROUP BY {{n}}, {WINDOW}", ALL),
    "window": (f"SELECT FIRST({{n}}) AS {{n}} FROM t GROUP BY {WINDOW}", FIRST),
    "window where": (
        f"SELECT LAST({{n}}) AS {{n}} FROM t WHERE {{n}} IS NULL GROUP BY {WINDOW}",
        slice(3, 4),
    ),
    "count window": ("SELECT {n}, COUNT(*) AS c FROM t GROUP BY {n}, TUMBLE(ROWS, 1)", ALL),
    "frames": (
        "SELECT *, FIRST({n}) OVER (PARTITION BY {n} ORDER BY ts ROWS 3 PRECEDING) AS f FROM t",
        ALL,
    ),
    "pattern, all rows": (
        "SELECT * FROM t MATCH_RECOGNIZE (ALL ROWS PER MATCH PATTERN (A+))",
        ALL,
    ),
    "pattern by key": (
        "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY {n} MEASURES COUNT(*) AS c PATTERN (A))",
        ALL,
    ),
    "pattern": (
        "SELECT * FROM t MATCH_RECOGNIZE (MEASURES FIRST(A.{n}) AS {n} PATTERN (A+) "
        "DEFINE A AS {n} IS NOT NULL)",
        FIRST,
    ),
    "situations": (
        "SELECT * FROM t SITUATIONS (DEFINE fast AS v > 2 RETURN FIRST({n}) AS {n})",
        slice(1, 2),
    ),
    "temporal": (
        "SELECT * FROM t TPSTREAM (DEFINE a AS v > 0, b AS v > 2 PATTERN a contains b; "
        "a overlaps b WITHIN 1 MINUTE RETURN FIRST(a.{n}) AS {n})",
        FIRST,
    ),
    "standing": ("SELECT * FROM t [ROWS 4]", ALL),
    "standing, named": ("SELECT {n} FROM t [RANGE 1 MINUTE] z", ALL),
    "standing, inner": (
        "SELECT {n} FROM (SELECT * FROM t [ROWS 4]) z WHERE {n} IS NOT NULL",
        KNOWN,
    ),
    "standing join": ("SELECT a.{n} FROM t [ROWS 4] a JOIN t [ROWS 4] b ON a.{n} = b.{n}", KNOWN),
    "standing groups": ("SELECT {n}, COUNT(*) AS c FROM t [ROWS 4] GROUP BY {n}", ALL),
    "standing top": ("SELECT * FROM t [ROWS 4] ORDER BY ts LIMIT 2", slice(0, 2)),
    "istream": ("ISTREAM (SELECT * FROM t [ROWS 1])", ALL),
    "istream, internal": ("ISTREAM (SELECT * FROM t [RANGE 1 MINUTE INTERNAL])", ALL),
    "dstream": ("DSTREAM (SELECT * FROM t [ROWS 1])", KNOWN),
    "rstream": ("RSTREAM (SELECT * FROM t [ROWS 1])", ALL),
}


def refused(name: str, context: str) -> bool:
    """Whether a name cannot be used, because what comes out has a column of that name."""
    if name in CHANGES:
        return "standing" in context or "stream" in context
    return name in SITUATIONS and context == "situations"


def table_with(name: str, kind: str) -> pa.Table:
    fields = [("ts", pa.timestamp("us")), (name, ev.schema.DataType.parse(kind).arrow)]
    columns = {"ts": TIMES, name: VALUES[kind], "v": FAST}
    return pa.table(columns, pa.schema([*fields, ("v", pa.float64())]))


def check(found: Callable[[], pa.Table], name: str, context: str, expected: list[object]) -> None:
    if refused(name, context):
        with pytest.raises(EventideError, match=f"column .*'{name}'") as caught:
            found()
        assert caught.value.hint is not None
        assert f"{name}" in caught.value.hint or "AS" in caught.value.hint
        return
    values = found().column(name).to_pylist()
    assert sorted(values, key=str) == sorted(expected, key=str)


def answer(text: str, table: pa.Table) -> pa.Table:
    return ev.sql(text, t=table).to_arrow()


SHOWING_ALL = ("all", "joined", "frames", "pattern, all rows", "standing", "istream")
"""Where columns of ours stand beside those of users: enough for names that are none of ours."""
ASKED = [(n, c) for n in NAMES for c in QUERIES if n in OURS or c in SHOWING_ALL]


@pytest.mark.parametrize(("name", "context"), ASKED)
def test_a_column_may_be_called_so_in_queries(name: str, context: str) -> None:
    text, rows = QUERIES[context]
    for kind in kinds_of(name, list(QUERIES).index(context)):
        table, values = table_with(name, kind), VALUES[kind]
        asked = text.format(n=quoted(name))
        check(partial(answer, asked, table), name, context, values[rows])


Stored = Callable[[ev.Database, str, pa.Table], pa.Table]


def read_again(db: ev.Database, _: str, events: pa.Table) -> pa.Table:
    db.stream("t").append(events)
    db.stream("t").flush()
    return ev.open(db.path).stream("t").events().to_arrow()


def by_condition(db: ev.Database, name: str, events: pa.Table) -> pa.Table:
    stream = db.stream("t")
    stream.append(events.to_pylist())
    stream.add_index(name)
    stream.flush()
    parts = [stream.events(where={name: value}) for value in events[name].to_pylist()[:3]]
    parts.append(db.sql(f"SELECT * FROM t WHERE {quoted(name)} IS NULL"))
    return pa.concat_tables([part.to_arrow() for part in parts], promote_options="default")


def live(db: ev.Database, _: str, events: pa.Table) -> pa.Table:
    pieces: list[pa.Table] = []
    query = db.subscribe("SELECT * FROM t", lambda piece: pieces.append(piece.to_arrow()))
    db.stream("t").append(events)
    query.finish()
    return pa.concat_tables(pieces)


def live_standing(db: ev.Database, _: str, events: pa.Table) -> pa.Table:
    pieces: list[pa.Table] = []
    text = "SELECT * FROM t [RANGE 1 SECOND]"
    query = db.subscribe(text, lambda piece: pieces.append(piece.to_arrow()))
    db.stream("t").append(events)
    query.advance(60 * SECOND)
    query.wait()
    return pa.concat_tables(pieces)


def current_standing(db: ev.Database, _: str, events: pa.Table) -> pa.Table:
    query = db.subscribe("SELECT * FROM t [ROWS 4]")
    db.stream("t").append(events)
    query.advance(60 * SECOND)
    return query.current().to_arrow()


def late(db: ev.Database, _: str, events: pa.Table) -> pa.Table:
    query = db.subscribe("SELECT * FROM t")
    db.stream("t").append([{"ts": 60 * SECOND}])
    db.stream("t").append(events)
    return query.late().to_arrow()


def replayed(db: ev.Database, _: str, events: pa.Table) -> pa.Table:
    db.stream("t").append(events)
    return pa.concat_tables([piece.to_arrow() for piece in db.replay("SELECT * FROM t")])


def merged(db: ev.Database, _: str, events: pa.Table) -> pa.Table:
    db.stream("t").append(events)
    db.create_stream("u", {"w": "int64"}).append([{"ts": 60 * SECOND, "w": 1}])
    pieces = [piece.to_arrow() for piece in db.replay_events("t", "u")]
    return pa.concat_tables(pieces).slice(0, 4)


def related(db: ev.Database, name: str, events: pa.Table) -> pa.Table:
    kind = db.stream("t").schema.type_of(name)
    relation = db.create_relation("r", {"number": "int64", name: kind}, key=["number"])
    values = events[name].to_pylist()
    relation.upsert([{"number": n, name: value} for n, value in enumerate(values)], at=5)
    return relation.current().to_arrow()


def related_standing(db: ev.Database, name: str, events: pa.Table) -> pa.Table:
    related(db, name, events)
    db.stream("t").append(events)
    return db.sql("SELECT r.* FROM t [ROWS 1] z JOIN r ON r.number >= 0 * z.v").to_arrow()


STORED: list[Stored] = [
    *(read_again, by_condition, live, live_standing, current_standing, late, replayed, merged),
    *(related, related_standing),
]


KEPT = [(n, c) for n in NAMES for c in STORED if n in OURS or c in (read_again, related)]


@pytest.mark.parametrize(("name", "call"), KEPT)
def test_an_attribute_may_be_called_so(name: str, call: Stored, tmp_path: Path) -> None:
    for kind in kinds_of(name, STORED.index(call)):
        db = ev.open(tmp_path / kind)
        db.create_stream("t", {name: kind, "v": "float64"})
        if (name, call) in {
            ("stream", merged),
            ("deleted", related),
            ("deleted", related_standing),
        }:
            with pytest.raises(SchemaError, match=f"'{name}'") as caught:
                call(db, name, table_with(name, kind))
            assert caught.value.hint is not None
            continue
        rows = table_with(name, kind)
        check(partial(call, db, name, rows), name, call.__name__, VALUES[kind])


def test_what_is_refused_works_under_another_name() -> None:
    table = table_with("exp", "string")
    text = "SELECT * EXCLUDE (exp), exp AS exp_value FROM t [ROWS 4]"
    assert ev.sql(text, t=table).to_arrow()["exp_value"].to_pylist() == VALUES["string"]
    table = table_with("start_ts", "string")
    text = "SELECT * FROM t SITUATIONS (PARTITION BY start_ts AS began DEFINE fast AS v > 2)"
    assert "began" in ev.sql(text, t=table).to_arrow().column_names


def test_bounds_of_windows_beside_an_attribute_of_that_name() -> None:
    table = table_with("window_start", "string")
    text = f"SELECT window_start, MAX(window_start) AS own FROM t GROUP BY {WINDOW}"
    assert ev.sql(text, t=table).rows() == [{"window_start": datetime(1970, 1, 1), "own": "d"}]


@pytest.mark.parametrize("name", ["_seq", "_SEQ", "ts", "Ts"])
def test_the_names_of_every_event_are_no_attributes(name: str, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="clashes with") as caught:
        ev.open(tmp_path / "db").create_stream("s", {name: "string"})
    assert caught.value.hint is not None
    assert "ts and _seq are always there" in caught.value.hint


def test_seq_is_not_the_order_of_arrival(tmp_path: Path) -> None:
    db = ev.open(tmp_path / "db")
    stream = db.create_stream("s", {"seq": "string"})
    stream.append([{"ts": ts, "seq": text} for ts, text in zip(TIMES, "dcba", strict=True)])
    rows = ev.open(tmp_path / "db").sql("SELECT seq, _seq FROM s ORDER BY seq LIMIT 2").rows()
    assert rows == [{"seq": "a", "_seq": 3}, {"seq": "b", "_seq": 2}]


def test_a_table_may_number_its_rows_itself() -> None:
    """So what came out of a query can go into another one."""
    table = pa.table({"ts": [5, 5], "_seq": [1, 0], "seq": ["b", "a"]})
    text = "SELECT FIRST(seq) AS first FROM s GROUP BY TUMBLE(ts, INTERVAL '1' SECOND)"
    assert ev.sql(text, s=table).rows() == [{"first": "a"}]


def test_a_number_of_rows_that_is_none_is_refused() -> None:
    with pytest.raises(SchemaError, match="column '_seq' has type string") as caught:
        ev.sql("SELECT x FROM s", s=pa.table({"ts": [0], "_seq": ["a"], "x": [1]}))
    assert caught.value.hint == "drop it, or rename it: 'seq' is free"
