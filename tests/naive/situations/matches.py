"""Two oracles for patterns of situations, with as little in common as possible.

`by_closed_form` knows all of each key's situations at once: it goes through every combination and
computes when it became certain. `step_by_step` goes through the moments one after another: after
each it tries every combination against every future its open situations may have.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, product

from eventide.instants import ALL_TIME, TimeRange
from eventide.plan.situations import allen
from eventide.plan.situations.nodes import CONFIRMED, TemporalPattern
from eventide.plan.situations.parts import Constraint
from eventide.schema import MAX_TS_US, TS
from tests.naive.patterns.rows import of_row
from tests.naive.situations.runs import (
    Key,
    Member,
    Members,
    Period,
    by_key,
    moments_of,
    periods_of,
    shown,
    summed_up,
)
from tests.naive.windows import Event

# The closed form

APART = allen.BEFORE | allen.MEETS | allen.AFTER | allen.MET_BY
"""What is certain as soon as the later one begins."""


def by_closed_form(
    node: TemporalPattern,
    events: Iterable[Event],
    watermark_us: float = math.inf,
    owned: TimeRange = ALL_TIME,
) -> list[Event]:
    """Return the rows of a bound node that its events and a watermark decide, in any order.

    With `owned`, only matches that were detected then.
    """
    found: list[Event] = []
    for key, rows in by_key(node.keys, events).items():
        moments = moments_of(rows, node.gap_us, watermark_us)
        final = node.detection == "final"
        periods = [periods_of(each, moments, when_over=final) for each in node.situations]
        matches: list[tuple[int, tuple[Period, ...]]] = []
        for members in product(*periods):
            detected = detected_at(node, members)
            if detected is None:
                continue
            span = moments[detected].ts - min(each.start_ts for each in members)
            if span <= node.within_us:
                matches.append((detected, members))
        matches.sort(key=lambda each: (each[0], [period.start for period in each[1]]))
        reported = [
            each
            for each in matches[: node.limit]
            if owned.start_us <= moments[each[0]].ts < owned.end_us
        ]
        found += reports(node, key, reported)
    return found


def detected_at(node: TemporalPattern, members: Sequence[Period]) -> int | None:
    """Return the position at which the combination became certain, if it did."""
    times = [each.visible for each in members]
    for each in node.constraints:
        decided = decided_at(each.mask, members[each.first], members[each.second])
        if decided is None:
            return None
        times.append(decided)
    return max(times)


def decided_at(mask: int, a: Period, b: Period) -> int | None:
    """Return when it was certain that a pair has a relation of the mask, None if it is not."""
    later_start = max(a.start, b.start)
    if a.end is None and b.end is None:
        group = allen.GROUPS[(a.start >= b.start) + (a.start > b.start)]
        return later_start if group & ~mask == 0 else None
    # An end that is to come is behind every other.
    ends = [len(each.moments) if each.end is None else each.end for each in (a, b)]
    relation = allen.relation_between((a.start, ends[0]), (b.start, ends[1]))
    if not relation & mask:
        return None
    if relation & APART:
        return later_start
    [group] = [each for each in allen.GROUPS if each & relation]
    return later_start if group & ~mask == 0 else min(ends)


def reports(
    node: TemporalPattern, key: Key, matches: Sequence[tuple[int, tuple[Period, ...]]]
) -> Iterator[Event]:
    """Yield the rows of one key's matches, which are in order."""
    if node.is_summary:
        for position, group in groupby(matches, key=lambda each: each[0]):
            same = [seen_from(node, members, position) for _, members in group]
            values = [summed_up(item.expression, same) for item in node.returns]
            yield dict(zip(node.row, [*key, same[0][1], *values], strict=True))
        return
    for position, members in matches:
        ends = [each.end for each in members if each.end is not None]
        last = max(ends) if len(ends) == len(members) else None
        over = last is not None and last <= position
        yield report(node, key, seen_from(node, members, position), over)
        if node.confirm and not over and last is not None:
            yield report(node, key, seen_from(node, members, last), True)


def seen_from(
    node: TemporalPattern, members: Sequence[Period], position: int
) -> tuple[Members, int]:
    """Return the members as they are at a position, and its time."""
    known = {}
    for situation, each in zip(node.situations, members, strict=True):
        over = each.end is not None and each.end <= position
        rows = each.rows_until(position)
        known[situation.name] = Member(each.start_ts, each.end_ts if over else None, rows)
    return known, members[0].moments[position].ts


def report(node: TemporalPattern, key: Key, match: tuple[Members, int], confirmed: bool) -> Event:
    members, now_us = match
    returned = [shown(item.expression, members, now_us) for item in node.returns]
    values = [*key, now_us, *returned, *([confirmed] if node.confirm else [])]
    return dict(zip(node.row, values, strict=True))


# Step by step


def relations(a: int, b: int, c: int, d: int) -> Mapping[str, bool]:
    """Return which relations [a, b) has to [c, d)."""
    return {
        "before": b < c,
        "meets": b == c,
        "overlaps": a < c < b < d,
        "starts": a == c and b < d,
        "during": c < a and b < d,
        "finishes": c < a and b == d,
        "equals": a == c and b == d,
        "after": d < a,
        "met by": d == a,
        "overlapped by": c < a < d < b,
        "started by": a == c and d < b,
        "contains": a < c and d < b,
        "finished by": a < c and b == d,
    }


@dataclass(eq=False, slots=True)
class Running:
    """A situation while it is lived through. It counts once it has become visible."""

    start: int
    start_ts: int
    rows: list[Event]
    end: int | None = None
    end_ts: int | None = None
    visible: bool = False


