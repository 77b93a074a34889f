"""Events that name the time until which they are there, as a list that is looked through."""

from __future__ import annotations

from dataclasses import dataclass

from tests.naive.store import NaiveStream, Row, number


@dataclass
class NaiveLifetimes(NaiveStream):
    """Rows whose `until` says when they are gone, if it is not null."""

    def now(self) -> int:
        """The time of the newest event that there ever was."""
        return max(number(row["ts"]) for row in self.rows)

    def living(self, now: int | None = None) -> NaiveStream:
        """What is there."""
        if not self.rows:
            return NaiveStream()
        at = self.now() if now is None else now
        return NaiveStream([row for row in self.rows if is_there(row, at)])


def is_there(row: Row, now: int) -> bool:
    """Whether an event is there: it is gone at the very time that it names."""
    return row["until"] is None or number(row["until"]) > now
