"""The table from keys to handles, against a dictionary."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.kernels.compiled import Int64s, frozen, inline
from eventide.kernels.key_entries import (
    current_entries,
    move_entries,
    number_rows,
    table_for,
)
from eventide.kernels.key_table import (
    COUNT,
    KeyTable,
    empty_table,
    find,
    look_up,
    put,
    remove,
    roomy,
)


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


def words_of(keys: list[tuple[int, int]]) -> tuple[Int64s, Int64s]:
    """Return keys as two columns."""
    words = np.array(keys, np.int64).reshape(-1, 2)
    return frozen(words[:, 0]), frozen(words[:, 1])


@settings(deadline=None)
@given(known=st.lists(KEYS, unique=True), rows=st.lists(KEYS))
def test_keys_of_rows_are_numbered_behind_known_ones(
    known: list[tuple[int, int]], rows: list[tuple[int, int]]
) -> None:
    expected = {key: number for number, key in enumerate(dict.fromkeys([*known, *rows]))}
    numbers, fresh = np.empty(len(rows), np.int32), np.empty(len(rows), np.int64)
    table = table_for(len(known) + len(rows))
    words = np.empty((2, len(known) + len(rows)), np.int64)
    count = number_rows(table, *words_of(known), *words_of(rows), numbers, fresh, *words)
    assert words[:, : len(expected)].T.tolist() == [list(key) for key in expected]
    assert numbers.tolist() == [expected[key] for key in rows]
    assert [rows[row] for row in fresh[:count]] == list(expected)[len(known) :]
    assert fresh[:count].tolist() == sorted(rows.index(key) for key in {*rows} - {*known})


ENTRIES = st.lists(st.tuples(st.lists(KEYS, unique=True), st.lists(KEYS, unique=True)))


@settings(deadline=None)
@given(steps=ENTRIES)
def test_entries_move_as_in_a_dictionary(
    steps: list[tuple[list[tuple[int, int]], list[tuple[int, int]]]],
) -> None:
    table, known = table_for(14), dict[tuple[int, int], int]()
    lists: list[tuple[int, list[tuple[int, int]]]] = []
    following = 0
    for entered, taken in steps:
        old = [key for key in taken if key in known]
        numbers = np.array([known.pop(key) for key in old], np.int64)
        known |= {key: following + place for place, key in enumerate(entered)}
        move_entries(table, *words_of(entered), following, *words_of(old), frozen(numbers))
        lists.append((following, entered))
        following += len(entered)
        assert table.facts[COUNT] == len(known)
        found = np.full(len(taken), -1, np.int64)
        look_up(table, *words_of(taken), found)
        assert found.tolist() == [known.get(key, -1) for key in taken]
        for first, keys in lists:
            places = frozen(np.arange(len(keys)))
            current = np.empty(len(keys), np.int64)
            count = current_entries(table, *words_of(keys), first, places, current)
            wanted = [place for place, key in enumerate(keys) if known.get(key) == first + place]
            assert current[:count].tolist() == wanted
