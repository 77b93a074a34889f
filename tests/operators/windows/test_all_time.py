"""Aggregates over all events, however they are cut, with a dump and a load between steps."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.engines.build import build_live_tree, build_tree
from eventide.errors import UnsupportedError
from eventide.instants import END_OF_TIME_US
from eventide.lang.sql import plan_sql
from eventide.operators.windows.all_time import AggregateAllTime
from eventide.plan.nodes import Filter, Project
from eventide.plan.windows.nodes import WindowAggregate
from eventide.schema import Schema
from tests.naive import aggregates as naive

SCHEMA = Schema.of({"k": "string", "x": "float64"})
VALUES = (1e200, -1e200, 1.0, 2.0, 0.1, None)
ROWS = st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from(VALUES)), max_size=20)


def operator_of(text: str) -> AggregateAllTime:
    plan = plan_sql(text, {"s": SCHEMA})
    while isinstance(plan, Filter | Project):
        plan = plan.source
    assert isinstance(plan, WindowAggregate)
    (found,) = (each for each in build_tree(plan).operators if isinstance(each, AggregateAllTime))
    return found


@pytest.mark.parametrize("keyed", [True, False])
@settings(max_examples=60, deadline=None)
@given(rows=ROWS, cuts=st.lists(st.integers(0, 20), max_size=4))
def test_groups_are_those_of_the_twin(
    keyed: bool, rows: list[tuple[str | None, float | None]], cuts: list[int]
) -> None:
    wanted = "SUM(x) AS total, ARRAY_AGG(x) AS xs, COUNT(x) AS n"
    text = f"SELECT k, {wanted} FROM s GROUP BY k" if keyed else f"SELECT {wanted} FROM s"
    operator = operator_of(text)
    ts = pa.array(range(len(rows)), pa.timestamp("us"))
    columns = [pa.array([row[0] for row in rows], pa.string())]
    columns.append(pa.array([row[1] for row in rows], pa.float64()))
    events = pa.RecordBatch.from_arrays([ts, *columns], names=["ts", "k", "x"])
    bounds = sorted({0, *(min(cut, len(rows)) for cut in cuts), len(rows)})
    state, found = operator.initial_state(), list[dict[str, Any]]()
    for start, end in zip(bounds, [*bounds[1:], len(rows)], strict=True):
        until = END_OF_TIME_US if start == bounds[-1] else end
        state, out = operator.step(state, (events.slice(start, end - start),), until)
        state = operator.read(operator.write(state))
        found += out.to_pylist()
    groups: dict[str | None, list[tuple[float | None]]] = {} if keyed else {None: []}
    for key, value in rows:
        groups.setdefault(key if keyed else None, []).append((value,))
    assert len(found) == len(groups)
    for row, (key, own) in zip(found, groups.items(), strict=True):
        assert not keyed or row["k"] == key
        assert row["total"] == naive.aggregate("sum", own)
        assert row["xs"] == naive.aggregate("array_agg", own)
        assert row["n"] == naive.aggregate("count", own)


def test_a_stream_without_an_end_has_no_such_answer() -> None:
    plan = plan_sql("SELECT k, SUM(x) AS total FROM s GROUP BY k", {"s": SCHEMA})
    with pytest.raises(UnsupportedError, match="a stream has no end"):
        build_live_tree(plan)
