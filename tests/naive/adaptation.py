"""How late events are in a sequence of times, and what sorting takes: from the definition."""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def most_delay(times: Sequence[int]) -> int:
    """The most places between an event and a newer one that came before it."""
    return max(
        (
            late - early
            for late in range(len(times))
            for early in range(late)
            if times[late] < times[early]
        ),
        default=0,
    )


def sorted_by_heap(times: Sequence[int], size: int) -> list[int]:
    """The times as they leave a heap that never holds more than `size`."""
    heap: list[int] = []
    out: list[int] = []
    for ts in times:
        heapq.heappush(heap, ts)
        if len(heap) == size:
            out.append(heapq.heappop(heap))
    return out + sorted(heap)
