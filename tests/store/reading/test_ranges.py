"""Conditions on one attribute, against comparing value by value."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import SchemaError
from eventide.schema import (
    BINARY,
    BOOL,
    FLOAT64,
    INT64,
    INTERVAL,
    STRING,
    TIMESTAMP,
    DataType,
)
from eventide.store.index.ranges import ValueRange, checked
from tests.naive.ranges import order, qualifies
from tests.store.values import MONEY, column, conditions, lists, types

NAN, INF = float("nan"), float("inf")


@settings(deadline=None)
@given(st.data())
def test_mask_agrees_with_naive(data: st.DataObject) -> None:
    data_type = data.draw(types)
    values = data.draw(lists(data_type))
    wanted = data.draw(conditions(data_type, values))
    expected = [qualifies(value, wanted) for value in values]
    assert wanted.mask(column(values, data_type)).tolist() == expected


@settings(deadline=None)
@given(st.data())
def test_entries_of_an_index_agree_with_their_values(data: st.DataObject) -> None:
    data_type = data.draw(types)
    leaves = data.draw(st.lists(lists(data_type, max_size=5), max_size=6))
    wanted = data.draw(conditions(data_type, [value for leaf in leaves for value in leaf]))
    kept = [[value for value in leaf if value is not None] for leaf in leaves]
    minima = column([min(leaf, key=order, default=None) for leaf in kept], data_type)
    maxima = column([max(leaf, key=order, default=None) for leaf in kept], data_type)
    some = wanted.may_hold(minima, maxima).tolist()
    for leaf, may in zip(kept, some, strict=True):
        inside = [qualifies(value, wanted) for value in leaf]
        assert may or not any(inside)
        assert may <= bool(leaf)
        if leaf and not wanted.is_empty:
            # As far as bounds can tell, nothing lies between the values and the range.
            above = ValueRange(low=wanted.low, includes_low=wanted.includes_low)
            below = ValueRange(high=wanted.high, includes_high=wanted.includes_high)
            smallest, largest = min(leaf, key=order), max(leaf, key=order)
            assert may == (qualifies(largest, above) and qualifies(smallest, below))


@pytest.mark.parametrize(
    ("wanted", "inside"),
    [
        (ValueRange.of(0.0), [-0.0, 0.0]),
        (ValueRange.of(NAN), [NAN]),
        (ValueRange(low=INF), [INF, NAN]),
        (ValueRange(low=INF, includes_low=False), [NAN]),
        (ValueRange(low=NAN, includes_low=False), []),
        (ValueRange(high=NAN, includes_high=False), [-INF, -0.0, 0.0, 1.0, INF]),
        (ValueRange(low=NAN, high=1.0), []),
        (ValueRange(), [-INF, -0.0, 0.0, 1.0, INF, NAN]),
    ],
)
def test_nan_is_larger_than_every_number(wanted: ValueRange, inside: list[float]) -> None:
    values = pa.array([-INF, -0.0, 0.0, 1.0, INF, NAN, None])
    assert list(map(repr, values.filter(wanted.mask(values)).to_pylist())) == list(
        map(repr, inside)
    )


def test_a_range_without_room_may_hold_nothing() -> None:
    minima, maxima = pa.array([0]), pa.array([9])
    for wanted in (ValueRange(5, 3), ValueRange(5, 5, includes_low=False)):
        assert wanted.is_empty
        assert not wanted.may_hold(minima, maxima).any()


def test_an_entry_without_values_holds_nothing() -> None:
    nothing = pa.array([None], pa.int64())
    assert ValueRange(1).may_hold(nothing, nothing).tolist() == [False]


@pytest.mark.parametrize(
    ("bound", "data_type", "stored"),
    [
        (3.0, INT64, 3),
        (3, FLOAT64, 3.0),
        (Decimal("0.5"), FLOAT64, 0.5),
        (3, MONEY, Decimal("3.00")),
        (Decimal("1E+2"), MONEY, Decimal("100.00")),
        (Decimal("-1.2300"), MONEY, Decimal("-1.23")),
        (Decimal("-0E-9"), MONEY, Decimal("0.00")),
        (Decimal("9" * 38), DataType("decimal", 38, 0), Decimal("9" * 38)),
        (bytearray(b"a"), BINARY, b"a"),
        (datetime(1970, 1, 1, 0, 0, 1), TIMESTAMP, 1_000_000),
        (datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), TIMESTAMP, 0),
        (datetime(1, 1, 1, tzinfo=UTC), TIMESTAMP, -62_135_596_800_000_000),
        (7, TIMESTAMP, 7),
    ],
)
def test_bounds_become_values_of_the_type(
    bound: object, data_type: DataType, stored: object
) -> None:
    found = checked(ValueRange(bound), data_type)
    assert found == ValueRange(stored)
    assert type(found.low) is type(stored)
    assert checked(found, data_type) == found


@pytest.mark.parametrize(
    ("bound", "data_type"),
    [
        (1, BOOL),
        (True, INT64),
        (2.5, INT64),
        (NAN, INT64),
        (2**63, INT64),
        (Decimal("1e999999999"), INT64),
        ("3", INT64),
        ("3", FLOAT64),
        (True, FLOAT64),
        (10**400, FLOAT64),
        (Decimal("1e400"), FLOAT64),
        (Decimal("sNaN"), FLOAT64),
        (b"a", STRING),
        ("\ud800", STRING),
        ("a", BINARY),
        ("2024-01-01", TIMESTAMP),
        (2**62, TIMESTAMP),
        (1.5, MONEY),
        (Decimal("0.001"), MONEY),
        (Decimal("1e8"), MONEY),
        (Decimal("1e999999999"), MONEY),
        (Decimal("NaN"), MONEY),
        (Decimal("-Infinity"), MONEY),
        (3, INTERVAL),
    ],
)
def test_bounds_of_another_type_are_refused(bound: object, data_type: DataType) -> None:
    for wanted in (ValueRange(low=bound), ValueRange(high=bound)):
        with pytest.raises(SchemaError, match=r"is not a value of type .*\nhint: "):
            checked(wanted, data_type)


def test_conditions_as_callers_write_them() -> None:
    assert ValueRange.of(3) == ValueRange(3, 3)
    assert ValueRange.of((1, None)) == ValueRange(low=1)
    assert ValueRange.of(ValueRange(1)) == ValueRange(1)
    assert ValueRange.of("ab").is_equality
    assert ValueRange.of(NAN).is_equality
    assert not ValueRange(3, 3, includes_high=False).is_equality
    assert not ValueRange().is_equality
    for wrong in (None, (), (1, 2, 3)):
        with pytest.raises(SchemaError, match="is not a condition"):
            ValueRange.of(wrong)


def test_a_column_that_no_attribute_can_have_is_refused() -> None:
    with pytest.raises(SchemaError, match="no attribute has type"):
        ValueRange(1).mask(pa.array([{"a": 1}]))
