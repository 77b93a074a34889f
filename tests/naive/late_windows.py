"""Windows that take late events while they are open, straight from the definition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.naive.windows import Aggregates, Event, computed, in_order


@dataclass
class Told:
    """What a live query has reported, and the numbers of its late events."""

    rows: list[Event] = field(default_factory=list)
    late: list[int] = field(default_factory=list)


@dataclass
class LateWindows:
    """Tumbling and hopping windows by key; an event counts in those that are open when it comes."""

    keys: Sequence[str]
    size: int
    slide: int
    aggregates: Aggregates
    clock: int | None = None
    windows: dict[tuple[int, Any], list[Event]] = field(default_factory=dict)
    told: Told = field(default_factory=Told)

    def take(self, batch: Sequence[Event], clock: int | None) -> None:
        """Take events that come together; then the clock is moved."""
        for event in batch:
            starts = self.starts(event["ts"])
            if self.clock is not None and event["ts"] < self.clock:
                starts = [start for start in starts if start + self.size > self.clock]
                if not starts:
                    self.told.late.append(event["_seq"])
            if event["passes"]:
                key = tuple(event[name] for name in self.keys)
                for start in starts:
                    self.windows.setdefault((start, key), []).append(event)
        self.clock = clock
        self.report()

    def starts(self, ts: int) -> list[int]:
        """The starts of the windows that an instant lies in."""
        found, start = [], ts // self.slide * self.slide
        while ts < start + self.size:
            found.append(start)
            start -= self.slide
        return found

    def report(self, *, all_of_them: bool = False) -> None:
        """Report the windows that end at or before the clock."""
        for (start, key), events in list(self.windows.items()):
            if all_of_them or (self.clock is not None and start + self.size <= self.clock):
                bounds = {"window_start": start, "window_end": start + self.size}
                row = computed(in_order(events), self.aggregates)
                self.told.rows.append({**dict(zip(self.keys, key, strict=True)), **bounds, **row})
                del self.windows[start, key]


@dataclass
class LateSessions:
    """Sessions by key; a late event is taken if its session, with all other events, is open."""

    keys: Sequence[str]
    gap: int
    aggregates: Aggregates
    clock: int | None = None
    taken: dict[Any, list[Event]] = field(default_factory=dict)
    """The events of sessions that are not reported yet."""
    told: Told = field(default_factory=Told)

    def take(self, batch: Sequence[Event], clock: int | None) -> None:
        """Take events that come together; then the clock is moved."""
        late = set()
        if self.clock is not None:
            for event in batch:
                if event["ts"] >= self.clock:
                    continue
                key = tuple(event[name] for name in self.keys)
                same = [e for e in batch if e["passes"] and self.key_of(e) == key]
                together = [*self.taken.get(key, []), *same] if event["passes"] else [event]
                (session,) = [s for s in self.sessions(together) if event in s]
                if session[-1]["ts"] + self.gap <= self.clock:
                    late.add(event["_seq"])
        self.told.late += [event["_seq"] for event in batch if event["_seq"] in late]
        for event in batch:
            if event["passes"] and event["_seq"] not in late:
                self.taken.setdefault(self.key_of(event), []).append(event)
        self.clock = clock
        self.report()

    def key_of(self, event: Event) -> tuple[Any, ...]:
        return tuple(event[name] for name in self.keys)

    def sessions(self, events: Sequence[Event]) -> list[list[Event]]:
        found: list[list[Event]] = []
        for event in in_order(events):
            if found and event["ts"] - found[-1][-1]["ts"] < self.gap:
                found[-1].append(event)
            else:
                found.append([event])
        return found

    def report(self, *, all_of_them: bool = False) -> None:
        """Report the sessions that end at or before the clock."""
        for key in self.taken:
            for session in self.sessions(self.taken[key]):
                end = session[-1]["ts"] + self.gap
                if all_of_them or (self.clock is not None and end <= self.clock):
                    bounds = {"window_start": session[0]["ts"], "window_end": end}
                    row = computed(session, self.aggregates)
                    of_key = dict(zip(self.keys, key, strict=True))
                    self.told.rows.append({**of_key, **bounds, **row})
                    self.taken[key] = [e for e in self.taken[key] if e not in session]
