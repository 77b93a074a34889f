"""Values, columns and conditions of every type, for property tests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

import pyarrow as pa
from hypothesis import strategies as st

from eventide.schema import BINARY, BOOL, FLOAT64, INT64, STRING, TIMESTAMP, DataType
from eventide.store.index.ranges import ValueRange

MONEY = DataType("decimal", 10, 2)

# Few different values, so that many are equal, and now and then anything.
VALUES: dict[DataType, st.SearchStrategy[object]] = {
    BOOL: st.booleans(),
    INT64: st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1),
    FLOAT64: st.sampled_from([0.0, -0.0, 1.5, -2.0, float("nan"), float("inf")]) | st.floats(),
    STRING: st.text("aé\U0001f600", max_size=2) | st.text(max_size=40),
    TIMESTAMP: st.integers(0, 3).map(lambda day: datetime(2024, 1, 1 + day)) | st.datetimes(),
    MONEY: st.integers(-3, 3).map(lambda cents: Decimal(cents).scaleb(-2))
    | st.integers(-(10**10) + 1, 10**10 - 1).map(lambda cents: Decimal(cents).scaleb(-2)),
    BINARY: st.binary(max_size=2) | st.binary(max_size=40),
}
types = st.sampled_from(list(VALUES))


def lists(data_type: DataType, max_size: int = 30) -> st.SearchStrategy[list[object]]:
    """Return lists of values and nulls of a type."""
    return st.lists(st.none() | VALUES[data_type], max_size=max_size)


def conditions(data_type: DataType, values: Sequence[object] = ()) -> st.SearchStrategy[ValueRange]:
    """Return ranges of a type, most of them with bounds that are among `values`."""
    known = [value for value in values if value is not None]
    one = VALUES[data_type] if not known else st.sampled_from(known) | VALUES[data_type]
    bound = st.none() | one
    return st.builds(ValueRange, bound, bound, st.booleans(), st.booleans()) | one.map(
        ValueRange.of
    )


def column(values: Sequence[object], data_type: DataType) -> pa.Array:
    """Return values as a stored column, not at the begin of its buffers."""
    first: list[object] = [None]
    return pa.array(first + list(values), data_type.arrow)[1:]
