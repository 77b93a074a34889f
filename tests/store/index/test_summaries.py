"""Summaries against folds in plain Python, and against what queries compute from the rows."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.accumulators import Groups, accumulator_for
from eventide.errors import EvaluationError, StoreError
from eventide.kernels.compiled import Int64s, frozen
from eventide.schema import DataType, Schema
from eventide.store.index.aggregates import BoundAggregate
from eventide.store.index.summaries import SummaryLayout
from tests.naive.summaries import answers

settings.register_profile("summaries", deadline=None, max_examples=60)
settings.load_profile("summaries")

TYPES = {
    "flag": "bool",
    "lane": "int64",
    "speed": "float64",
    "car": "string",
    "seen": "timestamp",
    "price": "decimal(10,2)",
    "huge": "decimal(38,3)",
    "mark": "binary",
}
SCHEMA = Schema.of(TYPES)
NUMBERS = ("lane", "speed", "price", "huge")
LAYOUT = SummaryLayout.of(SCHEMA, list(TYPES))
SUMS = ("sum", "avg", "stddev", "var_samp", "var_pop")
DEVIATIONS = ("stddev", "var_samp", "var_pop")
FUNCTIONS = [(each, name) for name in TYPES for each in ("count", "min", "max")]
FUNCTIONS += [(each, name) for name in NUMBERS for each in SUMS]

hundredths = st.integers(-(10**7), 10**7).map(lambda number: number / 100)
ordinary: dict[str, st.SearchStrategy[Any]] = {
    "flag": st.booleans(),
    "lane": st.integers(-(2**40), 2**40),
    "speed": hundredths,
    "car": st.text(max_size=12) | st.text(max_size=3).map(lambda end: "the same head " + end),
    "seen": st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)),
    "price": st.integers(-(10**10) + 1, 10**10 - 1).map(lambda number: Decimal(f"{number}e-2")),
    # Of one magnitude: as doubles they add up without a rounding that hangs on their order.
    "huge": st.builds(
        lambda sign, number: Decimal(f"{sign * number}e-3"),
        st.sampled_from([-1, 1]),
        st.integers(10**28, 10**30),
    ),
    "mark": st.binary(max_size=12),
}
special_floats = st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 0.0, 1.5, -2.0, None])
Rows = list[Any]


def rows_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Rows]:
    """Return rows with nulls, some of them long enough to be added in lanes."""
    some = st.lists(st.none() | values, max_size=12) | st.lists(values, max_size=12)
    return st.builds(lambda rows, times: rows * times, some, st.sampled_from([1, 1, 40]))


def cuts(data: st.DataObject, rows: int) -> list[int]:
    inner = data.draw(st.lists(st.integers(0, rows), max_size=4))
    return [0, *sorted(inner), rows]


def batch(name: str, rows: Sequence[Any]) -> pa.RecordBatch:
    """Return the rows as a slice out of a longer batch."""
    kind = SCHEMA.type_of(name).arrow
    padded = pa.array([None, *rows, None], kind)
    return pa.record_batch({name: padded}).slice(1, len(rows))


def at(*bounds: int) -> Int64s:
    return np.array(bounds, np.int64)


def layout_for(name: str) -> SummaryLayout:
    return SummaryLayout.of(SCHEMA, [name])


def exactly(values: pa.Array) -> tuple[pa.DataType, list[object]]:
    """Return what tells values apart to the last bit, but for NaNs."""
    plain = values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values
    return values.type, [repr(value) for value in plain.to_pylist()]


def from_rows(function: str, name: str, rows: pa.Array, bounds: Sequence[int]) -> pa.Array:
    """Return what a query computes from the rows."""
    accumulator = accumulator_for(function, SCHEMA.type_of(name))
    lengths = np.diff(np.array(bounds))
    groups = Groups(frozen(np.repeat(np.arange(len(lengths)), lengths)), len(lengths))
    return accumulator.finish(accumulator.by_group(accumulator.lift(rows), groups))


@pytest.mark.parametrize(("function", "name"), FUNCTIONS)
@settings(max_examples=25)
@given(data=st.data())
def test_summaries_are_those_of_the_definition(
    function: str, name: str, data: st.DataObject
) -> None:
    rows = data.draw(rows_of(ordinary[name]))
    bounds = cuts(data, len(rows))
    layout = layout_for(name)
    entries = layout.summarise(batch(name, rows), at(*bounds))
    assert entries.schema.equals(layout.arrow)
    entries.validate(full=True)
    found = layout.finish(function, name, entries).to_pylist()
    expected = answers(function, rows, bounds)
    if function == "avg":
        # Long decimals are doubles before they are added, and may cancel then.
        assert found == near(expected, rel=1e-15, room=1e-15 * largest(rows))
    elif function in DEVIATIONS:
        # Queries compute deviations from decimals as doubles, which are not exact.
        room = 1e-7 if name in ("price", "huge") else 1e-13
        power = 1 if function == "stddev" else 2
        room = (room * largest(rows)) ** power
        assert found == near(expected, rel=1e-14, room=room)
    else:
        assert found == expected


def near(expected: Sequence[Any], rel: float, room: float = 0.0) -> list[Any]:
    return [each if each is None else pytest.approx(each, rel=rel, abs=room) for each in expected]


def largest(rows: Sequence[Any]) -> float:
    return max((abs(float(row)) for row in rows if row is not None), default=0.0)


def assert_same(function: str, one: pa.Array, other: pa.Array, rows: Sequence[Any]) -> None:
    """Hold answers equal to the last bit; deviations only where there is much of one."""
    assert one.type == other.type
    if function not in DEVIATIONS:
        assert exactly(one) == exactly(other)
        return
    power = 1 if function == "stddev" else 2
    for left, right in zip(one.to_pylist(), other.to_pylist(), strict=True):
        if left is None or left > (1e-3 * largest(rows)) ** power:
            assert left == right
        else:
            # The squares of equal values cancel to the last of their hundred bits.
            assert left == pytest.approx(right, rel=1e-6, abs=(1e-13 * largest(rows)) ** power)


@pytest.mark.parametrize("name", TYPES)
@settings(max_examples=40)
@given(data=st.data())
def test_answers_are_those_of_queries_to_the_last_bit(name: str, data: st.DataObject) -> None:
    rows = data.draw(rows_of(ordinary[name]))
    bounds = cuts(data, len(rows))
    layout = layout_for(name)
    events = batch(name, rows)
    entries = layout.summarise(events, at(*bounds))
    for function in ("count", "min", "max", "sum", "avg", "stddev"):
        if layout.has(function, name):
            expected = from_rows(function, name, events.column(0), bounds)
            assert_same(function, layout.finish(function, name, entries), expected, rows)


@given(rows_of(special_floats), st.data())
def test_what_is_not_finite_answers_as_in_queries(rows: Rows, data: st.DataObject) -> None:
    bounds = cuts(data, len(rows))
    layout = layout_for("speed")
    events = batch("speed", rows)
    entries = layout.summarise(events, at(*bounds))
    whole = layout.merge(entries, at(0, len(bounds) - 1))
    for function in ("count", "min", "max", "sum", "avg", "stddev"):
        for summary, cut in ((entries, bounds), (whole, [0, len(rows)])):
            expected = from_rows(function, "speed", events.column(0), cut)
            assert exactly(layout.finish(function, "speed", summary)) == exactly(expected)


@pytest.mark.parametrize("rows", [[math.inf], [math.nan], [1.0, -math.inf], [5.0]])
def test_nothing_deviates_by_a_number_from_what_is_not_finite(rows: Rows) -> None:
    layout = layout_for("speed")
    entries = layout.summarise(batch("speed", rows), at(0, len(rows)))
    for function in ("var_samp", "var_pop", "stddev_pop"):
        found = layout.finish(function, "speed", entries)
        expected = pa.array(answers(function, rows, [0, len(rows)]), pa.float64())
        assert exactly(found) == exactly(expected)


@given(st.lists(st.floats(-1e150, 1e150), max_size=20), st.integers(1, 30))
def test_float_sums_keep_a_hundred_bits(some: list[float], times: int) -> None:
    rows = some * times
    layout = layout_for("speed")
    (found,) = layout.finish(
        "sum", "speed", layout.summarise(batch("speed", rows), at(0, len(rows)))
    ).to_pylist()
    exact = sum(map(Fraction, rows), Fraction(0))
    room = abs(exact) / 2**52 + sum(map(abs, map(Fraction, rows)), Fraction(0)) / 2**96
    assert found is None if not rows else abs(Fraction(found) - exact) <= room


@pytest.mark.parametrize("name", TYPES)
@settings(max_examples=40)
@given(data=st.data())
def test_merging_does_not_show(name: str, data: st.DataObject) -> None:
    """Cut anywhere, put together in any grouping and any order: the answers are the same."""
    rows = data.draw(rows_of(ordinary[name]))
    layout = layout_for(name)
    events = batch(name, rows)
    whole = layout.summarise(events, at(0, len(rows)))
    entries = layout.summarise(events, at(*cuts(data, len(rows))))
    shuffled = entries.take(pa.array(data.draw(st.permutations(range(entries.num_rows)))))
    in_steps = layout.merge(entries, at(*cuts(data, entries.num_rows)))
    for parts in (entries, shuffled, in_steps):
        merged = layout.merge(parts, at(0, parts.num_rows))
        merged.validate(full=True)
        for function, attribute in FUNCTIONS:
            if attribute == name:
                one, other = (layout.finish(function, name, each) for each in (merged, whole))
                assert_same(function, one, other, rows)


@pytest.mark.parametrize("name", TYPES)
def test_empty_runs_are_neutral(name: str) -> None:
    layout = layout_for(name)
    nothing = layout.summarise(batch(name, []), at(0, 0, 0))
    assert nothing.num_rows == 2
    assert layout.finish("count", name, nothing).to_pylist() == [0, 0]
    assert layout.finish("max", name, nothing).to_pylist() == [None, None]
    assert layout.merge(nothing, at(0, 0, 2)).equals(nothing)
    assert layout.empty().num_rows == layout.summarise(batch(name, []), at(0)).num_rows == 0
    assert layout.merge(layout.empty(), at(0, 0)).num_rows == 1


def test_a_narrow_layout_reads_wide_entries() -> None:
    rows = pa.record_batch(
        {name: pa.nulls(4, SCHEMA.type_of(name).arrow) for name in TYPES}
    ).set_column(2, "speed", pa.array([1.0, 2.0, 4.0, 8.0]))
    entries = LAYOUT.summarise(rows, at(0, 1, 2, 3, 4))
    wide = entries.append_column("rows", pa.array([1, 1, 1, 1])).slice(1)
    narrow = layout_for("speed")
    assert narrow is layout_for("speed")
    merged = narrow.merge(wide, at(0, 3))
    assert merged.schema.names == narrow.arrow.names
    assert narrow.finish("sum", "speed", merged).to_pylist() == [14.0]
    assert narrow.finish("sum", "speed", wide).to_pylist() == [2.0, 4.0, 8.0]


LARGEST = 2**63 - 1


def test_an_integer_sum_may_pass_through_what_does_not_fit() -> None:
    layout = layout_for("lane")
    entries = layout.summarise(batch("lane", [LARGEST, LARGEST, -LARGEST]), at(0, 2, 3))
    merged = layout.merge(entries, at(0, 2))
    assert layout.finish("sum", "lane", merged).to_pylist() == [LARGEST]
    assert layout.finish("avg", "lane", entries).to_pylist() == [float(LARGEST), -float(LARGEST)]
    with pytest.raises(EvaluationError, match=r"sum\(lane\) does not fit int64"):
        layout.finish("sum", "lane", entries)


def test_a_decimal_sum_that_wraps_around_is_an_error() -> None:
    largest = Decimal(f"{10**38 - 1}e-3")
    layout = layout_for("huge")
    entries = layout.summarise(batch("huge", [largest] * 8), at(0, 1, 8))
    assert layout.finish("sum", "huge", entries.slice(0, 1)).to_pylist() == [largest]
    with pytest.raises(EvaluationError, match=r"sum\(huge\) does not fit decimal"):
        layout.finish("sum", "huge", layout.merge(entries, at(0, 2)))


def test_long_texts_are_kept_whole() -> None:
    long = "a" * 100_000
    layout = layout_for("car")
    entries = layout.summarise(batch("car", [long + "b", long, long + "c"]), at(0, 3))
    assert layout.finish("min", "car", entries).to_pylist() == [long]
    assert layout.finish("max", "car", entries).to_pylist() == [long + "c"]


def test_a_summary_says_what_it_can_answer() -> None:
    assert LAYOUT.has("max", "car")
    assert not LAYOUT.has("sum", "car")
    assert not LAYOUT.has("count", None)
    assert not LAYOUT.has("first", "speed")
    assert not layout_for("speed").has("max", "car")
    with pytest.raises(StoreError, match=r"no summary answers sum\(car\)"):
        LAYOUT.finish("sum", "car", LAYOUT.empty())
    with pytest.raises(StoreError, match=r"no summary answers count\(\*\)"):
        LAYOUT.finish("count", None, LAYOUT.empty())


@pytest.mark.parametrize(("function", "name"), FUNCTIONS)
def test_answers_have_the_types_of_queries(function: str, name: str) -> None:
    found = LAYOUT.finish(function, name, LAYOUT.empty())
    argument: DataType = SCHEMA.type_of(name)
    match function:
        case "count":
            assert found.type == pa.int64()
        case "min" | "max":
            assert found.type == argument.arrow
        case "sum" if argument.kind == "decimal":
            assert found.type == pa.decimal128(38, argument.scale)
        case "sum":
            assert found.type == argument.arrow
        case _:
            assert found.type == pa.float64()


def test_names_that_clash_are_refused() -> None:
    with pytest.raises(StoreError, match=r"two columns .* 'speed.count'"):
        SummaryLayout.of(SCHEMA, ["speed", "speed"])
    with pytest.raises(StoreError, match=r"aggregate 'max2' needs max\(speed\)"):
        SummaryLayout.of(SCHEMA, ["lane"], [BoundAggregate("max2", "speed")])
    with pytest.raises(StoreError, match="does not take car, which is string"):
        SummaryLayout.of(SCHEMA, ["car"], [BoundAggregate("median", "car")])
