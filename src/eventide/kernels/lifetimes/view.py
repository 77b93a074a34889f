"""The rows of an answer, tuple by tuple in order of time: which rows leave, and when.

Rows are known by their number. Each kernel takes the changes of a step in order, expires rows that
expire before them, and at the end those that expire up to `clock`. It writes the numbers of rows
that left and the instants at which they did, and returns how many did.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from eventide.kernels.compiled import Bools, Int32s, Int64s, inline, kernel, lean_kernel
from eventide.kernels.hashing import mixed
from eventide.kernels.key_table import KeyTable, find, put, remove
from eventide.kernels.lifetimes.calendar_queue import Calendar, next_due, schedule

Int8s = npt.NDArray[np.int8]

LIVING, FREE = 0, 1
FIRST, COUNT = 0, 1
FEW = 8
"""Up to this many rows of an instant are compared one by one: that is faster than a table."""


class Incoming(NamedTuple):
    """The changes of a step; `number` is that of the first row that comes."""

    at: Int64s
    exp: Int64s
    sign: Int8s
    id: Int64s
    number: int


class Departed(NamedTuple):
    """Room for the numbers of all rows that may leave, and for when they do."""

    numbers: Int64s
    at: Int64s


class Handled(NamedTuple):
    """By handle: the number of a row, -1 if it has gone, and its id; then the free handles.

    `facts` has how many rows live and how many handles are free.
    """

    numbers: Int64s
    ids: Int64s
    free: Int32s
    facts: Int64s


@lean_kernel
def keep_in_ring(
    exps: Int64s, facts: Int64s, incoming: Incoming, clock: int, departed: Departed
) -> int:
    """Rows expire in the order in which they came.

    `exps` is a ring with room for all rows, its length a power of two. `facts` has the number of
    the first living row and how many live.
    """
    mask = len(exps) - 1
    left = 0
    for i in range(len(incoming.at) + 1):
        now = incoming.at[i] if i < len(incoming.at) else clock
        while facts[COUNT] > 0 and exps[facts[FIRST] & mask] <= now:
            departed.numbers[left] = facts[FIRST]
            departed.at[left] = exps[facts[FIRST] & mask]
            left += 1
            facts[FIRST] += 1
            facts[COUNT] -= 1
        if i < len(incoming.at):
            exps[(facts[FIRST] + facts[COUNT]) & mask] = incoming.exp[i]
            facts[COUNT] += 1
    return left


@lean_kernel
def keep_by_handle(
    calendar: Calendar,
    table: KeyTable,
    kept: Handled,
    by_exp: bool,
    by_id: bool,
    incoming: Incoming,
    clock: int,
    departed: Departed,
) -> int:
    """Rows leave when they expire, if `by_exp`, and when a negative tuple says so, if `by_id`.

    There is a free handle for every row that comes. One that leaves before it expires keeps its
    handle until then.
    """
    left = 0
    number = incoming.number
    for i in range(len(incoming.at) + 1):
        now = np.int64(incoming.at[i] if i < len(incoming.at) else clock)
        while by_exp:
            due = next_due(calendar, now)
            if due < 0:
                break
            if kept.numbers[due] >= 0:
                departed.numbers[left] = kept.numbers[due]
                departed.at[left] = calendar.exps[due]
                left += 1
                kept.facts[LIVING] -= 1
                kept.numbers[due] = -1
                if by_id:
                    remove(table, kept.ids[due], np.int64(0))
            kept.free[kept.facts[FREE]] = due
            kept.facts[FREE] += 1
        if i == len(incoming.at):
            break
        if incoming.sign[i] > 0:
            kept.facts[FREE] -= 1
            handle = np.int64(kept.free[kept.facts[FREE]])
            kept.numbers[handle] = number
            kept.ids[handle] = incoming.id[i]
            kept.facts[LIVING] += 1
            number += 1
            if by_id:
                put(table, incoming.id[i], np.int64(0), handle)
            if by_exp:
                schedule(calendar, handle, incoming.exp[i])
            else:
                calendar.exps[handle] = incoming.exp[i]
        elif by_id:
            handle = find(table, incoming.id[i], np.int64(0))
            if handle >= 0:
                remove(table, incoming.id[i], np.int64(0))
                departed.numbers[left] = kept.numbers[handle]
                departed.at[left] = now
                left += 1
                kept.numbers[handle] = -1
                kept.facts[LIVING] -= 1
                if not by_exp or calendar.exps[handle] == 2**63 - 1:
                    kept.free[kept.facts[FREE]] = handle
                    kept.facts[FREE] += 1
    return left


@lean_kernel
def keep_in_list(
    exps: Int64s,
    numbers: Int64s,
    ids: Int64s,
    facts: Int64s,
    incoming: Incoming,
    clock: int,
    departed: Departed,
) -> int:
    """Rows stand in the order in which they came; `facts` has how many there are.

    At each instant at which something comes the whole list is searched for expired rows; a negative
    tuple has to search for its row.
    """
    left = 0
    number = incoming.number
    for i in range(len(incoming.at) + 1):
        now = incoming.at[i] if i < len(incoming.at) else clock
        if i in (0, len(incoming.at)) or now != incoming.at[i - 1]:
            stay = 0
            for place in range(facts[0]):
                if exps[place] <= now:
                    departed.numbers[left] = numbers[place]
                    departed.at[left] = exps[place]
                    left += 1
                else:
                    exps[stay], numbers[stay], ids[stay] = exps[place], numbers[place], ids[place]
                    stay += 1
            facts[0] = stay
        if i == len(incoming.at):
            break
        end = facts[0]
        if incoming.sign[i] > 0:
            exps[end], numbers[end], ids[end] = incoming.exp[i], number, incoming.id[i]
            facts[0] += 1
            number += 1
        else:
            place = 0
            while place < end and ids[place] != incoming.id[i]:
                place += 1
            if place < end:
                departed.numbers[left] = numbers[place]
                departed.at[left] = now
                left += 1
                for behind in range(place + 1, end):
                    exps[behind - 1] = exps[behind]
                    numbers[behind - 1] = numbers[behind]
                    ids[behind - 1] = ids[behind]
                facts[0] -= 1
    return left


@inline
def end_of_instant(at: Int64s, start: int) -> int:
    """Return where the instant ends that begins at a place."""
    end = start + 1
    while end < len(at) and at[end] == at[start]:
        end += 1
    return end


@lean_kernel
def mark_contested(at: Int64s, sign: Int8s, contested: Bools) -> int:
    """Mark changes at instants at which rows both come and go; return how many there are.

    Rows are in order of `at`, here and below.
    """
    count, start = 0, 0
    while start < len(at):
        end = end_of_instant(at, start)
        both = False
        for place in range(start + 1, end):
            both = both or sign[place] != sign[start]
        for place in range(start, end):
            contested[place] = both
        count += end - start if both else 0
        start = end
    return count


@lean_kernel
def goers_first(at: Int64s, sign: Int8s, stays: Bools, places: Int64s) -> int:
    """Write the places of rows that stay, in each instant first those that go; return how many."""
    count, start = 0, 0
    while start < len(at):
        end = end_of_instant(at, start)
        for coming in (False, True):
            for place in range(start, end):
                if stays[place] and (sign[place] > 0) == coming:
                    places[count] = place
                    count += 1
        start = end
    return count


@kernel
def cancel(
    at: Int64s, exp: Int64s, first: Int64s, second: Int64s, sign: Int8s, stays: Bools
) -> None:
    """Write which rows are left when equal ones of one instant that come and go cancel out.

    Rows are equal if `exp` and both words of their fingerprints are. Of those with the sign that
    prevails, the first stay.
    """
    balance = np.zeros(len(at), np.int64)
    alike = np.empty(len(at), np.int64)
    table = np.empty(0, np.int64)
    start = 0
    while start < len(at):
        end = end_of_instant(at, start)
        size = 0
        if end - start > FEW:
            size = 2 * FEW
            while size < 2 * (end - start):
                size *= 2
            if size > len(table):
                table = np.empty(size, np.int64)
            table[:size] = -1
        for i in range(start, end):
            other = start
            place = np.int64(0)
            if size > 0:
                word = np.uint64(first[i]) ^ mixed(np.uint64(second[i]) ^ np.uint64(exp[i]))
                place = np.int64(mixed(word) & np.uint64(size - 1))
                other = table[place] if table[place] >= 0 else i
            while other != i and not (
                first[other] == first[i] and second[other] == second[i] and exp[other] == exp[i]
            ):
                if size > 0:
                    place = (place + 1) & (size - 1)
                    other = table[place] if table[place] >= 0 else i
                else:
                    other += 1
            if size > 0:
                table[place] = other
            alike[i] = other
            balance[other] += sign[i]
        for i in range(start, end):
            stays[i] = balance[alike[i]] * sign[i] > 0
            if stays[i]:
                balance[alike[i]] -= sign[i]
        start = end
