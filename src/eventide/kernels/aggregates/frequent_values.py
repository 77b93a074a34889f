"""Which values occur most often.

If an owner has few values, all are searched. If it has many (sorted_blocks.py), the next owner
holds a list of the most frequent ones, which is updated as values come and go; all values that are
not in it are less frequent than its last. A value that becomes the last because its count falls
leaves the list: it may be behind others now. When fewer are left than are wanted, the list is
rebuilt from all values.

A list is its length, then value and count of each, the most frequent first; of equal counts the
smaller value. `LENGTH` of the notes is how many words it takes, 0 if there is none, and `BASE` is 1
if all different values are in it.

If no lists are kept, there are no `texts`: kernels for that are compiled without this code.
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.aggregates.sorted_blocks import HEADER, STARTS, count_of
from eventide.kernels.compiled import Int64s, call_lean, inline, kernel, lean_kernel
from eventide.kernels.key_table import KeyTable, find
from eventide.kernels.slabs import BASE, LENGTH, ROOM, START

LIST_ROOM = 512
"""The length of a list's slab: more values than are usually wanted, so it is rarely rebuilt."""


@call_lean
def rank_of(value: np.int64, is_text: bool, texts: KeyTable, ranks: Int64s) -> np.int64:
    """Return a number that is smaller the further in front a value belongs."""
    return ranks[find(texts, value, np.int64(0))] if is_text else value


@inline
def list_value(
    listed: Int64s, value: np.int64, count: int, is_text: bool, texts: KeyTable, ranks: Int64s
) -> None:
    """Put a value and its count at their place in a list, if that is long enough."""
    longest = (len(listed) - 1) // 2
    slot = listed[0]
    if slot == longest and listed[2 * slot] > count:
        return
    rank = rank_of(value, is_text, texts, ranks)
    while slot > 0:
        before, times = listed[2 * slot - 1], listed[2 * slot]
        if times > count:
            break
        if times == count and rank_of(before, is_text, texts, ranks) < rank:
            break
        if slot < longest:
            listed[2 * slot + 1] = before
            listed[2 * slot + 2] = times
        slot -= 1
    if slot < longest:
        listed[2 * slot + 1] = value
        listed[2 * slot + 2] = count
        listed[0] = min(listed[0] + 1, longest)


@call_lean
def list_all(
    words: Int64s,
    notes: Int64s,
    owner: int,
    block: int,
    listed: Int64s,
    is_text: bool,
    texts: KeyTable,
    ranks: Int64s,
) -> None:
    """Make a list of the values of an owner."""
    for i in range(len(listed)):
        listed[i] = 0
    start, length = notes[owner, START], notes[owner, LENGTH]
    many = notes[owner, ROOM] > block
    blocks = words[start] if many else np.int64(1)
    lows, width = start + HEADER, (notes[owner, ROOM] - HEADER) >> 2
    count = 0
    for number in range(blocks):
        if many:
            named = lows + STARTS * width + number
            start, length = words[named], words[named + width]
        for place in range(start, start + length):
            value = words[place]
            count += 1
            if place + 1 < start + length:
                is_last = words[place + 1] != value
            else:
                is_last = number + 1 == blocks or words[lows + number + 1] != value
            if is_last:
                list_value(listed, value, count, is_text, texts, ranks)
                count = 0


@inline
def unlist(listed: Int64s, value: np.int64) -> int:
    """Remove a value from a list; return its count, 0 if it is not there."""
    place, count = np.int64(1), np.int64(0)
    end = 2 * listed[0] + 1
    while place < end and listed[place] != value:
        place += 2
    if place < end:
        count = listed[place + 1]
        listed[0] -= 1
        for i in range(place, end - 2):
            listed[i] = listed[i + 2]
    return int(count)


@inline
def is_before_last(
    listed: Int64s, value: np.int64, count: int, is_text: bool, texts: KeyTable, ranks: Int64s
) -> bool:
    """Whether a value belongs before the last of a list; not if that is empty."""
    slot = listed[0]
    if slot == 0 or count != listed[2 * slot]:
        return bool(slot > 0 and count > listed[2 * slot])
    rank = rank_of(value, is_text, texts, ranks)
    return bool(rank < rank_of(listed[2 * slot - 1], is_text, texts, ranks))


@kernel
def needs_list(notes: Int64s, owner: int, block: int | None) -> bool:
    """Whether the owner before has many values; if not, its list is dropped."""
    if block is None:
        return False
    if notes[owner - 1, ROOM] > block:
        return True
    notes[owner, LENGTH], notes[owner, BASE] = 0, 0
    return False


@lean_kernel
def keep_listed(
    words: Int64s,
    notes: Int64s,
    owner: int,
    value: np.int64,
    sign: int,
    is_text: bool,
    texts: KeyTable | None,
    ranks: Int64s,
) -> bool:
    """Update a list after the owner before it got or lost a value; False if there is no room."""
    if texts is None:
        return True
    source = owner - 1
    start, room = notes[owner, START], notes[owner, ROOM]
    if room < LIST_ROOM:
        return False
    if notes[owner, LENGTH] == 0:
        return True
    listed = words[start : start + room]
    count = unlist(listed, value)
    known = count > 0
    if known:
        count += sign
    elif sign > 0:
        count = count_of(words, notes, source, int(value))
    if count > 0 and (
        notes[owner, BASE] == 1
        or (known and sign > 0)
        or is_before_last(listed, value, count, is_text, texts, ranks)
    ):
        if listed[0] == (room - 1) // 2:
            notes[owner, BASE] = 0
        list_value(listed, value, count, is_text, texts, ranks)
    notes[owner, LENGTH] = 2 * listed[0] + 1
    return True


@lean_kernel
def most_frequent(
    words: Int64s,
    notes: Int64s,
    owner: int,
    block: int | None,
    row: Int64s,
    is_text: bool,
    texts: KeyTable | None,
    ranks: Int64s,
) -> None:
    """Write the list of an owner's most frequent values, as many as the row has room for."""
    if texts is None or block is None:
        return
    wanted, room = (len(row) - 1) // 2, notes[owner + 1, ROOM]
    if notes[owner, ROOM] <= block or wanted > (room - 1) // 2:
        list_all(words, notes, owner, block, row, is_text, texts, ranks)
        return
    start = notes[owner + 1, START]
    listed = words[start : start + room]
    if notes[owner + 1, LENGTH] == 0 or (listed[0] < wanted and notes[owner + 1, BASE] == 0):
        list_all(words, notes, owner, block, listed, is_text, texts, ranks)
        notes[owner + 1, LENGTH] = 2 * listed[0] + 1
        notes[owner + 1, BASE] = 1 if listed[0] == notes[owner, BASE] else 0
    for i in range(len(row)):
        row[i] = 0
    row[0] = min(wanted, listed[0])
    for i in range(1, 2 * row[0] + 1):
        row[i] = listed[i]
