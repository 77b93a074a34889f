"""A run with a flipped bit is refused, or its answers are right all the same."""

from __future__ import annotations

import contextlib

import pyarrow as pa
import pytest

from eventide.schema import FLOAT64, INT64, STRING, DataType
from eventide.store.index.ranges import ValueRange
from eventide.store.index.secondary import DamagedRunError, SecondaryReader, merge_runs
from tests.store.index.secondary.files import (
    Entry,
    file_of,
    joined,
    looked_up,
    naively,
    run_of,
    tiny_pages,
)
from tests.store.values import MONEY

TEXT: list[Entry] = [("abcdefghij"[at : at + 4], 100 - at, at) for at in range(10)]
REALS: list[Entry] = [(at * 0.37, at * 1000, at) for at in range(10)]
CASES = [
    (STRING, TEXT, [ValueRange("b", "e"), ValueRange.of("cdef"), ValueRange.of("x")]),
    (FLOAT64, REALS, [ValueRange(0.5, 2.0), ValueRange.of(0.37), ValueRange.of(9.0)]),
]


@pytest.mark.parametrize(("data_type", "entries", "conditions"), CASES, ids=["string", "float64"])
def test_a_flipped_bit_is_never_answered(
    data_type: DataType, entries: list[Entry], conditions: list[ValueRange]
) -> None:
    with tiny_pages():
        whole = run_of(entries, data_type)
        expected = [naively(entries, wanted) for wanted in conditions]
        for place in range(len(whole)):
            flipped = bytearray(whole)
            flipped[place] ^= 1 << place % 8
            for wanted, right in zip(conditions, expected, strict=True):
                with contextlib.suppress(DamagedRunError):
                    reader = SecondaryReader(*file_of([bytes(flipped)]), data_type)
                    assert looked_up(reader, wanted) == right
            with contextlib.suppress(DamagedRunError):
                reader = SecondaryReader(*file_of([bytes(flipped)]), data_type)
                assert joined(merge_runs(reader, [(0, len(whole))])) == whole


def test_verify_finds_every_bit_but_those_of_padding() -> None:
    with tiny_pages():
        whole = run_of(REALS, FLOAT64)
        unnoticed = []
        for place in range(len(whole)):
            flipped = bytearray(whole)
            flipped[place] ^= 0x10
            try:
                SecondaryReader(*file_of([bytes(flipped)]), FLOAT64).verify()
            except DamagedRunError:
                continue
            unnoticed.append(place)
    # The checksums of the filter's sectors are followed by zeros that nobody reads.
    assert len(unnoticed) <= 4
    assert all(whole[place] == 0 for place in unnoticed)


def test_a_file_cut_short_is_damaged() -> None:
    whole = run_of(TEXT, STRING)
    for size in range(0, len(whole), 7):
        with pytest.raises(DamagedRunError):
            SecondaryReader(pa.py_buffer(whole[:size]), [(0, len(whole))], STRING)


def test_an_extent_that_is_not_a_run_is_damaged() -> None:
    run = run_of(TEXT, STRING)
    file, _ = file_of([run, run])
    for extent in (
        (8, len(run)),
        (0, len(run) - 8),
        (0, 2 * len(run)),
        (-8, len(run)),
        (0, 0),
        (0, -8),
    ):
        with pytest.raises(DamagedRunError):
            SecondaryReader(file, [extent], STRING)


@pytest.mark.parametrize("other", [FLOAT64, MONEY], ids=str)
def test_a_run_of_another_type_is_damaged(other: DataType) -> None:
    run = run_of([(1, 1, 1)], INT64)
    with pytest.raises(DamagedRunError, match="or no"):
        SecondaryReader(*file_of([run]), other)
