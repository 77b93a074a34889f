from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal
from statistics import stdev
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import EvaluationError, StateError, UnsupportedError
from eventide.operators.changes import Changes
from eventide.operators.standing.groups.group import AggregateGroups
from eventide.operators.standing.groups.recomputed import RecomputedGroups
from eventide.plan.expressions import Aggregate, Column, Named, NamedAggregate
from eventide.plan.standing.execution import EXECUTIONS, Execution
from eventide.plan.standing.nodes import GroupAggregate
from eventide.schema import BINARY, BOOL, FLOAT64, INT64, STRING, TIMESTAMP, DataType
from tests.naive.standing.groups import Tuple, Value, grouped
from tests.operators.standing.group_drive import (
    EDGES,
    Source,
    answers,
    changes_of,
    lives,
    run,
    same_changes,
)

ROW = {"k": STRING, "i": INT64, "x": FLOAT64, "s": STRING, "b": BOOL}
SCHEMA = pa.schema([(name, kind.arrow) for name, kind in ROW.items()])
INSTANTS = range(-6, 40)

AGGREGATES: list[tuple[str, str, Any]] = [
    ("count", "*", None),
    ("count", "x", None),
    ("sum", "i", None),
    ("sum", "x", None),
    ("avg", "i", None),
    ("avg", "x", None),
    ("min", "x", None),
    ("max", "i", None),
    ("max", "b", None),
    ("median", "x", 0.5),
    ("quantile_cont", "i", 0.9),
    ("count_distinct", "s", None),
    ("count_distinct", "x", None),
    ("top_k", "s", 2),
    ("top_k", "i", 3),
]


def aggregate(function: str, column: str, parameter: Value, row: dict[str, DataType]) -> Aggregate:
    argument = None if column == "*" else Column(column, row[column])
    kind = FLOAT64 if function in ("avg", "median", "quantile_cont", "stddev") else INT64
    kind = FLOAT64 if function == "approx_quantile" else kind
    if function in ("min", "max", "sum"):
        kind = row[column]
        if function == "sum" and kind.kind == "decimal":
            kind = DataType("decimal", 38, kind.scale)
    if function.endswith("top_k"):
        kind = STRING
    if function == "count_distinct":
        return Aggregate("count", argument, kind, distinct=True)
    if function == "median":
        parameter = None
    return Aggregate(function, argument, kind, parameter=parameter)


def group_by(
    aggregates: list[tuple[str, str, Any]], row: dict[str, DataType] = ROW, key: str | None = "k"
) -> GroupAggregate:
    named = tuple(
        NamedAggregate(f"a{i}", aggregate(*item, row)) for i, item in enumerate(aggregates)
    )
    keys = () if key is None else (Named(key, Column(key, row[key])),)
    return GroupAggregate(Source(row).plan(), keys, named)


WILD = [0.1, 1e300, -1e300, 3.5, -0.0, 0.0, 5e-324, 1e-300, 7.25e15, math.nan, math.inf, -math.inf]
VALUES = st.fixed_dictionaries(
    {
        "k": st.sampled_from(["a", "b", None]),
        "i": st.sampled_from([None, 0, 1, 2, -5, 2**60]),
        "x": st.one_of(st.none(), st.sampled_from(WILD)),
        "s": st.sampled_from([None, "", "é", "x", 'q"\\']),
        "b": st.sampled_from([None, True, False]),
    }
)


