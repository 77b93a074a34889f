"""Tuples of two sides, counted by value: which of the left ones are in the answer.

Each value has v1 left and v2 right tuples. The answer has the first left tuples of the value, as
many as the rule says:

    DIFFERENCE   v1 - v2, in order of expiry: so those that go soonest need not be taken back
    ABSENT       all if v2 = 0, else none
    PRESENT      all if v2 > 0, else none
    ONE          one, in order of arrival
    VALUE        none: the value itself is in the answer if v2 > 0, and never expires there

The first tuples stand in a chain of the value, up to a boundary that moves at the end of each
instant: a change within an instant that is undone again is never emitted.

    first ─ b ─ c ─ d ─ e ─ last        inside: first b c
                  ↑ the boundary
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from eventide.kernels.compiled import Int64s, call_lean, inline, lean_kernel
from eventide.kernels.growing import longer
from eventide.kernels.key_table import KeyTable, empty_table, find, put, remove, roomy
from eventide.kernels.lifetimes.calendar_queue import NEVER
from eventide.kernels.lifetimes.emitted import Arriving, Emitted, emit, id_of, is_full
from eventide.kernels.lifetimes.expiring import (
    CALENDAR,
    MODE,
    WAITS,
    Expiring,
    empty_expiring,
    forget,
    grown_expiring,
    next_expired,
    remember,
    widened,
)
from eventide.kernels.lifetimes.value_chains import (
    ABSENT,
    ALIVE,
    ALL_LEFTS,
    ALL_RIGHTS,
    BEFORE,
    BEHIND,
    BOUNDARY,
    CHANGED,
    DEAD,
    DIFFERENCE,
    EMITTED,
    EXP,
    FACTS,
    FIRST,
    FREE_TUPLE,
    FREE_TUPLES,
    FREE_VALUE,
    FREE_VALUES,
    HEAD,
    ID,
    INSERTED,
    INSIDE,
    INSIDES,
    LEFT,
    LEFTS,
    LINK,
    NAMED,
    OF,
    OF_RIGHT,
    ONE,
    PRESENT,
    RIGHT,
    RIGHTS,
    RULE,
    SECOND,
    TO_SETTLE,
    TUPLE_COLUMNS,
    TUPLE_MARKS,
    TUPLE_OUT_ID,
    TUPLE_ROW,
    TUPLES_USED,
    VALUE,
    VALUE_COLUMNS,
    VALUE_MARKS,
    VALUE_OUT_ID,
    VALUE_ROW,
    VALUES_USED,
    chain,
    free_tuple,
    has_changed,
    new_tuple,
    unchain,
    value_of,
)

Int8s = npt.NDArray[np.int8]

PLACE, INSTANT, PENDING = 0, 1, 2
"""The contents of `progress`: how far the changes are read, the current instant, and a handle whose
expiry waits until that instant has ended."""
START = -(2**63)


class TwoSides(NamedTuple):
    """Handles of values by their words and of tuples by their ids, and the rows of both tables.

    `inserted` has the left tuples that came among the first ones of their value in this instant.
    """

    keys: KeyTable
    ids: KeyTable
    expiring: Expiring
    tuples: Int64s
    values: Int64s
    inserted: Int64s
    facts: Int64s


def empty_sides(rule: int, mode: int, named: int, longest_us: int) -> TwoSides:
    """Return two sides without tuples; `named` is 1 if left ones go by their id, 2 if right."""
    facts = np.zeros(FACTS, np.int64)
    facts[RULE], facts[NAMED] = rule, named
    facts[[FREE_TUPLE, FREE_VALUE, TO_SETTLE]] = -1
    return TwoSides(
        empty_table(),
        empty_table(),
        empty_expiring(mode, longest_us),
        np.zeros((0, TUPLE_COLUMNS), np.int64),
        np.zeros((0, VALUE_COLUMNS), np.int64),
        np.zeros(0, np.int64),
        facts,
    )


def roomy_sides(sides: TwoSides, lefts: int, rights: int, lifetime_us: int) -> TwoSides:
    """Return the sides with room for this many more tuples that live this long."""
    facts, mode = sides.facts, sides.expiring.facts[MODE]
    stored = lefts if mode == WAITS else lefts + rights
    named = (lefts if facts[NAMED] & 1 else 0) + (rights if facts[NAMED] & 2 else 0)
    tuples = longer(sides.tuples, int(facts[TUPLES_USED] - facts[FREE_TUPLES]) + stored)
    values_wanted = int(facts[VALUES_USED] - facts[FREE_VALUES]) + lefts + rights
    expiring = grown_expiring(sides.expiring, len(tuples))
    if mode == CALENDAR:
        calendar = widened(expiring.calendar, lifetime_us, tuples[:, TUPLE_MARKS])
        expiring = expiring._replace(calendar=calendar)
    return TwoSides(
        roomy(sides.keys, lefts + rights),
        roomy(sides.ids, named),
        expiring,
        tuples,
        longer(sides.values, values_wanted),
        sides.inserted if len(sides.inserted) >= lefts else np.zeros(2 * lefts, np.int64),
        facts,
    )


def start_of_step() -> Int64s:
    """Return the progress before anything of a step is read."""
    return np.array([0, START, -1], np.int64)


@inline
def target_of(rule: np.int64, lefts: np.int64, rights: np.int64) -> np.int64:
    """Return how many left tuples of a value are in the answer."""
    target = np.int64(0)
    if rule == DIFFERENCE:
        target = max(np.int64(0), lefts - rights)
    elif (rule == ABSENT and rights == 0) or (rule == PRESENT and rights > 0):
        target = lefts
    elif rule == ONE:
        target = min(np.int64(1), lefts)
    return target


@inline
def emit_coming(tuples: Int64s, handle: np.int64, instant: np.int64, out: Emitted) -> None:
    """Emit that a left tuple comes into the answer, if it is not there and should be."""
    if tuples[handle, TUPLE_MARKS] & (INSIDE | EMITTED) == INSIDE:
        tuples[handle, TUPLE_MARKS] |= EMITTED
        out_id = id_of(tuples[handle, ID], instant)
        tuples[handle, TUPLE_OUT_ID] = out_id
        emit(out, instant, tuples[handle, EXP], 1, out_id, tuples[handle, TUPLE_ROW])


@inline
def emit_going(tuples: Int64s, handle: np.int64, instant: np.int64, out: Emitted) -> None:
    """Emit that a left tuple leaves the answer before it expires, if it is there."""
    if tuples[handle, TUPLE_MARKS] & EMITTED:
        out_id = tuples[handle, TUPLE_OUT_ID]
        emit(out, instant, tuples[handle, EXP], -1, out_id, tuples[handle, TUPLE_ROW])
    tuples[handle, TUPLE_MARKS] &= ~(INSIDE | EMITTED)


@inline
def move_boundary(
    tuples: Int64s, values: Int64s, rule: np.int64, value: np.int64, instant: np.int64, out: Emitted
) -> bool:
    """Put as many left tuples of a value into the answer as the rule says; False: no room."""
    target = target_of(rule, values[value, LEFTS], values[value, RIGHTS])
    while values[value, INSIDES] != target and not is_full(out):
        handle = values[value, BOUNDARY]
        if values[value, INSIDES] < target:
            handle = values[value, HEAD] if handle < 0 else tuples[handle, BEHIND]
            tuples[handle, TUPLE_MARKS] |= INSIDE
            values[value, BOUNDARY] = handle
            values[value, INSIDES] += 1
            emit_coming(tuples, handle, instant, out)
        else:
            values[value, BOUNDARY] = tuples[handle, BEFORE]
            values[value, INSIDES] -= 1
            emit_going(tuples, handle, instant, out)
    return bool(values[value, INSIDES] == target)


@inline
def emit_value(values: Int64s, value: np.int64, instant: np.int64, out: Emitted) -> bool:
    """Emit that a value comes into the answer or leaves it, if it does; False: no room."""
    emitted = values[value, VALUE_MARKS] & EMITTED != 0
    changes = emitted != (values[value, RIGHTS] > 0)
    room = not (changes and is_full(out))
    if changes and room:
        values[value, VALUE_MARKS] ^= EMITTED
        if not emitted:
            words = id_of(values[value, FIRST], values[value, SECOND])
            values[value, VALUE_OUT_ID] = id_of(words, instant)
        sign = -1 if emitted else 1
        emit(out, instant, NEVER, sign, values[value, VALUE_OUT_ID], values[value, VALUE_ROW])
    return room


@call_lean
def settle(
    keys: KeyTable,
    tuples: Int64s,
    values: Int64s,
    inserted: Int64s,
    facts: Int64s,
    instant: np.int64,
    out: Emitted,
) -> bool:
    """End an instant: emit how the answer has changed since the last one; False: no room."""
    while facts[TO_SETTLE] >= 0:
        value = facts[TO_SETTLE]
        if facts[RULE] == VALUE:
            room = emit_value(values, value, instant, out)
        else:
            room = move_boundary(tuples, values, facts[RULE], value, instant, out)
        if not room:
            return False
        facts[TO_SETTLE] = values[value, LINK]
        values[value, VALUE_MARKS] &= ~CHANGED
        if values[value, LEFTS] == 0 and values[value, RIGHTS] == 0:
            remove(keys, values[value, FIRST], values[value, SECOND])
            values[value, VALUE_MARKS] = 0
            values[value, LINK] = facts[FREE_VALUE]
            facts[FREE_VALUE] = value
            facts[FREE_VALUES] += 1
    while facts[INSERTED] > 0:
        if is_full(out):
            return False
        facts[INSERTED] -= 1
        emit_coming(tuples, inserted[facts[INSERTED]], instant, out)
    return True


@inline
def come(
    keys: KeyTable,
    ids: KeyTable,
    expiring: Expiring,
    tuples: Int64s,
    values: Int64s,
    inserted: Int64s,
    facts: Int64s,
    source: Arriving,
    place: np.int64,
    side: np.int64,
) -> None:
    """Take a tuple; where no tuple expires by itself, right ones are only counted."""
    row, exp, id_ = source.rows[place], source.exp[place], source.id[place]
    value = value_of(keys, values, facts, source.first[place], source.second[place], row)
    has_changed(values, facts, value)
    values[value, LEFTS + side] += 1
    facts[ALL_LEFTS + side] += 1
    if side == LEFT or expiring.facts[MODE] != WAITS:
        handle = new_tuple(tuples, facts)
        tuples[handle, OF] = value
        tuples[handle, TUPLE_MARKS] = ALIVE if side == LEFT else ALIVE | OF_RIGHT
        tuples[handle, ID] = id_
        tuples[handle, TUPLE_ROW] = row
        tuples[handle, EXP] = exp
        remember(expiring, handle, exp)
        if facts[NAMED] & (1 + side):
            put(ids, id_, side, handle)
        if side == LEFT:
            chain(tuples, values, inserted, facts, handle)


@inline
def count_down(
    keys: KeyTable, values: Int64s, facts: Int64s, source: Arriving, place: np.int64
) -> None:
    """Take back a right tuple that was only counted."""
    value = find(keys, source.first[place], source.second[place])
    if value >= 0:
        has_changed(values, facts, value)
        values[value, RIGHTS] -= 1
        facts[ALL_RIGHTS] -= 1


@inline
def leave(
    ids: KeyTable,
    expiring: Expiring,
    tuples: Int64s,
    values: Int64s,
    facts: Int64s,
    handle: np.int64,
    instant: np.int64,
    lapsed: bool,
    out: Emitted,
) -> None:
    """Remove a tuple, because it expired or before that; a dead one went before."""
    marks = tuples[handle, TUPLE_MARKS]
    ends = lapsed
    if marks & DEAD == 0:
        value = tuples[handle, OF]
        side = np.int64(RIGHT if marks & OF_RIGHT else LEFT)
        has_changed(values, facts, value)
        values[value, LEFTS + side] -= 1
        facts[ALL_LEFTS + side] -= 1
        if facts[NAMED] & (1 + side):
            remove(ids, tuples[handle, ID], side)
        if side == LEFT:
            unchain(tuples, values, handle)
            if not lapsed:
                emit_going(tuples, handle, instant, out)
        if not lapsed:
            ends = forget(expiring, handle)
    if ends:
        free_tuple(tuples, facts, handle)
    else:
        tuples[handle, TUPLE_MARKS] = ALIVE | DEAD


@lean_kernel
def follow_sides(
    sides: TwoSides, source: Arriving, of_right: Int8s, until: int, progress: Int64s, out: Emitted
) -> bool:
    """Take the changes of both sides, and expiries before `until`, in order of time.

    Return whether it is done; if not, there was no room left, and it goes on when called again.
    `of_right` says for each change whether it is of the right side; within an instant those of the
    left come first.
    """
    keys, ids, expiring, facts = sides.keys, sides.ids, sides.expiring, sides.facts
    tuples, values, inserted = sides.tuples, sides.values, sides.inserted
    while True:
        place = progress[PLACE]
        arrival = source.at[place] if place < len(source.at) else NEVER
        handle = progress[PENDING]
        if handle < 0:
            handle = next_expired(expiring, min(arrival, np.int64(until - 1)))
            progress[PENDING] = handle
        instant = arrival if handle < 0 else tuples[handle, EXP]
        if instant != progress[INSTANT]:
            if not settle(keys, tuples, values, inserted, facts, progress[INSTANT], out):
                return False
            progress[INSTANT] = instant
        # A tuple that goes now may have to be taken back.
        if is_full(out):
            return False
        progress[PENDING] = -1
        lapsed = handle >= 0
        if not lapsed:
            if arrival == NEVER:
                return True
            progress[PLACE] += 1
            side = np.int64(of_right[place])
            if source.sign[place] > 0:
                come(keys, ids, expiring, tuples, values, inserted, facts, source, place, side)
            elif side == RIGHT and expiring.facts[MODE] == WAITS:
                count_down(keys, values, facts, source, place)
            else:
                # A tuple that is not there any more has expired.
                handle = find(ids, source.id[place], side)
        if handle >= 0:
            leave(ids, expiring, tuples, values, facts, handle, instant, lapsed, out)
