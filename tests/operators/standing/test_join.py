"""Joins over windows, against all combinations of tuples."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from benchmarks.standing.compared_joins import ComparedJoin
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.operators.changes import NEVER, Changes
from eventide.operators.standing.joins import join
from eventide.operators.standing.joins import memory as join_memory
from eventide.operators.standing.joins import room as join_room
from eventide.operators.standing.joins.join import JoinSide, JoinWindows
from eventide.plan.expressions import Call, Column, Expression, Literal
from eventide.plan.standing.execution import EXECUTIONS, Execution
from eventide.plan.standing.joins import Band
from eventide.schema import BOOL, INT64
from tests.naive.standing.window_join import Life, lives_of_join
from tests.operators.standing.lives import bag_at, before, changes_of

LAST = 30
FIXED, VARIED, STRICT = "fixed", "varied", "strict"


def schema_of(side: int) -> pa.Schema:
    return pa.schema([(f"s{side}.k", pa.int64()), (f"s{side}.v", pa.int64())])


@st.composite
def drawn_lives(draw: st.DrawFn, side: int, kind: str) -> list[Life]:
    lives = []
    for _ in range(draw(st.integers(0, 7))):
        at = draw(st.integers(0, 20))
        length = 8 if kind == FIXED else draw(st.integers(1, 8))
        key = draw(st.sampled_from([None, 0, 1, 1, 2]))
        row = {f"s{side}.k": key, f"s{side}.v": draw(st.integers(0, 3))}
        gone = None
        exp = at + length
        if kind == STRICT:
            gone = draw(st.none() | st.integers(at, at + 9))
            exp = draw(st.sampled_from([exp, NEVER]))
        lives.append(Life(row, at, exp, gone))
    return sorted(lives, key=lambda life: life.at)


@st.composite
def drawn_case(draw: st.DrawFn) -> tuple[list[str], list[list[Life]], list[int]]:
    kinds = draw(st.lists(st.sampled_from([FIXED, VARIED, STRICT]), min_size=2, max_size=4))
    sides = [draw(drawn_lives(side, kind)) for side, kind in enumerate(kinds)]
    cuts = draw(st.lists(st.integers(1, LAST), max_size=5))
    return kinds, sides, [*sorted(set(cuts)), LAST + 1]


def operator_of(
    kinds: list[str],
    execution: Execution,
    condition: Expression | None = None,
    **more: Any,  # noqa: ANN401 - the options of the operator
) -> ComparedJoin:
    sides = tuple(
        JoinSide(
            schema_of(side),
            (Column(f"s{side}.k", INT64),),
            kind == STRICT,
            kind == FIXED,
            8,
        )
        for side, kind in enumerate(kinds)
    )
    fields = [field for side in sides for field in side.schema]
    return ComparedJoin(sides, condition, pa.schema(fields), execution, **more)


def run(
    operator: JoinWindows, inputs: list[Changes], cuts: list[int], *, reload: bool
) -> list[Changes]:
    state, start, out = operator.initial_state(), 0, []
    for until in cuts:
        parts = tuple(before(changes, start, until) for changes in inputs)
        state, results = operator.step(state, parts, until)
        assert all((results.at >= start) & (results.at < until))
        assert (results.at[1:] >= results.at[:-1]).all()
        out.append(results)
        if reload:
            state = operator.load(operator.dump(state))
        start = until
    return out


def expected_at(lives: list[tuple[dict[str, Any], int, int]], now: int) -> Counter[Any]:
    return Counter(tuple(row.items()) for row, at, end in lives if at <= now < end)


@pytest.mark.parametrize("execution", EXECUTIONS)
@settings(deadline=None, max_examples=60)
@given(
    case=drawn_case(),
    reload=st.booleans(),
    room=st.sampled_from([1, 7, 1024]),
    fewest=st.sampled_from([1, 64]),
    lazy_expiry=st.booleans(),
)
def test_all_combinations_live_as_long_as_their_parts(
    execution: Execution,
    case: tuple[list[str], list[list[Life]], list[int]],
    reload: bool,
    room: int,
    fewest: int,
    lazy_expiry: bool,
) -> None:
    kinds, sides, cuts = case
    operator = operator_of(kinds, execution, partitions=3, lazy_expiry=lazy_expiry)
    inputs = [changes_of(lives, schema_of(side), execution) for side, lives in enumerate(sides)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join, "ROOM", room)
        # Rings as short as can be go round, and become longer and shorter; so do buckets.
        patch.setattr(join_room, "FEWEST", fewest)
        patch.setattr(join_memory, "FEWEST_BUCKETS", fewest)
        for module in (join_room, join_memory):
            patch.setattr(module, "MOSTLY_EMPTY", 1 if fewest == 1 else 8)
        found = run(operator, inputs, cuts, reload=reload)
    lives = lives_of_join(sides, [f"s{side}.k" for side in range(len(sides))], lambda _: True)
    for now in range(LAST + 1):
        assert bag_at(found, now) == expected_at(lives, now)


@settings(deadline=None, max_examples=40)
@given(case=drawn_case(), reload=st.booleans(), buckets=st.sampled_from([1, 4, None]))
def test_lazy_joins_find_the_same(
    case: tuple[list[str], list[list[Life]], list[int]], reload: bool, buckets: int | None
) -> None:
    kinds, sides, cuts = case
    kinds = [VARIED if kind == STRICT else kind for kind in kinds]
    sides = [
        [Life(life.row, life.at, min(life.exp, life.at + 8)) for life in side] for side in sides
    ]
    inputs = [changes_of(lives, schema_of(side), "aware") for side, lives in enumerate(sides)]
    operator = operator_of(kinds, "aware", lazy=True, buckets=buckets)
    found = run(operator, inputs, cuts, reload=reload)
    lives = lives_of_join(sides, [f"s{side}.k" for side in range(len(sides))], lambda _: True)
    for now in range(LAST + 1):
        assert bag_at(found, now) == expected_at(lives, now)


def difference(left: Expression, right: Expression) -> Expression:
    return Call("abs", (Call("-", (left, right), INT64),), INT64)


@pytest.mark.parametrize("execution", EXECUTIONS)
@settings(deadline=None, max_examples=30)
@given(case=drawn_case(), width=st.sampled_from([1, 2]))
def test_a_band_joins_what_is_near(
    execution: Execution, case: tuple[list[str], list[list[Life]], list[int]], width: int
) -> None:
    kinds, sides, cuts = case
    kinds, sides = kinds[:2], sides[:2]
    left, right = Column("s0.k", INT64), Column("s1.k", INT64)
    near = Call("<=", (difference(left, right), Literal(width, INT64)), BOOL)
    operator = operator_of(kinds, execution, condition=near, band=Band(left, right, width))
    inputs = [changes_of(lives, schema_of(side), execution) for side, lives in enumerate(sides)]
    found = run(operator, inputs, cuts, reload=False)
    lives = [
        (row, at, end)
        for one in sides[0]
        for other in sides[1]
        for row, at, end in [
            ({**one.row, **other.row}, max(one.at, other.at), min(one.end, other.end))
        ]
        if at < end
        and None not in (row["s0.k"], row["s1.k"])
        and abs(row["s0.k"] - row["s1.k"]) <= width
    ]
    for now in range(LAST + 1):
        assert bag_at(found, now) == expected_at(lives, now)


def test_orders_of_probing_change_while_running() -> None:
    kinds = [FIXED] * 3
    operator = operator_of(kinds, "aware")
    state = operator.initial_state()
    before_orders = state.observed.orders
    for step in range(40):
        # Side 1 has many tuples of each key, side 2 hardly any.
        sizes = [20, 60, 1]
        inputs = tuple(
            changes_of(
                [Life({f"s{side}.k": i % 4, f"s{side}.v": 0}, step, step + 8) for i in range(size)],
                schema_of(side),
                "aware",
            )
            for side, size in enumerate(sizes)
        )
        state, _ = operator.step(state, inputs, step + 1)
    assert before_orders[0] != (2, 1)
    assert state.observed.orders[0] == (2, 1)
    assert operator.size(state).tuples == 8 * 81


def test_a_burst_is_forgotten() -> None:
    operator = operator_of([FIXED, FIXED], "aware")
    state, small = operator.initial_state(), 0
    for step, size in enumerate([5, 5, 20_000, 5, *[0] * 8, 5]):
        lives = [Life({"s0.k": i, "s0.v": 0}, step, step + 8) for i in range(size)]
        nothing = changes_of([], schema_of(1), "aware")
        inputs = (changes_of(lives, schema_of(0), "aware"), nothing)
        state, _ = operator.step(state, inputs, step + 1)
        small = small or operator.size(state).bytes
    assert operator.size(state).bytes < 2 * small
