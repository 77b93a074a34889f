"""Groups give back the room of a large step, and write out only what they use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.operators.changes import NEVER, Changes
from eventide.operators.standing import compaction
from eventide.operators.standing.groups.group import AggregateGroups
from eventide.plan.standing.execution import EXECUTIONS, Execution
from eventide.schema import FLOAT64, INT64
from tests.operators.standing.group_drive import EDGES, changes_of, lives, run, same_changes
from tests.operators.standing.test_group import AGGREGATES, SCHEMA, VALUES, group_by

ROW = {"k": INT64, "x": FLOAT64}
COLUMNS = pa.schema([("k", pa.int64()), ("x", pa.float64())])
PEAK = 20_000
SMALL = 300_000
KEPT: list[tuple[str, str, Any]] = [
    ("count", "*", None),
    ("median", "x", 0.5),
    ("sum", "x", None),
    ("min", "x", None),
    ("top_k", "x", 2),
]


def peak(keys: int, life: int, execution: Execution) -> Changes:
    """Return many tuples that come at instant 0, and a few that come at 50."""
    count = PEAK + 5
    at = np.where(np.arange(count) < PEAK, 0, 50)
    names = pa.array(np.arange(count) % keys), pa.array(np.arange(count) * 1.5)
    rows = pa.RecordBatch.from_arrays(list(names), schema=COLUMNS)
    come = Changes(rows, at, at + life, np.ones(count, np.int8), np.arange(count))
    if execution != "negative":
        return come
    gone = Changes(rows, at + life, at + life, np.full(count, -1, np.int8), np.arange(count))
    both = Changes.concat([come, gone], COLUMNS)
    return both.take(np.argsort(both.at, kind="stable"))


@pytest.mark.parametrize("keys", [3, PEAK])
@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("execution", EXECUTIONS)
def test_the_room_of_a_peak_is_given_back(execution: Execution, edge: str, keys: int) -> None:
    operator = AggregateGroups(group_by(KEPT, ROW), EDGES[edge], execution)
    changes = peak(keys, 10, execution)
    state, before = operator.initial_state(), -1
    sizes, dumps = [], []
    for until in (5, 20, 55):
        chosen = np.flatnonzero((changes.at >= before) & (changes.at < until))
        state, _ = operator.step(state, (changes.take(chosen),), until)
        sizes.append(operator.size(state))
        dumps.append(len(operator.dump(state)))
        before = until
    assert [size.tuples for size in sizes] == [PEAK, 0, 5]
    assert sizes[0].bytes > SMALL or execution == "negative"
    # A step may be as large as the one before: room for that is kept, but not longer.
    assert sizes[2].bytes < SMALL
    assert max(dumps[1:]) < 20_000


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_a_peak_within_a_step_is_not_written_out(execution: Execution) -> None:
    """All tuples come and go in one step: after the next one the state is as small as before."""
    operator = AggregateGroups(group_by(KEPT, ROW), EDGES["weakest"], execution)
    state, changes = operator.initial_state(), peak(7, 10, execution)
    for part, until in ((changes.at < 40, 40), (changes.at >= 40, 100)):
        state, _ = operator.step(state, (changes.take(np.flatnonzero(part)),), until)
    assert operator.size(state).tuples == 0
    assert operator.size(state).bytes < SMALL
    nothing = operator.initial_state()
    assert len(operator.dump(state)) <= len(operator.dump(nothing)) + 64


def test_spare_room_is_not_written_out() -> None:
    operator = AggregateGroups(group_by(KEPT, ROW), EDGES["weak"])
    tuples = peak(50, 10, "aware")
    state, _ = operator.step(operator.initial_state(), (tuples.take(np.arange(1030)),), 5)
    arrays = operator.load(operator.dump(state)).arrays()
    assert len(arrays["tuples.groups"]) == 1030
    assert len(arrays["groups.about"]) == 50
    assert len(arrays["table.handles"]) == 128
    # A loaded state is written as it was, and the one that was written goes on unchanged.
    assert operator.dump(operator.load(operator.dump(state))) == operator.dump(state)
    assert len(state.arrays()["tuples.groups"]) >= 1030


@pytest.mark.parametrize("pattern", EDGES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_what_is_said_does_not_depend_on_the_room(pattern: str, data: st.DataObject) -> None:
    tuples = data.draw(lives(pattern, VALUES))
    cuts = data.draw(st.lists(st.integers(-5, 30), max_size=8))
    for execution in EXECUTIONS:
        operator = AggregateGroups(group_by(AGGREGATES), EDGES[pattern], execution)
        changes = changes_of(tuples, execution, SCHEMA)
        expected = run(operator, changes, cuts, operator.output_schema, reload=False)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compaction, "SLACK", -1)
            found = run(operator, changes, cuts, operator.output_schema, reload=False)
        assert same_changes(found, expected)


def test_tuples_that_never_go_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "SLACK", -1)
    operator = AggregateGroups(group_by([("count", "*", None)], ROW), EDGES["strict"])
    rows = pa.RecordBatch.from_pydict({"k": [1, 2, 1], "x": [None] * 3}, schema=COLUMNS)
    ones, never = np.ones(3, np.int8), np.array([NEVER, 5, 5])
    come = Changes(rows, np.zeros(3, np.int64), never, ones, np.arange(3))
    state, _ = operator.step(operator.initial_state(), (come,), 9)
    last = Changes(rows.slice(0, 1), np.array([9]), never[:1], -ones[:1], np.arange(1))
    state, out = operator.step(state, (last,), 10)
    assert out.rows.to_pylist() == [{"k": 1, "a0": 1}]
    assert (state.living, operator.size(state).tuples) == (0, 0)
