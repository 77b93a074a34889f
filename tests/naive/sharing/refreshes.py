"""Periodic queries, each asked again at each multiple of its slide, over the events themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.naive.windows import Event

Ask = Callable[[Sequence[Event]], list[tuple[Any, ...]]]
"""The answer of a query over some events, in order of time."""
Change = tuple[int, int, tuple[Any, ...]]
"""An instant, 1 for a row that came into the answer or -1 for one that left, and the row."""


@dataclass
class PeriodicQuery:
    """A query over (at - size, at] at each multiple of its slide, from the event `since` on."""

    size: int
    slide: int
    since: int
    ask: Ask
    events: list[Event] = field(default_factory=list)
    answer: list[tuple[Any, ...]] = field(default_factory=list)
    due: int | None = None
    """The next refresh."""

    def take(
        self, events: Sequence[Event], until: int, stretch: int = 1
    ) -> tuple[list[Change], list[Change]]:
        """Take events; return the whole answers at refreshes before `until`, and what changed.

        With a stretched period, the refresh that is due is followed by multiples of that.
        """
        period = self.slide * stretch
        self.events += [event for event in events if event["_seq"] >= self.since]
        self.events.sort(key=lambda event: (event["ts"], event["_seq"]))
        whole: list[Change] = []
        changes: list[Change] = []
        first = min((event["ts"] for event in events), default=until)
        at = -(-first // period) * period if self.due is None else self.due
        while at < until:
            inside = [each for each in self.events if at - self.size < each["ts"] <= at]
            answer = self.ask(inside)
            came, went = without(answer, self.answer), without(self.answer, answer)
            whole += [(at, 1, row) for row in answer]
            changes += [(at, 1, row) for row in came] + [(at, -1, row) for row in went]
            self.answer = answer
            at = (at // period + 1) * period
        self.due = at
        return whole, changes


def without(rows: Sequence[tuple[Any, ...]], others: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Return the rows that are left when each of some others takes an equal one away."""
    left = list(rows)
    for row in others:
        if row in left:
            left.remove(row)
    return left
