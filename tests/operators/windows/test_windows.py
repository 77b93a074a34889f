"""Window and frame operators against their twins: any chunking, dumped and loaded on the way."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eventide
from eventide.engines.build import build_tree
from eventide.errors import EvaluationError, StateError
from eventide.instants import END_OF_TIME_US
from eventide.operators.tree import OperatorTree
from eventide.plan.bind import bind
from eventide.plan.expressions import (
    Aggregate,
    Column,
    Frame,
    Named,
    NamedAggregate,
    RangeFrame,
    RowsFrame,
)
from eventide.plan.nodes import Scan
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import SlidingAggregate, Window, WindowAggregate
from eventide.schema import Schema
from tests.naive import windows as naive

SCHEMA = Schema.of(
    {
        "car": "string",
        "lane": "int64",
        "speed": "float64",
        "gear": "int64",
        "toll": "decimal(12,2)",
        "seen": "timestamp",
        "lit": "bool",
        "tag": "binary",
    }
)

ALL_AGGREGATES: list[tuple[str, str, str]] = [
    ("n", "count(*)", "_seq"),
    *(
        (f"{f}_speed", f, "speed")
        for f in ("count", "sum", "avg", "min", "max", "stddev", "first", "last")
    ),
    *((f"{f}_gear", f, "gear") for f in ("sum", "avg", "min", "max", "stddev", "last")),
    *((f"{f}_toll", f, "toll") for f in ("sum", "avg", "min", "max", "first")),
    *((f"{f}_car", f, "car") for f in ("count", "min", "max", "first")),
    ("min_seen", "min", "seen"),
    ("max_lit", "max", "lit"),
    ("max_tag", "max", "tag"),
]


def named_aggregate(name: str, function: str, attribute: str) -> NamedAggregate:
    if function == "count(*)":
        return NamedAggregate(name, Aggregate("count", None))
    return NamedAggregate(name, Aggregate(function, Column(attribute)))


AGGREGATES = tuple(named_aggregate(*each) for each in ALL_AGGREGATES)
KEYS = ("car", "lane")


def window_plan(size: int, slide: int) -> Plan:
    keys = tuple(Named(name, Column(name)) for name in KEYS)
    plan = WindowAggregate(Scan("cars"), keys, Window(size, slide), AGGREGATES)
    return bind(plan, {"cars": SCHEMA})


def frame_plan(frame: Frame) -> Plan:
    plan = SlidingAggregate(Scan("cars"), tuple(map(Column, KEYS)), frame, AGGREGATES)
    return bind(plan, {"cars": SCHEMA})


speeds = st.one_of(
    st.none(),
    st.integers(-20, 20).map(lambda quarters: quarters / 4),
    st.sampled_from([0.1, 1e16, -1e16, 3.3, 1e-9]),
)
events = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(-30, 60),
            "car": st.sampled_from(["a", "b", None]),
            "lane": st.sampled_from([1, 2, None]),
            "speed": speeds,
            "gear": st.none() | st.integers(-5, 5) | st.sampled_from([2**61, -(2**61)]),
            "toll": st.none() | st.integers(-999, 999).map(lambda cents: Decimal(cents) / 100),
            "seen": st.none() | st.integers(0, 10),
            "lit": st.none() | st.booleans(),
            "tag": st.none() | st.binary(max_size=2),
        }
    ),
    max_size=25,
).map(lambda rows: naive.in_order({**row, "_seq": i} for i, row in enumerate(rows)))


def to_batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA.arrow)


def run(tree: OperatorTree, rows: list[dict[str, Any]], cuts: list[int]) -> list[dict[str, Any]]:
    """Feed the rows cut into batches, with the state dumped and loaded after each."""
    found: list[dict[str, Any]] = []
    states = tree.initial_state()
    bounds = sorted({0, len(rows), *(cut for cut in cuts if cut <= len(rows))})
    for start, end in pairwise(bounds):
        chunk = rows[start:end]
        states, results = tree.step(states, (to_batch(chunk),), chunk[-1]["ts"])
        found += plain_rows(results)
        states = tree.load(tree.dump(states))
    states, results = tree.step(states, (to_batch([]),), END_OF_TIME_US)
    return found + plain_rows(results)


def plain_rows(rows: pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows with timestamps as integers, as the twins have them."""
    columns = [
        column.view(pa.int64()) if pa.types.is_timestamp(column.type) else column
        for column in rows.columns
    ]
    plain: list[dict[str, Any]] = pa.RecordBatch.from_arrays(columns, rows.schema.names).to_pylist()
    return plain


