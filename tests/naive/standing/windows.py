"""The contents of windows of standing queries, straight from the text in their brackets."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from tests.naive.windows import Event

SECOND = 1_000_000
EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Window:
    """The window over one stream, read from what stands between the brackets."""

    stream: str
    text: str = ""
    relation: tuple[str, ...] = ()
    """The keys of a relation, whose last row of each key counts, unless it says `deleted`."""

    def number(self, word: str, unit: str = " SECONDS?") -> int | None:
        return number_behind(self.text, word, unit)

    def length(self, word: str) -> int | None:
        seconds = self.number(word)
        return None if seconds is None else seconds * SECOND

    def moment(self, word: str) -> int | None:
        found = re.search(rf"\b{word} TIMESTAMP '([^']*)'", self.text)
        return micros(datetime.fromisoformat(found[1])) if found else None

    @property
    def keys(self) -> tuple[str, ...]:
        found = re.search(
            r"\b(?:PARTITION|LATEST) BY ([\w, ]*?)(?= ROWS| SESSION| SLIDE| INTERNAL|$)", self.text
        )
        return self.relation or (tuple(found[1].split(", ")) if found else ())

    @property
    def rows(self) -> int | None:
        one_each = self.relation or "LATEST" in self.text
        return 1 if one_each else self.number("ROWS", "")

    @property
    def internal(self) -> bool:
        return "INTERNAL" in self.text

    def holds(self, events: list[Event], now: int) -> list[Event]:
        """The events that are in the window at an instant; `events` are in order."""
        past = [event for event in events if event["ts"] <= now]
        if self.rows is not None:
            last = [event for part in self.parts(past) for event in part[-self.rows :]]
            return [event for event in last if not (self.relation and event["deleted"])]
        if gap := self.length("SESSION"):
            return [event for part in self.parts(past) for event in session(part, gap, now)]
        return [event for event in past if now < self.end(event["ts"]) and self.wants(event)]

    def parts(self, events: list[Event]) -> Iterator[list[Event]]:
        parts: dict[tuple[object, ...], list[Event]] = {}
        for event in events:
            parts.setdefault(tuple(event[key] for key in self.keys), []).append(event)
        return iter(parts.values())

    def wants(self, event: Event) -> bool:
        since, until = self.moment("SINCE"), self.moment("UNTIL")
        return (since is None or since <= event["ts"]) and (until is None or event["ts"] < until)

    def end(self, ts: int) -> float:
        """When an event leaves a window that knows it at once."""
        if period := self.length("TUMBLE"):
            return next(t for t in range(ts // period * period, ts + period + 1, period) if t > ts)
        if self.text.startswith("NOW"):
            return ts + 1
        size, jump = self.length("RANGE"), self.length("JUMP")
        if size is None:
            return math.inf
        return -(-(ts + size) // jump) * jump if jump else ts + size

    def instants(self, events: list[Event]) -> set[int]:
        """All instants at which the contents may change."""
        gap = self.length("SESSION") or 0
        ends = (self.end(event["ts"]) for event in events)
        times = {event["ts"] for event in events}
        return times | {ts + gap for ts in times} | {int(end) for end in ends if end < math.inf}


@cache
def number_behind(text: str, word: str, unit: str) -> int | None:
    """The number that follows a word: asked for each event again, and so remembered."""
    found = re.search(rf"\b{word} (\d+){unit}", text)
    return int(found[1]) if found else None


def session(events: list[Event], gap: int, now: int) -> list[Event]:
    """The session that still goes on, from the events of one key so far."""
    if not events or now >= events[-1]["ts"] + gap:
        return []
    start = len(events) - 1
    while start and events[start]["ts"] < events[start - 1]["ts"] + gap:
        start -= 1
    return events[start:]


def micros(moment: datetime) -> int:
    since = moment.replace(tzinfo=None) - EPOCH
    return (since.days * 86400 + since.seconds) * SECOND + since.microseconds
