"""A rival in the manner of ISEQ: when a situation ends, buffers are scanned from new to old.

It is compiled like Eventide's own kernels and remembers as little, so that what differs is how
partners are found. It knows only matches whose situations are all over, and its events have no
two times alike. With `early_break` a scan ends where all that is older comes too early.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from benchmarks.situations.data import SECOND_US, Bools, Int64s
from benchmarks.situations.queries import Ask, Holds
from eventide.plan.situations import allen

SHORTEST_CYCLE_S = 2
"""A situation and the gap before the next take at least so long: two reports of one a second."""
COMPARE = {">": pc.greater, "<": pc.less}
AFTER_BIT = allen.AFTER


class Ended(NamedTuple):
    """Situations in order of their ends: of which key, which of the pattern's, and when."""

    keys: Int64s
    places: Int64s
    starts: Int64s
    ends: Int64s


def scan_matches(
    ask: Ask, events: pa.Table, *, early_break: bool = True, room: int = 1 << 20
) -> pa.Table | int:
    """Return when each match was complete and its situations began; how many, if only counted."""
    return matches_among(ask, ended_in(ask, events), early_break=early_break, room=room)


def ended_in(ask: Ask, events: pa.Table) -> Ended:
    """Derive the situations of events."""
    keys = events.column(ask.key).to_numpy() if ask.key else np.zeros(events.num_rows, np.int64)
    ts = events.column("ts").cast(pa.int64()).to_numpy()
    return Ended(*derive(keys, ts, flags_of(ask, events), len(ask.conditions)))


def ended_of(ask: Ask, situations: pa.Table) -> Ended:
    """Take the situations that Eventide has derived: rows of its `Situations`."""
    names = pc.index_in(situations.column("situation"), pa.array(list(ask.letters)))
    rows = situations.num_rows
    keys = situations.column(ask.key).to_numpy() if ask.key else np.zeros(rows, np.int64)
    places = names.to_numpy().astype(np.int64)
    starts, ends = (
        situations.column(name).cast(pa.int64()).to_numpy() for name in ("start_ts", "end_ts")
    )
    order = np.lexsort((places, ends))
    return Ended(keys[order], places[order], starts[order], ends[order])


def matches_among(
    ask: Ask, ended: Ended, *, early_break: bool = True, room: int = 1 << 20
) -> pa.Table | int:
    """Return the matches among situations, or how many there are."""
    count = len(ask.conditions)
    found = np.empty((room if ask.returns == "starts" else 0, count + 2), np.int64)
    limits = (ask.within_s * SECOND_US, capacity_of(ask))
    total = scan(ended, masks_of(ask), orders_of(ask), limits, early_break, found)
    if ask.returns != "starts":
        return int(total)
    assert total <= room, f"{total} matches, room for {room}"
    names = [ask.key or "key", "ts", *(f"{letter}_start" for letter in ask.letters)]
    kept = {name: pa.array(found[:total, place].copy()) for place, name in enumerate(names)}
    times = {name: kept[name].cast(pa.timestamp("us")) for name in names[1:]}
    return pa.table({ask.key: kept[ask.key], **times} if ask.key else times)


def flags_of(ask: Ask, events: pa.Table) -> Int64s:
    """Return for each event which conditions hold, as bits."""
    flags = np.zeros(events.num_rows, np.int64)
    for bit, condition in enumerate(ask.conditions):
        flags |= holds(condition, events).astype(np.int64) << bit
    return flags


def changing(ask: Ask, events: pa.Table) -> Bools:
    """Return at which events some situation of the pattern begins or ends."""
    flags, count = flags_of(ask, events), events.num_rows
    order = np.arange(count)
    if ask.key:
        order = np.argsort(events.column(ask.key).to_numpy(), kind="stable")
    sorted_flags = flags[order]
    before = np.concatenate([[0], sorted_flags[:-1]])
    if ask.key:
        keys = events.column(ask.key).to_numpy()[order]
        # Before a key's first event nothing holds.
        before[np.flatnonzero(np.diff(keys)) + 1] = 0
    changed = np.empty(count, np.bool_)
    changed[order] = sorted_flags != before
    return changed


def holds(condition: Holds, events: pa.Table) -> Bools:
    """Return for each event whether a condition holds."""
    column = events.column(condition.column)
    if condition.comparison:
        column = COMPARE[condition.comparison](column, condition.bound)
    held: Bools = column.to_numpy()
    return held


def masks_of(ask: Ask) -> Int64s:
    """Return what each situation may be to each other one."""
    count = len(ask.conditions)
    masks = np.full((count, count), allen.ANY, np.int64)
    for (one, other), mask in ask.relations.items():
        masks[one, other], masks[other, one] = mask, allen.inverse(mask)
    return masks


def orders_of(ask: Ask) -> Int64s:
    """Return for each situation that ends in which order the others are scanned.

    Next comes one with a constraint to those before, and of these the one whose relations are
    the rarest: few of them, and neither before nor after.
    """
    masks, count = masks_of(ask), len(ask.conditions)

    def rarity(bound: list[int], place: int) -> tuple[bool, bool, int]:
        own = [int(masks[each, place]) for each in bound if masks[each, place] != allen.ANY]
        apart = all(mask & (allen.BEFORE | allen.AFTER) for mask in own)
        return (not own, apart, min((mask.bit_count() for mask in own), default=0))

    orders = np.empty((count, count), np.int64)
    for anchor in range(count):
        bound = [anchor]
        while len(bound) < count:
            rest = [place for place in range(count) if place not in bound]
            bound.append(min(rest, key=lambda place: rarity(bound, place)))
        orders[anchor] = bound
    return orders


