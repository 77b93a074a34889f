"""Structures that know which rows of an answer live; the best one depends on how rows leave.

Rows are known by their number in a log of values. A structure belongs to the view that holds it and
is changed in place; when it has no room left, it is rebuilt.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.key_table import KeyTable, empty_table, roomy
from eventide.kernels.lifetimes.calendar_queue import Calendar, empty_calendar
from eventide.kernels.lifetimes.expiring import longest_lifetime
from eventide.kernels.lifetimes.view import (
    COUNT,
    FIRST,
    FREE,
    LIVING,
    Departed,
    Handled,
    Incoming,
    keep_by_handle,
    keep_in_list,
    keep_in_ring,
)
from eventide.operators.changes import NEVER
from eventide.operators.standing.compaction import is_too_roomy
from eventide.operators.standing.row_log import RowLog, is_sparse

Structure = Literal["append", "ring", "calendar", "calendar and ids", "ids", "list"]
"""How rows leave: never; in the order in which they came; when they expire; when they expire, or
earlier if a negative tuple says so; only if a negative tuple says so; when a list is searched for
expired rows."""

SMALLEST = 64
FEWEST_PARTITIONS, MOST_PARTITIONS = 16, 4096
ROOM_OF_A_SLOT = 64
"""Handles for each slot of a calendar: about a third of them are in use."""


@dataclass(frozen=True, slots=True)
class LivingRows:
    """Living rows in the order in which they came: their numbers, expiries and ids."""

    numbers: Int64s
    exps: Int64s
    ids: Int64s


@dataclass(frozen=True, slots=True)
class Deaths:
    """The numbers of rows that left, and the instants at which they did, in any order."""

    numbers: Int64s
    at: Int64s

    def __len__(self) -> int:
        return len(self.numbers)

    def in_order(self) -> Deaths:
        """Return them in order of time, those of one instant in the order in which they came."""
        order = np.lexsort((self.numbers, self.at))
        return Deaths(self.numbers[order], self.at[order])


class Keeping(Protocol):
    """A structure of living rows."""

    @property
    def count(self) -> int:
        """How many rows live."""
        ...

    def take(self, incoming: Incoming, clock: int) -> Deaths:
        """Take changes before `clock`."""
        ...

    def kept(self) -> LivingRows:
        """Return the living rows."""
        ...

    def tidy(self, log: RowLog) -> RowLog:
        """Return the log without the values of rows that have gone, if dropping them pays."""
        ...

    @property
    def nbytes(self) -> int:
        """The size of the arrays in bytes."""
        ...


def new_keeping(structure: Structure, partitions: int | None) -> Keeping:
    """Return a structure without rows."""
    match structure:
        case "append":
            return KeptForever()
        case "ring":
            return KeptInRing(np.zeros(SMALLEST, np.int64), np.zeros(2, np.int64))
        case "list":
            exps, numbers, ids = np.zeros((3, SMALLEST), np.int64)
            return KeptInList(exps, numbers, ids, np.zeros(1, np.int64))
        case _:
            return KeptByHandle(structure != "ids", structure != "calendar", partitions)


def power_of_two(least: int) -> int:
    """Return the smallest power of two that is at least this number."""
    return 1 << max(0, least - 1).bit_length()


def arrived(exps: Int64s, ids: Int64s) -> Incoming:
    """Return rows, numbered from 0, as if they came together before the first of them expires."""
    count = len(exps)
    at = np.full(count, exps.min(initial=NEVER) - 1, np.int64)
    signs = np.ones(count, np.int8)
    return Incoming(frozen(at), frozen(exps), frozen(signs), frozen(ids), 0)


def _room(most: int) -> Departed:
    return Departed(np.empty(most, np.int64), np.empty(most, np.int64))


def _left(departed: Departed, count: int) -> Deaths:
    return Deaths(departed.numbers[:count], departed.at[:count])


@dataclass(slots=True)
class KeptForever:
    """Rows that never leave: their number is enough."""

    count: int = 0

    def take(self, incoming: Incoming, clock: int) -> Deaths:  # noqa: ARG002
        """Take in changes."""
        self.count = incoming.number + len(incoming.at)
        return _left(_room(0), 0)

    def kept(self) -> LivingRows:
        """Return the living rows."""
        none = np.zeros(self.count, np.int64)
        return LivingRows(np.arange(self.count), np.full(self.count, NEVER, np.int64), none)

    def tidy(self, log: RowLog) -> RowLog:
        """Return the log without the values of rows that have gone."""
        return log

    @property
    def nbytes(self) -> int:
        """The size of the arrays in bytes."""
        return 0


@dataclass(slots=True)
class KeptInRing:
    """Expiries in a ring: the first row to come is the first to leave."""

    exps: Int64s
    facts: Int64s

    def take(self, incoming: Incoming, clock: int) -> Deaths:
        """Take in changes up to `clock`."""
        most = int(self.facts[COUNT]) + len(incoming.at)
        if not self.facts[COUNT]:
            self.facts[FIRST] = incoming.number
        if most > len(self.exps) or is_too_roomy(len(self.exps), most):
            kept = self.kept()
            self.exps = np.zeros(power_of_two(2 * most), np.int64)
            self.exps[kept.numbers & (len(self.exps) - 1)] = kept.exps
        departed = _room(most)
        left = keep_in_ring(self.exps, self.facts, incoming, clock, departed)
        return _left(departed, left)

    @property
    def count(self) -> int:
        """How many rows live."""
        return int(self.facts[COUNT])

    def kept(self) -> LivingRows:
        """Return the living rows."""
        numbers = self.facts[FIRST] + np.arange(self.facts[COUNT])
        exps = self.exps[numbers & (len(self.exps) - 1)]
        return LivingRows(numbers, exps, np.zeros(len(numbers), np.int64))

    def tidy(self, log: RowLog) -> RowLog:
        """Return the log without the values of rows that have gone."""
        return log.drop_before(log.end - self.count)

    @property
    def nbytes(self) -> int:
        """The size of the arrays in bytes."""
        return self.exps.nbytes


@dataclass(slots=True)
class KeptInList:
    """Rows in the order in which they came, with all that is known of them."""

    exps: Int64s
    numbers: Int64s
    ids: Int64s
    facts: Int64s

    def take(self, incoming: Incoming, clock: int) -> Deaths:
        """Take in changes up to `clock`."""
        most = int(self.facts[0]) + len(incoming.at)
        if most > len(self.exps) or is_too_roomy(len(self.exps), most):
            kept = self.kept()
            room = np.zeros(power_of_two(2 * most) - len(kept.numbers), np.int64)
            self.exps = np.concatenate([kept.exps, room])
            self.numbers = np.concatenate([kept.numbers, room])
            self.ids = np.concatenate([kept.ids, room])
        departed = _room(most)
        columns = (self.exps, self.numbers, self.ids, self.facts)
        left = keep_in_list(*columns, incoming, clock, departed)
        return _left(departed, left)

    @property
    def count(self) -> int:
        """How many rows live."""
        return int(self.facts[0])

    def kept(self) -> LivingRows:
        """Return the living rows."""
        living = slice(0, int(self.facts[0]))
        return LivingRows(self.numbers[living], self.exps[living], self.ids[living])

    def tidy(self, log: RowLog) -> RowLog:
        """Return the log without the values of rows that have gone."""
        if not is_sparse(log.size, self.count):
            return log
        log = log.kept(self.kept().numbers)
        self.numbers[: self.count] = np.arange(self.count)
        return log

    @property
    def nbytes(self) -> int:
        """The size of the arrays in bytes."""
        return self.exps.nbytes + self.numbers.nbytes + self.ids.nbytes


@dataclass(slots=True)
class KeptByHandle:
    """Rows with handles: a calendar says which expire, a table finds them by id."""

    by_exp: bool
    by_id: bool
    partitions: int | None
    calendar: Calendar = field(init=False)
    table: KeyTable = field(init=False)
    rows: Handled = field(init=False)
    longest_us: int = 0

    def __post_init__(self) -> None:
        self._clear(SMALLEST)

    def take(self, incoming: Incoming, clock: int) -> Deaths:
        """Take in changes up to `clock`."""
        came = int(np.count_nonzero(incoming.sign > 0))
        self._make_room(incoming, came)
        return self._keep(incoming, came, clock)

    @property
    def count(self) -> int:
        """How many rows live."""
        return int(self.rows.facts[LIVING])

    def kept(self) -> LivingRows:
        """Return the living rows."""
        handles = self._living()
        rows = self.rows
        return LivingRows(rows.numbers[handles], self.calendar.exps[handles], rows.ids[handles])

    def tidy(self, log: RowLog) -> RowLog:
        """Return the log without the values of rows that have gone."""
        if not is_sparse(log.size, self.count):
            return log
        handles = self._living()
        log = log.kept(self.rows.numbers[handles])
        self.rows.numbers[handles] = np.arange(len(handles))
        return log

    @property
    def nbytes(self) -> int:
        """The size of the arrays in bytes."""
        arrays = (*self.calendar, *self.table, *self.rows)
        return sum(array.nbytes for array in arrays)

    def _living(self) -> Int64s:
        """Return the handles of living rows, in order of the numbers of these."""
        handles = np.flatnonzero(self.rows.numbers >= 0)
        return handles[np.argsort(self.rows.numbers[handles])]

    def _make_room(self, incoming: Incoming, came: int) -> None:
        """Make room: handles for all rows that come, and slots for their expiry."""
        if self.by_exp:
            lifetime_us = longest_lifetime(incoming.at, incoming.exp)
            if lifetime_us > self.longest_us:
                self.longest_us = max(lifetime_us, 2 * self.longest_us)
                self._rebuild(came)
        room = len(self.rows.numbers)
        if came > self.rows.facts[FREE] or is_too_roomy(room, self.count + came):
            self._rebuild(came)
        if self.by_id:
            self.table = roomy(self.table, came)

    def _rebuild(self, more: int) -> None:
        """Keep the same rows with room for more; handles of rows that have gone become free."""
        kept = self.kept()
        count = len(kept.numbers)
        self._clear(power_of_two(2 * (count + more)))
        if count:
            again = arrived(kept.exps, kept.ids)
            self.table = roomy(self.table, count)
            self._keep(again, count, int(again.at[0]))
            self.rows.numbers[self._living()] = kept.numbers

    def _keep(self, incoming: Incoming, came: int, clock: int) -> Deaths:
        departed = _room(int(self.rows.facts[LIVING]) + came)
        left = keep_by_handle(
            self.calendar,
            self.table,
            self.rows,
            # As long as no row can have expired, the calendar need not be searched.
            self.by_exp and self.longest_us > 0,
            self.by_id,
            incoming,
            clock,
            departed,
        )
        return _left(departed, left)

    def _clear(self, capacity: int) -> None:
        """Free all handles."""
        capacity = max(SMALLEST, capacity)
        slots = power_of_two(capacity // ROOM_OF_A_SLOT)
        slots = self.partitions or min(max(slots, FEWEST_PARTITIONS), MOST_PARTITIONS)
        self.calendar = empty_calendar(self.longest_us, slots, capacity)
        self.table = empty_table()
        self.rows = Handled(
            np.full(capacity, -1, np.int64),
            np.zeros(capacity, np.int64),
            np.arange(capacity, dtype=np.int32)[::-1].copy(),
            np.array([0, capacity], np.int64),
        )
