"""UNION ALL has, at every instant, all living tuples of its inputs."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import StateError
from eventide.operators.standing.sets.merge import MergeOperator
from eventide.plan.standing.execution import Execution
from tests.naive.standing.sets import Bag, Lived, merged
from tests.operators.standing.set_drive import (
    SCHEMA,
    answers,
    changes_of,
    cuts,
    executions,
    expected,
    lives,
    run,
)


def all_of(*bags: Bag) -> Bag:
    return merged(bags)


@settings(deadline=None, max_examples=60)
@given(st.lists(lives(), min_size=1, max_size=3), executions, cuts)
def test_merged_is_right_at_every_instant(
    sources: list[list[Lived]], execution: Execution, steps: list[tuple[int, bool]]
) -> None:
    # All inputs have the same ids.
    operator = MergeOperator(SCHEMA, len(sources))
    inputs = [changes_of(tuples, execution) for tuples in sources]
    _, out = run(operator, inputs, steps)
    assert answers(out, execution) == expected(sources, all_of)
    whole = run(operator, inputs, [])[1]
    assert out.id.tolist() == whole.id.tolist()


def test_within_an_instant_inputs_follow_each_other_under_the_names_of_the_first() -> None:
    narrow = pa.schema([("number", pa.int32()), ("text", pa.string())])
    first = [Lived((1, "a"), 1, 5), Lived((2, "a"), 2, 5)]
    second = [Lived((7, "b"), 0, 5), Lived((8, "b"), 1, 5), Lived((9, "b"), 1, 5)]
    inputs = [changes_of(first, "aware"), changes_of(second, "aware", schema=narrow)]
    _, out = run(MergeOperator(SCHEMA, 2), inputs, [])
    assert out.rows.column("k").to_pylist() == [7, 1, 8, 9, 2]


def test_a_state_of_something_else_is_refused() -> None:
    with pytest.raises(StateError):
        MergeOperator(SCHEMA, 2).load(b"something")
