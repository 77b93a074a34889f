from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import StateError, UnsupportedError
from eventide.operators.changes import NEVER, Changes
from eventide.operators.standing.groups.choice import group_operator
from eventide.operators.standing.groups.group import AggregateGroups
from eventide.operators.standing.groups.recomputed import RecomputedGroups
from eventide.operators.standing.groups.slides import AggregateSlides
from eventide.plan.standing.edges import Edge, UpdatePattern
from eventide.schema import BOOL, FLOAT64, INT64, STRING, DataType
from tests.naive.standing.groups import Tuple, grouped
from tests.operators.standing.group_drive import EDGES, answers, changes_of, run, same_changes
from tests.operators.standing.test_group import WILD, group_by

SLIDE = 10
ROW = {"k": STRING, "i": INT64, "x": FLOAT64, "b": BOOL}
SCHEMA = pa.schema([(name, kind.arrow) for name, kind in ROW.items()])
INSTANTS = range(-20, 260, 5)
AGGREGATES: list[tuple[str, str, Any]] = [
    ("max", "i", None),
    ("sum", "x", None),
    ("count", "*", None),
    ("min", "x", None),
    ("sum", "i", None),
    ("avg", "x", None),
    ("max", "x", None),
    ("count", "x", None),
    ("avg", "i", None),
    ("min", "b", None),
]
FEW: tuple[list[tuple[str, str, Any]], ...] = (
    AGGREGATES[:1],
    AGGREGATES[1:2],
    AGGREGATES[2:4],
    AGGREGATES[6:7],
    [],
)
VALUES = st.fixed_dictionaries(
    {
        "k": st.sampled_from(["a", "b", None]),
        "i": st.sampled_from([None, 0, 1, 2, -5, 2**60]),
        "x": st.one_of(st.none(), st.sampled_from([*WILD, 0.2, 0.3, 1e16, -1e16])),
        "b": st.sampled_from([None, True, False]),
    }
)
ENDLESS = Edge(UpdatePattern.MONOTONIC, None, in_order=True)


@st.composite
def panes(draw: st.DrawFn, pattern: str) -> list[Tuple]:
    """Tuples whose lives begin and end at refreshes."""
    tuples = []
    for number, at in enumerate(sorted(draw(st.lists(st.integers(-1, 9), max_size=24)))):
        life = 3 if pattern == "weakest" else draw(st.sampled_from([1, 2, 2, 3, 4, 15]))
        endless = pattern == "monotonic" or (pattern == "weak" and draw(st.integers(0, 9)) == 0)
        exp = NEVER if endless else (at + life) * SLIDE
        tuples.append(Tuple(at * SLIDE, exp, None, number, draw(VALUES)))
    return tuples


def told(changes: Changes) -> list[str]:
    """What was said, as text that tells all bits, in one order."""
    facts = zip(
        changes.at.tolist(),
        changes.sign.tolist(),
        changes.id.tolist(),
        changes.rows.to_pylist(),
        strict=True,
    )
    return sorted(repr(fact) for fact in facts)


@pytest.mark.parametrize("pattern", ["weakest", "weak", "monotonic"])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_panes_say_what_tuples_would(pattern: str, data: st.DataObject) -> None:
    tuples = data.draw(panes(pattern))
    cuts = data.draw(st.lists(st.integers(-5, 250), max_size=4))
    wanted = data.draw(st.sampled_from([AGGREGATES, *FEW]))
    reload = data.draw(st.booleans())
    edge = EDGES.get(pattern, ENDLESS)
    changes = changes_of(tuples, "aware", SCHEMA)
    operator = group_operator(group_by(wanted, ROW), edge, "aware", SLIDE)
    assert isinstance(operator, AggregateSlides)
    out = run(operator, changes, cuts, operator.output_schema, reload=reload)
    assert same_changes(out, run(operator, changes, [], operator.output_schema, reload=False))
    plain = AggregateGroups(group_by(wanted, ROW), edge)
    assert told(out) == told(run(plain, changes, [], operator.output_schema, reload=False))
    expected = [grouped(tuples, instant, "k", wanted) for instant in INSTANTS]
    assert list(answers(out, INSTANTS, "aware")) == expected


def steady(count: int, slide: int, panes: int, groups: int = 1, spread: float = 1.0) -> Changes:
    """So many tuples at each of many refreshes, which live for so many slides."""
    random = np.random.default_rng(count)
    at = np.repeat(np.arange(3 * panes) * slide, count)
    rows = pa.RecordBatch.from_arrays(
        [
            pa.array(random.integers(0, groups, len(at))),
            pa.array(random.normal(0, 10, len(at)) * spread ** random.integers(-9, 9, len(at))),
        ],
        names=["k", "x"],
    )
    signs, ids = np.ones(len(at), np.int8), np.arange(len(at))
    return Changes(rows, at, at + panes * slide, signs, ids)