def same_bag(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    def rank(row: dict[str, Any]) -> str:
        return repr([row.get(name) for name in ("window_start", "_seq", *KEYS)])

    found, expected = sorted(found, key=rank), sorted(expected, key=rank)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.keys() == other.keys()
        for name in one:
            assert same_value(name, one[name], other[name]), (name, one, other)


def same_value(name: str, found: Any, expected: Any) -> bool:  # noqa: ANN401
    if not isinstance(expected, float) or math.isnan(expected):
        return bool(found == expected or (found != found and expected != expected))  # noqa: PLR0124
    # Our deviation is rounded twice, the twin's once; sums differ only where doubles run out.
    if name.startswith("stddev"):
        return math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-9)
    return math.isclose(found, expected, rel_tol=2e-16)


def fits(rows: list[dict[str, Any]]) -> bool:
    """Whether no int64 sum over these rows can overflow."""
    return bool(sum(abs(row["gear"] or 0) for row in rows) < 2**63)


cuts = st.lists(st.integers(0, 25), max_size=6)


@settings(deadline=None, max_examples=150)
@given(events.filter(fits), st.integers(1, 25), st.integers(1, 25), cuts)
def test_windows(rows: list[dict[str, Any]], size: int, slide: int, cuts: list[int]) -> None:
    found = run(build_tree(window_plan(size, slide)), rows, cuts)
    same_bag(found, naive.windows(rows, KEYS, size, slide, ALL_AGGREGATES))


@settings(deadline=None, max_examples=100)
@given(events.filter(fits), st.integers(0, 30), cuts)
def test_range_frames(rows: list[dict[str, Any]], preceding: int, cuts: list[int]) -> None:
    found = run(build_tree(frame_plan(RangeFrame(preceding))), rows, cuts)
    same_bag(found, naive.range_frames(rows, KEYS, preceding, ALL_AGGREGATES))


@settings(deadline=None, max_examples=100)
@given(events.filter(fits), st.integers(0, 6), cuts)
def test_rows_frames(rows: list[dict[str, Any]], preceding: int, cuts: list[int]) -> None:
    found = run(build_tree(frame_plan(RowsFrame(preceding))), rows, cuts)
    same_bag(found, naive.rows_frames(rows, KEYS, preceding, ALL_AGGREGATES))


def event(ts: int, **values: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"_seq": ts, "car": "a", "lane": 1, "ts": ts} | values


def test_a_sum_that_does_not_fit_is_an_error() -> None:
    rows = [event(0, gear=2**62), event(1, gear=2**62)]
    with pytest.raises(EvaluationError, match="does not fit int64"):
        run(build_tree(window_plan(10, 10)), rows, [])


def test_a_sum_that_overflows_only_on_the_way_is_none() -> None:
    rows = [event(0, gear=2**62), event(1, gear=2**62), event(2, gear=-(2**62))]
    found = run(build_tree(window_plan(10, 10)), rows, [1, 2])
    assert found[0]["sum_gear"] == 2**62


def test_a_sum_of_long_decimals_does_not_wrap_around() -> None:
    schema = Schema.of({"toll": "decimal(38,0)"})
    item = NamedAggregate("total", Aggregate("sum", Column("toll")))
    window = WindowAggregate(Scan("cars"), (), Window(10, 10), (item,))
    frames = SlidingAggregate(Scan("cars"), (), RowsFrame(9), (item,))
    for plan in (window, frames):
        tree = build_tree(bind(plan, {"cars": schema}))
        most = 10**38 - 1
        for tolls, total in [([most, 1 - most, 5], 6), ([most, most, most], None)]:
            rows = [{"ts": i, "_seq": i, "toll": Decimal(toll)} for i, toll in enumerate(tolls)]
            batch = pa.RecordBatch.from_pylist(rows, schema=schema.arrow)
            if total is None:
                with pytest.raises(EvaluationError, match=r"does not fit decimal\(38,0\)"):
                    tree.step(tree.initial_state(), (batch,), END_OF_TIME_US)
            else:
                _, results = tree.step(tree.initial_state(), (batch,), END_OF_TIME_US)
                assert results.column("total")[-1].as_py() == total


