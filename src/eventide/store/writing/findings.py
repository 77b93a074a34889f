"""Facts about a stream, kept until the stream has grown markedly."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")

GROWN = 1.25
"""If the number of events changes by this factor, facts are found out again."""
MOST_FINDINGS = 256


class Findings:
    """Keeps answers to questions about a stream, each with the number of events at that time."""

    def __init__(self) -> None:
        # Some thread asks while others do.
        self.mutex = threading.Lock()
        self.known: dict[Hashable, tuple[int, Any]] = {}

    def get(self, question: Hashable, rows: int, find: Callable[[], T]) -> T:
        """Return a known fact, or find it out, for a stream that has this many events."""
        with self.mutex:
            held = self.known.get(question)
        if held is not None and held[0] <= rows * GROWN and rows <= held[0] * GROWN:
            known: T = held[1]
            return known
        found = find()
        with self.mutex:
            self.known.pop(question, None)
            self.known[question] = (rows, found)
            while len(self.known) > MOST_FINDINGS:
                del self.known[next(iter(self.known))]
        return found
