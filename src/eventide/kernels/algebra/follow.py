"""What follows each waiting event: alone, or in chains that go on."""

from __future__ import annotations

import numpy as np

from eventide.kernels.algebra.code import (
    AHEAD,
    ASKED,
    CONDITION,
    COUNT,
    FAILED,
    FALSE,
    FIRST,
    NEWEST,
    NEXT,
    NOT_YET,
    OPEN,
    PROCEED,
    STOPS,
    TRUE,
    UNKNOWN,
    Answers,
    BothSides,
    FoundChains,
    Machine,
    Programs,
)
from eventide.kernels.algebra.machine import origin_of, run, run_apart
from eventide.kernels.compiled import Int64s, call_lean, inline_lean, lean_kernel

DONE, FULL, ASKS, FAILS = range(4)
"""Why a call has ended: all is done, there is no room for results, values are asked for, failed."""


@inline_lean
def _first_after(order: Int64s, ts: Int64s, low: int, high: int, end: int) -> int:
    """Return the first place in order[low:high] whose event ends after an instant."""
    while low < high:
        middle = (low + high) // 2
        if ts[order[middle]] <= end:
            low = middle + 1
        else:
            high = middle
    return low


@inline_lean
def _begin(sides: BothSides, machine: Machine, waiting: int) -> int:
    """Return the first place whose event ends after a waiting event.

    Most waiting events of a key come in order of time, so it is near that of the one before.
    """
    order, ts, end = sides.order, sides.ts, sides.end[waiting]
    key = sides.key[waiting]
    low, high = sides.low[key], sides.high[key]
    place = machine.begin[key]
    if place > low and ts[order[place - 1]] > end:
        place = _first_after(order, ts, low, place - 1, end)
    else:
        ahead, further = place, 1
        while ahead < high and ts[order[ahead]] <= end:
            place = ahead + 1
            ahead += further
            further *= 2
        place = _first_after(order, ts, place, min(ahead, high), end)
    machine.begin[key] = place
    return place


@inline_lean
def _added(
    programs: Programs, found: FoundChains, machine: Machine, origin: int, event: int, place: int
) -> None:
    """Add the chain that is one event longer; what it carries is in registers."""
    count = machine.facts[COUNT]
    found.origin[count] = origin
    found.event[count] = event
    found.place[count] = place
    for number in range(found.carried.shape[1]):
        register = programs.results[NEXT + number]
        found.carried[count, number] = machine.words[register]
        found.carried_valid[count, number] = machine.valid[register]
    machine.facts[COUNT] = count + 1


@inline_lean
def _tested(
    programs: Programs,
    sides: BothSides,
    found: FoundChains,
    answers: Answers,
    machine: Machine,
    chain: int,
    event: int,
) -> int:
    """Return what is said of an event that may follow; if TRUE, registers have what is carried."""
    for number in range(NEXT + found.carried.shape[1]):
        said = run(programs, number, sides, found, answers, machine, chain, event)
        if said >= UNKNOWN:
            return said
        if said == FALSE and number == CONDITION:
            return FALSE
        if said == FALSE and number == PROCEED:
            return STOPS
    return TRUE


@call_lean
def _look_ahead(
    programs: Programs,
    sides: BothSides,
    found: FoundChains,
    answers: Answers,
    machine: Machine,
    chain: int,
    end: int,
    place: int,
    high: int,
) -> None:
    """Ask what the condition of the next candidates needs: most likely it is asked for next."""
    last = min(high, place + machine.facts[AHEAD])
    for ahead in range(place, last):
        event = sides.order[ahead]
        if sides.start[event] > end:
            run_apart(programs, CONDITION, sides, found, answers, machine, chain, event)


@inline_lean
def _left_open(machine: Machine, chain: int, place: int, followed: int) -> None:
    """Remember where to go on with a chain."""
    at = machine.facts[OPEN]
    machine.open[at, 0], machine.open[at, 1], machine.open[at, 2] = chain, place, followed
    machine.facts[OPEN] = at + 1


@inline_lean
def _followed(
    programs: Programs,
    sides: BothSides,
    found: FoundChains,
    answers: Answers,
    machine: Machine,
    chain: int,
    place: int,
    followed: int,
) -> int:
    """Go through the candidates of a chain; return why it is not settled, or DONE."""
    ts, order, waiting = sides.ts, sides.order, len(sides.end)
    origin = origin_of(sides, found, chain)
    end = sides.end[chain] if chain < waiting else ts[found.event[chain - waiting]]
    high = sides.high[sides.key[origin]]
    bounded = len(sides.expires) > 0
    reason = DONE
    while place < high:
        event = order[place]
        at = ts[event]
        if followed not in (NOT_YET, at):
            break
        if bounded and at > sides.expires[origin]:
            break
        if sides.start[event] > end:
            said = _tested(programs, sides, found, answers, machine, chain, event)
            if said == UNKNOWN:
                _look_ahead(programs, sides, found, answers, machine, chain, end, place + 1, high)
                reason = ASKS
                break
            if said == FAILED:
                reason = FAILS
                break
            if said == TRUE:
                if machine.facts[COUNT] == len(found.origin):
                    reason = FULL
                    break
                _added(programs, found, machine, origin, event, place)
            if said != FALSE:
                followed = at
        place += 1
    if reason != DONE:
        _left_open(machine, chain, place, followed)
    elif followed == NOT_YET:
        if chain < waiting:
            found.waiting_on[chain] = True
        else:
            found.waits[chain - waiting] = True
    return reason


@lean_kernel
def follow(
    programs: Programs,
    sides: BothSides,
    found: FoundChains,
    answers: Answers,
    machine: Machine,
    goes_on: bool,
) -> int:
    """Find the events that follow each chain; return why the call has ended.

    An event follows a chain if it begins after the end of the chain, the condition holds, and no
    other such event ends sooner. Several that end at the same instant all do. Each result is a
    chain that is one event longer; if `goes_on`, it may be followed itself. The next call goes on
    where this one ended.
    """
    facts, chains, waiting = machine.facts, machine.open, len(sides.end)
    again, left_open, reason = 0, facts[OPEN], DONE
    facts[OPEN] = facts[ASKED] = 0
    # One place calls `_followed`: its machine code is put there, since it takes so many arrays.
    while reason == DONE:
        followed = NOT_YET
        if again < left_open:
            chain, place, followed = chains[again, 0], chains[again, 1], chains[again, 2]
            again += 1
        elif goes_on and facts[NEWEST] < facts[COUNT]:
            # What was found last is looked at next, while it is at hand.
            result = facts[NEWEST]
            facts[NEWEST] = result + 1
            chain, place = waiting + result, np.int64(found.place[result]) + 1
        elif facts[FIRST] < waiting:
            chain = facts[FIRST]
            facts[FIRST] = chain + 1
            place = _begin(sides, machine, chain)
        else:
            break
        reason = _followed(programs, sides, found, answers, machine, chain, place, followed)
        if reason in (DONE, ASKS):
            reason = ASKS if facts[ASKED] == len(machine.asked) else DONE
    for rest in range(again, left_open):
        _left_open(machine, chains[rest, 0], chains[rest, 1], chains[rest, 2])
    return ASKS if reason == DONE and facts[ASKED] > 0 else reason
