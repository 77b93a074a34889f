"""The table from keys to handles, against a dictionary."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.kernels.compiled import Int64s, inline
from eventide.kernels.key_table import COUNT, KeyTable, empty_table, find, put, remove, roomy


@inline  # not kept on disk, where it would not notice that what it calls has changed
def apply(table: KeyTable, steps: Int64s, found: Int64s) -> None:
    """Do one step after the other: (what, first, second, handle)."""
    for i in range(len(steps)):
        what, first, second, handle = steps[i, 0], steps[i, 1], steps[i, 2], steps[i, 3]
        if what == 0:
            put(table, first, second, handle)
        elif what == 1:
            remove(table, first, second)
        found[i] = find(table, first, second)


# Few different keys, so that they are removed and put again, in a table in which they collide.
KEYS = st.tuples(st.integers(-3, 3), st.integers(0, 1))
STEPS = st.lists(st.tuples(st.integers(0, 2), KEYS, st.integers(0, 99)), max_size=60)


@settings(deadline=None)
@given(steps=STEPS)
def test_a_table_is_a_dictionary(steps: list[tuple[int, tuple[int, int], int]]) -> None:
    table = roomy(empty_table(), 14)
    known: dict[tuple[int, int], int] = {}
    expected = []
    for what, key, handle in steps:
        if what == 0:
            known[key] = handle
        elif what == 1:
            known.pop(key, None)
        expected.append(known.get(key, -1))
    rows = np.array([[what, *key, handle] for what, key, handle in steps], np.int64)
    found = np.zeros(len(steps), np.int64)
    apply(table, rows.reshape(-1, 4), found)
    assert found.tolist() == expected
    assert table.facts[COUNT] == len(known)


def test_a_table_grows_with_its_keys() -> None:
    table = roomy(empty_table(), 1000)
    steps = np.array([[0, i * 2**33, i, i] for i in range(1000)], np.int64)
    apply(table, steps, np.zeros(1000, np.int64))
    table = roomy(table, 5000)
    assert len(table.handles) >= 12_000
    found = np.zeros(1000, np.int64)
    steps[:, 0] = 2
    apply(table, steps, found)
    assert found.tolist() == list(range(1000))
