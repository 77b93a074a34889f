"""A bound for what all live queries of a database remember together."""

from __future__ import annotations

from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

from eventide.errors import StateError, StateLimitError

if TYPE_CHECKING:
    from eventide.api.live.delivery import Delivery
    from eventide.api.live.query import LiveQuery

EVERY_S = 0.1
"""It is looked at so often, at most."""
SHARE = 20
"""Of so much time, one part is spent on looking."""
NAMED = 3
"""So many of the largest queries are named when the bound is met."""


class MemoryBound:
    """Lets the queries that remember most fail, until the others remember no more than they may."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.looking = Lock()
        self.next_at = 0.0

    def look(self, delivery: Delivery) -> None:
        """Measure all queries, unless that was done just now; end the largest if need be.

        No query and no group may be locked by who calls.
        """
        if monotonic() < self.next_at or not self.looking.acquire(blocking=False):
            return
        try:
            began = monotonic()
            before, total = None, self.ended_one(delivery)
            # What has not become less is freed as windows move on.
            while total is not None and (before is None or total < before):
                before, total = total, self.ended_one(delivery)
            ended = monotonic()
            self.next_at = ended + max(EVERY_S, SHARE * (ended - began))
        finally:
            self.looking.release()

    def ended_one(self, delivery: Delivery) -> int | None:
        """End what remembers most, if all remember too much; return how much that is, else None."""
        found = sorted(
            ((bytes_of(query), query) for query in delivery.queries if not query.finished),
            key=lambda each: -each[0],
        )
        total = sum(size for size, _ in found)
        if total <= self.most_bytes or not found[0][0]:
            return None
        largest = ", ".join(
            f"{query.described()} ({size:,} bytes)" for size, query in found[:NAMED]
        )

        def why(who: str, most: int) -> StateLimitError:
            message = (
                f"the live queries of the database remember {total:,} bytes, more than the "
                f"{self.most_bytes:,} that they may together, {most:,} of them for {who}; the "
                f"largest are {largest}"
            )
            hint = "shorter windows, fewer queries, or open(…, max_state_bytes=…) with more"
            return StateLimitError(message, hint=hint)

        query = found[0][1]
        query.give_up_most(why)
        delivery.forget(query)
        return total


def bytes_of(query: LiveQuery) -> int:
    """Return how much a query remembers, nothing if a step was interrupted."""
    try:
        return sum(size.bytes for _, size in query.sizes())
    except StateError:
        return 0
