"""Windows of standing queries over lists of events, straight from their definitions."""

from __future__ import annotations

from typing import Any

from eventide.plan.standing.windows import (
    PeriodWindow,
    RangeWindow,
    RowsWindow,
    SessionWindow,
    SinceWindow,
    StreamWindow,
    Unbounded,
)

NEVER = 2**63 - 1

Event = dict[str, Any]
Told = tuple[int, int, int, int]
"""At, sign, seq, exp."""


def key_of(event: Event, keys: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(event[name] for name in keys)


def up(instant: int, step: int | None) -> int:
    return instant if step is None else min(-(-instant // step) * step, NEVER)


def exp_of(window: StreamWindow, event: Event) -> int | None:
    """When an event leaves as far as it says itself; None if it never was in."""
    ts: int = event["ts"]
    match window:
        case RangeWindow(size_us=size, jump_us=jump):
            return up(ts + size, jump)
        case PeriodWindow(period_us=period):
            return (ts // period + 1) * period
        case SinceWindow(since_us=since, until_us=until):
            return NEVER if since <= ts and (until is None or ts < until) else None
        case RowsWindow(deleted=deleted):
            return None if deleted is not None and event[deleted] else NEVER
        case SessionWindow() | Unbounded():
            return NEVER


def death_of(window: StreamWindow, events: list[Event], place: int) -> int | None:
    """When others have driven an event out; None if they have not.

    The events are all of them, in order, so the time after the last of them goes on for ever.
    """
    event, last = events[place], int(events[place]["ts"])
    match window:
        case RowsWindow(count=count, keys=keys):
            later = [x["ts"] for x in events[place + 1 :] if key_of(x, keys) == key_of(event, keys)]
            return later[count - 1] if len(later) >= count else None
        case SessionWindow(gap_us=gap, keys=keys):
            for other in events[place + 1 :]:
                if key_of(other, keys) == key_of(event, keys) and other["ts"] < last + gap:
                    last = other["ts"]
            return last + gap
    return None


def told(
    window: StreamWindow, events: list[Event], slide: int | None, execution: str
) -> list[Told]:
    """All that a window says of its events, in order."""
    changes = []
    for place, event in enumerate(events):
        exp = exp_of(window, event)
        if exp is None:
            continue
        at, exp, death = up(event["ts"], slide), up(exp, slide), death_of(window, events, place)
        if death is not None:
            death = up(death, slide)
        elif execution == "negative" and exp < NEVER:
            death = exp
        if at >= (exp if death is None else death):
            continue
        changes.append(((at, 1, place), (at, 1, event["_seq"], exp)))
        if death is not None:
            changes.append(((death, -1, place), (death, -1, event["_seq"], exp)))
    return [change for _, change in sorted(changes)]
