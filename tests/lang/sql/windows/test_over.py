"""LAG, LEAD, ROW_NUMBER, FIRST_VALUE and LAST_VALUE: the values that DuckDB computes, live too."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import eventide as ev
from eventide.engines.build import build_live_tree
from eventide.errors import EventideError
from eventide.lang.sql import plan_sql
from eventide.plan.explain import explain
from eventide.schema import Schema

SCHEMA = Schema.of({"k": "string", "x": "int64"})
WINDOW = "(PARTITION BY k ORDER BY ts)"
QUERIES = {
    f"SELECT ts, k, LAG(x) OVER {WINDOW} AS v FROM t": f"LAG(x) OVER {WINDOW}",
    f"SELECT ts, k, LAG(x, 3, -1) OVER {WINDOW} AS v FROM t": f"LAG(x, 3, -1) OVER {WINDOW}",
    f"SELECT ts, k, LEAD(x) OVER {WINDOW} AS v FROM t": f"LEAD(x) OVER {WINDOW}",
    f"SELECT ts, k, LEAD(x, 3, -1) OVER {WINDOW} AS v FROM t": f"LEAD(x, 3, -1) OVER {WINDOW}",
    f"SELECT ts, k, ROW_NUMBER() OVER {WINDOW} - 1 AS v FROM t": f"ROW_NUMBER() OVER {WINDOW} - 1",
    "SELECT ts, k, ROW_NUMBER() OVER (ORDER BY ts) AS v FROM t": "ROW_NUMBER() OVER (ORDER BY ts)",
    f"SELECT ts, k, ROW_NUMBER() OVER w + LEAD(x, 2, 0) OVER w - LAG(x) OVER w AS v FROM t "
    f"WINDOW w AS {WINDOW}": f"ROW_NUMBER() OVER {WINDOW} + LEAD(x, 2, 0) OVER {WINDOW} "
    f"- LAG(x) OVER {WINDOW}",
    f"SELECT ts, k, RANK() OVER {WINDOW} + LAG(x, 1, 0) OVER {WINDOW} AS v FROM t": (
        f"RANK() OVER {WINDOW} + LAG(x, 1, 0) OVER {WINDOW}"
    ),
    f"SELECT ts, k, DENSE_RANK() OVER {WINDOW} - RANK() OVER (ORDER BY ts) AS v FROM t": (
        f"DENSE_RANK() OVER {WINDOW} - RANK() OVER (ORDER BY ts)"
    ),
    "SELECT ts, k, RANK() OVER (PARTITION BY k ORDER BY ts, _seq) AS v FROM t": (
        f"RANK() OVER {WINDOW}"
    ),
    f"SELECT ts, k, x - LAG(x, 2) OVER {WINDOW} AS v FROM t": f"x - LAG(x, 2) OVER {WINDOW}",
    "SELECT ts, k, FIRST_VALUE(x) OVER (PARTITION BY k ORDER BY ts ROWS 2 PRECEDING) AS v FROM t": (
        "FIRST_VALUE(x) OVER (PARTITION BY k ORDER BY ts ROWS 2 PRECEDING)"
    ),
    "SELECT ts, k, LAST_VALUE(x) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN "
    "INTERVAL '2' SECOND PRECEDING AND CURRENT ROW) AS v FROM t": (
        "LAST_VALUE(x) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN "
        "INTERVAL '2' SECOND PRECEDING AND CURRENT ROW)"
    ),
}


def rows() -> list[dict[str, object]]:
    choose = random.Random(3)
    return [
        {"ts": n * 1_000_000, "k": choose.choice(["a", "b", None]), "x": choose.choice([n, None])}
        for n in range(40)
    ]


@pytest.mark.parametrize("text", QUERIES)
def test_as_duckdb_computes_it_and_live(text: str, tmp_path: Path) -> None:
    assert "Relational" not in explain(plan_sql(text, {"t": SCHEMA}))
    # Around DISTINCT rows, the expression is DuckDB's.
    theirs = f"SELECT ts, k, {QUERIES[text]} AS v FROM (SELECT DISTINCT * FROM t) ORDER BY ts"
    assert "Relational" in explain(plan_sql(theirs, {"t": SCHEMA}))
    table = pa.Table.from_pylist(rows()).cast(
        pa.schema([("ts", pa.int64()), ("k", pa.string()), ("x", pa.int64())])
    )
    expected = ev.sql(theirs, t=table).rows()
    assert in_time(ev.sql(text, t=table).rows()) == expected
    db = ev.open(tmp_path / "db")
    db.create_stream("t", {"k": "string", "x": "int64"}).append(table)
    assert in_time([row for part in db.replay(text) for row in part.rows()]) == expected


def in_time(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["ts"])


@pytest.mark.parametrize(
    "value",
    [
        f"RANK() OVER {WINDOW} + _seq",
        f"PERCENT_RANK() OVER {WINDOW}",
        f"NTILE(3) OVER {WINDOW}",
        f"ROW_NUMBER() OVER {WINDOW} + ROW_NUMBER() OVER (ORDER BY ts)",
        "ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC)",
        f"LEAD(x, x) OVER {WINDOW}",
        f"LAG(x, x) OVER {WINDOW}",
        "LAG(x) OVER (ORDER BY x)",
        f"LAG(x IGNORE NULLS) OVER {WINDOW}",
    ],
)
def test_the_others_are_duckdbs_over_history_and_refused_live(value: str, tmp_path: Path) -> None:
    text = f"SELECT ts, {value} AS v FROM t"
    assert "Relational" in explain(plan_sql(text, {"t": SCHEMA}))
    db = ev.open(tmp_path / "db")
    db.create_stream("t", {"k": "string", "x": "int64"})
    with pytest.raises(EventideError) as failure:
        db.subscribe(text)
    assert failure.value.hint


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC)", "FROM cars [RANGE 1 HOUR]"),
        ("DENSE_RANK() OVER (ORDER BY ts DESC)", "RANK() OVER (PARTITION BY car ORDER BY ts)"),
        (f"RANK() OVER {WINDOW} + _seq", "ORDER BY ts, _seq"),
        ("RANK() OVER (PARTITION BY k ORDER BY x)", "PARTITION BY window_start, window_end"),
        (f"ROW_NUMBER() OVER {WINDOW} + ROW_NUMBER() OVER (ORDER BY ts)", "in a SELECT around"),
    ],
)
def test_a_number_that_later_rows_change_says_what_runs_live(value: str, hint: str) -> None:
    with pytest.raises(EventideError, match="does not run live") as failure:
        build_live_tree(plan_sql(f"SELECT {value} AS v FROM t", {"t": SCHEMA}))
    assert hint in (failure.value.hint or "")
    assert failure.value.span is not None


def test_the_first_rows_of_each_key_in_order_of_time_run_live() -> None:
    number = f"SELECT *, ROW_NUMBER() OVER {WINDOW} AS place FROM t"
    build_live_tree(plan_sql(f"SELECT k, x FROM ({number}) WHERE place <= 3", {"t": SCHEMA}))
