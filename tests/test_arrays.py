"""Arrow columns from NumPy arrays and back are those that pyarrow makes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from eventide.arrays import NUMBERS, no_rows, to_arrow, to_numpy, to_scalar

DTYPES = st.sampled_from([np.dtype(kind.to_pandas_dtype()) for kind in (pa.bool_(), *NUMBERS)])
COLUMNS = DTYPES.flatmap(
    # NaN is not equal to itself.
    lambda dtype: arrays.arrays(
        dtype, st.integers(0, 70), elements=arrays.from_dtype(dtype, allow_nan=False)
    )
)


@settings(deadline=None)
@given(COLUMNS, st.data())
def test_a_column_is_the_one_of_pyarrow(values: np.ndarray, data: st.DataObject) -> None:
    assert to_arrow(values).equals(pa.array(values))
    assert to_arrow(values[::-2]).equals(pa.array(values[::-2].copy()))
    valid = data.draw(arrays.arrays(np.bool_, len(values)))
    masked = to_arrow(values, valid)
    assert masked.equals(pa.array(values, mask=~valid))
    masked.validate(full=True)


@settings(deadline=None)
@given(COLUMNS, st.data())
def test_an_array_is_the_one_of_pyarrow(values: np.ndarray, data: st.DataObject) -> None:
    column = pa.array(values)
    start = data.draw(st.integers(0, len(values)))
    length = data.draw(st.integers(0, len(values) - start))
    found = to_numpy(column.slice(start, length))
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, values[start : start + length])


def test_numbers_are_not_copied() -> None:
    values = np.arange(5)
    column = to_arrow(values)
    values[0] = 9
    assert column[0].as_py() == 9
    assert np.shares_memory(to_numpy(column), values)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (3, pa.int64()),
        (-(2**63), pa.int64()),
        (True, pa.bool_()),
        (1.5, pa.float64()),
        (2, pa.float64()),
        ("ä", pa.string()),
        ("", pa.string()),
        (5, pa.timestamp("us")),
        (-5, pa.duration("us")),
        (b"x", pa.binary()),
        (None, pa.string()),
        (None, pa.list_(pa.int64())),
    ],
)
def test_a_scalar_is_the_one_of_pyarrow(value: object, kind: pa.DataType) -> None:
    found = to_scalar(value, kind)
    assert found.type == kind
    assert found.equals(pa.scalar(value, kind))


@pytest.mark.parametrize(("value", "kind"), [(2**63, pa.int64()), ("a", pa.int64())])
def test_what_does_not_fit_is_refused_as_by_pyarrow(value: object, kind: pa.DataType) -> None:
    with pytest.raises((pa.ArrowInvalid, OverflowError)):
        to_scalar(value, kind)


def test_no_rows_have_every_type() -> None:
    fields = [
        pa.field("number", pa.int64(), nullable=False),
        pa.field("text", pa.string()),
        pa.field("list", pa.list_(pa.field("item", pa.float64(), nullable=False))),
        pa.field("decimal", pa.decimal128(38, 2)),
        pa.field("instant", pa.timestamp("us")),
        pa.field("coded", pa.dictionary(pa.int32(), pa.string())),
        pa.field("nothing", pa.null()),
    ]
    schema = pa.schema(fields)
    found = no_rows(schema)
    found.validate(full=True)
    assert found.schema.equals(schema, check_metadata=True)
    assert found.equals(pa.RecordBatch.from_pylist([], schema=schema))
