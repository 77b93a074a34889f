"""Ranks of rows within windows: those of DuckDB, for any values, cuts and orders."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eventide as ev
from eventide.engines.build import build_live_tree
from eventide.engines.live.engine import LiveEngine
from eventide.errors import EventideError, StateError
from eventide.lang.sql import plan_sql
from eventide.operators.envelope import seal
from eventide.operators.state import write_rows
from eventide.operators.windows.ranks import RankWindowRows
from eventide.schema import Schema
from tests.engines.engines import plain
from tests.engines.live.arriving import in_steps, lived
from tests.engines.scenarios import as_bag
from tests.naive.windows import Event

SECOND = 1_000_000
SCHEMAS = {"t": Schema.of({"k": "string", "x": "float64", "n": "int64"})}
SOURCE = "TUMBLE(t, ts, INTERVAL '3' SECOND)"
events = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(-9, 9).map(lambda second: second * SECOND),
            "k": st.sampled_from(["a", "b", None]),
            "x": st.sampled_from([None, 0.0, -0.0, 1.5, -3.0, float("inf")]),
        }
    ),
    max_size=40,
)
orders = st.lists(
    st.sampled_from(["x", "x DESC", "x NULLS FIRST", "x DESC NULLS FIRST", "k", "k DESC"]),
    min_size=1,
    max_size=2,
)


@settings(deadline=None, max_examples=60)
@given(events, orders, st.sampled_from(["", ", k"]), st.integers(1, 9))
def test_as_duckdb_ranks_them(drawn: list[Event], order: list[str], keys: str, length: int) -> None:
    rows = [{**row, "n": seq, "_seq": seq} for seq, row in enumerate(drawn)]
    over = "OVER (PARTITION BY window_start, window_end{} ORDER BY {}{})"
    ours = over.format(keys, ", ".join(order), "")
    text = (
        f"SELECT n, ROW_NUMBER() {ours} AS r, RANK() {ours} AS k, DENSE_RANK() {ours} AS d"
        f" FROM {SOURCE}"
    )
    engine = LiveEngine.of(plan_sql(text, SCHEMAS), SCHEMAS, 20 * SECOND)
    found = lived(engine, in_steps({"t": rows}, length), SCHEMAS)
    theirs = over.format(keys, ", ".join(order), "")
    numbered = over.format(keys, ", ".join(order), ", ts, n")
    with duckdb.connect() as connection:
        connection.register("t", pa.Table.from_pylist(rows, schema=SCHEMAS["t"].arrow))
        expected = connection.sql(
            f"SELECT n, ROW_NUMBER() {numbered} AS r, RANK() {theirs} AS k, DENSE_RANK() {theirs}"
            " AS d FROM (SELECT *, time_bucket(INTERVAL '3 seconds', ts::TIMESTAMP,"
            " TIMESTAMP '1970-01-01') AS window_start, window_start + INTERVAL '3 seconds'"
            " AS window_end FROM t)"
        ).to_arrow_table()
    assert as_bag(found.rows) == as_bag(expected.to_pylist())


TIMES = (
    "SELECT n, x, ROW_NUMBER() OVER w AS number, RANK() OVER w AS place,"
    " DENSE_RANK() OVER w AS level, RANK() OVER (ORDER BY ts) AS of_all,"
    " DENSE_RANK() OVER (PARTITION BY n % 3 ORDER BY ts) AS third"
    " FROM t WHERE n <> 5 WINDOW w AS (PARTITION BY k ORDER BY ts)"
)


def naive_ranks(rows: list[Event]) -> list[Event]:
    """How many rows, and how many times, there are before each."""
    chosen = [row for row in rows if row["n"] != 5]

    found = []
    for row in chosen:
        of_key = [each for each in chosen if each["k"] == row["k"]]
        earlier = [each["ts"] for each in of_key if each["ts"] < row["ts"]]
        peers = [each for each in of_key if each["ts"] == row["ts"] and each["n"] <= row["n"]]
        thirds = {
            each["ts"]
            for each in chosen
            if each["n"] % 3 == row["n"] % 3 and each["ts"] < row["ts"]
        }
        found.append(
            {
                "n": row["n"],
                "x": row["x"],
                "number": len(earlier) + len(peers),
                "place": len(earlier) + 1,
                "level": len({*earlier}) + 1,
                "of_all": sum(each["ts"] < row["ts"] for each in chosen) + 1,
                "third": len(thirds) + 1,
            }
        )
    return found


@pytest.mark.filterwarnings("ignore::eventide.errors.UnboundedStateWarning")
@settings(deadline=None, max_examples=40)
@given(events, st.integers(1, 9), st.sampled_from([0, 2, 20]))
def test_in_order_of_time_over_history_and_live(
    drawn: list[Event], length: int, lateness: int
) -> None:
    """In any cuts, dumped and loaded in between; late events are left out."""
    rows = [{**row, "n": seq, "_seq": seq} for seq, row in enumerate(drawn)]
    table = pa.Table.from_pylist(rows, schema=SCHEMAS["t"].arrow)
    assert as_bag(plain(ev.sql(TIMES, t=table).to_arrow())) == as_bag(naive_ranks(rows))
    engine = LiveEngine.of(plan_sql(TIMES, SCHEMAS), SCHEMAS, lateness * SECOND)
    found = lived(engine, in_steps({"t": rows}, length), SCHEMAS)
    on_time = found.on_time({"t": rows})["t"]
    assert as_bag(found.rows) == as_bag(naive_ranks(on_time))


def test_a_rank_is_certain_behind_its_time() -> None:
    text = "SELECT n, RANK() OVER (ORDER BY ts) AS r, DENSE_RANK() OVER (ORDER BY ts) AS d FROM t"
    engine = LiveEngine.of(plan_sql(text, SCHEMAS), SCHEMAS)
    rows = [
        {"ts": ts * SECOND, "k": "a", "x": 0.0, "n": n, "_seq": n}
        for n, ts in enumerate([1, 1, 2, 3])
    ]
    found = lived(engine, in_steps({"t": rows}, 1), SCHEMAS)
    first = [{"n": 0, "r": 1, "d": 1}, {"n": 1, "r": 1, "d": 1}]
    third = [*first, {"n": 2, "r": 3, "d": 2}]
    told = [so_far for _, so_far in found.told]
    assert told == [[], [], first, third, [*third, {"n": 3, "r": 4, "d": 3}]]


def test_a_row_leaves_when_its_window_is_complete() -> None:
    text = f"SELECT n, RANK() OVER (PARTITION BY window_end ORDER BY x) AS r FROM {SOURCE}"
    engine = LiveEngine.of(plan_sql(text, SCHEMAS), SCHEMAS)
    rows = [
        {"ts": ts * SECOND, "k": "a", "x": x, "n": n, "_seq": n}
        for n, (ts, x) in enumerate([(0, 5.0), (2, 4.0), (3, 1.0), (4, 9.0)])
    ]
    found = lived(engine, in_steps({"t": rows}, 1), SCHEMAS)
    told = [so_far for _, so_far in found.told]
    first = [{"n": 0, "r": 2}, {"n": 1, "r": 1}]
    #  0  2 |3  4      the window of 0 and 2 ends at 3, and is complete behind it
    assert told == [[], [], [], first, [*first, {"n": 2, "r": 1}, {"n": 3, "r": 2}]]


@pytest.mark.parametrize(
    "over",
    [
        "PARTITION BY window_start ORDER BY x",
        "PARTITION BY k ORDER BY x",
        "PARTITION BY window_end ORDER BY x ROWS 2 PRECEDING",
        "PARTITION BY window_end",
    ],
)
def test_without_an_end_ranks_are_the_engines(over: str) -> None:
    text = f"SELECT RANK() OVER ({over}) AS r FROM {SOURCE}"
    with pytest.raises(EventideError) as failure:
        build_live_tree(plan_sql(text, SCHEMAS))
    assert failure.value.hint


def test_a_state_without_ends_is_refused() -> None:
    text = "SELECT RANK() OVER (PARTITION BY ts ORDER BY c) AS r FROM (SELECT COUNT(*) AS c FROM t"
    tree = build_live_tree(plan_sql(f"{text} GROUP BY TUMBLE(ts, INTERVAL '3' SECOND))", SCHEMAS))
    (operator,) = (each for each in tree.operators if isinstance(each, RankWindowRows))
    rows = pa.RecordBatch.from_pylist([{"c": 1, "ts": None}], schema=operator.source_schema)
    with pytest.raises(StateError, match="ends of windows"):
        operator.load(seal(operator.owner, write_rows("RankWindowRows", rows, {})))
