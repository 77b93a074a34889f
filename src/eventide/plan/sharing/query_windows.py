"""The windows of many queries over one stream: queries join and leave while events flow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from eventide.errors import PlanError
from eventide.plan.expressions import ALWAYS, Expression
from eventide.plan.sharing.synopses import Cover, Synopses
from eventide.plan.windows.nodes import Window

Int64s = npt.NDArray[np.int64]
_FEWEST = 16


@dataclass(frozen=True, slots=True)
class WindowRow:
    """A query with its window: it counts the events from the number `since_seq` on.

    Of these it counts those on which its condition is true. They are in the synopses `cover`.
    """

    number: int
    window: Window
    since_seq: int
    condition: Expression = ALWAYS
    cover: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class AskedWindow:
    """A query that is to join: its number, its window, and which events it counts."""

    number: int
    window: Window
    condition: Expression = ALWAYS


class QueryWindows:
    """The rows of queries that are there, and their different windows, each at a place.

    Queries whose windows, synopses and first events are the same share a place. A place that is
    free is used again, and has another birth then: births ascend, and that of a free place is 0.
    """

    def __init__(self) -> None:
        self.version = 0
        """It changes with every row that is added or dropped."""
        self.synopses = Synopses()
        self.sizes, self.slides, self.sinces, self.births, self._counts = (
            np.zeros(_FEWEST, np.int64) for _ in range(5)
        )
        self._free = list(range(_FEWEST))[::-1]
        self._born = 0
        self._places: dict[tuple[Window, int, tuple[int, ...]], int] = {}
        self._rows: dict[int, WindowRow] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, number: int) -> bool:
        return number in self._rows

    def cover(self, number: int) -> Cover:
        """Return the conditions of the synopses that a query reads."""
        return tuple(self.synopses.conditions[each] for each in self._rows[number].cover)

    def join(self, asked: Iterable[AskedWindow], since_seq: int) -> None:
        """Add queries that are not there. No event from `since_seq` on has gone through yet."""
        new = [each for each in asked if each.number not in self._rows]
        self.synopses.expect(each.condition for each in new)
        for each in new:
            self._add(each, since_seq, self.synopses.cover_of(each.condition))

    def add(self, asked: AskedWindow, since_seq: int, cover: Cover | None = None) -> None:
        """Add a query that reads the synopses of a cover, or of its condition."""
        if asked.number in self._rows:
            message = f"query {asked.number} has a window already"
            raise PlanError(message)
        self.synopses.expect((asked.condition,))
        self._add(asked, since_seq, (asked.condition,) if cover is None else cover)

    def _add(self, asked: AskedWindow, since_seq: int, cover: Cover) -> None:
        window, numbers = asked.window, self.synopses.take(cover)
        key = window, since_seq, numbers
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = self._new_place()
            self._born += 1
            self.sizes[place], self.slides[place] = window.size_us, window.slide_us
            self.sinces[place], self.births[place] = since_seq, self._born
        self._rows[asked.number] = WindowRow(
            asked.number, window, since_seq, asked.condition, numbers
        )
        self._counts[place] += 1
        self._changed()

    def drop(self, number: int) -> None:
        """Drop a query."""
        row = self._rows.pop(number)
        key = row.window, row.since_seq, row.cover
        place = self._places[key]
        self._counts[place] -= 1
        if not self._counts[place]:
            del self._places[key]
            self.births[place] = 0
            self._free.append(place)
        self.synopses.leave(row.condition, row.cover)
        self._changed()

    def _changed(self) -> None:
        self.version += 1
        for name in ("rows", "members", "starts", "windows", "covers"):
            self.__dict__.pop(name, None)

    def _new_place(self) -> int:
        if not self._free:
            count = len(self.births)
            for name in ("sizes", "slides", "sinces", "births", "_counts"):
                setattr(self, name, np.append(getattr(self, name), np.zeros(count, np.int64)))
            self._free = list(range(count, 2 * count))[::-1]
        return self._free.pop()

    def places_of(self, numbers: Int64s) -> Int64s:
        """Return the place of each of some queries."""
        rows = (self._rows[number] for number in numbers.tolist())
        places = [self._places[row.window, row.since_seq, row.cover] for row in rows]
        return np.array(places, np.int64)

    @cached_property
    def rows(self) -> tuple[WindowRow, ...]:
        """All rows, in order of their numbers."""
        return tuple(self._rows[number] for number in sorted(self._rows))

    @cached_property
    def members(self) -> tuple[Int64s, Int64s]:
        """The numbers of queries by place, and where those of each place begin, and one more."""
        numbers = np.fromiter(self._rows, np.int64, len(self._rows))
        places = np.fromiter(
            (self._places[row.window, row.since_seq, row.cover] for row in self._rows.values()),
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

    @cached_property
    def windows(self) -> tuple[Window, ...]:
        """The different windows."""
        return tuple({window: None for window, _, _ in self._places})

    @cached_property
    def covers(self) -> tuple[Int64s, Int64s]:
        """The synopses by place, ascending; where those of each place begin, and one more."""
        by_place: list[tuple[int, ...]] = [()] * len(self.births)
        for (_, _, cover), place in self._places.items():
            by_place[place] = tuple(sorted(cover))
        offsets = np.zeros(len(by_place) + 1, np.int64)
        np.cumsum([len(each) for each in by_place], out=offsets[1:])
        return np.array([each for cover in by_place for each in cover], np.int64), offsets
