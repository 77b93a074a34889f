"""Long reads of a window while its panes are overwritten, and which window they have seen.

    update j     overwrites the pane of update j - n, and is committed at once
    query        reads the panes of the last `length` updates, one a step, and commits with the last

A query that has read a pane which leaves its window meanwhile begins again, or takes that pane back
out of its result; either way it commits when it has read the window as it is then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

Choose = Callable[[Sequence[int]], int]
"""Which of the updates whose panes are left to read is next."""


@dataclass
class PaneQuery:
    """A query beside updates, which are numbered."""

    length: int
    choose: Choose
    rescans: bool
    """Whether a pane that has left is taken back, or all is read again."""
    newest: int = 0
    read: set[int] = field(default_factory=set)
    aborted: int = 0
    taken_back: int = 0
    committed: frozenset[int] | None = None

    @property
    def window(self) -> set[int]:
        """The updates of which it reads the panes."""
        return set(range(self.newest - self.length + 1, self.newest + 1))

    def update(self) -> None:
        """Overwrite the oldest pane."""
        self.newest += 1
        gone = self.read - self.window
        if gone and self.rescans:
            self.read -= gone
            self.taken_back += len(gone)
        elif gone:
            self.read = set()
            self.aborted += 1

    def step(self) -> None:
        """Read a pane; commit with the last one."""
        self.read.add(self.choose(sorted(self.window - self.read)))
        if self.read == self.window:
            self.committed = frozenset(self.read)

    def run(self, updates: Iterable[bool]) -> None:
        """Take a step, or an update where it says so, until the query commits."""
        for is_update in updates:
            if self.committed is not None:
                return
            if is_update:
                self.update()
            else:
                self.step()


def windows_seen(read: frozenset[int], length: int, newest: int) -> list[int]:
    """Return behind which updates a query may stand in a serial order, if it has read these.

    One that stands behind an update reads the last ones until then.
    """
    return [
        last for last in range(newest + 1) if read == frozenset(range(last - length + 1, last + 1))
    ]
