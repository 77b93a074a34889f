"""Partial results of panes: values are added to them, and they are subtracted when they expire.

An entry is the expiry of a pane, and for each part of a group a few words: a count and a sum, or a
decayed sum. The exact sum of doubles is kept as two or three of them. If it needs more, because the
values lie too far apart, the pane gets another entry with the same expiry: at worst there are as
many entries as tuples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.aggregates.exact_sums import add_double, cover, digit_of
from eventide.kernels.compiled import Bools, Int32s, Int64s, call_lean, inline, lean_kernel
from eventide.kernels.groups.sliding import (
    COUNTED,
    DOUBLES,
    INTEGERS,
    LOWER,
    NANS,
    SQUARES,
    UPPER,
    VALUES,
    doubles_of,
    fits,
)
from eventide.kernels.panes.lists import grown
from eventide.kernels.panes.reading import FADING, FADING_ONES, REF, ROWS, WIDE, Kept
from eventide.kernels.slabs import BASE, ROOM, START, Slabs


class Arrived(NamedTuple):
    """Tuples that come: when, until when, their group, and by column value and validity."""

    at: Int64s
    exp: Int64s
    groups: Int32s
    values: Int64s
    valid: Bools


@inline
def add_wide(words: Int64s, high: int, low: int, more_high: np.int64, more_low: np.int64) -> None:
    """Add an integer of 128 bits to the one whose halves stand at two places."""
    before = np.uint64(words[low])
    after = before + np.uint64(more_low)
    words[low] = np.int64(after)
    words[high] += more_high + (np.int64(1) if after < before else np.int64(0))


@call_lean
def add_total(
    words: Int64s, notes: Int64s, owner: int, tally: Int64s, kind: int, word: np.int64
) -> bool:
    """Add a value to a total of a group; False, and nothing done, if its sum needs more digits."""
    done = True
    if kind in (DOUBLES, SQUARES):
        value, low_part = doubles_of(kind, word)
        base, room = notes[owner, BASE], notes[owner, ROOM]
        done = fits(value, base, room) and fits(low_part, base, room)
        if done and np.isfinite(value):
            add_double(words, notes[owner, START] - base, value, 1)
            if low_part != 0.0:
                add_double(words, notes[owner, START] - base, low_part, 1)
        elif done and np.isnan(value):
            tally[NANS] += 1
        elif done:
            tally[UPPER if value > 0.0 else LOWER] += 1
    elif kind == INTEGERS:
        add_wide(tally, UPPER, LOWER, word >> 63, word)
    if done:
        tally[VALUES] += 1
    return done


@inline
def joined_sum(
    words: Int64s, place: int, kind: int, word: np.int64
) -> tuple[float, float, float, bool]:
    """Return the exact sum of an entry with a value, and whether the entry can hold it."""
    value, low_part = doubles_of(kind, word)
    high = float(np.int64(words[place + 1]).view(np.float64))
    middle = float(np.int64(words[place + 2]).view(np.float64))
    low = float(np.int64(words[place + 3]).view(np.float64)) if kind == SQUARES else 0.0
    if words[place] == 0:
        high, middle, low, whole = value, low_part, 0.0, True
    elif not (np.isfinite(value) and np.isfinite(high)):
        # Infinities and NaNs are counted, each kind by itself.
        whole = value == high or (np.isnan(value) and np.isnan(high))
    else:
        high, middle, low, whole = grown(high, middle, low, value)
        if low_part != 0.0:
            high, middle, low, still = grown(high, middle, low, low_part)
            whole = whole and still
    return high, middle, low, bool(whole and (kind == SQUARES or low == 0.0))


@call_lean
def joins(entries: Int64s, place: int, kept: Kept, arrived: Arrived, arrival: int) -> bool:
    """Whether an entry can hold its sums with the values of an arrival added."""
    parts = kept.parts
    found = True
    for part in range(len(parts)):
        kind, column = parts[part, 0], parts[part, 1]
        if kind in (DOUBLES, SQUARES) and arrived.valid[column, arrival]:
            word = arrived.values[column, arrival]
            _, _, _, whole = joined_sum(entries, place + parts[part, 2], kind, word)
            found = found and whole
    return found


@inline
def put_sum(words: Int64s, place: int, kind: int, high: float, middle: float, low: float) -> None:
    """Write the exact sum of an entry."""
    words[place + 1] = np.float64(high).view(np.int64)
    words[place + 2] = np.float64(middle).view(np.int64)
    if kind == SQUARES:
        words[place + 3] = np.float64(low).view(np.int64)


@inline
def begin_entry(words: Int64s, place: int, kept: Kept, exp: np.int64, now: np.int64) -> None:
    """Write an entry without values."""
    for i in range(kept.entry[WIDE]):
        words[place + i] = 0
    words[place] = exp
    if kept.entry[REF] >= 0:
        words[place + kept.entry[REF]] = now


@call_lean
def put_in_entry(words: Int64s, place: int, kept: Kept, arrived: Arrived, arrival: int) -> None:
    """Add the values of an arrival to an entry."""
    parts, entry, halves = kept.parts, kept.entry, kept.halves
    values, valid, now = arrived.values, arrived.valid, arrived.at[arrival]
    if entry[ROWS] >= 0:
        words[place + entry[ROWS]] += 1
    age = 0.0
    if entry[REF] >= 0:
        age = float(now - words[place + entry[REF]])
        words[place + entry[REF]] = now
    for part in range(len(parts)):
        kind, column, at = parts[part, 0], parts[part, 1], place + parts[part, 2]
        if kind in (FADING, FADING_ONES):
            sum_then = float(np.int64(words[at]).view(np.float64))
            sum_now = sum_then * 0.5 ** (age / halves[part])
            if column < 0 or valid[column, arrival]:
                value = 1.0
                if kind == FADING:
                    value, _ = doubles_of(DOUBLES, values[column, arrival])
                own_age = float(now - values[parts[part, 3], arrival])
                sum_now += value * 0.5 ** (own_age / halves[part])
            words[at] = np.float64(sum_now).view(np.int64)
        elif kind in (COUNTED, INTEGERS, DOUBLES, SQUARES) and valid[column, arrival]:
            word = values[column, arrival]
            if kind == INTEGERS:
                add_wide(words, at + 1, at + 2, word >> 63, word)
            elif kind != COUNTED:
                high, middle, low, _ = joined_sum(words, at, kind, word)
                put_sum(words, at, kind, high, middle, low)
            words[at] += 1


@lean_kernel
def apply_entry(
    entries: Int64s,
    place: int,
    kept: Kept,
    tallies: Int64s,
    words: Int64s,
    notes: Int64s,
    group: int,
    sign: int,
) -> None:
    """Add an entry to the totals of a group, or subtract it; they have the digits for it."""
    parts = kept.parts
    for part in range(len(parts)):
        kind, at = parts[part, 0], place + parts[part, 2]
        if kind not in (COUNTED, INTEGERS, DOUBLES, SQUARES) or entries[at] == 0:
            continue
        count = sign * entries[at]
        tallies[group, part, VALUES] += count
        if kind == INTEGERS and sign > 0:
            tally = tallies[group, part]
            add_wide(tally, UPPER, LOWER, entries[at + 1], entries[at + 2])
        elif kind == INTEGERS:
            low, before = np.uint64(entries[at + 2]), np.uint64(tallies[group, part, LOWER])
            borrow = np.int64(1) if before < low else np.int64(0)
            tallies[group, part, LOWER] = np.int64(before - low)
            tallies[group, part, UPPER] -= entries[at + 1] + borrow
        elif kind != COUNTED:
            owner = group * tallies.shape[1] + part
            digits = notes[owner, START] - notes[owner, BASE]
            high = float(np.int64(entries[at + 1]).view(np.float64))
            if np.isfinite(high):
                for i in range(3 if kind == SQUARES else 2):
                    value = float(np.int64(entries[at + 1 + i]).view(np.float64))
                    if value != 0.0:
                        add_double(words, digits, value, sign)
            elif np.isnan(high):
                tallies[group, part, NANS] += count
            else:
                tallies[group, part, UPPER if high > 0.0 else LOWER] += count


@lean_kernel
def reserve_digits(entries: Int64s, place: int, kept: Kept, slabs: Slabs, group: int) -> bool:
    """Give the totals of a group the digits to add an entry; return whether they are there."""
    notes, parts = slabs.notes, kept.parts
    done = True
    for part in range(len(parts)):
        kind, at = parts[part, 0], place + parts[part, 2]
        if kind in (DOUBLES, SQUARES) and entries[at] > 0:
            owner = int(group * len(parts) + part)
            for i in range(3 if kind == SQUARES else 2):
                value = float(np.int64(entries[at + 1 + i]).view(np.float64))
                ready = fits(value, notes[owner, BASE], notes[owner, ROOM])
                if not (ready or cover(slabs, owner, int(digit_of(value)))):
                    done = False
    return done
