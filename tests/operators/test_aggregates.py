"""Every aggregate against its definition: by group and by frame, however rows are divided."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.accumulators import Accumulator, Frames, Groups
from eventide.kernels.compiled import frozen
from eventide.operators.aggregate import accumulator_of
from eventide.plan.aggregates import AGGREGATES, STANDING_ONLY
from eventide.plan.bind import bind_aggregate
from eventide.plan.expressions import Aggregate, Column
from eventide.schema import BOOL, FLOAT64, INT64, STRING, TIMESTAMP, DataType
from tests.naive import aggregates as naive

WILD = (0.1, 1e200, 1e100, -1e200, -1e100, 1.0, 2.0, -0.0, 0.0, 5e-324, 1.7e308, -1.7e308, 3.25)
TAME = (0.5, 1.0, 2.0, 2.25, 10.0, 20.0, -3.0)
ENDLESS = (math.nan, math.inf, -math.inf)
KINDS: dict[DataType, st.SearchStrategy[Any]] = {
    FLOAT64: st.sampled_from(TAME + ENDLESS) | st.none(),
    INT64: st.integers(-3, 3) | st.none(),
    STRING: st.sampled_from(["", "a", "b", "é"]) | st.none(),
    BOOL: st.booleans() | st.none(),
    TIMESTAMP: st.integers(0, 4) | st.none(),
}
PARAMETERS: dict[str, Any] = {
    "quantile_cont": 0.3,
    "quantile_disc": 0.6,
    "top_k": 2,
    "string_agg": "-",
}
ROUGH = ("approx_quantile", "approx_top_k")
"""Within a bound of the exact answer: tests/operators/standing has their tests."""
CASES = [
    (name, kind)
    for name, function in AGGREGATES.items()
    for kind in KINDS
    if name not in (*STANDING_ONLY, *ROUGH)
    and function.result(*[kind] * function.arguments) is not None
    and not (name == "top_k" and kind in (FLOAT64, TIMESTAMP))
]


def bound(name: str, kind: DataType, *, distinct: bool = False) -> Aggregate:
    second = Column("y") if AGGREGATES[name].arguments == 2 else None
    plain = Aggregate(
        name, Column("x"), parameter=PARAMETERS.get(name), second=second, distinct=distinct
    )
    return bind_aggregate(plain, {"x": kind, "y": kind})


def columns(rows: list[tuple[Any, ...]], kind: DataType, width: int) -> list[pa.Array]:
    return [pa.array([row[i] for row in rows], kind.arrow) for i in range(width)]


def defined(name: str, rows: list[tuple[Any, ...]], *, distinct: bool) -> Any:  # noqa: ANN401
    if distinct:
        kept = AGGREGATES[name].keeps_nulls
        present = [row[0] for row in rows if kept or row[0] is not None]
        rows = [(value,) for value in naive.distinct(present)]
    return naive.aggregate(name, rows, PARAMETERS.get(name))


def merged(accumulator: Accumulator, partials: list[pa.Array], cuts: list[int]) -> list[pa.Array]:
    """Merge rows between cuts first, and then what results."""
    bounds = sorted({0, *cuts, len(partials[0])})
    parts = [
        accumulator.by_group(
            [part[start:end] for part in partials],
            Groups(frozen(np.zeros(end - start, np.int64)), 1),
        )
        for start, end in pairwise(bounds)
    ]
    if not parts:
        return accumulator.by_group(partials, Groups(frozen(np.zeros(0, np.int64)), 1))
    together = [pa.concat_arrays(column) for column in zip(*parts, strict=True)]
    return accumulator.by_group(together, Groups(frozen(np.zeros(len(parts), np.int64)), 1))


def same(found: Any, expected: Any) -> bool:  # noqa: ANN401
    if isinstance(found, list) and expected is not None:
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(found, float) and expected is not None:
        if math.isnan(found) or math.isnan(expected):
            return math.isnan(found) and math.isnan(expected)
        return math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-12)
    return bool(found == expected)


def plain(array: pa.Array) -> list[Any]:
    if pa.types.is_list(array.type):
        return [None if each.values is None else plain(each.values) for each in array]
    timed = pa.types.is_timestamp(array.type)
    values: list[Any] = (array.view(pa.int64()) if timed else array).to_pylist()
    return values


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize(("name", "kind"), CASES, ids=str)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_an_aggregate_is_its_definition(
    name: str, kind: DataType, distinct: bool, data: st.DataObject
) -> None:
    values = KINDS[kind]
    row = st.tuples(*[values] * AGGREGATES[name].arguments)
    rows = data.draw(st.lists(row, max_size=12))
    aggregate = bound(name, kind, distinct=distinct)
    if distinct and not aggregate.distinct:
        return
    accumulator = accumulator_of(aggregate)
    lifted = accumulator.lift(*columns(rows, kind, AGGREGATES[name].arguments))
    cuts = data.draw(st.lists(st.integers(0, len(rows)), max_size=3))
    (found,) = plain(accumulator.finish(merged(accumulator, lifted, cuts)))
    assert same(found, defined(name, rows, distinct=distinct))
    bounds = st.integers(0, len(rows))
    frames = data.draw(st.lists(st.tuples(bounds, bounds), max_size=6))
    left, right = sorted(min(each) for each in frames), sorted(max(each) for each in frames)
    framed = Frames(frozen(np.array(left, np.int64)), frozen(np.array(right, np.int64)))
    answers = plain(accumulator.of_frames(lifted, framed))
    for answer, start, end in zip(answers, left, right, strict=True):
        assert same(answer, defined(name, rows[start:end], distinct=distinct))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from(WILD) | st.floats(allow_nan=False), max_size=14),
    st.lists(st.integers(0, 14), max_size=4),
)
def test_sums_of_floats_are_correctly_rounded_for_any_division(
    values: list[float], cuts: list[int]
) -> None:
    accumulator = accumulator_of(bound("sum", FLOAT64))
    lifted = accumulator.lift(pa.array(values, pa.float64()))
    expected = naive.total(values) if values else None
    found = accumulator.finish(merged(accumulator, lifted, [min(c, len(values)) for c in cuts]))
    assert found.to_pylist() == [expected]
    ends = np.arange(len(values) + 1, dtype=np.int64)
    for left in (np.zeros_like(ends), np.maximum(ends - 3, 0)):
        running = accumulator.of_frames(lifted, Frames(frozen(left), frozen(ends)))
        for start, end, each in zip(left, ends, running.to_pylist(), strict=True):
            inside = values[start:end]
            assert each == (naive.total(inside) if inside else None)


def test_a_condition_chooses_rows_for_what_takes_nulls_for_values() -> None:
    plain_first = Aggregate("first", Column("x"), condition=Column("c"))
    aggregate = bind_aggregate(plain_first, {"x": FLOAT64, "c": BOOL})
    accumulator = accumulator_of(aggregate)
    values = pa.array([1.0, None, 3.0, 4.0])
    chosen = pa.array([False, True, None, True])
    lifted = accumulator.lift(values, chosen)
    for cuts in ([], [1, 2]):
        assert accumulator.finish(merged(accumulator, lifted, cuts)).to_pylist() == [None]
    frames = Frames(frozen(np.array([0, 2, 3])), frozen(np.array([1, 3, 4])))
    assert accumulator.of_frames(lifted, frames).to_pylist() == [None, None, 4.0]
    listed = bind_aggregate(replace(plain_first, function="array_agg"), {"x": FLOAT64, "c": BOOL})
    accumulator = accumulator_of(listed)
    lifted = accumulator.lift(values, chosen)
    for cuts in ([], [1, 2]):
        assert accumulator.finish(merged(accumulator, lifted, cuts)).to_pylist() == [[None, 4.0]]
    assert accumulator.of_frames(lifted, frames).to_pylist() == [None, None, [4.0]]


@given(st.lists(st.tuples(st.sampled_from(WILD + ENDLESS) | st.none(), st.integers(0, 3))))
@pytest.mark.parametrize("name", ["sum", "avg", "count"])
def test_values_by_group_are_the_partials_of_single_values(
    name: str, rows: list[tuple[float | None, int]]
) -> None:
    """Also where a pair of doubles has lost something, with NaN, and with nulls."""
    accumulator = accumulator_of(bound(name, FLOAT64))
    groups = Groups(frozen(np.array([group for _, group in rows], np.int64)), 4)
    for values in ([value for value, _ in rows], [value or 0.0 for value, _ in rows]):
        column = pa.array(values, pa.float64())
        found = accumulator.finish(accumulator.of_groups([column], groups))
        expected = accumulator.finish(accumulator.by_group(accumulator.lift(column), groups))
        assert [repr(each) for each in found.to_pylist()] == [
            repr(each) for each in expected.to_pylist()
        ]
