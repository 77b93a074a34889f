"""Situations over lists of dictionaries: runs of rows on which a condition is true, one by one.

A key's time is a list of moments, its rows and its silences; a position is a place in that list.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eventide.plan.expressions import Aggregate, Call, Expression, MatchAggregate, Named, PeriodPart
from eventide.plan.situations.nodes import Situations
from eventide.plan.situations.parts import Situation
from eventide.schema import MAX_TS_US
from tests.naive.patterns.rows import combined, of_row
from tests.naive.windows import Event, aggregate, in_order

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """A row of the key, or a silence: then there is no row."""

    ts: int
    row: Event | None


@dataclass(frozen=True, slots=True)
class Period:
    """A situation. Positions are numbers of moments; without an end it still goes on."""

    start: int
    end: int | None
    visible: int
    moments: Sequence[Moment]

    @property
    def start_ts(self) -> int:
        return self.moments[self.start].ts

    @property
    def end_ts(self) -> int | None:
        return None if self.end is None else self.moments[self.end].ts

    def rows_until(self, position: int) -> list[Event]:
        """Return its rows up to a position, or fewer if it was over before."""
        stop = position + 1 if self.end is None else min(self.end, position + 1)
        rows = [moment.row for moment in self.moments[self.start : stop]]
        return [row for row in rows if row is not None]


def by_key(keys: Sequence[Named], events: Iterable[Event]) -> dict[Key, list[Event]]:
    """Return the rows of each key, in order."""
    found: dict[Key, list[Event]] = {}
    for event in in_order(events):
        key = tuple(of_row(each.expression, event, None) for each in keys)
        found.setdefault(key, []).append(event)
    return found


def moments_of(
    rows: Sequence[Event], gap_us: int | None, watermark_us: float = math.inf
) -> list[Moment]:
    """Return the rows of a key with its silences between; the watermark tells of one at the end.

    A silence that would end after the year 9999 is not waited for.
    """
    moments: list[Moment] = []
    following = [row["ts"] for row in rows[1:]] + [watermark_us]
    for row, next_ts in zip(rows, following, strict=True):
        moments.append(Moment(row["ts"], row))
        silent = gap_us is not None and next_ts - row["ts"] > gap_us
        if gap_us is not None and silent and row["ts"] + gap_us <= MAX_TS_US:
            moments.append(Moment(row["ts"] + gap_us, None))
    return moments


def periods_of(
    situation: Situation, moments: Sequence[Moment], *, when_over: bool = False
) -> list[Period]:
    """Return the situations that can be seen by the last of the moments, in order.

    `when_over` are those that are seen only when they are over; so are all with a longest duration.
    """
    found = []
    start = 0
    while start < len(moments):
        end = start
        while end < len(moments) and is_true(situation.condition, moments[end]):
            end += 1
        if end > start:
            seen = seen_at(situation, moments, start, end, when_over)
            if seen is not None:
                over = end < len(moments)
                found.append(Period(start, end if over else None, seen, moments))
        start = end + 1
    return found


def is_true(condition: Expression, moment: Moment) -> bool:
    return moment.row is not None and of_row(condition, moment.row, None) is True


def seen_at(
    situation: Situation, moments: Sequence[Moment], start: int, end: int, when_over: bool
) -> int | None:
    """Return the position at which the run [start, end) is known to be long enough, if it is."""
    lasted = [moment.ts - moments[start].ts for moment in moments]
    if end < len(moments):
        most = math.inf if situation.most_us is None else situation.most_us
        if not situation.least_us <= lasted[end] <= most:
            return None
    if when_over or situation.most_us is not None:
        return end if end < len(moments) else None
    reached = (place for place in range(start, end) if lasted[place] >= situation.least_us)
    return next(reached, end if end < len(moments) else None)


def naive_situations(
    node: Situations, events: Iterable[Event], watermark_us: float = math.inf
) -> list[Event]:
    """Return the rows of a bound node, in any order: all situations that are over."""
    found = []
    for key, rows in by_key(node.keys, events).items():
        moments = moments_of(rows, node.gap_us, watermark_us)
        for situation in node.situations:
            for period in periods_of(situation, moments, when_over=True):
                own = period.rows_until(len(moments))
                values = [
                    *key,
                    situation.name,
                    period.start_ts,
                    period.end_ts,
                    *(aggregated(item.aggregate, own) for item in node.aggregates),
                ]
                found.append(dict(zip(node.row, values, strict=True)))
    return found


def aggregated(item: Aggregate | MatchAggregate, rows: Sequence[Event]) -> Any:  # noqa: ANN401
    """Return an aggregate over rows, whatever they belong to."""
    if item.argument is None:
        return len(rows)
    return aggregate(item.function, [of_row(item.argument, row, None) for row in rows])


@dataclass(frozen=True, slots=True)
class Member:
    """A situation as a match shows it at some moment."""

    start_ts: int
    end_ts: int | None
    rows: Sequence[Event]


Members = Mapping[str, Member]


def shown(expression: Expression, members: Members, now_us: int) -> Any:  # noqa: ANN401
    """Return what an item of RETURN is for one match."""
    match expression:
        case MatchAggregate(variable=name):
            assert name is not None
            return aggregated(expression, members[name].rows)
        case PeriodPart(variable=name, part=part):
            member = members[name]
            until = now_us if member.end_ts is None else member.end_ts
            parts = {"start": member.start_ts, "end": member.end_ts}
            return parts.get(part) if part in parts else until - member.start_ts
        case Call(function="epoch_us", arguments=(argument,)):
            return shown(argument, members, now_us)
    return combined(expression, lambda part: shown(part, members, now_us))


def summed_up(expression: Expression, matches: Sequence[tuple[Members, int]]) -> Any:  # noqa: ANN401
    """Return what an item of RETURN with aggregates over matches is for those of one moment."""
    match expression:
        case Aggregate(argument=None):
            return len(matches)
        case Aggregate(function=function, argument=argument):
            assert argument is not None
            return aggregate(function, [shown(argument, *each) for each in matches])
    return combined(expression, lambda part: summed_up(part, matches))