@dataclass(slots=True)
class Life:
    """What is known of one key."""

    node: TemporalPattern
    key: Key
    position: int = -1
    last_ts: int | None = None
    running: list[Running | None] = field(default_factory=list)
    seen: list[list[Running]] = field(default_factory=list)
    known: set[tuple[int, ...]] = field(default_factory=set)
    reported: int = 0
    waiting: list[tuple[Running, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.running = [None for _ in self.node.situations]
        self.seen = [[] for _ in self.node.situations]

    def silence(self, until_us: float) -> list[Event]:
        """Live through a silence, if it is one."""
        if self.node.gap_us is None or self.last_ts is None:
            return []
        silent_us = self.last_ts + self.node.gap_us
        if silent_us >= until_us or silent_us > MAX_TS_US:
            return []
        self.last_ts = None
        return self.moment(silent_us, None)

    def row(self, event: Event) -> list[Event]:
        """Live through a row, and the silence before it."""
        found = self.silence(event["ts"])
        self.last_ts = event["ts"]
        return found + self.moment(event["ts"], event)

    def moment(self, ts: int, event: Event | None) -> list[Event]:
        self.position += 1
        for place in range(len(self.node.situations)):
            self.go_on(place, ts, event)
        return [*self.confirmations(ts), *self.detections(ts)]

    def go_on(self, place: int, ts: int, event: Event | None) -> None:
        """Begin, continue or end the situation of one definition."""
        definition, current = self.node.situations[place], self.running[place]
        if event is not None and of_row(definition.condition, event, None) is True:
            if current is None:
                current = self.running[place] = Running(self.position, ts, [])
            current.rows.append(event)
            late = self.node.detection == "final" or definition.most_us is not None
            if not late and ts >= current.start_ts + definition.least_us:
                self.show(place, current)
        elif current is not None:
            self.running[place] = None
            current.end, current.end_ts = self.position, ts
            short = ts < current.start_ts + definition.least_us
            long = definition.most_us is not None and ts > current.start_ts + definition.most_us
            if not short and not long:
                self.show(place, current)

    def show(self, place: int, current: Running) -> None:
        if not current.visible:
            current.visible = True
            self.seen[place].append(current)

    def detections(self, ts: int) -> Iterator[Event]:
        """Yield the rows of what has just become certain."""
        new = []
        for members in product(*self.seen):
            identity = tuple(each.start for each in members)
            if identity not in self.known and self.is_certain(members):
                self.known.add(identity)
                if all(ts - each.start_ts <= self.node.within_us for each in members):
                    new.append((identity, members))
        new.sort(key=lambda each: each[0])
        room = len(new) if self.node.limit is None else max(0, self.node.limit - self.reported)
        matches = [members for _, members in new[:room]]
        self.reported += len(matches)
        if self.node.is_summary:
            if matches:
                yield self.summary(matches, ts)
            return
        for members in matches:
            over = all(each.end is not None for each in members)
            yield self.told(members, ts, over)
            if not over:
                self.waiting.append(members)

    def is_certain(self, members: Sequence[Running]) -> bool:
        """Whether all constraints hold, however the situations that go on will end."""
        return all(self.holds_for_ever(each, members) for each in self.node.constraints)

    def holds_for_ever(self, constraint: Constraint, members: Sequence[Running]) -> bool:
        a, b = members[constraint.first], members[constraint.second]
        to_come = (self.position + 1, self.position + 2)
        futures = product(*(to_come if each.end is None else (each.end,) for each in (a, b)))
        allowed = allen.names_of(constraint.mask)
        for a_end, b_end in futures:
            true = relations(a.start, a_end, b.start, b_end)
            if not any(true[name] for name in allowed):
                return False
        return True

    def confirmations(self, ts: int) -> Iterator[Event]:
        """Yield the second rows of matches whose last situation has just ended."""
        over = [each for each in self.waiting if all(member.end is not None for member in each)]
        self.waiting = [each for each in self.waiting if each not in over]
        if self.node.confirm:
            for members in over:
                yield self.told(members, ts, True)

    def told(self, members: Sequence[Running], ts: int, confirmed: bool) -> Event:
        row = dict(zip([each.name for each in self.node.keys], self.key, strict=True))
        row[TS] = ts
        for item in self.node.returns:
            row[item.name] = shown(item.expression, self.now(members), ts)
        return {**row, CONFIRMED: confirmed} if self.node.confirm else row

    def summary(self, matches: Sequence[Sequence[Running]], ts: int) -> Event:
        row = dict(zip([each.name for each in self.node.keys], self.key, strict=True))
        row[TS] = ts
        for item in self.node.returns:
            row[item.name] = summed_up(item.expression, [(self.now(each), ts) for each in matches])
        return row

    def now(self, members: Sequence[Running]) -> Members:
        names = [each.name for each in self.node.situations]
        return {
            name: Member(each.start_ts, each.end_ts, tuple(each.rows))
            for name, each in zip(names, members, strict=True)
        }


def step_by_step(
    node: TemporalPattern, events: Sequence[Event], watermark_us: float = math.inf
) -> list[Event]:
    """Return the rows of a bound node in the order in which they become known."""
    lives: dict[Key, Life] = {}
    found: list[Event] = []
    for event in sorted(events, key=lambda each: (each["ts"], each["_seq"])):
        key = tuple(of_row(each.expression, event, None) for each in node.keys)
        found += lives.setdefault(key, Life(node, key)).row(event)
    for life in lives.values():
        found += life.silence(watermark_us)
    return found
