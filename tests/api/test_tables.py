"""Tables in memory: what `ev.sql` and `append` accept of frames, and what they ignore."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import eventide as ev
from eventide.errors import BindError, EventideError, IngestError, SchemaError

TIMES = pd.date_range("2026-01-01", periods=3, freq="s")
MOMENTS = [datetime(2026, 1, 1, 0, 0, second) for second in range(3)]
COUNTED = "SELECT COUNT(*) AS n, window_start FROM t GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)"


def frame(**more: object) -> pd.DataFrame:
    return pd.DataFrame({"x": [1, 3, 2], "k": ["a", "b", "a"]} | more)


def found(text: str, *, ts: Any = None, **tables: object) -> dict[str, list[object]]:  # noqa: ANN401
    columns: dict[str, list[object]] = ev.sql(text, ts=ts, **tables).to_arrow().to_pydict()
    return columns


# The index of pandas.


def test_an_index_without_a_name_is_no_column() -> None:
    table = frame(ts=TIMES)
    for each in (table, table[table.x > 0], table.sort_values("x").sort_values("ts")):
        assert list(found("SELECT * FROM t", t=each)) == ["x", "k", "ts"] or list(
            found("SELECT * FROM t", t=each)
        ) == ["ts", "x", "k"]


def test_levels_of_an_index_with_names_are_columns() -> None:
    assert found("SELECT * FROM t", t=frame().set_index("k")) == {
        "k": ["a", "b", "a"],
        "x": [1, 3, 2],
    }
    levels = frame(y=[7, 8, 9]).set_index(["k", "x"])
    assert found("SELECT x, k, y FROM t", t=levels)["y"] == [7, 8, 9]
    beside = frame().set_index("k", drop=False)
    beside.index = beside.index + "!"  # the column wins
    assert found("SELECT k FROM t", t=beside) == {"k": ["a", "b", "a"]}


@pytest.mark.parametrize("name", [None, "ts", "Date"])
def test_an_index_of_times_has_the_times(name: str | None, tmp_path: Path) -> None:
    table = frame().set_index(TIMES.rename(name))
    assert found(COUNTED, t=table) == {"n": [3], "window_start": MOMENTS[:1]}
    named = {"Date": MOMENTS} if name == "Date" else {}
    assert found("SELECT * FROM t", t=table) == {
        "ts": MOMENTS,
        **named,
        "x": [1, 3, 2],
        "k": ["a", "b", "a"],
    }
    stream = ev.open(tmp_path / "db").create_stream("s", {"x": "int64", "k": "string"})
    stream.append(table)
    assert [row["ts"] for row in stream.events().rows()] == MOMENTS


def test_a_column_of_times_wins_over_an_index_of_times() -> None:
    table = frame(ts=TIMES).set_index(pd.date_range("2000-01-01", periods=3))
    assert found("SELECT ts FROM t", t=table) == {"ts": MOMENTS}


def test_an_appended_frame_has_the_names_of_its_index(tmp_path: Path) -> None:
    stream = ev.open(tmp_path / "db").create_stream("s", {"x": "int64", "k": "string"})
    stream.append(frame(ts=TIMES).set_index("k"))
    assert [row["k"] for row in stream.events().rows()] == ["a", "b", "a"]
    with pytest.raises(SchemaError, match="no attribute 'other'"):
        stream.append(frame(ts=TIMES, other=[1, 2, 3]).set_index("other"))


# Columns that are not read.

ODD: dict[str, object] = {
    "lists of structs": [[{"a": 1}], [{"a": 2}], []],
    "mixed": [1, "a", None],
    "structs": [{"a": 1}, {"a": 2}, None],
    "objects": [object(), object(), object()],
    "times of day": [datetime(2026, 1, 1).time()] * 3,
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("kind", ["pandas", "dict", "rows"])
def test_columns_that_are_not_read_may_be_anything(odd: str, kind: str) -> None:
    columns: dict[str, Any] = {"ts": MOMENTS, "x": [1, 3, 2], odd: ODD[odd]}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    table = {"pandas": pd.DataFrame(columns), "dict": columns, "rows": rows}[kind]
    assert found("SELECT x FROM t", t=table) == {"x": [1, 3, 2]}
    assert found(f'SELECT * EXCLUDE ("{odd}") FROM t', t=table)["x"] == [1, 3, 2]
    assert found(f'SELECT * EXCLUDE ("{odd}") FROM t ORDER BY x + 1', t=table)["x"] == [1, 2, 3]
    assert found("SELECT COUNT(*) AS n FROM t", t=table) == {"n": [3]}
    for text in ("SELECT * FROM t", f'SELECT "{odd}" IS NULL AS y FROM t'):
        with pytest.raises(BindError, match=f"column '{odd}' of t has") as caught:
            ev.sql(text, t=table)
        assert caught.value.hint is not None
        assert f"EXCLUDE ({odd})" in caught.value.hint


def test_columns_of_arrow_and_polars_that_are_not_read() -> None:
    table = pa.table({"ts": [0, 1], "x": [1, 2], "structs": [{"a": 1}, {"a": 2}]})
    assert found("SELECT x FROM t", t=table) == {"x": [1, 2]}
    assert found("SELECT x FROM t", t=pl.DataFrame(table)) == {"x": [1, 2]}
    with pytest.raises(BindError, match="column 'structs' of t has type"):
        ev.sql("SELECT * FROM t", t=pl.DataFrame(table))


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_lists_are_read_as_they_are(kind: Callable[[object], object]) -> None:
    table = kind({"ts": [0, 1, 2], "lists": [[1], [2, 3], []]})
    assert found("SELECT lists FROM t", t=table) == {"lists": [[1], [2, 3], []]}


def test_columns_that_join_using_does_not_name_are_not_read() -> None:
    names = frame(lists=[[1], [2], [3]])
    text = "SELECT a.x FROM t a JOIN t b USING (x, k) ORDER BY a.x"
    assert found(text, t=names) == {"x": [1, 2, 3]}


def test_a_table_that_no_query_reads_is_left_alone() -> None:
    broken = pa.table({"ts": ["soon"], "y": [1]})
    assert found("SELECT x FROM t", t=frame(), other=broken) == {"x": [1, 3, 2]}


# Types that streams do not have.


def test_durations_are_intervals() -> None:
    table = frame(wait=pd.to_timedelta([1, 2, 3], unit="s"))
    text = "SELECT wait, wait * 2 AS twice FROM t WHERE wait > INTERVAL '1' SECOND"
    assert found(text, t=table) == {
        "wait": [timedelta(seconds=2), timedelta(seconds=3)],
        "twice": [timedelta(seconds=4), timedelta(seconds=6)],
    }
    assert found("SELECT MAX(wait) AS longest FROM t", t=table)["longest"] == [timedelta(seconds=3)]


@pytest.mark.parametrize("rows", [0, 2])
def test_columns_without_a_value_are_text(rows: int) -> None:
    none = [None] * rows
    objects = pd.DataFrame(
        {"ts": pd.Series([0] * rows, dtype="int64"), "y": pd.Series(none, dtype=object)}
    )
    for table in (objects, pa.table({"ts": [0] * rows, "y": pa.nulls(rows)})):
        answer = ev.sql("SELECT y, COALESCE(y, 'none') AS z FROM t", t=table).to_arrow()
        assert answer.schema.field("y").type == pa.string()
        assert answer["z"].to_pylist() == ["none"] * rows


# Tables without times.


def test_rows_without_times_have_their_order() -> None:
    table = frame()
    assert found("SELECT * FROM t", t=table) == {"x": [1, 3, 2], "k": ["a", "b", "a"]}
    rising = "MATCH_RECOGNIZE ({} PATTERN (A B) DEFINE B AS x > PREV(x))"
    assert found(f"SELECT * FROM t {rising.format('ALL ROWS PER MATCH')}", t=table) == {
        "x": [1, 3],
        "k": ["a", "b"],
    }
    assert found(f"SELECT * FROM t {rising.format('MEASURES LAST(x) AS ts')}", t=table) == {
        "ts": [3]
    }
    assert found("SELECT SUM(x) AS s FROM t GROUP BY TUMBLE(ROWS, 2)", t=table) == {"s": [4]}
    assert found("SELECT x FROM t [ROWS 2]", t=table) == {"x": [3, 2]}
    text = "SELECT x, SUM(x) OVER (ORDER BY _seq) AS s FROM t ORDER BY _seq"
    assert found(text, t=table)["s"] == [1, 4, 6]


@pytest.mark.parametrize("window", ["", " [ROWS 9]", " [RANGE 9 SECONDS]"])
@pytest.mark.parametrize("before", ["1950-01-01", "2026-01-01"])
def test_a_lookup_table_needs_no_times(window: str, before: str) -> None:
    events = frame(ts=pd.date_range(before, periods=3, freq="s"))
    names = pd.DataFrame({"k": ["a", "b"], "name": ["Ann", "Bob"]})
    text = f"SELECT e.x, n.* FROM events{window} e JOIN names n ON e.k = n.k"
    answer = found(text, events=events, names=names)
    assert list(answer) == ["x", "k", "name"]
    assert sorted(zip(answer["x"], answer["name"], strict=True)) == [
        (1, "Ann"),
        (2, "Ann"),
        (3, "Bob"),
    ]


def test_periods_need_no_times() -> None:
    periods = pd.DataFrame({"start_ts": TIMES[:2], "end_ts": TIMES[1:], "n": [1, 2]})
    text = "SELECT a.n, b.n AS m FROM p a JOIN p b ON a MEETS b"
    assert found(text, p=periods) == {"n": [1], "m": [2]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT ts FROM t", "no column 'ts' in t"),
        (COUNTED, "no column 'ts' in t"),
        ("SELECT window_start, SUM(x) AS s FROM t GROUP BY TUMBLE(ROWS, 2)", "window_start needs"),
        (
            "SELECT SUM(x) AS s FROM t GROUP BY TUMBLE(ROWS, 2) HAVING window_end IS NULL",
            "window_end needs",
        ),
        ("SELECT x FROM t [RANGE 1 SECOND]", "a window of time needs"),
        ("SELECT x FROM t [SESSION 1 SECOND]", "a window of time needs"),
        ("SELECT x FROM t [ROWS 2 SLIDE 1 SECOND]", "SLIDE needs"),
        ("ISTREAM (SELECT x FROM t [ROWS 2])", "ISTREAM needs"),
        ("SELECT * FROM t SITUATIONS (DEFINE a AS x > 1)", "a situation needs"),
        (
            "SELECT * FROM t MATCH_RECOGNIZE (MEASURES A.x AS y PATTERN (A B) WITHIN 1 SECOND)",
            "WITHIN needs",
        ),
    ],
)
def test_what_needs_times_asks_for_them(text: str, said: str) -> None:
    with pytest.raises(EventideError, match=said) as caught:
        ev.sql(text, t=frame(Moment=TIMES))
    assert caught.value.hint is not None
    assert "ts='Moment'" in caught.value.hint


# The option `ts`.


def test_times_may_be_in_a_column_of_any_name() -> None:
    table = frame(moment=TIMES[::-1])
    assert found("SELECT * FROM t", ts="moment", t=table) == {
        "ts": MOMENTS,
        "x": [2, 3, 1],
        "k": ["a", "b", "a"],
        "moment": MOMENTS,
    }
    steps = {"step": [30, 10, 20], "x": ["c", "a", "b"]}
    assert found("SELECT x, step FROM t", ts="step", t=steps) == {
        "x": ["a", "b", "c"],
        "step": [10, 20, 30],
    }
    texts = {"at": ["2026-01-01T00:00:01", "2026-01-01T00:00:00"], "x": [1, 0]}
    assert found("SELECT x FROM t", ts="at", t=texts) == {"x": [0, 1]}
    assert found("SELECT x FROM t", t={"TS": [2, 1], "x": [1, 0]}) == {"x": [0, 1]}


def test_times_of_several_tables() -> None:
    a, b = frame(at=TIMES), frame(moment=TIMES)
    text = "SELECT a.ts FROM a JOIN b ON a.ts = b.ts ORDER BY a.ts"
    assert found(text, ts={"a": "at", "b": "moment"}, a=a, b=b) == {"ts": MOMENTS}
    assert found(text, ts="at", a=a, b=frame(ts=TIMES)) == {"ts": MOMENTS}
    numbered = "SELECT a.at FROM a JOIN b ON a.k = b.k AND a.x = b.x ORDER BY a.at"
    assert found(numbered, ts={"a": "at", "b": None}, a=a, b=b) == {"at": MOMENTS}


def test_the_option_works_for_temporal_patterns_too() -> None:
    text = """FROM t DEFINE a AS x > 0, b AS x > 2 PATTERN a overlaps b; a contains b
              WITHIN 1 MINUTE RETURN COUNT(b.x) AS n"""
    assert len(ev.tpstream(text, ts="moment", t=frame(moment=TIMES))) == 1


@pytest.mark.parametrize(
    ("ts", "said"),
    [
        ("nope", "no table has a column 'nope'"),
        ({"t": "nope"}, "the table t has no column 'nope'"),
        ({"u": "x"}, "ts names the table 'u', which is not passed"),
        (5, "ts names the column that holds the times, and is int"),
        ("k", "row 0, column 'k': 'a' does not fit timestamp"),
    ],
)
def test_what_is_said_about_times_has_to_fit(ts: object, said: str) -> None:
    with pytest.raises((SchemaError, IngestError), match=said) as caught:
        ev.sql("SELECT x FROM t", ts=ts, t=frame())  # type: ignore[arg-type]
    assert caught.value.hint is not None


def test_a_column_ts_beside_other_times_is_refused() -> None:
    with pytest.raises(SchemaError, match="has a column 'ts' beside the times"):
        ev.sql("SELECT x FROM t", ts="x", t=frame(ts=TIMES))


@pytest.mark.parametrize("names", [("Ts", "tS"), ("ts", "TS"), ("car", "Car")])
def test_names_that_differ_only_in_case_are_refused(names: tuple[str, str]) -> None:
    first, second = names
    table = pa.table({first: [1], second: [2], "x": [3]})
    with pytest.raises(SchemaError, match=f"the columns '{first}' and '{second}'") as caught:
        ev.sql("SELECT x FROM t", t=table)
    assert caught.value.hint is not None


@pytest.mark.parametrize("data", [{1: [5], "1": [6]}, [{1: 5, "1": 6}], [{1: 5}, {"1": 6}]])
def test_names_that_are_one_as_text_are_refused(data: object) -> None:
    with pytest.raises(SchemaError, match="column 1 is there twice"):
        ev.sql("SELECT * FROM t", t=data)


@pytest.mark.parametrize("called", ["when", "ts", "Ts"])
@pytest.mark.parametrize("as_frame", [False, True])
def test_an_unreadable_time_is_named_as_it_was_given(called: str, as_frame: bool) -> None:
    def ask(*times: object) -> list[dict[str, object]]:
        data = {called: list(times), "x": list(range(len(times)))}
        table = pd.DataFrame(data, dtype=object) if as_frame else data
        ts = called if called == "when" else None
        return ev.sql("SELECT ts, x FROM t", ts=ts, t=table).rows()

    with pytest.raises(IngestError, match=f"row 2, column '{called}': 'noon' does not fit"):
        ask(1, "2026-01-01", "noon")
    with pytest.raises(IngestError, match=f"row 1, column '{called}': 'noon' does not fit"):
        ask("2026-01-01", "noon")
    with pytest.raises(IngestError, match=f"row 1, column '{called}': null is not a time"):
        ask("2026-01-01", None)
    moments = [row["ts"] for row in ask(1, "2026-01-01")]
    assert moments == [datetime(1970, 1, 1, 0, 0, 0, 1), datetime(2026, 1, 1)]
