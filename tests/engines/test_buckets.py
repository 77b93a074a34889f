"""Buckets: equal keys meet, rows arrive unchanged, and buckets are even."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.engines.buckets import buckets_of, from_bytes, split_by_bucket, to_bytes

KEYS = {
    pa.string(): st.text(max_size=3),
    pa.binary(): st.binary(max_size=3),
    pa.int64(): st.integers(-5, 5),
    pa.float64(): st.sampled_from([0.0, -0.0, 1.5, math.nan, math.inf]),
    pa.bool_(): st.booleans(),
    pa.timestamp("us"): st.integers(-5, 5),
    pa.decimal128(12, 2): st.integers(-5, 5).map(lambda cents: Decimal(cents) / 100),
}


@settings(deadline=None, max_examples=100)
@given(st.data(), st.sampled_from(list(KEYS)), st.integers(0, 3))
def test_equal_keys_meet_wherever_they_lie(
    data: st.DataObject, kind: pa.DataType, skipped: int
) -> None:
    values = data.draw(st.lists(st.none() | KEYS[kind], min_size=skipped, max_size=20))
    column = pa.array(values, kind)
    buckets = buckets_of([column], len(values), 7).tolist()
    sliced = column.slice(skipped)
    assert buckets_of([sliced], len(sliced), 7).tolist() == buckets[skipped:]
    met: dict[str, int] = {}
    for value, bucket in zip(column.to_pylist(), buckets, strict=True):
        name = repr(value + 0.0 if isinstance(value, float) else value)
        assert met.setdefault(name, bucket) == bucket


def test_the_spread_is_even() -> None:
    names = pa.array([f"car-{i}" for i in range(10_000)])
    numbers = pa.array(range(10_000))
    for keys in ([names], [numbers], [names, numbers]):
        sizes = Counter(buckets_of(keys, 10_000, 8).tolist())
        assert min(sizes.values()) > 1_000


def test_buckets_are_the_same_on_every_machine() -> None:
    assert buckets_of([pa.array(["a", "b", None, ""])], 4, 1000).tolist() == [300, 198, 871, 366]


@pytest.mark.parametrize("keys", [["a", "b", "a"], [], ["x"]])
def test_rows_survive_the_journey(keys: list[str]) -> None:
    rows = pa.RecordBatch.from_arrays([pa.array(keys, pa.string())], ["key"])
    parts = split_by_bucket(rows, buckets_of(rows.columns, len(keys), 4), 4)
    back = from_bytes(to_bytes(part) for _, part in parts)
    assert sorted(value for batch in back for value in batch.column(0).to_pylist()) == sorted(keys)
