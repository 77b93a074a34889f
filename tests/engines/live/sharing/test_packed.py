"""Constants that come again and again take an octet each, and are the same when they are read."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eventide.engines.live.sharing.packed import FEWEST, buffers_of, packed, taken, unpacked
from eventide.plan.sharing.part_rows import PART_NUMBER

VALUES: dict[pa.DataType, list[Any]] = {
    pa.int64(): [0, 1, -(2**63), None],
    pa.float64(): [0.0, -0.0, math.nan, 0.1, None],
    pa.string(): ["", "ann", None],
    pa.bool_(): [True, False, None],
    pa.timestamp("us"): [0, 1],
    pa.duration("us"): [5, None],
    pa.decimal128(10, 2): [Decimal("1.50"), None],
    pa.null(): [None],
}


def written(column: pa.Array) -> list[str]:
    """Return values as they are written: -0.0 is not 0.0, and NaN is NaN."""
    return list(map(repr, column.to_pylist()))


@pytest.mark.parametrize("count", [0, 3, FEWEST, 2 * FEWEST])
@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_packed_constants_are_the_same(kind: pa.DataType, count: int) -> None:
    rng = np.random.default_rng(count)
    column = pa.array(
        [VALUES[kind][place] for place in rng.integers(len(VALUES[kind]), size=count)], kind
    )
    table = pa.RecordBatch.from_arrays([column], ["$1"])
    small = packed(table)
    back = unpacked(small)
    assert back.schema == table.schema
    assert written(back.column(0)) == written(column)
    places = pa.array(rng.integers(count, size=5) if count else np.empty(0, np.int64))
    assert written(taken(small.column(0), places)) == written(column.take(places))
    assert back.num_rows == packed(small).num_rows == count


@pytest.mark.parametrize(("distinct", "octets"), [(200, 1), (60_000, 2), (70_000, 8)])
def test_constants_take_as_many_octets_as_it_takes_to_tell_them_apart(
    distinct: int, octets: int
) -> None:
    count = 1_000_000
    column = pa.array(np.arange(count) % distinct / 7)
    size = sum(buffers_of(packed(pa.RecordBatch.from_arrays([column], ["$1"]))).values())
    assert octets * count <= size < octets * count + 8 * 65_536 + 4096


def test_the_numbers_of_parts_stay_as_they_are() -> None:
    table = pa.RecordBatch.from_arrays([pa.array(np.zeros(2 * FEWEST, np.int64))], [PART_NUMBER])
    assert packed(table) is not None
    assert packed(table).column(0).type == pa.int64()