@pytest.mark.parametrize("pattern", EDGES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_groups_are_right_at_every_instant(pattern: str, data: st.DataObject) -> None:
    tuples = data.draw(lives(pattern, VALUES))
    cuts = data.draw(st.lists(st.integers(-5, 30), max_size=4))
    reload = data.draw(st.booleans())
    expected = [grouped(tuples, instant, "k", AGGREGATES) for instant in INSTANTS]
    node = group_by(AGGREGATES)
    operators: list[tuple[Execution, AggregateGroups | RecomputedGroups]]
    operators = [(each, AggregateGroups(node, EDGES[pattern], each)) for each in EXECUTIONS]
    for execution, operator in [*operators, ("aware", RecomputedGroups(node))]:
        changes = changes_of(tuples, execution, SCHEMA)
        out = run(operator, changes, cuts, operator.output_schema, reload=reload)
        assert list(answers(out, INSTANTS, execution)) == expected
        whole = run(operator, changes, [], operator.output_schema, reload=False)
        assert same_changes(out, whole)


def test_a_row_that_goes_is_followed_by_what_replaces_it() -> None:
    #  at   0    3    9        lives 8:  a at [0, 8) and [3, 11), b at [9, 17)
    tuples = [Tuple(at, at + 8, None, at, {"k": key}) for at, key in [(0, "a"), (3, "a"), (9, "b")]]
    row = {"k": STRING}
    operator = AggregateGroups(group_by([("count", "*", None)], row), EDGES["weakest"])
    schema = pa.schema([("k", pa.string())])
    out = run(operator, changes_of(tuples, "aware", schema), [5], schema, reload=True)
    told = [
        (at, sign, *row.values())
        for at, sign, row in zip(
            out.at.tolist(), out.sign.tolist(), out.rows.to_pylist(), strict=True
        )
    ]
    assert told == [
        (0, 1, "a", 1),
        (3, -1, "a", 1),
        (3, 1, "a", 2),
        (8, -1, "a", 2),
        (8, 1, "a", 1),
        (9, 1, "b", 1),
        (11, -1, "a", 1),
        (17, -1, "b", 1),
    ]


def one_group(
    function: str, values: list[Any], kind: DataType, parameter: Value = None, life: int = 10**5
) -> tuple[AggregateGroups, Changes]:
    """Return the rows of one group, whose values come one at a time."""
    row = {"x": kind}
    operator = AggregateGroups(group_by([(function, "x", parameter)], row, None), EDGES["weakest"])
    tuples = [Tuple(i, i + life, None, i, {"x": value}) for i, value in enumerate(values)]
    schema = pa.schema([("x", kind.arrow)])
    changes = changes_of(tuples, "aware", schema)
    _, out = operator.step(operator.initial_state(), (changes,), len(values))
    return operator, out


LARGE = [
    ("min", "i", None),
    ("max", "i", None),
    ("quantile_cont", "i", 0.9),
    ("count_distinct", "i", None),
    ("top_k", "s", 4),
    ("top_k", "i", 3),
]


@pytest.mark.parametrize("pattern", EDGES)
def test_large_groups_are_right_while_they_grow_and_shrink(pattern: str) -> None:
    """So many values that they stand in blocks, and lists of the most frequent are kept."""
    rng, row = np.random.default_rng(11), {"k": INT64, "i": INT64, "s": STRING}
    schema = pa.schema([(name, kind.arrow) for name, kind in row.items()])
    tuples = []
    for number in range(2500):
        life = 2000 if pattern == "weakest" else int(rng.integers(1, 3000))
        gone = number + life // 2 if pattern == "strict" and number % 3 == 0 else None
        value = int(rng.integers(0, 50 if number % 2 else 10**6))
        values = {"k": 1, "i": value, "s": f"{value % 700:03}"}
        gone = gone if gone is None or gone > number else None
        tuples.append(Tuple(number, number + life, gone, number, values))
    cuts = [1000, 2400, 3500]
    instants = [900, 1700, 2400, 3400, 4450]
    expected = [grouped(tuples, instant, "k", LARGE) for instant in instants]
    operator = AggregateGroups(group_by(LARGE, row), EDGES[pattern])
    changes = changes_of(tuples, "aware", schema)
    out = run(operator, changes, cuts, operator.output_schema, reload=True)
    assert list(answers(out, instants, "aware")) == expected


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=60))
def test_sums_are_rounded_once_whatever_has_been_in_them(values: list[float]) -> None:
    _, out = one_group("sum", values, FLOAT64, life=5)
    expected = grouped(
        [Tuple(0, 9, None, 0, {"k": 0, "x": value}) for value in values[-5:]],
        0,
        "k",
        [("sum", "x", None)],
    )
    assert (0, out.rows.column("a0")[-1].as_py()) in expected


