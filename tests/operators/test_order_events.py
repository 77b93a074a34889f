"""Rows of a query as events: in order, numbered, for any cuts; and events of several edges."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.engines.build import build_tree
from eventide.errors import StateError
from eventide.instants import END_OF_TIME_US, START_OF_TIME_US
from eventide.lang.sql import plan_sql
from eventide.operators.align_rows import AlignRows
from eventide.operators.order_events import OrderEvents, in_order
from eventide.operators.order_rows import OrderRows, sorted_places
from eventide.operators.union_rows import UnionRows
from eventide.plan.expressions import Column, OrderKey
from eventide.schema import FLOAT64, Schema
from tests.engines.scenarios import as_bag

SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("k", pa.string()), ("x", pa.int64())])
Row = dict[str, Any]
rows = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(0, 12),
            "k": st.sampled_from([None, "a", "b"]),
            "x": st.sampled_from([None, 1, 2]),
        }
    ),
    max_size=12,
)


def batch(rows: list[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def plain(batch: pa.RecordBatch) -> list[Row]:
    found: list[Row] = batch.set_column(0, "ts", batch.column("ts").view(pa.int64())).to_pylist()
    return found


def nulls_first(row: Row, order: tuple[str, ...]) -> tuple[Any, ...]:
    return (row["ts"], *((row[name] is not None, str(row[name])) for name in order))


@settings(deadline=None)
@given(rows, st.lists(st.integers(0, 14), max_size=3), st.sampled_from([(), ("k",), ("k", "x")]))
def test_rows_leave_in_order_when_their_time_has_come(
    events: list[Row], borders: list[int], order: tuple[str, ...]
) -> None:
    operator = OrderEvents(order, SCHEMA, numbered=True)
    # A step brings rows at or behind the border of the step before, in any order.
    state, found, since = operator.initial_state(), list[Row](), -1
    for until in [*sorted(borders), 13]:
        come = [row for row in events if since <= row["ts"] < until + 5]
        events = [row for row in events if row not in come]
        state, left = operator.step(state, (batch(come),), until)
        state = operator.load(operator.dump(state))
        assert all(row["ts"] < until for row in plain(left))
        found += plain(left)
        since = until
    state, left = operator.step(state, (batch(events),), END_OF_TIME_US)
    found += plain(left)
    assert [row.pop("_seq") for row in found] == list(range(len(found)))
    assert found == sorted(found, key=lambda row: nulls_first(row, order))
    assert operator.size(state).tuples == 0


@settings(deadline=None)
@given(rows, rows, st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), max_size=4))
def test_several_edges_are_merged_as_far_as_all_have_come(
    first: list[Row], second: list[Row], borders: list[tuple[int, int]]
) -> None:
    """UNION ALL, in order; and one of the edges alone, as far as the other has come as well."""
    union, ordered, aligned = UnionRows(SCHEMA), OrderEvents((), SCHEMA), AlignRows(SCHEMA)
    arms = [sorted(arm, key=lambda row: row["ts"]) for arm in (first, second)]
    merged = sorted([*arms[0], *arms[1]], key=lambda row: row["ts"])
    state, held = ordered.initial_state(), aligned.initial_state()
    found, own, reached = list[Row](), list[Row](), [0, 0]
    for untils in [*borders, (13, 13)]:
        inputs = []
        for place, until in enumerate(untils):
            reached[place] = max(reached[place], until)
            inputs.append(batch([row for row in arms[place] if row["ts"] < reached[place]]))
            arms[place] = [row for row in arms[place] if row["ts"] >= reached[place]]
        least = min(reached)
        _, both = union.step(None, tuple(inputs), least)
        state, out = ordered.step(state, (both,), least)
        held, alone = aligned.step(held, tuple(inputs), least)
        held = aligned.load(aligned.dump(held))
        assert all(row["ts"] < least for row in plain(out) + plain(alone))
        found += plain(out)
        own += plain(alone)
    assert as_bag(found) == as_bag(merged)
    assert [row["ts"] for row in found] == [row["ts"] for row in merged]
    assert own == sorted(first, key=lambda row: row["ts"])
    newest = max([START_OF_TIME_US + 1, *(row["ts"] for row in merged)])
    assert aligned.reached(held, END_OF_TIME_US) == newest + 1


def test_numbers_that_are_none_come_last_as_in_order_by() -> None:
    schema = pa.schema([("ts", pa.timestamp("us")), ("x", pa.float64())])
    values = [math.nan, 2.0, None, -math.inf, 1.0]
    rows = pa.RecordBatch.from_pylist([{"ts": 0, "x": x} for x in values], schema=schema)
    operator = OrderEvents(("x",), schema)
    _, found = operator.step(operator.initial_state(), (rows,), 1)
    key = OrderKey(Column("x", FLOAT64), nulls_first=True)
    ordered = OrderRows((key,), schema).sorted(rows)
    shown = [str(each.column("x").to_pylist()) for each in (found, ordered)]
    assert shown == ["[None, -inf, 1.0, 2.0, nan]"] * 2


KINDS: dict[pa.DataType, list[Any]] = {
    pa.int64(): [0, 1, -(2**63), 2**63 - 1],
    pa.float64(): [0.0, -0.0, 1.0, -math.inf, math.nan],
    pa.string(): ["", "a", "B", "\u00e9"],
    pa.bool_(): [False, True],
    pa.decimal128(10, 2): [Decimal("0.00"), Decimal("-1.50")],
    pa.list_(pa.int64()): [[], [1], [1, 2]],
}


@settings(deadline=None)
@given(st.data())
def test_rows_are_put_in_order_only_if_they_are_not(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(list(KINDS)), max_size=3))
    count = data.draw(st.integers(0, 4))
    names = tuple(f"c{place}" for place in range(len(kinds)))
    times = data.draw(st.lists(st.integers(0, 1), min_size=count, max_size=count))
    columns = [pa.array(times, pa.int64()).cast(pa.timestamp("us")), pa.array(range(count))]
    for kind in kinds:
        several = st.one_of(st.none(), *[st.sampled_from(KINDS[kind])] * 3)
        columns.append(pa.array(data.draw(st.lists(several, min_size=count, max_size=count)), kind))
    given_rows = pa.RecordBatch.from_arrays(columns, ["ts", "came", *names])
    keys = [OrderKey(Column(name), nulls_first=True) for name in ("ts", *names)]
    places = sorted_places([given_rows.column(name) for name in ("ts", *names)], keys)
    ordered = given_rows.take(places)
    assert in_order(given_rows, names).column("came").equals(ordered.column("came"))
    assert in_order(ordered, names).column("came").equals(ordered.column("came"))


def test_rows_without_a_time_are_no_state() -> None:
    operator = OrderEvents((), SCHEMA)
    state, _ = operator.step(operator.initial_state(), (batch([{"ts": 3}]),), 1)
    broken = pa.RecordBatch.from_pylist([{"ts": None}], schema=SCHEMA)
    with pytest.raises(StateError):
        operator.load(operator.dump(type(state)(broken, 0)))


PATTERNS = [
    "PATTERN (A B)",
    "PATTERN (A B+)",
    "PATTERN (A B* C?)",
    "PATTERN (A B+ C | B)",
    "AFTER MATCH SKIP TO NEXT ROW PATTERN (A B+)",
    "PATTERN (A* B)",
    "STRATEGY skip_till_next PATTERN (A B C) WITHIN INTERVAL '5' MICROSECOND",
    "PATTERN (A?)",
]


@settings(deadline=None)
@given(
    st.sampled_from(PATTERNS),
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from("abc"), st.sampled_from("kl")), max_size=14
    ),
    st.booleans(),
)
def test_no_match_ends_before_what_the_matcher_has_reached(
    pattern: str, drawn: list[tuple[int, str, str]], all_rows: bool
) -> None:
    """As far as it says that it is complete, so far it is: whatever comes later ends later."""
    schema = Schema.of({"label": "string", "k": "string"})
    clauses, _, rest = pattern.rpartition("PATTERN")
    output = "ALL ROWS PER MATCH" if all_rows and "STRATEGY" not in pattern else ""
    defines = ", ".join(f"{each} AS label = '{each.lower()}'" for each in "ABC" if each in rest)
    text = (
        f"SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k MEASURES FINAL LAST(ts) AS last "
        f"{output} {clauses} PATTERN {rest} DEFINE {defines})"
    )
    tree = build_tree(plan_sql(text, {"s": schema}))
    place = next(n for n, each in enumerate(tree.operators) if hasattr(each, "automaton"))
    states, now, reached = tree.initial_state(), 0, START_OF_TIME_US
    for number, (gap, label, key) in enumerate(drawn):
        now += gap
        event = {"ts": now, "_seq": number, "label": label, "k": key}
        came = pa.RecordBatch.from_pylist([event], schema=schema.arrow)
        names = tree.input_schema.names
        states, found = tree.step(states, (came.select(names),), now)
        for row in found.to_pylist():
            time = row["ts"] if output else row["last"]
            if time is not None:
                micros = pa.scalar(time, pa.timestamp("us")).cast(pa.int64()).as_py()
                assert micros >= reached
        reached = max(reached, tree.operators[place].reached(states[place], now))
