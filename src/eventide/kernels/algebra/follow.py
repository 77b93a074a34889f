"""What follows each waiting event: alone, or in chains that go on."""

from __future__ import annotations

from eventide.kernels.algebra.code import (
    AHEAD,
    ASKED,
    CONDITION,
    COUNT,
    ENDED,
    FAILED,
    FALSE,
    FIRST,
    NEXT,
    NOT_YET,
    OPEN,
    PROCEED,
    STOPS,
    TRUE,
    UNKNOWN,
    WAITS,
    Answers,
    BothSides,
    Chains,
    Machine,
    Programs,
)
from eventide.kernels.algebra.machine import run, run_apart
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
def _added(
    programs: Programs,
    chains: Chains,
    machine: Machine,
    chain: int,
    event: int,
    ts: int,
    cursor: int,
) -> None:
    """Add the chain that is one event longer; what it carries is in registers."""
    count = machine.facts[COUNT]
    chains.origin[count] = chains.origin[chain]
    chains.event[count] = event
    chains.end[count] = ts
    chains.cursor[count] = cursor
    chains.followed[count] = NOT_YET
    chains.state[count] = OPEN
    for number in range(chains.carried.shape[1]):
        register = programs.results[NEXT + number]
        chains.carried[count, number] = machine.words[register]
        chains.carried_valid[count, number] = machine.valid[register]
    machine.facts[COUNT] = count + 1


@inline_lean
def _tested(
    programs: Programs,
    sides: BothSides,
    chains: Chains,
    answers: Answers,
    machine: Machine,
    chain: int,
    event: int,
) -> int:
    """Return what is said of an event that may follow; if TRUE, registers have what is carried."""
    for number in range(NEXT + chains.carried.shape[1]):
        found = run(programs, number, sides, chains, answers, machine, chain, event)
        if found >= UNKNOWN:
            return found
        if found == FALSE and number == CONDITION:
            return FALSE
        if found == FALSE and number == PROCEED:
            return STOPS
    return TRUE


@call_lean
def _look_ahead(
    programs: Programs,
    sides: BothSides,
    chains: Chains,
    answers: Answers,
    machine: Machine,
    chain: int,
    place: int,
    high: int,
) -> None:
    """Ask what the condition of the next candidates needs: most likely it is asked for next."""
    last = min(high, place + machine.facts[AHEAD])
    for ahead in range(place, last):
        event = sides.order[ahead]
        if sides.start[event] > chains.end[chain]:
            run_apart(programs, CONDITION, sides, chains, answers, machine, chain, event)


@inline_lean
def _followed(
    programs: Programs,
    sides: BothSides,
    chains: Chains,
    answers: Answers,
    machine: Machine,
    chain: int,
    goes_on: bool,
) -> int:
    """Go through the candidates of a chain; return why it is not settled, or DONE."""
    facts, ts, order = machine.facts, sides.ts, sides.order
    waiting, end = chains.origin[chain], chains.end[chain]
    key = sides.key[waiting]
    place, high = chains.cursor[chain], sides.offsets[key + 1]
    if place < 0:
        place = _first_after(order, ts, sides.offsets[key], high, end)
    followed = chains.followed[chain]
    reason = DONE
    while place < high:
        event = order[place]
        if followed != NOT_YET and ts[event] != followed:
            break
        if ts[event] > sides.expires[waiting]:
            break
        if sides.start[event] > end:
            found = _tested(programs, sides, chains, answers, machine, chain, event)
            if found == UNKNOWN:
                _look_ahead(programs, sides, chains, answers, machine, chain, place + 1, high)
                reason = ASKS
                break
            if found == FAILED:
                reason = FAILS
                break
            if found == TRUE:
                if facts[COUNT] == len(chains.origin):
                    reason = FULL
                    break
                _added(programs, chains, machine, chain, event, ts[event], place + 1)
                if not goes_on:
                    chains.state[facts[COUNT] - 1] = ENDED
            if found != FALSE:
                followed = ts[event]
        place += 1
    chains.cursor[chain], chains.followed[chain] = place, followed
    if reason == DONE:
        chains.state[chain] = WAITS if followed == NOT_YET else ENDED
    return reason


@lean_kernel
def follow(
    programs: Programs,
    sides: BothSides,
    chains: Chains,
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
    facts = machine.facts
    facts[ASKED] = 0
    while facts[FIRST] < facts[COUNT] and chains.state[facts[FIRST]] != OPEN:
        facts[FIRST] += 1
    chain = facts[FIRST]
    while chain < facts[COUNT]:
        if chains.state[chain] == OPEN:
            reason = _followed(programs, sides, chains, answers, machine, chain, goes_on)
            if reason in (FULL, FAILS) or facts[ASKED] == len(machine.asked):
                return reason
        chain += 1
    return ASKS if facts[ASKED] > 0 else DONE
