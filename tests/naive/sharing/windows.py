"""Time windows of many queries, each straight from its definition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.naive.windows import Aggregates, Event, windows

Counts = Callable[[Event], bool]


@dataclass
class ManyWindows:
    """Queries join and leave; each has the windows of the events from a number on."""

    keys: Sequence[str]
    aggregates: Aggregates
    queries: dict[int, tuple[int, int, int, Counts]] = field(default_factory=dict)
    """Size, slide, the first number that counts, and what counts, by the number of the query."""
    events: list[Event] = field(default_factory=list)
    clock: int = -(2**63)

    def add(self, number: int, size: int, slide: int, since: int, counts: Counts) -> None:
        self.queries[number] = (size, slide, since, counts)

    def drop(self, number: int) -> None:
        del self.queries[number]

    def take(self, events: Sequence[Event], clock: int) -> list[Event]:
        """Take events; return the windows that have ended since."""
        self.events += events
        found: list[Event] = []
        for number, (size, slide, since, counts) in self.queries.items():
            counted = [event for event in self.events if event["_seq"] >= since and counts(event)]
            for row in windows(counted, self.keys, size, slide, self.aggregates):
                if self.clock < row["window_end"] <= clock:
                    found.append({"$query": number, **row})
        self.clock = clock
        return found