def capacity_of(ask: Ask) -> int:
    """Return a power of two that holds the situations of one kind in a window."""
    return 1 << (ask.within_s // SHORTEST_CYCLE_S + 4).bit_length()


@njit(nogil=True, cache=True)
def relation(a_start: int, a_end: int, b_start: int, b_end: int) -> int:
    """Return the relation of two periods, as a bit of `allen`."""
    if a_end < b_start:
        return 1
    if b_end < a_start:
        return 2
    if a_end == b_start:
        return 4
    if b_end == a_start:
        return 8
    if a_start < b_start:
        if a_end < b_end:
            return 16
        return 512 if a_end > b_end else 2048
    if a_start > b_start:
        if a_end > b_end:
            return 32
        return 256 if a_end < b_end else 1024
    if a_end < b_end:
        return 64
    return 128 if a_end > b_end else 4096


@njit(nogil=True, cache=True)
def derive(
    keys: Int64s, ts: Int64s, flags: Int64s, count: int
) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """Return the situations that are over: key, place, start, end, in order of end."""
    cars = keys.max() + 1 if len(keys) else 0
    last = np.zeros(cars, np.int64)
    opened = np.zeros((cars, count), np.int64)
    room, total = 1024, 0
    found = np.empty((4, room), np.int64)
    for row in range(len(ts)):
        key = keys[row]
        changed = flags[row] ^ last[key]
        if changed == 0:
            continue
        last[key] = flags[row]
        for place in range(count):
            if changed >> place & 1 == 0:
                continue
            if flags[row] >> place & 1:
                opened[key, place] = ts[row]
                continue
            if total == room:
                room *= 2
                larger = np.empty((4, room), np.int64)
                larger[:, :total] = found
                found = larger
            found[0, total], found[1, total] = key, place
            found[2, total], found[3, total] = opened[key, place], ts[row]
            total += 1
    return found[0, :total], found[1, :total], found[2, :total], found[3, :total]


@njit(nogil=True, cache=True)
def scan(
    ended: Ended,
    masks: Int64s,
    orders: Int64s,
    limits: tuple[int, int],
    early_break: bool,
    found: Int64s,
) -> int:
    """Return how many matches there are; write as many as there is room for."""
    count, (within_us, capacity) = len(masks), limits
    keys = ended.keys.max() + 1 if len(ended.keys) else 0
    starts = np.zeros((keys, count, capacity), np.int64)
    ends = np.zeros((keys, count, capacity), np.int64)
    heads = np.zeros((keys, count), np.int64)
    tails = np.zeros((keys, count), np.int64)
    total = 0
    for row in range(len(ended.ends)):
        key, place, now = ended.keys[row], ended.places[row], ended.ends[row]
        if ended.starts[row] < now - within_us:
            continue
        for each in range(count):
            head = heads[key, each]
            while (
                head < tails[key, each]
                and starts[key, each, head & (capacity - 1)] < now - within_us
            ):
                head += 1
            heads[key, each] = head
        slot = tails[key, place] & (capacity - 1)
        starts[key, place, slot], ends[key, place, slot] = ended.starts[row], now
        tails[key, place] += 1
        total = matched(
            (starts[key], ends[key]),
            (heads[key], tails[key]),
            orders[place],
            masks,
            early_break,
            (key, now),
            found,
            total,
        )
    return total


@njit(nogil=True, cache=True)
def matched(  # noqa: PLR0913, PLR0917
    buffers: tuple[Int64s, Int64s],
    bounds: tuple[Int64s, Int64s],
    order: Int64s,
    masks: Int64s,
    early_break: bool,
    moment: tuple[int, int],
    found: Int64s,
    total: int,
) -> int:
    """Return how many matches there are with those of the situation that has just ended."""
    (starts, ends), (heads, tails) = buffers, bounds
    count, wrap = len(order), starts.shape[1] - 1
    at = np.empty(count, np.int64)
    at[order[0]] = tails[order[0]] - 1
    depth = 1
    at[order[1]] = tails[order[1]]
    while depth > 0:
        place = order[depth]
        at[place] -= 1
        if at[place] < heads[place]:
            depth -= 1
            continue
        start, end = starts[place, at[place] & wrap], ends[place, at[place] & wrap]
        fits, over = True, False
        for step in range(depth):
            other = order[step]
            slot = at[other] & wrap
            bit = relation(starts[other, slot], ends[other, slot], start, end)
            if masks[other, place] & bit == 0:
                fits = False
                # From here on all are earlier still.
                over = early_break and bit == AFTER_BIT
                break
        if over:
            depth -= 1
        elif fits and depth + 1 < count:
            depth += 1
            at[order[depth]] = tails[order[depth]]
        elif fits:
            if total < len(found):
                found[total, 0], found[total, 1] = moment
                for each in range(count):
                    found[total, 2 + each] = starts[each, at[each] & wrap]
            total += 1
    return total
