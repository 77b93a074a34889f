"""Aggregates of groups whose rows come and go, and the resulting rows.

Operations are rows that come or go, in order of time. At the end of each instant every group that
was touched is read: if its row has changed, the old row goes and the new one comes. A group without
rows forgets everything, so it begins anew as if it had never been.

Part     what is kept of one column for each group: counts, a sum, sorted values, or those that can
         become the smallest or the largest
Reader   an aggregate: it writes a few words from a part; word 0 of a row marks the nulls
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.aggregates.exact_sums import add_double, cover, digit_of
from eventide.kernels.aggregates.frequent_values import LIST_ROOM, keep_listed, needs_list
from eventide.kernels.aggregates.skyline import drop_ended, put_life
from eventide.kernels.aggregates.sorted_blocks import put_in, take_out
from eventide.kernels.aggregates.sorted_values import count_value
from eventide.kernels.aggregates.sums import two_product
from eventide.kernels.compiled import Bools, Int32s, Int64s, call, inline, lean_kernel
from eventide.kernels.groups.reading import Readers, read_row
from eventide.kernels.groups.tables import (
    COUNT,
    EMITTED,
    HEAD,
    SEEN,
    GroupTables,
    emit_row,
    set_row,
)
from eventide.kernels.key_table import KeyTable
from eventide.kernels.lifetimes.tuple_operations import Operations
from eventide.kernels.slabs import BASE, LENGTH, ROOM, START, Slabs, release, widen

(
    COUNTED,
    INTEGERS,
    DOUBLES,
    SQUARES,
    SORTED,
    BUCKETS,
    LEAST,
    GREATEST,
    LISTED,
    LISTED_TEXTS,
) = range(10)
"""Kinds of parts. A list belongs to the part before it, which is sorted."""

VALUES, NANS, UPPER, LOWER = range(4)
"""The counts of a part: values, and those that are not a finite number. Sums of integers have their
high and low 64 bits in the second and third place."""

PLACE, PART, TOUCHED, EMITTED_ROWS, EMPTIED = range(5)
"""The contents of the facts of a progress: the next operation and its part, and the number of
groups touched, rows written, and groups emptied."""

LOW_63 = np.int64(2**63 - 1)


class Tuples(NamedTuple):
    """By place: when it goes, the group, and by column the value and whether it is valid."""

    exps: Int64s
    groups: Int32s
    values: Int64s
    valid: Bools


class Progress(NamedTuple):
    """How far the operations have been applied, and which groups were touched and emptied.

    `row` is room for the words of a row.
    """

    facts: Int64s
    touched: Int64s
    emptied: Int64s
    row: Int64s

    @classmethod
    def room(cls, operations: int, width: int) -> Progress:
        """Return the progress before the first of this many operations."""
        touched, emptied = np.empty(operations, np.int64), np.empty(operations, np.int64)
        return cls(np.zeros(5, np.int64), touched, emptied, np.zeros(width, np.int64))


@inline
def fits(value: float, base: int, room: int) -> bool:
    """Whether a sum has the digits for a double."""
    if value == 0.0 or not np.isfinite(value):
        return True
    digit = digit_of(value)
    return bool(digit >= base and digit + 4 <= base + room)


@inline
def doubles_of(kind: int, word: np.int64) -> tuple[float, float]:
    """Return the double of a word or the two of its square."""
    value = float(np.int64(word ^ ((word >> 63) & LOW_63)).view(np.float64))
    low_part = 0.0
    if kind == SQUARES:
        value, low_part = two_product(value, value)
    return value, low_part


@inline
def apply_double(
    words: Int64s,
    notes: Int64s,
    owner: int,
    tallies: Int64s,
    group: int,
    part: int,
    kind: int,
    word: np.int64,
    sign: int,
) -> bool:
    """Add a double or its square to a sum, or subtract it; False if the digits are missing."""
    value, low_part = doubles_of(kind, word)
    base, room = notes[owner, BASE], notes[owner, ROOM]
    if not (fits(value, base, room) and fits(low_part, base, room)):
        return False
    if np.isfinite(value):
        add_double(words, notes[owner, START] - base, value, sign)
        if low_part != 0.0:
            add_double(words, notes[owner, START] - base, low_part, sign)
    elif np.isnan(value):
        tallies[group, part, NANS] += sign
    else:
        tallies[group, part, UPPER if value > 0.0 else LOWER] += sign
    return True


@inline
def apply_integer(tallies: Int64s, group: int, part: int, word: np.int64, sign: int) -> None:
    """Add an integer to a sum of 128 bits, or subtract it."""
    high, low = word >> 63, np.uint64(word)
    before = np.uint64(tallies[group, part, LOWER])
    if sign > 0:
        after = before + low
        tallies[group, part, UPPER] += high + (np.int64(1) if after < before else np.int64(0))
    else:
        after = before - low
        tallies[group, part, UPPER] -= high + (np.int64(1) if before < low else np.int64(0))
    tallies[group, part, LOWER] = np.int64(after)


@call
def apply_value(
    words: Int64s,
    notes: Int64s,
    free: Int64s,
    owner: int,
    block: int | None,
    kind: int,
    word: np.int64,
    sign: int,
    end: int,
) -> bool:
    """Insert a value that lives until `end` into a list, or remove it; False without room."""
    if block is None:
        return True
    if kind in (LEAST, GREATEST):
        if sign > 0:
            return put_life(words, notes, owner, int(word if kind == LEAST else ~word), end)
        drop_ended(words, notes, owner, end)
    elif kind == SORTED:
        if sign > 0:
            return put_in(words, notes, owner, block, int(word))
        take_out(words, notes, free, owner, block, int(word))
    else:
        start, length = notes[owner, START], notes[owner, LENGTH]
        if length == notes[owner, ROOM]:
            return False
        notes[owner, LENGTH] += count_value(words, start, length, int(word), sign)
    return True


@inline
def apply_part(
    words: Int64s,
    notes: Int64s,
    free: Int64s,
    block: int | None,
    tallies: Int64s,
    group: int,
    part: int,
    kind: int,
    word: np.int64,
    sign: int,
    end: int,
    texts: KeyTable | None,
    ranks: Int64s,
) -> bool:
    """Add a value to a part of a group, or remove it; False, and nothing done, without room."""
    owner = int(group * tallies.shape[1] + part)
    done = True
    if kind in (DOUBLES, SQUARES):
        done = apply_double(words, notes, owner, tallies, group, part, kind, word, sign)
    elif kind == INTEGERS:
        apply_integer(tallies, group, part, word, sign)
    elif kind in (LISTED, LISTED_TEXTS):
        if needs_list(notes, owner, block):
            is_text = kind == LISTED_TEXTS
            done = keep_listed(words, notes, owner, word, sign, is_text, texts, ranks)
    elif kind != COUNTED:
        done = apply_value(words, notes, free, owner, block, kind, word, sign, end)
    if done:
        tallies[group, part, VALUES] += sign
    return done


@call
def widen_part(slabs: Slabs, owner: int, block: int | None, kind: int, word: np.int64) -> bool:
    """Give a part more room for a value; return whether there was some.

    This does not include one more block (`make_room`): that is seldom needed, and slow to compile.
    """
    if block is not None and kind == SORTED and slabs.notes[owner, ROOM] >= block:
        return False
    if kind not in (DOUBLES, SQUARES):
        wanted = slabs.notes[owner, ROOM] + 1
        if kind in (LISTED, LISTED_TEXTS):
            wanted = np.int64(LIST_ROOM)
        return widen(slabs, owner, wanted, np.int64(0))
    value, low_part = doubles_of(kind, word)
    if not fits(value, slabs.notes[owner, BASE], slabs.notes[owner, ROOM]):
        return cover(slabs, owner, int(digit_of(value)))
    return cover(slabs, owner, int(digit_of(low_part)))


@inline
def forget_group(
    groups: GroupTables, slabs: Slabs, group: int, part_count: int, emptied: Int64s, facts: Int64s
) -> None:
    """Clear the state of a group without rows."""
    emptied[facts[EMPTIED]] = group
    facts[EMPTIED] += 1
    for part in range(part_count):
        for tally in range(4):
            groups.tallies[group, part, tally] = 0
        release(slabs.words, slabs.notes, slabs.free, group * part_count + part)


@inline
def settle_instant(
    instant: int,
    many: int,
    readers: Readers,
    groups: GroupTables,
    slabs: Slabs,
    block: int | None,
    out: Int64s,
    progress: Progress,
    ends: int,
) -> int:
    """Write the rows of touched groups that go, then those that come; return where they end."""
    facts, touched, emptied, row = progress
    words, notes, _, _ = slabs
    about, tallies, _, _ = groups
    reads, numbers, texts, ranks = readers
    come = 0
    for i in range(many):
        group = touched[i]
        about[group, SEEN] = 0
        rows = about[group, COUNT]
        changed = about[group, EMITTED] != (1 if rows > 0 else 0)
        if rows == 0:
            forget_group(groups, slabs, group, tallies.shape[1], emptied, facts)
        else:
            read_row(reads, numbers, texts, ranks, rows, tallies, words, notes, block, group, row)
            for word in range(len(row)):
                changed = changed or row[word] != about[group, HEAD + word]
        if not changed:
            continue
        if about[group, EMITTED] == 1:
            emit_row(about, group, instant, -1, out, ends)
            ends += 1
        set_row(about, group, instant, row)
        if rows > 0:
            touched[come] = group
            come += 1
    for i in range(come):
        emit_row(about, touched[i], instant, 1, out, ends)
        ends += 1
    return ends


@lean_kernel
def fold(
    operations: Operations,
    tuples: Tuples,
    parts: Int64s,
    readers: Readers,
    groups: GroupTables,
    slabs: Slabs,
    block: int | None,
    out: Int64s,
    progress: Progress,
) -> bool:
    """Apply the operations and write the rows that come and go; return whether all is done.

    If not, there was no room for a value: the same call goes on with more room. A part is its kind
    and its column. All numbers of groups are below the length of the arrays of `groups`. `block` is
    the length of blocks of values; without it, only sums are kept, and less has to be compiled.
    """
    facts, touched, _, _ = progress
    at, places, signs = operations
    exps, of_tuple, values, valid = tuples
    words, notes, free, _ = slabs
    about, tallies, _, _ = groups
    _, _, texts, ranks = readers
    part_count, count = len(parts), len(at)
    many, ends, place = facts[TOUCHED], facts[EMITTED_ROWS], facts[PLACE]
    while place < count:
        tuple_place, sign = places[place], signs[place]
        group = int(of_tuple[tuple_place])
        for part in range(facts[PART], part_count):
            kind, column = parts[part, 0], parts[part, 1]
            owner = int(group * part_count + part)
            if not valid[column, tuple_place]:
                continue
            word, end = values[column, tuple_place], exps[tuple_place]
            while not apply_part(
                words,
                notes,
                free,
                block,
                tallies,
                group,
                part,
                kind,
                word,
                sign,
                end,
                texts,
                ranks,
            ):
                if not widen_part(slabs, owner, block, kind, word):
                    facts[PLACE], facts[PART] = place, part
                    facts[TOUCHED], facts[EMITTED_ROWS] = many, ends
                    return False
        facts[PART] = 0
        about[group, COUNT] += sign
        if about[group, SEEN] != 1:
            about[group, SEEN] = 1
            touched[many] = group
            many += 1
        place += 1
        if place < count and at[place] == at[place - 1]:
            continue
        ends = settle_instant(
            at[place - 1], many, readers, groups, slabs, block, out, progress, ends
        )
        many = 0
    facts[PLACE], facts[TOUCHED], facts[EMITTED_ROWS] = place, many, ends
    return True
