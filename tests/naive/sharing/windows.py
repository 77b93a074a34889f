"""Time windows of many queries, each straight from its definition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.naive.windows import Aggregates, Event, windows


@dataclass
class ManyWindows:
    """Queries join and leave; each has the windows of the events from a number on."""

    keys: Sequence[str]
    aggregates: Aggregates
    queries: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """Size, slide and the first number that counts, by the number of the query."""
    events: list[Event] = field(default_factory=list)
    clock: int = -(2**63)

    def add(self, number: int, size: int, slide: int, since: int) -> None:
        self.queries[number] = (size, slide, since)

    def drop(self, number: int) -> None:
        del self.queries[number]

    def take(self, events: Sequence[Event], clock: int) -> list[Event]:
        """Take events; return the windows that have ended since."""
        self.events += events
        found: list[Event] = []
        for number, (size, slide, since) in self.queries.items():
            counted = [event for event in self.events if event["_seq"] >= since]
            for row in windows(counted, self.keys, size, slide, self.aggregates):
                if self.clock < row["window_end"] <= clock:
                    found.append({"$query": number, **row})
        self.clock = clock
        return found