NUMBERS: dict[str, DataType] = {"k": INT64, "x": FLOAT64}
NUMERIC = [
    ("stddev", "x", None),
    ("sum", "x", None),
    ("avg", "x", None),
    ("max", "x", None),
    ("min", "x", None),
]


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("spread", [1.0, 1e20])
@pytest.mark.parametrize("key", [None, "k"])
def test_sums_of_many_values_are_those_of_tuples_to_the_last_bit(
    spread: float, key: str | None, in_order: bool
) -> None:
    changes = steady(50, 10, 8, groups=5, spread=spread)
    node = group_by(NUMERIC, NUMBERS, key)
    edge = Edge(UpdatePattern.WEAKEST, 80, in_order=in_order)
    schema = pa.schema([("k", pa.int64()), ("x", pa.float64())])
    panes = run(AggregateSlides(node, edge, 10), changes, [77, 110], schema, reload=True)
    assert told(panes) == told(run(AggregateGroups(node, edge), changes, [], schema, reload=False))


@pytest.mark.parametrize("panes", [3, 40, 9000])
def test_state_grows_with_panes_and_not_with_tuples(panes: int) -> None:
    node = group_by([("sum", "x", None), ("max", "x", None)], NUMBERS, None)
    operator = AggregateSlides(node, EDGES["weakest"], 10)
    state = operator.initial_state()
    most = max(20_000 // panes, 1)
    for count in (1, most):
        given = steady(count, 10, panes)
        state, _ = operator.step(operator.initial_state(), (given,), int(given.at[-1]) + 1)
        size = operator.size(state)
        # Each of the panes once, and the few that can still be the maximum.
        assert panes <= size.tuples <= panes + 40
        assert size.bytes < 160 * panes + 100_000
    state, out = operator.step(state, (given.take(np.arange(0)),), 10**9)
    assert out.sign[-1] == -1
    assert operator.size(state).tuples == 0
    assert operator.size(operator.load(operator.dump(state))).bytes < 80_000


def test_memory_is_given_back_when_groups_vanish() -> None:
    node = group_by(NUMERIC, NUMBERS)
    operator = AggregateSlides(node, EDGES["weakest"], 10)
    many = steady(4000, 10, 3, groups=5000)
    state, _ = operator.step(operator.initial_state(), (many,), int(many.at[-1]) + 1)
    large = operator.size(state).bytes
    few = steady(2, 10, 40, groups=2)
    later = Changes(few.rows, few.at + 10_000, few.exp + 10_000, few.sign, few.id)
    for start in range(0, len(later), 20):
        part = later.take(np.arange(start, min(start + 20, len(later))))
        state, _ = operator.step(state, (part,), int(part.at[-1]) + 1)
    assert operator.size(state).bytes < large / 20


@pytest.mark.parametrize(
    ("edge", "kept"),
    [
        (Edge(UpdatePattern.WEAKEST, 10**9, in_order=True), AggregateSlides),
        (Edge(UpdatePattern.WEAK, 10**4), AggregateSlides),
        (Edge(UpdatePattern.WEAK, 10**9), AggregateGroups),
        (EDGES["strict"], AggregateGroups),
    ],
)
def test_tuples_are_kept_where_panes_could_be_too_many_or_go_early(edge: Edge, kept: type) -> None:
    node = group_by(AGGREGATES, ROW)
    assert type(group_operator(node, edge, "aware", SLIDE)) is kept
    assert type(group_operator(node, edge, "negative", SLIDE)) is AggregateGroups
    assert type(group_operator(node, edge, "aware", None)) is AggregateGroups
    median = group_by([*AGGREGATES, ("median", "x", None)], ROW)
    assert type(group_operator(median, edge, "aware", SLIDE)) is AggregateGroups


def test_as_many_aggregates_as_there_are_bits_for_nulls() -> None:
    many = group_by(AGGREGATES[:1] * 64, ROW)
    assert type(group_operator(many, EDGES["weak"], "aware", SLIDE)) is RecomputedGroups
    with pytest.raises(UnsupportedError, match="at most 63"):
        AggregateSlides(many, EDGES["weak"], SLIDE)


def test_a_state_of_another_query_is_refused() -> None:
    one = AggregateSlides(group_by(AGGREGATES, ROW), EDGES["weak"], SLIDE)
    other = AggregateSlides(group_by(AGGREGATES[:1], ROW), EDGES["weak"], SLIDE)
    with pytest.raises(StateError, match="written by another"):
        other.load(one.dump(one.initial_state()))
