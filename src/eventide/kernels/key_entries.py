"""The keys of rows and the entries of keys, by their numbers in a table."""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Codes, Int32s, Int64s, call_lean, lean_kernel
from eventide.kernels.key_table import SMALLEST, KeyTable, find, put, remove, seek


def table_for(keys: int) -> KeyTable:
    """Return an empty table with room for so many keys.

    >>> len(table_for(8).handles), len(table_for(9).handles)
    (16, 32)
    """
    capacity = max(SMALLEST, 1 << (2 * keys - 1).bit_length())
    # Nobody reads the words of an empty place.
    first, second = np.empty((2, capacity), np.int64)
    return KeyTable(first, second, np.full(capacity, -1, np.int32), np.zeros(1, np.int64))


@lean_kernel
def number_rows(
    table: KeyTable,
    known_first: Int64s,
    known_second: Int64s,
    first: Int64s,
    second: Int64s,
    numbers: Int32s,
    fresh: Int64s,
    words_first: Int64s,
    words_second: Int64s,
) -> int:
    """Number the keys of rows: known keys by their places, others in order of first occurrence.

    Known keys are all different. Row `fresh[i]` is the first one of the i-th other key; returns how
    many there are, and writes the words of all keys by number. The table is empty, with room for
    all.
    """
    for i in range(len(known_first)):
        put(table, known_first[i], known_second[i], np.int64(i))
        words_first[i], words_second[i] = known_first[i], known_second[i]
    count = 0
    for i in range(len(first)):
        place = seek(table, first[i], second[i])
        if table.handles[place] < 0:
            table.first[place] = first[i]
            table.second[place] = second[i]
            table.handles[place] = len(known_first) + count
            words_first[len(known_first) + count] = first[i]
            words_second[len(known_first) + count] = second[i]
            fresh[count] = i
            count += 1
        numbers[i] = table.handles[place]
    return count


@call_lean
def number_others(
    table: KeyTable, first: Int64s, second: Int64s, known: int, numbers: Codes, fresh: Int64s
) -> int:
    """Number keys by a table of `known` ones, and put others into it with the next numbers.

    Key `fresh[i]` is the first of the i-th other one; returns how many there are. There has to be
    room in the table.
    """
    count = 0
    for i in range(len(first)):
        place = seek(table, first[i], second[i])
        if table.handles[place] < 0:
            put(table, first[i], second[i], np.int64(known + count))
            fresh[count] = i
            count += 1
        numbers[i] = table.handles[place]
    return count


@lean_kernel
def number_further(
    table: KeyTable, first: Int64s, second: Int64s, known: int, numbers: Int32s, fresh: Int64s
) -> int:
    """Number keys as `number_others` does."""
    return number_others(table, first, second, known, numbers, fresh)


@lean_kernel
def move_entries(
    table: KeyTable,
    first: Int64s,
    second: Int64s,
    number: int,
    old_first: Int64s,
    old_second: Int64s,
    old_numbers: Int64s,
) -> None:
    """Number the entries of keys from `number` on; remove keys that still have an old number.

    There has to be room.
    """
    for i in range(len(first)):
        put(table, first[i], second[i], np.int64(number + i))
    for i in range(len(old_first)):
        if find(table, old_first[i], old_second[i]) == old_numbers[i]:
            remove(table, old_first[i], old_second[i])


@lean_kernel
def current_entries(
    table: KeyTable, first: Int64s, second: Int64s, number: int, keys: Int64s, current: Int64s
) -> int:
    """Write those of some keys that a table has at their places, counted from `number` on."""
    count = 0
    for key in keys:
        if find(table, first[key], second[key]) == number + key:
            current[count] = key
            count += 1
    return count
