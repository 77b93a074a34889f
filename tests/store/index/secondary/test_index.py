"""Lookups in secondary indexes, against looking at every entry."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import SchemaError
from eventide.schema import FLOAT64, INT64, STRING, DataType
from eventide.store.index.ranges import ValueRange
from eventide.store.index.secondary import SecondaryReader, encode_run, merge_runs
from eventide.store.index.secondary.keys import hashes_of
from eventide.store.index.secondary.run import Run
from tests.naive.ranges import order, qualifies
from tests.store.index.secondary.files import (
    Entry,
    file_of,
    joined,
    looked_up,
    naively,
    reader_of,
    run_of,
    tiny_pages,
)
from tests.store.values import VALUES, conditions, lists, types


@st.composite
def flushes_of(draw: st.DrawFn, data_type: DataType) -> list[list[Entry]]:
    """Return what was flushed: rows in any order of time, each with a number of its own."""
    flushes: list[list[Entry]] = []
    seq = 0
    for values in draw(st.lists(lists(data_type), max_size=5)):
        flush: list[Entry] = []
        for value in values:
            flush.append((value, draw(st.integers(-5, 5)), seq))
            seq += 1
        flushes.append(draw(st.permutations(flush)))
    return flushes


@settings(deadline=None)
@given(st.data())
def test_lookup_agrees_with_naive_before_and_after_a_merge(data: st.DataObject) -> None:
    data_type = data.draw(types)
    flushes = data.draw(flushes_of(data_type))
    everything = [entry for flush in flushes for entry in flush]
    with tiny_pages():
        reader = reader_of(flushes, data_type)
        merged = joined(merge_runs(reader, [(run.offset, run.length) for run in reader.runs]))
        assert merged == run_of(everything, data_type)
        one = SecondaryReader(*file_of([merged]), data_type)
        for wanted in data.draw(
            st.lists(conditions(data_type, [value for value, _, _ in everything]), max_size=4)
        ):
            assert looked_up(reader, wanted) == naively(everything, wanted)
            assert looked_up(one, wanted) == naively(everything, wanted)
        reader.verify()
        one.verify()


@settings(deadline=None)
@given(st.data())
def test_entries_are_sorted_across_runs(data: st.DataObject) -> None:
    data_type = data.draw(types)
    flushes = data.draw(flushes_of(data_type))
    with tiny_pages():
        batches = list(reader_of(flushes, data_type).entries())
    found = [
        (order(value), ts, seq)
        for batch in batches
        for value, ts, seq in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    ]
    everything = [entry for flush in flushes for entry in flush if entry[0] is not None]
    assert found == sorted((order(value), ts, seq) for value, ts, seq in everything)


@pytest.mark.parametrize("data_type", VALUES, ids=str)
def test_an_empty_run_answers_nothing(data_type: DataType) -> None:
    for entries in ([], [(None, 1, 1), (None, 2, 2)]):
        reader = reader_of([entries], data_type)
        assert reader.rows == 0
        assert looked_up(reader, ValueRange()) == []
        assert list(reader.entries()) == []
        reader.verify()
    assert looked_up(SecondaryReader(pa.py_buffer(b""), [], data_type), ValueRange()) == []


def test_one_entry() -> None:
    reader = reader_of([[(7, 10, 3)]], INT64)
    assert looked_up(reader, ValueRange.of(7)) == [(10, 3)]
    assert looked_up(reader, ValueRange.of(8)) == []
    assert looked_up(reader, ValueRange(8)) == []
    assert looked_up(reader, ValueRange(9, 5)) == []


def test_all_spellings_of_nan_and_of_zero_are_one_value() -> None:
    bits = [0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000001, 0, 1 << 63]
    values = np.array(bits, np.uint64).view(np.float64)
    run = joined(encode_run(pa.array(values), np.arange(5), np.arange(5)))
    reader = SecondaryReader(*file_of([run]), FLOAT64)
    for nan in values[:3].tolist():
        assert looked_up(reader, ValueRange.of(nan)) == [(0, 0), (1, 1), (2, 2)]
    for zero in values[3:].tolist():
        assert looked_up(reader, ValueRange.of(zero)) == [(3, 3), (4, 4)]


def test_equal_values_over_many_pages() -> None:
    entries: list[Entry] = [(row // 10_000, row, row) for row in range(30_000)]
    reader = reader_of([entries[::2], entries[1::2]], INT64)
    assert looked_up(reader, ValueRange.of(1)) == [(row, row) for row in range(10_000, 20_000)]
    assert reader.count(ValueRange(0, 2, includes_low=False)) == 20_000


def test_huge_strings() -> None:
    entries: list[Entry] = [(letter * 3_000_000, at, at) for at, letter in enumerate("cabd")]
    reader = reader_of([entries[:2], entries[2:]], STRING)
    extents = [(run.offset, run.length) for run in reader.runs]
    merged = SecondaryReader(*file_of([joined(merge_runs(reader, extents))]), STRING)
    assert merged.runs[0].pages == 4
    for each in (reader, merged):
        assert looked_up(each, ValueRange.of("b" * 3_000_000)) == [(2, 2)]
        assert looked_up(each, ValueRange("b", "c")) == [(2, 2)]


def test_a_bound_of_another_type_is_refused() -> None:
    with pytest.raises(SchemaError, match="'x' is not a value of type int64"):
        reader_of([[(1, 1, 1)]], INT64).lookup(ValueRange.of("x"))


@pytest.mark.parametrize("data_type", [INT64, FLOAT64, STRING], ids=str)
def test_the_filter_never_misses_and_seldom_errs(data_type: DataType) -> None:
    numbers = np.random.default_rng(5).permutation(60_000)
    plain: list[object] = [f"car-{each}" if data_type == STRING else each for each in numbers]
    values = pa.array(plain, data_type.arrow)
    inside, outside = values[:40_000], values[40_000:]
    times = np.arange(40_000)
    run = joined(encode_run(inside, times, times))
    filtered = Run(pa.py_buffer(run), 0, len(run), data_type)
    assert all(filtered.may_hold(hashed) for hashed in hashes_of(inside))
    wrong = sum(filtered.may_hold(hashed) for hashed in hashes_of(outside))
    assert wrong / len(outside) < 0.03


def test_an_absent_value_reads_no_page() -> None:
    reader = reader_of([[(value, value, value) for value in range(1000)]], INT64)
    with patch.object(Run, "page", side_effect=AssertionError):
        misses = [value for value in range(2000, 2100) if not may_hold(reader, value)]
        assert len(misses) > 90
        assert all(looked_up(reader, ValueRange.of(value)) == [] for value in misses)


def may_hold(reader: SecondaryReader, value: int) -> bool:
    return reader.runs[0].may_hold(hashes_of(pa.array([value]))[0])


def test_count_reads_two_pages_a_run_at_most() -> None:
    entries: list[Entry] = [(value, value, value) for value in range(50_000)]
    reader = reader_of([entries], INT64)
    with patch.object(Run, "page", autospec=True, side_effect=Run.page) as page:
        assert reader.count(ValueRange(100, 40_000)) == 39_901
    assert page.call_count == 2


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9))
def test_many_entries_in_many_runs(seed: int, runs: int) -> None:
    random = np.random.default_rng(seed)
    values, ts = random.integers(0, 300, 20_000) / 3, random.integers(0, 10**6, 20_000)
    seq = random.permutation(20_000)
    parts = np.array_split(np.arange(20_000), runs)
    content = [joined(encode_run(pa.array(values[at]), ts[at], seq[at])) for at in parts]
    file, extents = file_of(content)
    reader = SecondaryReader(file, extents, FLOAT64)
    merged = joined(merge_runs(reader, extents))
    assert merged == joined(encode_run(pa.array(values), ts, seq))
    wanted = ValueRange(20.0, 1 / 3 + 40, includes_high=False)
    inside = np.flatnonzero([qualifies(value, wanted) for value in values.tolist()])
    expected = sorted(zip(ts[inside].tolist(), seq[inside].tolist(), strict=True))
    assert looked_up(reader, wanted) == expected
    assert looked_up(SecondaryReader(*file_of([merged]), FLOAT64), wanted) == expected
