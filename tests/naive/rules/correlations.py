"""The alerts of correlations: every event is compared with every other one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

Found = list[tuple[int, str]]
"""Instants and groups."""


@dataclass(frozen=True, slots=True)
class Seen:
    """An event of some rules, by their numbers; `group` and `value` may be missing."""

    ts: int
    group: str | None
    rules: frozenset[int]
    value: str | None = None


def recent(events: Sequence[Seen], event: Seen, span: int) -> list[Seen]:
    """Return the events of the group of an event up to it, and of its instant."""
    return [
        each
        for each in events
        if each.group == event.group and event.ts - span <= each.ts <= event.ts
    ]


def grouped(events: Iterable[Seen]) -> list[Seen]:
    """Return the events that are of a rule and have a group."""
    return [each for each in events if each.rules and each.group is not None]


def event_count(events: Iterable[Seen], span: int, enough: Callable[[int], bool]) -> Found:
    """Return the alerts where so many events came within the timespan."""
    known = grouped(events)
    return firsts([e for e in known if enough(len(recent(known, e, span)))], span)


def value_count(events: Iterable[Seen], span: int, enough: Callable[[int], bool]) -> Found:
    """Return the alerts where so many different values came."""
    known = grouped(events)
    counts = {id(e): {each.value for each in recent(known, e, span)} - {None} for e in known}
    return firsts([e for e in known if enough(len(counts[id(e)]))], span)


def temporal(events: Iterable[Seen], span: int, enough: Callable[[frozenset[int]], bool]) -> Found:
    """Return the alerts where events of enough rules came, in any order."""
    known = grouped(events)
    found = []
    for event in known:
        rules = frozenset(rule for each in recent(known, event, span) for rule in each.rules)
        if enough(rules):
            found.append(event)
    return firsts(found, span)


def temporal_ordered(events: Iterable[Seen], span: int, rules: int) -> Found:
    """Return the alerts where each rule follows the one before: the first event of it that does."""
    known = sorted(grouped(events), key=lambda event: event.ts)
    found = []
    for start in known:
        last: Seen | None = start if 0 in start.rules else None
        for rule in range(1, rules):
            later = (
                each
                for each in known
                if last is not None
                and rule in each.rules
                and each.group == start.group
                and each.ts > last.ts
            )
            last = next(later, None)
        if last is not None and last.ts - start.ts <= span:
            found.append(last)
    return firsts(found, span)


def firsts(holding: Iterable[Seen], span: int) -> Found:
    """Return the instants at which it holds and did not within the timespan before."""
    instants = sorted({(each.ts, str(each.group)) for each in holding})
    return [
        (ts, group)
        for ts, group in instants
        if not any(g == group and ts - span <= before < ts for before, g in instants)
    ]
