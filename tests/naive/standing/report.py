"""Obvious reports of standing queries, from the list of all rows that ever were in the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

NEVER = 2**63 - 1

Values = tuple[object, ...]
Told = list[tuple[object, ...]]


@dataclass(frozen=True)
class Result:
    """A row of the answer: in it from `born` until before `died`; it would expire at `exp`."""

    values: Values
    born: int
    died: int
    exp: int


def answer(results: Iterable[Result], now: int) -> list[Values]:
    return [each.values for each in results if each.born <= now < each.died]


def instants(results: Iterable[Result], until: int) -> list[int]:
    times = {time for each in results for time in (each.born, each.died)}
    return sorted(time for time in times if time < until)


def births(results: list[Result], until: int, strict: bool) -> list[Result]:
    """Return the rows that come into the answer; with `strict`, those that it had not before."""
    born = [each for each in results if each.born < until]
    born.sort(key=lambda each: each.born)
    if not strict:
        return born
    found: list[Result] = []
    for now in instants(results, until):
        new = Counter(answer(results, now))
        new.subtract(Counter(answer(results, now - 1)))
        for each in born:
            if each.born == now and new[each.values] > 0:
                new[each.values] -= 1
                found.append(each)
    return found


def istream(results: list[Result], until: int, strict: bool) -> Told:
    return [(each.born, *each.values) for each in births(results, until, strict)]


def dstream(results: list[Result], until: int, strict: bool) -> Told:
    if not strict:
        return [(each.died, *each.values) for each in results if each.died < until]
    told: Told = []
    for now in instants(results, until):
        gone = Counter(answer(results, now - 1)) - Counter(answer(results, now))
        told += [(now, *values) for values in gone.elements()]
    return told


def current(results: list[Result], until: int, strict: bool) -> Told:
    """Return the changes: (at, values, exp), and a sign if rows may go before their time."""
    if not strict:
        return [(each.born, *each.values, each.exp) for each in results if each.born < until]
    told: Told = []
    for now in instants(results, until):
        come = Counter((each.values, each.exp) for each in results if each.born == now)
        early = [each for each in results if each.died == now < each.exp]
        go = Counter((each.values, each.exp) for each in early)
        for sign, changed in ((1, come - go), (-1, go - come)):
            told += [(now, *values, exp, sign) for values, exp in changed.elements()]
    return told


def rstream(results: list[Result], until: int, strict: bool, slide: int | None) -> Told:
    if slide is not None:
        times = [now for now in range(-slide * 20, until) if now % slide == 0]
    else:
        times = instants(results, until)
    told: Told = []
    for now in times:
        after, before = Counter(answer(results, now)), Counter(answer(results, now - 1))
        if slide is None and strict and after == before:
            continue
        told += [(now, *values) for values in answer(results, now)]
    return told


def next_refresh(now: int, slide: int) -> int:
    while now % slide:
        now += 1
    return now


def istream_restore(results: list[Result], until: int, strict: bool, slide: int) -> Told:
    told = [(next_refresh(at, slide), *values) for at, *values in istream(results, until, strict)]  # type: ignore[arg-type]
    return [row for row in told if row[0] < until]  # type: ignore[operator]


def rstream_restore(results: list[Result], until: int, strict: bool, slide: int) -> Told:
    """Return (at, live, values). Of equal rows the oldest go first, if not by their own time."""
    told: Told = [(at, True, *values) for at, *values in rstream(results, until, strict, slide)]
    born = births(results, until, strict)
    for now in sorted({next_refresh(each.born, slide) for each in born}):
        if now >= until:
            continue
        since = [each for each in born if next_refresh(each.born, slide) == now]
        gone = [each.values for each in since if each.died <= now]
        if strict:
            there = Counter(answer(results, now))
            gone = list((Counter(each.values for each in since) - there).elements())
        told += [(now, False, *values) for values in gone]
    return told


def for_ever(results: list[Result], until: int, strict: bool) -> list[Result]:
    """Return the answer if rows only come."""
    return [Result(each.values, each.born, NEVER, NEVER) for each in births(results, until, strict)]


def last_range(results: list[Result], until: int, strict: bool, size: int) -> list[Result]:
    """Return the answer of a window over the births of the last time."""
    return [
        Result(each.values, each.born, each.born + size, each.born + size)
        for each in births(results, until, strict)
    ]


def last_rows(results: list[Result], until: int, strict: bool, count: int) -> list[Result]:
    """Return the answer of a window over the last births."""
    born = births(results, until, strict)
    later = [each.born for each in born[count:]] + [NEVER] * count
    return [
        Result(each.values, each.born, died, NEVER) for each, died in zip(born, later, strict=False)
    ]
