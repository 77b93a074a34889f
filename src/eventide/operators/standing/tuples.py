"""The tuples that an operator keeps until they go, so that their effect can be taken back.

PassingTuples   none: every end is announced, with the values (execution "negative"), or none comes
QueuedTuples    in order of expiry, which is that of arrival (pattern WKS)
PlacedTuples    each in a place of its own; a calendar says when they expire (WK, STR), or a list
                that is searched (execution "direct")

`take` adds changes and returns what comes and goes, in order of time; the places it returns are
valid until the next step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from eventide.kernels.compiled import Bools, Int32s, Int64s, frozen
from eventide.kernels.groups.sliding import Tuples
from eventide.kernels.growing import longer, wider
from eventide.kernels.key_table import KeyTable, empty_table, put_handles, roomy
from eventide.kernels.lifetimes.calendar_queue import Calendar, empty_calendar, grown_calendar
from eventide.kernels.lifetimes.expiring import longest_lifetime, schedule_all, widened
from eventide.kernels.lifetimes.tuple_operations import (
    Operations,
    Remembered,
    SourceChanges,
    calendar_operations,
    list_operations,
    queue_operations,
)
from eventide.operators.changes import NEVER, Changes
from eventide.operators.checking import (
    LONGEST_US,
    require,
    require_ascending,
    require_lengths,
    require_within,
)
from eventide.operators.standing.array_state import Arrays, prefixed
from eventide.operators.standing.compaction import (
    compact_calendar,
    compact_table,
    new_numbers,
    renumbered,
)
from eventide.plan.standing.edges import Edge, UpdatePattern
from eventide.plan.standing.execution import Execution
from eventide.schema import MAX_TS_US, MIN_TS_US

PARTITIONS = 64
"""Slots of a calendar."""


@dataclass(frozen=True, slots=True)
class GroupedChanges:
    """Changes, and for each row its group and its values by column."""

    changes: Changes
    groups: Int32s
    values: Int64s
    valid: Bools


def read_only(operations: Operations, tuples: Tuples) -> tuple[Operations, Tuples]:
    """Return arrays that kernels only read in one type: kernels are compiled for each type."""
    return (
        Operations(*(frozen(array) for array in operations)),
        Tuples(
            frozen(tuples.exps),
            frozen(tuples.groups),
            frozen(tuples.values),
            frozen(tuples.valid),
        ),
    )


@dataclass(slots=True)
class PassingTuples:
    """Keeps nothing."""

    living: int = 0

    def take(self, arrivals: GroupedChanges, until_us: int) -> tuple[Operations, Tuples]:  # noqa: ARG002
        """Return the changes as they are."""
        changes = arrivals.changes
        self.living += int(changes.sign.sum())
        operations = Operations(changes.at, np.arange(len(changes)), changes.sign.astype(np.int64))
        # Ends are not looked at: they will be announced.
        never = np.full(len(changes), NEVER, np.int64)
        return read_only(
            operations, Tuples(never, arrivals.groups, arrivals.values, arrivals.valid)
        )

    @property
    def room(self) -> int:
        """The number of tuples there is room for."""
        return 0

    @property
    def used(self) -> int:
        """How much of the room is in use."""
        return 0

    def compacted(self, numbers: Int32s) -> PassingTuples:  # noqa: ARG002 - no groups are kept
        """Return the same: nothing is kept."""
        return PassingTuples(self.living)

    def arrays(self) -> Arrays:
        """Return no arrays."""
        return {"living": np.array([self.living])}

    def written(self) -> Arrays:
        """Return what cannot be rebuilt."""
        return self.arrays()

    def read(self, arrays: Arrays, columns: int) -> PassingTuples:  # noqa: ARG002 - none is kept
        """Return what was `written`."""
        (living,) = arrays["living"].tolist()
        require_within(np.array([living]), 0, 2**62, "living tuples")
        return PassingTuples(int(living))

    def members(self) -> tuple[Int64s, Bools] | None:
        """Return nothing: the tuples of a group are not known."""
        return None

    def words(self, column: int) -> Int64s:  # noqa: ARG002 - none is kept
        """Return the values of a column."""
        return np.zeros(0, np.int64)


@dataclass(slots=True)
class QueuedTuples:
    """Tuples [start, end) of the arrays, in order of expiry."""

    exps: Int64s
    groups: Int32s
    values: Int64s
    valid: Bools
    start: int = 0
    end: int = 0

    @classmethod
    def empty(cls, columns: int) -> QueuedTuples:
        """Return a queue of tuples with so many columns."""
        return cls(
            np.zeros(16, np.int64),
            np.zeros(16, np.int32),
            np.zeros((columns, 16), np.int64),
            np.zeros((columns, 16), np.bool_),
        )

    @property
    def living(self) -> int:
        """The number of tuples."""
        return self.end - self.start

    @property
    def room(self) -> int:
        """The number of tuples there is room for."""
        return len(self.exps)

    @property
    def used(self) -> int:
        """How much of the room is in use."""
        return self.living

    def compacted(self, numbers: Int32s) -> QueuedTuples:
        """Return the tuples without spare room; groups have new numbers."""
        held = {name: array.copy() for name, array in self.arrays().items()}
        held["groups"] = numbers[held["groups"]]
        return QueuedTuples.of(held)

    def take(self, arrivals: GroupedChanges, until_us: int) -> tuple[Operations, Tuples]:
        """Add tuples behind the others; remove those that expire before `until_us`."""
        changes = arrivals.changes
        fresh, end = self._make_room(len(changes))
        self.exps[fresh:end] = changes.exp
        self.groups[fresh:end] = arrivals.groups
        self.values[:, fresh:end] = arrivals.values
        self.valid[:, fresh:end] = arrivals.valid
        going = int(np.searchsorted(self.exps[self.start : end], np.int64(until_us)))
        operations = Operations(*(np.empty(len(changes) + going, np.int64) for _ in range(3)))
        at = frozen(changes.at)
        self.start = queue_operations(self.exps, self.start, fresh, at, until_us, operations)
        self.end = end
        return read_only(operations, Tuples(self.exps, self.groups, self.values, self.valid))

    def _make_room(self, more: int) -> tuple[int, int]:
        if self.end + more > len(self.exps):
            held = slice(self.start, self.end)
            # Moving to the front pays only if at least as many have gone as are moved.
            room = max(len(self.exps), 2 * (self.living + more))
            arrays: list[npt.NDArray[Any]]
            arrays = [self.exps, self.groups, self.values, self.valid]
            moved = [np.zeros((*array.shape[:-1], room), array.dtype) for array in arrays]
            for old, new in zip(arrays, moved, strict=True):
                new[..., : self.living] = old[..., held]
            self.exps, self.groups, self.values, self.valid = moved
            self.start, self.end = 0, self.living
        return self.end, self.end + more

    def arrays(self) -> Arrays:
        """Return all arrays."""
        held = slice(self.start, self.end)
        return {
            "exps": self.exps[held],
            "groups": self.groups[held],
            "values": self.values[:, held],
            "valid": self.valid[:, held],
        }

    @classmethod
    def of(cls, arrays: Arrays) -> QueuedTuples:
        """Return the tuples of `arrays`."""
        exps = arrays["exps"]
        return cls(exps, arrays["groups"], arrays["values"], arrays["valid"], end=len(exps))

    def written(self) -> Arrays:
        """Return what cannot be rebuilt."""
        return self.arrays()

    def read(self, arrays: Arrays, columns: int) -> QueuedTuples:
        """Return the tuples that were `written`; refuse inconsistent ones."""
        check_columns(arrays, arrays["exps"], columns)
        require_ascending(arrays["exps"], "ends of tuples")
        return QueuedTuples.of(arrays)

    def members(self) -> tuple[Int64s, Bools]:
        """Return the group of each tuple, and which of its values are not null."""
        held = slice(self.start, self.end)
        return self.groups[held].astype(np.int64), self.valid[:, held]

    def words(self, column: int) -> Int64s:
        """Return the values of a column."""
        held = slice(self.start, self.end)
        return self.values[column, held][self.valid[column, held]]


@dataclass(slots=True)
class PlacedTuples:
    """Tuples in places. `free` has the numbers of `facts[1]` free ones; `facts[0]` were used.

    There is a calendar, and the places by id if some go before they expire; without a calendar,
    `order` has the places of the `facts[2]` living tuples as they came.
    """

    tuples: Remembered
    groups: Int32s
    values: Int64s
    valid: Bools
    free: Int64s
    facts: Int64s
    calendar: Calendar | None
    by_id: KeyTable
    strict: bool
    order: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))

    @classmethod
    def empty(cls, columns: int, *, listed: bool, strict: bool) -> PlacedTuples:
        """Return places for tuples with so many columns."""
        none = np.zeros(0, np.int64)
        return cls(
            Remembered(none, none, none),
            np.zeros(0, np.int32),
            np.zeros((columns, 0), np.int64),
            np.zeros((columns, 0), np.bool_),
            none,
            np.zeros(3, np.int64),
            None if listed else empty_calendar(1, PARTITIONS, 16),
            empty_table(),
            strict,
        )

    @property
    def living(self) -> int:
        """The number of tuples."""
        gone = int(self.tuples.gone.sum())
        return self.used - gone

    @property
    def room(self) -> int:
        """How many places there are."""
        return len(self.groups)

    @property
    def used(self) -> int:
        """How many places are in use, some of them by tuples that only wait for their expiry."""
        return int(self.facts[0] - self.facts[1])

    def compacted(self, numbers: Int32s) -> PlacedTuples:
        """Return the tuples in as many places as are in use; groups have new numbers."""
        kept = np.flatnonzero(self._taken())
        room = self.room if self.calendar is None else max(self.room, len(self.calendar.links))
        places = new_numbers(kept, room)
        calendar = self.calendar
        return PlacedTuples(
            Remembered(*(array[kept] for array in self.tuples)),
            renumbered(self.groups[kept], numbers),
            np.ascontiguousarray(self.values[:, kept]),
            np.ascontiguousarray(self.valid[:, kept]),
            np.zeros(len(kept), np.int64),
            np.array([len(kept), 0, self.facts[2]], np.int64),
            None if calendar is None else compact_calendar(calendar, kept, places),
            compact_table(self.by_id, places),
            self.strict,
            places[self.order[: self.facts[2]]].astype(np.int64),
        )

    def _taken(self) -> Bools:
        """Return for each place that was ever used whether it is in use."""
        taken = np.ones(int(self.facts[0]), np.bool_)
        taken[self.free[: self.facts[1]]] = False
        return taken

    def take(self, arrivals: GroupedChanges, until_us: int) -> tuple[Operations, Tuples]:
        """Put tuples in places; remove those that expire before `until_us` or are taken back."""
        changes = arrivals.changes
        coming = np.flatnonzero(changes.sign > 0)
        if self.calendar is not None:
            self.calendar = self._for_lives_of(self.calendar, changes)
        places = self._places(len(coming))
        self.groups[places] = arrivals.groups[coming]
        self.values[:, places] = arrivals.values[:, coming]
        self.valid[:, places] = arrivals.valid[:, coming]
        by_row = np.full(len(changes), -1, np.int64)
        by_row[coming] = places
        signs = changes.sign.astype(np.int64)
        source = SourceChanges(
            *(frozen(array) for array in (changes.at, changes.exp, signs, changes.id, by_row))
        )
        used = int(self.facts[0])
        operations = Operations(*(np.empty(used + len(changes), np.int64) for _ in range(3)))
        freed = np.empty(used + len(changes), np.int64)
        if self.calendar is not None:
            self.calendar = grown_calendar(self.calendar, len(self.groups))
            self.by_id = roomy(self.by_id, len(coming) if self.strict else 0)
            count, free = calendar_operations(
                source,
                until_us,
                self.tuples,
                self.calendar,
                self.by_id,
                self.strict,
                operations,
                freed,
            )
        else:
            self.order = longer(self.order, int(self.facts[2]) + len(coming))
            held = int(self.facts[2])
            count, free, self.facts[2] = list_operations(
                source, until_us, self.tuples, self.order, held, operations, freed
            )
        self.free[self.facts[1] : self.facts[1] + free] = freed[:free]
        self.facts[1] += free
        cut = Operations(*(array[:count] for array in operations))
        return read_only(cut, Tuples(self.tuples.exps, self.groups, self.values, self.valid))

    def _for_lives_of(self, calendar: Calendar, changes: Changes) -> Calendar:
        """Return a calendar for the longest life that comes, which the plan does not know."""
        return widened(calendar, longest_lifetime(changes.at, changes.exp), self._taken())

    def _places(self, count: int) -> Int64s:
        """Take places for this many tuples."""
        again = min(count, int(self.facts[1]))
        self.facts[1] -= again
        reused = self.free[self.facts[1] : self.facts[1] + again].copy()
        first = int(self.facts[0])
        self.facts[0] += count - again
        room = int(self.facts[0])
        self.tuples = Remembered(*(longer(array, room) for array in self.tuples))
        self.groups, self.free = longer(self.groups, room), longer(self.free, room)
        self.values, self.valid = wider(self.values, room), wider(self.valid, room)
        return np.concatenate([reused, np.arange(first, room)])

    def arrays(self) -> Arrays:
        """Return all arrays."""
        found: dict[str, npt.NDArray[Any]] = {
            **prefixed("tuples", self.tuples._asdict()),
            **prefixed("by_id", self.by_id._asdict()),
            "groups": self.groups,
            "values": self.values,
            "valid": self.valid,
            "free": self.free,
            "facts": self.facts,
            "order": self.order,
            "strict": np.array([self.strict]),
        }
        if self.calendar is not None:
            found |= prefixed("calendar", self.calendar._asdict())
        return found

    def written(self) -> Arrays:
        """Return what cannot be rebuilt, of tuples without spare room."""
        return {
            **self.tuples._asdict(),
            "groups": self.groups,
            "values": self.values,
            "valid": self.valid,
            "order": self.order,
        }

    def read(self, arrays: Arrays, columns: int) -> PlacedTuples:
        """Return the tuples that were `written`; this object is empty. Refuse inconsistent ones."""
        ids, exps, gone = arrays["ids"], arrays["exps"], arrays["gone"]
        check_columns(arrays, exps, columns)
        require_lengths(len(exps), (ids, gone), "tuples")
        require(ids.dtype == gone.dtype == np.int64, "tuples of other types")
        require_within(gone, 0, 2, "tuples that are gone")
        order, living = arrays["order"], np.flatnonzero(gone == 0)
        calendar, by_id = self.calendar, self.by_id
        if calendar is None:
            require(order.dtype == np.int64, "an order of another type")
            require(np.array_equal(np.sort(order), np.arange(len(exps))), "an order of others")
        else:
            require(not len(order), "an order, though there is a calendar")
            require((exps[gone == 1] != NEVER).all(), "a tuple that is gone and never expires")
            ends = exps[exps != NEVER]
            length_us = int(ends.max() - ends.min()) + 1 if len(ends) else 1
            calendar = empty_calendar(length_us, PARTITIONS, len(exps))
            schedule_all(calendar, np.arange(len(exps)), exps)
        if self.strict and calendar is not None:
            require(len(np.unique(ids[living])) == len(living), "two tuples with one id")
            by_id = roomy(by_id, len(living))
            put_handles(by_id, frozen(ids[living]), frozen(living))
        return PlacedTuples(
            Remembered(ids, exps, gone),
            arrays["groups"],
            arrays["values"],
            arrays["valid"],
            np.zeros(len(exps), np.int64),
            np.array([len(exps), 0, len(order)], np.int64),
            calendar,
            by_id,
            self.strict,
            order,
        )

    def members(self) -> tuple[Int64s, Bools]:
        """Return the group of each living tuple, and which of its values are not null."""
        living = self.tuples.gone == 0
        return self.groups[living].astype(np.int64), self.valid[:, living]

    def words(self, column: int) -> Int64s:
        """Return the values of a column."""
        found: Int64s = self.values[column, (self.tuples.gone == 0) & self.valid[column]]
        return found


HeldTuples = PassingTuples | QueuedTuples | PlacedTuples


def knows_ends(edge: Edge, execution: Execution) -> bool:
    """Whether tuples go when they expire, and `take` returns when that is."""
    if edge.pattern == UpdatePattern.MONOTONIC:
        return True
    return edge.pattern != UpdatePattern.STRICT and execution != "negative"


def remembering(edge: Edge, execution: Execution, columns: int) -> HeldTuples:
    """Return the structure in which the tuples of an edge are kept."""
    strict = edge.pattern == UpdatePattern.STRICT
    if execution == "negative" or edge.pattern == UpdatePattern.MONOTONIC:
        return PassingTuples()
    if execution == "direct":
        return PlacedTuples.empty(columns, listed=True, strict=strict)
    if edge.in_order and not strict:
        return QueuedTuples.empty(columns)
    return PlacedTuples.empty(columns, listed=False, strict=strict)


def check_columns(arrays: Arrays, exps: npt.NDArray[Any], columns: int) -> None:
    """Refuse tuples whose arrays do not fit each other."""
    groups, values, valid = arrays["groups"], arrays["values"], arrays["valid"]
    kinds = [array.dtype for array in (exps, groups, values, valid)]
    require(kinds == [np.int64, np.int32, np.int64, np.bool_], "tuples of other types")
    require(exps.ndim == groups.ndim == 1, "tuples of other shapes")
    require(len(groups) == len(exps), "tuples of other lengths")
    require(values.shape == valid.shape == (columns, len(exps)), "tuples of other columns")
    ends = exps[exps != NEVER]
    require_within(ends, MIN_TS_US - LONGEST_US, MAX_TS_US + LONGEST_US, "ends of tuples")
