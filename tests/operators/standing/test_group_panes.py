from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import StateError
from eventide.operators.changes import Changes
from eventide.operators.standing.groups.choice import group_operator
from eventide.operators.standing.groups.group import AggregateGroups
from eventide.operators.standing.groups.panes import AggregatePanes
from eventide.operators.standing.groups.recomputed import RecomputedGroups
from eventide.plan.standing.execution import EXECUTIONS
from eventide.schema import FLOAT64, INT64, STRING
from tests.naive.standing.groups import Tuple, grouped
from tests.operators.standing.group_drive import EDGES, answers, changes_of, run, same_changes
from tests.operators.standing.test_group import group_by

SLIDE = 10
ROW = {"k": STRING, "i": INT64, "x": FLOAT64, "s": STRING}
SCHEMA = pa.schema([(name, kind.arrow) for name, kind in ROW.items()])
INSTANTS = range(-10, 140, 5)
SKETCHED = [
    ("approx_count_distinct", "s", None),
    ("count", "*", None),
    ("approx_top_k", "s", 2),
    ("avg", "x", None),
    ("max", "i", None),
]
# So few values that sketches are exact.
EXACT = [(name.removeprefix("approx_"), column, parameter) for name, column, parameter in SKETCHED]
VALUES = st.fixed_dictionaries(
    {
        "k": st.sampled_from(["a", "b", None]),
        "i": st.sampled_from([None, 0, 1, -5]),
        "x": st.sampled_from([None, 0.25, 1.5, 1e9]),
        "s": st.sampled_from([None, "", "é", "x", 'q"']),
    }
)


@st.composite
def panes(draw: st.DrawFn, pattern: str) -> list[Tuple]:
    tuples = []
    for number, at in enumerate(sorted(draw(st.lists(st.integers(0, 9), max_size=20)))):
        life = 3 if pattern == "weakest" else draw(st.integers(1, 4))
        ends = (at + life) * SLIDE
        tuples.append(Tuple(at * SLIDE, ends, None, number, draw(VALUES)))
    return tuples


@pytest.mark.parametrize("pattern", ["weakest", "weak"])
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_panes_are_right_at_every_refresh(pattern: str, data: st.DataObject) -> None:
    tuples = data.draw(panes(pattern))
    cuts = data.draw(st.lists(st.integers(-5, 130), max_size=4))
    reload = data.draw(st.booleans())
    expected = [grouped(tuples, instant, "k", EXACT) for instant in INSTANTS]
    for execution in EXECUTIONS:
        operator = group_operator(group_by(SKETCHED, ROW), EDGES[pattern], execution, SLIDE)
        assert isinstance(operator, AggregatePanes)
        changes = changes_of(tuples, execution, SCHEMA)
        out = run(operator, changes, cuts, operator.output_schema, reload=reload)
        assert list(answers(out, INSTANTS, execution)) == expected
        whole = run(operator, changes, [], operator.output_schema, reload=False)
        assert same_changes(out, whole)


def many(values: list[int], at: list[int]) -> Changes:
    schema = pa.schema([("x", pa.int64())])
    rows = pa.RecordBatch.from_arrays([pa.array(values)], schema=schema)
    instants = np.array(at, np.int64)
    return Changes(
        rows, instants, instants + 5, np.ones(len(at), np.int8), np.arange(len(at), dtype=np.int64)
    )


@pytest.mark.parametrize("distinct", [50, 3000, 20_000])
def test_distinct_counts_of_merged_panes_keep_their_bound(distinct: int) -> None:
    node = group_by([("approx_count_distinct", "x", None)], {"x": INT64}, None)
    operator = AggregatePanes(node, EDGES["weakest"], 1)
    values = np.random.default_rng(distinct).permutation(np.arange(3 * distinct) % distinct)
    at = np.sort(np.arange(3 * distinct) % 5)
    state, out = operator.step(operator.initial_state(), (many(values.tolist(), at.tolist()),), 5)
    found = out.rows.column("a0")[-1].as_py()
    assert found == pytest.approx(distinct, rel=4 * 0.0163)
    assert operator.size(state).bytes < 5 * 4096 + 1000


def test_frequent_values_of_merged_panes_keep_their_bound() -> None:
    node = group_by([("approx_top_k", "x", 5)], {"x": INT64}, None)
    operator = AggregatePanes(node, EDGES["weakest"], 1)
    values = np.random.default_rng(1).zipf(1.3, 20_000) % 100_000
    at = np.arange(20_000) // 4000
    _, out = operator.step(operator.initial_state(), (many(values.tolist(), at.tolist()),), 5)
    found = json.loads(out.rows.column("a0")[-1].as_py())
    exact = Counter(values.tolist())
    assert [value for value, _ in found] == [value for value, _ in exact.most_common(5)]
    for value, count in found:
        assert exact[value] - 20_000 / 256 <= count <= exact[value]


def test_without_panes_rows_are_kept_in_place_of_sketches() -> None:
    sketch = group_by([("approx_count_distinct", "s", None)], ROW)
    assert type(group_operator(sketch, EDGES["weakest"], "aware", None)) is RecomputedGroups
    assert type(group_operator(sketch, EDGES["strict"], "aware", SLIDE)) is RecomputedGroups
    beside = group_by([("approx_count_distinct", "s", None), ("median", "x", None)], ROW)
    assert type(group_operator(beside, EDGES["weakest"], "aware", SLIDE)) is RecomputedGroups
    exact = group_by([("count_distinct", "s", None)], ROW)
    assert isinstance(group_operator(exact, EDGES["weakest"], "aware", SLIDE), AggregateGroups)


def test_a_state_of_another_query_is_refused() -> None:
    one = AggregatePanes(group_by(SKETCHED, ROW), EDGES["weak"], SLIDE)
    other = AggregatePanes(group_by(SKETCHED[:1], ROW), EDGES["weak"], SLIDE)
    with pytest.raises(StateError):
        other.load(one.dump(one.initial_state()))