def test_infinity_leaves_a_frame_without_a_trace() -> None:
    rows = [event(0, speed=math.inf), event(5, speed=1.5), event(20, speed=2.5)]
    found = run(build_tree(frame_plan(RangeFrame(10))), rows, [])
    assert [row["sum_speed"] for row in found] == [math.inf, math.inf, 2.5]


def test_state_is_bounded_by_what_open_windows_need() -> None:
    tree = build_tree(window_plan(20, 10))
    states = tree.initial_state()
    for start in range(0, 1000, 10):
        rows = [event(start + i, speed=1.0) for i in range(10)]
        states, _ = tree.step(states, (to_batch(rows),), start + 10)
    assert states[-1].partials.num_rows <= 3
    frames = build_tree(frame_plan(RangeFrame(30)))
    states = frames.initial_state()
    for start in range(0, 1000, 10):
        rows = [event(start + i, speed=1.0) for i in range(10)]
        states, _ = frames.step(states, (to_batch(rows),), start + 10)
    assert states[-1].done.whole.rows.num_rows <= 31


def test_a_step_does_not_change_the_state_it_was_given() -> None:
    tree = build_tree(window_plan(10, 5))
    states, _ = tree.step(tree.initial_state(), (to_batch([event(0, speed=1.0)]),), 0)
    before = tree.dump(states)
    tree.step(states, (to_batch([event(30, speed=2.0)]),), 30)
    assert tree.dump(states) == before


@pytest.mark.parametrize("damage", [lambda d: d[:-9], lambda _: b"", lambda d: b"\0" * len(d)])
def test_a_damaged_state_is_refused(damage: Any) -> None:  # noqa: ANN401
    tree = build_tree(window_plan(10, 10))
    with pytest.raises(StateError):
        tree.load(damage(tree.dump(tree.initial_state())))


def test_the_state_of_another_query_is_refused() -> None:
    windows, frames = window_plan(10, 10), frame_plan(RangeFrame(10))
    dumped = build_tree(frames).dump(build_tree(frames).initial_state())
    with pytest.raises(
        StateError,
        match=r"(?s)it was written by\n  SlidingAggregate.*and this is\n  WindowAggregate",
    ):
        build_tree(windows).load(dumped)


def test_nans_are_one_key_whatever_their_bits() -> None:
    nans = np.array([0x7FF8000000000000, 0xFFF8000000000001], np.uint64).view(np.float64)
    text = "SELECT x, COUNT(*) AS n FROM s GROUP BY x, TUMBLE(ts, INTERVAL '1' SECOND)"
    (row,) = eventide.sql(text, s=pa.table({"ts": [0, 1], "x": nans})).rows()
    assert row["n"] == 2


def test_equal_zeros_give_one_key_and_one_extreme_whichever_comes_first() -> None:
    text = "SELECT x, MIN(x) AS low FROM s GROUP BY x, TUMBLE(ts, INTERVAL '1' SECOND)"
    for zeros in ([0.0, -0.0], [-0.0, 0.0]):
        (row,) = eventide.sql(text, s=pa.table({"ts": [0, 1], "x": zeros})).rows()
        assert [math.copysign(1, value) for value in row.values()] == [1, 1]


@pytest.mark.parametrize(("size", "slide"), [(40, 40), (40, 10)])
def test_a_step_copies_few_of_the_partials(
    size: int, slide: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventide.operators.columns.FEW_ROWS", 4)
    tree = build_tree(window_plan(size, slide))
    rows = [event(n // 10, car=f"car {n * 7 % 60}", _seq=n, gear=n) for n in range(400)]
    whole, results = tree.step(tree.initial_state(), (to_batch(rows),), END_OF_TIME_US)
    states, found, kept = tree.initial_state(), list[dict[str, Any]](), 0
    for row in rows:
        before = states[-1].oldest
        states, some = tree.step(states, (to_batch([row]),), row["ts"])
        found += plain_rows(some)
        kept += states[-1].oldest is before
        assert len(states[-1].later) <= 10
        assert states[-1].rows == states[-1].partials.num_rows
    assert tree.dump(tree.load(tree.dump(states))) == tree.dump(states)
    states, some = tree.step(states, (to_batch([]),), END_OF_TIME_US)
    assert kept > 300
    found += plain_rows(some)
    assert Counter(map(str, found)) == Counter(map(str, plain_rows(results)))
    assert states[-1].rows == whole[-1].rows == 0
