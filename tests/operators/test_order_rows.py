"""Rows in another order than that of time: as Python sorts them, for any batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import StateError
from eventide.instants import END_OF_TIME_US, START_OF_TIME_US
from eventide.operators.order_rows import OrderRows, begins_with_time
from eventide.plan.expressions import Call, Column, OrderKey
from eventide.schema import FLOAT64, INT64, STRING, TIMESTAMP, Schema

SCHEMA = Schema.of({"x": "int64", "y": "float64", "label": "string"}).arrow
Row = dict[str, Any]

TS = Column("ts", TIMESTAMP)
COLUMNS = [TS, Column("x", INT64), Column("y", FLOAT64), Column("label", STRING)]
NEGATED = Call("negate", (Column("x", INT64),), INT64)

keys = st.builds(OrderKey, st.sampled_from(COLUMNS), st.booleans(), st.booleans())
orders = st.lists(keys, min_size=1, max_size=3).map(tuple)
in_time_orders = st.lists(keys, max_size=2).map(lambda rest: (OrderKey(TS), *rest))
cuts = st.lists(st.integers(0, 20), max_size=6)


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    """Rows in order of (ts, _seq), with many ties and nulls."""
    times = sorted(draw(st.lists(st.integers(-3, 5), max_size=20)))
    return [
        {
            "ts": ts,
            "_seq": seq,
            "x": draw(st.sampled_from([None, 0, 1, 2])),
            "y": draw(st.sampled_from([None, -1.5, 0.0, 2.25])),
            "label": draw(st.sampled_from([None, "", "a", "b"])),
        }
        for seq, ts in enumerate(times)
    ]


def naive_order(events: Sequence[Row], order: Sequence[OrderKey]) -> list[Row]:
    """Sort by the least important key first: equal rows stay as they were."""
    found = list(events)
    for key in reversed(order):
        assert isinstance(key.expression, Column)
        name = key.expression.name
        present = [row for row in found if row[name] is not None]
        nulls = [row for row in found if row[name] is None]
        present = sorted(present, key=lambda row: row[name], reverse=key.descending)
        found = nulls + present if key.nulls_first else present + nulls
    return found


def plain(batch: pa.RecordBatch) -> list[Row]:
    found: list[Row] = batch.set_column(0, "ts", batch.column("ts").view(pa.int64())).to_pylist()
    return found


def run(order: tuple[OrderKey, ...], events: list[Row], places: list[int]) -> list[list[Row]]:
    """What leaves after each batch, and at the end; the state is dumped and loaded after each."""
    operator = OrderRows(order, SCHEMA, begins_with_time(order))
    state, found, start = operator.initial_state(), [], 0
    for end in sorted({min(place, len(events)) for place in places} | {len(events)}):
        part = pa.RecordBatch.from_pylist(events[start:end], schema=SCHEMA)
        start = end
        watermark = events[end - 1]["ts"] if end else -100
        state, batch = operator.step(state, (part,), watermark)
        expected = watermark if operator.in_time else START_OF_TIME_US
        assert operator.reached(state, watermark) == expected
        state = operator.load(operator.dump(state))
        found.append(plain(batch))
    nothing = pa.RecordBatch.from_pylist([], schema=SCHEMA)
    state, batch = operator.step(state, (nothing,), END_OF_TIME_US)
    assert state.num_rows == 0
    return [*found, plain(batch)]


@settings(deadline=None)
@given(orders, rows(), cuts)
def test_any_order(order: tuple[OrderKey, ...], events: list[Row], places: list[int]) -> None:
    found = run(order, events, places)
    assert [row for part in found for row in part] == naive_order(events, order)
    if not begins_with_time(order):
        assert not any(found[:-1]), "the last row may be the first"


@settings(deadline=None)
@given(in_time_orders, rows(), cuts)
def test_orders_that_begin_with_time(
    order: tuple[OrderKey, ...], events: list[Row], places: list[int]
) -> None:
    *parts, last = run(order, events, places)
    assert [row for part in [*parts, last] for row in part] == naive_order(events, order)
    # All but the newest instant has left before the end.
    assert {row["ts"] for row in last} <= {row["ts"] for row in events[-1:]}


def test_an_expression_orders_rows() -> None:
    events = [{"ts": n, "_seq": n, "x": x} for n, x in enumerate([1, None, 3, 2, 3])]
    whole = pa.RecordBatch.from_pylist(events, schema=SCHEMA)
    ordered = OrderRows((OrderKey(NEGATED, nulls_first=True),), SCHEMA).sorted(whole)
    assert ordered.column("_seq").to_pylist() == [1, 2, 4, 3, 0]


@pytest.mark.parametrize(
    ("order", "follows"),
    [
        ((), False),
        ((OrderKey(TS),), True),
        ((OrderKey(TS), OrderKey(Column("x", INT64), descending=True)), True),
        ((OrderKey(TS, descending=True),), False),
        ((OrderKey(Column("x", INT64)), OrderKey(TS)), False),
    ],
)
def test_which_orders_go_with_time(order: tuple[OrderKey, ...], follows: bool) -> None:
    assert begins_with_time(order) == follows


def test_the_state_of_another_query_is_refused() -> None:
    operator = OrderRows((OrderKey(TS),), SCHEMA)
    other = OrderRows((OrderKey(TS),), SCHEMA.remove(2))
    with pytest.raises(StateError):
        operator.load(other.dump(other.initial_state()))
