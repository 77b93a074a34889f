"""The state of a join over windows: the tuples of all sides, and their values by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.joins.pool import (
    AT,
    BASE,
    BY_ID,
    CALENDAR,
    CHANGE_WORDS,
    COUNT,
    EXP,
    FREE,
    ID,
    KEPT,
    KEY1,
    KEY2,
    LAPSES,
    MASK,
    OLDEST,
    POLICY,
    PROBES,
    RING,
    RINGS,
    ROW,
    SIDE,
    SIDE_WORDS,
    SWEEP_US,
    SWEPT,
    SWEPT_AT,
    WORDS,
    JoinTables,
    insert_all,
    relink,
    write_words,
)
from eventide.kernels.key_table import empty_table
from eventide.kernels.lifetimes.calendar_queue import empty_calendar
from eventide.operators.changes import Changes
from eventide.operators.checking import (
    LONGEST_US,
    filled,
    require,
    require_ascending,
    require_lengths,
    require_living,
    require_within,
)
from eventide.operators.standing.answer.keeping import power_of_two
from eventide.operators.standing.joins.room import MOSTLY_EMPTY, numbers_in_ring, with_room
from eventide.operators.standing.row_log import RowLog, is_sparse
from eventide.schema import MIN_TS_US

Policy = Literal["kept", "ring", "calendar", "swept"]
POLICIES: dict[Policy, int] = {
    "kept": KEPT,
    "ring": RING,
    "calendar": CALENDAR,
    "swept": SWEPT,
}
FEWEST_BUCKETS = 16


@dataclass(frozen=True, slots=True)
class SideRule:
    """How the tuples of a side expire, and whether they are found by id."""

    policy: Policy
    by_id: bool


@dataclass(frozen=True, slots=True)
class JoinMemory:
    """The tuples of a join and their values by side."""

    state: JoinTables
    logs: tuple[RowLog, ...]
    until_us: int

    @classmethod
    def empty(
        cls,
        schemas: tuple[pa.Schema, ...],
        rules: tuple[SideRule, ...],
        *,
        longest_us: int = 0,
        partitions: int = 1,
        sweep_us: int = 0,
    ) -> JoinMemory:
        """Return a memory without tuples.

        Tuples live up to `longest_us`, or never expire; lists are searched every `sweep_us`.
        """
        count = len(schemas)
        sides = np.zeros((count + 1, SIDE_WORDS), np.int64)
        for side, rule in enumerate(rules):
            sides[side, POLICY], sides[side, BY_ID] = POLICIES[rule.policy], rule.by_id
            sides[side, MASK] = -1
        sides[count, FREE] = -1
        # Tuples are searched for the first time when the first one comes.
        sides[count, SWEPT_AT], sides[count, SWEEP_US] = -(2**62), sweep_us
        # Where nothing expires by itself, every end is announced, also at the end of a life.
        sides[count, LAPSES] = any(rule.policy != "kept" or not rule.by_id for rule in rules)
        sides[count, RINGS] = all(rule.policy == "ring" for rule in rules)
        others = [[other for other in range(count) if other != side] for side in range(count)]
        state = JoinTables(
            np.zeros((0, WORDS), np.int64),
            np.zeros(0, np.int32),
            sides,
            np.full((count, FEWEST_BUCKETS), -1, np.int64),
            np.array(others, np.int64).reshape(count, count - 1),
            empty_table(),
            empty_calendar(longest_us, partitions, 0),
        )
        return cls(state, tuple(RowLog.empty(schema) for schema in schemas), -(2**63))

    def with_orders(self, orders: tuple[tuple[int, ...], ...]) -> JoinMemory:
        """Return the memory with other orders of probing, and new counters."""
        self.state.sides[:-1, PROBES:] = 0
        state = self.state._replace(orders=np.array(orders, np.int64))
        return replace(self, state=state)

    def looked_at_as(self, other: JoinMemory) -> JoinMemory:
        """Return the memory with the orders and counters of another."""
        self.state.sides[:-1, PROBES:] = other.state.sides[:-1, PROBES:]
        return replace(self, state=self.state._replace(orders=other.state.orders))

    @property
    def pool(self) -> int:
        """How many tuples there is room for in the pool."""
        return len(self.state.newer)

    @property
    def pooled(self) -> int:
        """How many tuples live in the pool."""
        return int(self.counts[self.state.sides[:-1, POLICY] != RING].sum())

    @property
    def counts(self) -> Int64s:
        """How many tuples of each side live."""
        return self.state.sides[:-1, COUNT]

    @property
    def seen(self) -> Int64s:
        """How often each side was probed, how many tuples were looked at, and how many matched."""
        return self.state.sides[:-1, PROBES:]

    def roomy(self, more: Sequence[int]) -> JoinMemory:
        """Return the memory with room for this many more tuples of each side.

        The number of buckets fits these, or is a bit larger.
        """
        state = with_room(self.state, more)
        most = max(int(count) + come for count, come in zip(self.counts, more, strict=True))
        least = max(FEWEST_BUCKETS, power_of_two(2 * most))
        if not most <= state.heads.shape[1] <= MOSTLY_EMPTY * least:
            heads = np.full((len(self.logs), least), -1, np.int64)
            relink(state, heads)
            state = state._replace(heads=heads)
        return replace(self, state=state)

    def living(self, side: int) -> Int64s:
        """Return the handles of a side's tuples, in the order in which they expire."""
        about = self.state.sides[side]
        if about[POLICY] == RING:
            places: Int64s = about[BASE] + (numbers_in_ring(about) & about[MASK])
            return places
        handles = np.flatnonzero(self.state.tuples[: len(self.state.newer), SIDE] == side)
        return handles[np.argsort(self.state.tuples[handles, EXP], kind="stable")]

    def compact(self) -> JoinMemory:
        """Return the memory without values that no tuple needs, once they are many."""
        logs = list(self.logs)
        for side, log in enumerate(logs):
            if not is_sparse(log.size, int(self.counts[side])):
                continue
            if self.state.sides[side, POLICY] == RING:
                # What is left is the end of the log.
                logs[side] = log.drop_before(self._oldest_row(side))
            else:
                handles = self.living(side)
                rows, numbers = np.unique(self.state.tuples[handles, ROW], return_inverse=True)
                logs[side] = log.kept(rows)
                self.state.tuples[handles, ROW] = numbers
        return replace(self, logs=tuple(logs))

    def _oldest_row(self, side: int) -> int:
        """Return the number of the first row that a side with a ring needs."""
        about = self.state.sides[side]
        if not about[COUNT]:
            return self.logs[side].end
        return int(self.state.tuples[about[BASE] + (about[OLDEST] & about[MASK]), ROW])

    def words(self, side: int) -> pa.RecordBatch:
        """Return a side's tuples as words, in the order in which they expire."""
        handles = self.living(side)
        rows = self.state.tuples[handles]
        columns = [to_arrow(rows[:, word]) for word in (KEY1, KEY2, AT, EXP, ID)]
        return pa.RecordBatch.from_arrays(columns, schema=WORD_SCHEMA)

    def values(self, side: int) -> pa.RecordBatch:
        """Return the values of a side's tuples, in the same order."""
        return self.logs[side].take(self.state.tuples[self.living(side), ROW])

    def with_tuples(
        self, side: int, words: pa.RecordBatch, values: pa.RecordBatch, until_us: int
    ) -> JoinMemory:
        """Return the memory with tuples that were dumped at the end of a step."""
        log, about = self.logs[side], self.state.sides[side]
        require_lengths(words.num_rows, values.columns, "tuples and their values")
        at, exp, ids = (filled(words.column(name), "tuples") for name in ("at", "exp", "id"))
        if about[POLICY] == CALENDAR:  # others keep tuples for a while after they go
            require_living(exp, until_us)
        require_within(at, MIN_TS_US - LONGEST_US, max(until_us, MIN_TS_US), "births of tuples")
        if about[POLICY] == RING:
            require_ascending(exp, "ends of tuples")
        if about[BY_ID]:
            require(len(np.unique(ids)) == len(ids), "two tuples with one id")
        changes = np.ones((words.num_rows, CHANGE_WORDS), np.int64)
        for word, column in zip((KEY1, KEY2, AT, EXP, ID), words.columns, strict=True):
            changes[:, word] = filled(column, "tuples")
        changes[:, ROW] = np.arange(log.end, log.end + words.num_rows)
        changes[:, SIDE] = side
        insert_all(self.state, frozen(changes))
        logs = (*self.logs[:side], log.append(values), *self.logs[side + 1 :])
        return replace(self, logs=logs, until_us=until_us)

    @property
    def tuples(self) -> int:
        """How many tuples live."""
        return int(self.counts.sum())

    @property
    def nbytes(self) -> int:
        """How many bytes all of it takes."""
        flat = (*self.state[:5], *self.state.ids, *self.state.calendar)
        return sum(array.nbytes for array in flat) + sum(log.nbytes for log in self.logs)


WORD_SCHEMA = pa.schema([(name, pa.int64()) for name in ("key1", "key2", "at", "exp", "id")])


@dataclass(frozen=True, slots=True)
class Sided:
    """Changes of a side with their keys, and the numbers of their values."""

    keys: tuple[Int64s, Int64s]
    changes: Changes
    numbers: Int64s

    def __len__(self) -> int:
        return len(self.changes)


def words_of(sided: Sequence[Sided]) -> tuple[Int64s, Int64s]:
    """Return the changes of all sides as the kernels take them, and where those of each end."""
    ends = np.cumsum([len(side) for side in sided])
    words = np.empty((int(ends[-1]), CHANGE_WORDS), np.int64)
    for side, (each, end) in enumerate(zip(sided, ends, strict=True)):
        changes = each.changes
        columns = (*each.keys, changes.at, changes.exp, changes.id)
        own = words[end - len(each) : end]
        write_words(
            side, tuple(map(frozen, columns)), frozen(each.numbers), frozen(changes.sign), own
        )
    return words, ends
