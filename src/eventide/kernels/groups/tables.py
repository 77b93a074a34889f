"""Groups by number: the number of each key, its count of rows, and the row it emitted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Int32s, Int64s, inline, kernel
from eventide.kernels.hashing import mixed
from eventide.kernels.key_table import KeyTable, find, put, remove

GROUPS, FREE = 0, 1
"""The contents of `facts`: how many groups have been numbered, and how many numbers are free."""

FIRST, SECOND, COUNT, SEEN, EMITTED, ID, HEAD = range(7)
"""The columns in front of the words of a row in `about`: the fingerprint of the key; the number of
rows of the group; 1 if the current instant has touched it, -1 if its number is free; 1 if it has
emitted a row, and the id of that row."""

OUT_GROUP, OUT_AT, OUT_SIGN, OUT_ID, OUT_HEAD = range(5)
"""The columns of the output in front of the words."""


class GroupTables(NamedTuple):
    """By group, what is known of it and the words of its row, and the counts of its parts."""

    about: Int64s
    tallies: Int64s
    free: Int64s
    facts: Int64s


@kernel
def number_groups(
    table: KeyTable,
    first: Int64s,
    second: Int64s,
    groups: GroupTables,
    out: Int32s,
    new_rows: Int64s,
    new_groups: Int64s,
) -> int:
    """Write the group of each row; return how many are new, with their first rows and numbers."""
    facts = groups.facts
    count = 0
    for i in range(len(first)):
        group = find(table, first[i], second[i])
        if group < 0:
            if facts[FREE] > 0:
                facts[FREE] -= 1
                group = groups.free[facts[FREE]]
            else:
                group = facts[GROUPS]
                facts[GROUPS] += 1
            put(table, first[i], second[i], group)
            new_rows[count] = i
            new_groups[count] = group
            count += 1
        out[i] = group
    return count


@kernel
def free_empty_groups(table: KeyTable, groups: GroupTables, candidates: Int64s) -> None:
    """Free the numbers of groups without rows; a candidate may be named more than once."""
    about = groups.about
    for i in range(len(candidates)):
        group = candidates[i]
        if about[group, COUNT] == 0 and about[group, SEEN] >= 0:
            about[group, SEEN] = -1
            remove(table, about[group, FIRST], about[group, SECOND])
            groups.free[groups.facts[FREE]] = group
            groups.facts[FREE] += 1


@inline
def emit_row(about: Int64s, group: int, instant: int, sign: int, out: Int64s, place: int) -> None:
    """Emit that the row of a group comes or goes."""
    out[OUT_GROUP, place] = group
    out[OUT_AT, place] = instant
    out[OUT_SIGN, place] = sign
    out[OUT_ID, place] = about[group, ID]
    for word in range(about.shape[1] - HEAD):
        out[OUT_HEAD + word, place] = about[group, HEAD + word]


@inline
def set_row(about: Int64s, group: int, instant: int, row: Int64s) -> None:
    """Replace the row of a group from an instant on, if the group has rows."""
    about[group, EMITTED] = 1 if about[group, COUNT] > 0 else 0
    if about[group, EMITTED] == 1:
        key = mixed(np.uint64(about[group, SECOND])) ^ np.uint64(about[group, FIRST])
        about[group, ID] = np.int64(mixed(mixed(key) + np.uint64(instant)))
        for word in range(len(row)):
            about[group, HEAD + word] = row[word]