def test_a_long_run_leaves_no_trace() -> None:
    rng = np.random.default_rng(5)
    values = [*(rng.normal(0, 1, 3000) * 10.0 ** rng.integers(-30, 30, 3000)), *[0.0] * 50]
    _, out = one_group("sum", values, FLOAT64, life=50)
    assert out.rows.column("a0")[-1].as_py() == 0.0


def test_deviations_stay_exact_beside_a_large_mean() -> None:
    rng = np.random.default_rng(3)
    values = [float(value) for value in 1e9 + rng.normal(0, 1.0, 300)]
    _, out = one_group("stddev", values, FLOAT64, life=20)
    assert out.rows.column("a0")[0].as_py() is None
    assert out.rows.column("a0")[-1].as_py() == pytest.approx(stdev(values[-20:]), rel=1e-12)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=80), st.sampled_from([0.0, 0.25, 0.5, 1])
)
def test_approximate_quantiles_keep_their_bound(values: list[float], share: float) -> None:
    _, out = one_group("approx_quantile", values, FLOAT64, share, life=30)
    ordered = sorted(values[-30:])
    exact = ordered[math.floor(share * (len(ordered) - 1))]
    assert out.rows.column("a0")[-1].as_py() == pytest.approx(exact, rel=0.0101, abs=1e-300)


def test_short_decimals_times_and_booleans_keep_their_types() -> None:
    money = DataType("decimal", 10, 2)
    row = {"k": INT64, "d": money, "t": TIMESTAMP}
    wanted = [("sum", "d", None), ("avg", "d", None), ("max", "d", None), ("min", "t", None)]
    operator = AggregateGroups(group_by([*wanted, ("median", "d", None)], row), EDGES["weakest"])
    when = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).replace(tzinfo=None)
    values = [{"k": 1, "d": Decimal(text), "t": when} for text in ("-1.50", "2.25")]
    schema = pa.schema([(name, kind.arrow) for name, kind in row.items()])
    changes = changes_of([Tuple(0, 9, None, i, v) for i, v in enumerate(values)], "aware", schema)
    _, out = operator.step(operator.initial_state(), (changes,), 1)
    assert out.rows.to_pylist() == [
        {"k": 1, "a0": Decimal("0.75"), "a1": 0.375, "a2": Decimal("2.25"), "a3": when, "a4": 0.375}
    ]


def test_nothing_is_said_of_a_group_that_stays_as_it_is() -> None:
    _, out = one_group("max", [5, 3, 4], INT64)
    assert out.rows.to_pylist() == [{"a0": 5}]


@pytest.mark.parametrize(
    ("function", "kind", "hint"),
    [
        ("min", STRING, "COUNT"),
        ("top_k", BINARY, "COUNT"),
        ("sum", DataType("decimal", 30, 2), "double"),
        ("approx_count_distinct", INT64, "SLIDE"),
        ("approx_top_k", INT64, "SLIDE"),
    ],
)
def test_what_is_not_kept_up_is_refused(function: str, kind: DataType, hint: str) -> None:
    with pytest.raises(UnsupportedError, match=hint):
        one_group(function, [], kind, 3)


def test_a_sum_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(EvaluationError, match="does not fit int64"):
        one_group("sum", [2**62, 2**62], INT64)


def test_a_state_of_another_query_is_refused() -> None:
    operator, _ = one_group("sum", [], INT64)
    dumped = operator.dump(operator.initial_state())
    with pytest.raises(StateError, match="written by another"):
        AggregateGroups(group_by(AGGREGATES, key=None), EDGES["weakest"]).load(dumped)


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_groups_that_are_gone_are_forgotten(execution: Execution) -> None:
    row = {"k": INT64}
    operator = AggregateGroups(group_by([("count", "*", None)], row), EDGES["weakest"], execution)
    tuples = [Tuple(i, i + 5, None, i, {"k": i}) for i in range(3000)]
    changes = changes_of(tuples, execution, pa.schema([("k", pa.int64())]))
    state = operator.initial_state()
    for until in range(100, 3200, 100):
        chosen = np.flatnonzero((changes.at >= until - 100) & (changes.at < until))
        state, _ = operator.step(state, (changes.take(chosen),), until)
    assert state.living == 0
    assert operator.size(state).tuples == 0
    assert len(state.groups.about) < 400
    assert state.keys.size < 1500
