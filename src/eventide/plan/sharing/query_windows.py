"""The windows of many queries over one stream: queries join and leave while events flow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from eventide.errors import PlanError
from eventide.plan.windows.nodes import Window

Int64s = npt.NDArray[np.int64]
_FEWEST = 16


@dataclass(frozen=True, slots=True)
class WindowRow:
    """A query with its window: it counts the events from the number `since_seq` on."""

    number: int
    window: Window
    since_seq: int


class QueryWindows:
    """The rows of queries that are there, and their different windows, each at a place.

    Queries whose windows and first events are the same share a place. A place that is free is used
    again, and has another birth then: births ascend, and that of a free place is 0.
    """

    def __init__(self) -> None:
        self.version = 0
        """It changes with every row that is added or dropped."""
        self.sizes, self.slides, self.sinces, self.births, self._counts = (
            np.zeros(_FEWEST, np.int64) for _ in range(5)
        )
        self._free = list(range(_FEWEST))[::-1]
        self._born = 0
        self._places: dict[tuple[Window, int], int] = {}
        self._rows: dict[int, WindowRow] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, number: int) -> bool:
        return number in self._rows

    def add(self, number: int, window: Window, since_seq: int) -> None:
        """Add a query. No event from `since_seq` on has gone through the operator yet."""
        if number in self._rows:
            message = f"query {number} has a window already"
            raise PlanError(message)
        place = self._places.get((window, since_seq))
        if place is None:
            place = self._places[window, since_seq] = self._new_place()
            self._born += 1
            self.sizes[place], self.slides[place] = window.size_us, window.slide_us
            self.sinces[place], self.births[place] = since_seq, self._born
        self._rows[number] = WindowRow(number, window, since_seq)
        self._counts[place] += 1
        self._changed()

    def drop(self, number: int) -> None:
        """Drop a query."""
        row = self._rows.pop(number)
        key = row.window, row.since_seq
        place = self._places[key]
        self._counts[place] -= 1
        if not self._counts[place]:
            del self._places[key]
            self.births[place] = 0
            self._free.append(place)
        self._changed()

    def _changed(self) -> None:
        self.version += 1
        for name in ("rows", "members", "starts"):
            self.__dict__.pop(name, None)

    def _new_place(self) -> int:
        if not self._free:
            count = len(self.births)
            for name in ("sizes", "slides", "sinces", "births", "_counts"):
                setattr(self, name, np.append(getattr(self, name), np.zeros(count, np.int64)))
            self._free = list(range(count, 2 * count))[::-1]
        return self._free.pop()

    @cached_property
    def rows(self) -> tuple[WindowRow, ...]:
        """All rows, in order of their numbers."""
        return tuple(self._rows[number] for number in sorted(self._rows))

    @cached_property
    def members(self) -> tuple[Int64s, Int64s]:
        """The numbers of queries by place, and where those of each place begin, and one more."""
        numbers = np.fromiter(self._rows, np.int64, len(self._rows))
        places = np.fromiter(
            (self._places[row.window, row.since_seq] for row in self._rows.values()),
            np.int64,
            len(self._rows),
        )
        offsets = np.zeros(len(self.births) + 1, np.int64)
        np.cumsum(self._counts, out=offsets[1:])
        return numbers[np.argsort(places, kind="stable")], offsets

    @cached_property
    def starts(self) -> Int64s:
        """The different numbers of events from which on queries count, ascending."""
        return np.unique(self.sinces[self.births > 0])
