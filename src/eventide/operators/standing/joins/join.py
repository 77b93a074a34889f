"""Joins of windows: combinations of tuples with equal keys that live at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.joins.join import DEPTH, WRITTEN, JoinRoom, join_changes
from eventide.kernels.joins.pool import (
    expire_tuples,
    merge_in_time,
)
from eventide.operators.changes import NEVER, Changes
from eventide.operators.expressions.evaluate import evaluate, evaluate_predicate
from eventide.operators.fingerprints import Fingerprints, fingerprints
from eventide.operators.operator import Size
from eventide.operators.standing.compaction import is_too_roomy
from eventide.operators.standing.joins.memory import (
    WORD_SCHEMA,
    JoinMemory,
    Policy,
    Sided,
    SideRule,
    words_of,
)
from eventide.operators.standing.keys import without_null
from eventide.operators.standing.row_log import append_coming
from eventide.operators.state import join_parts, parts_of, read_rows, write_rows
from eventide.operators.stateful import Stateful
from eventide.plan.expressions import Expression
from eventide.plan.standing.execution import Execution
from eventide.plan.standing.join_order import JoinInput
from eventide.plan.standing.join_statistics import Look, Observed, after_look, is_worth_a_look
from eventide.plan.standing.joins import Band
from eventide.plan.standing.nodes import ANSWER_EXP

ROOM = 1 << 16
"""This many results are found before they are put together as rows."""
NAN_CELL = 2**62 + 3
"""Of a join by a band: the cell of NaN, which is not beside that of any number."""
SWEEP_SHARE = 20
"""In the direct execution, joins search their tuples this many times in a window's length."""


@dataclass(frozen=True, slots=True)
class JoinSide:
    """One side of a join: its columns and keys, and how its tuples come and go.

    `strict` says that tuples may be taken back; `in_order` that they expire in the order in which
    they come; `lifetime_us` is the longest that one can live, None if there is no bound.
    """

    schema: pa.Schema
    keys: tuple[Expression, ...]
    strict: bool
    in_order: bool
    lifetime_us: int | None


@dataclass(frozen=True, slots=True)
class JoinState:
    """The tuples, and statistics of how sides are probed."""

    memory: JoinMemory
    observed: Observed
    arrived: Int64s
    looked_us: int


@dataclass(frozen=True)
class JoinWindows(Stateful[JoinState]):
    """Joins tuples of two or more sides.

    With `slide_us` all instants are multiples of it.
    """

    sides: tuple[JoinSide, ...]
    condition: Expression | None
    output_schema: pa.Schema
    execution: Execution = "aware"
    band: Band | None = None
    slide_us: int | None = None
    partitions: int = 64

    @cached_property
    def policies(self) -> tuple[Policy, ...]:
        """How the tuples of each side expire."""
        return tuple(self._policy(side) for side in self.sides)

    def _policy(self, side: JoinSide) -> Policy:
        if self.execution == "negative":
            return "kept"
        if self.execution == "direct":
            return "swept"
        if side.in_order and not side.strict:
            return "ring"
        # A calendar needs an upper bound of lifetimes.
        return "swept" if side.lifetime_us is None else "calendar"

    @cached_property
    def longest_us(self) -> int:
        """The longest life of a tuple."""
        return max((side.lifetime_us or 0 for side in self.sides), default=0)

    def empty_memory(self) -> JoinMemory:
        """Return a memory without tuples."""
        return JoinMemory.empty(
            tuple(side.schema for side in self.sides),
            tuple(
                SideRule(policy, side.strict or self.execution == "negative")
                for policy, side in zip(self.policies, self.sides, strict=True)
            ),
            longest_us=self.longest_us,
            partitions=self.partitions,
            sweep_us=self.longest_us // SWEEP_SHARE if self.execution == "direct" else -1,
        )

    def initial_state(self) -> JoinState:
        """Return the state before the first instant."""
        # Nothing is known yet: all sides are assumed to be alike.
        alike = JoinInput(1.0, max(self.longest_us, 1) / 1e6, 1000.0)
        observed = Observed.initial([alike] * len(self.sides))
        memory = self.empty_memory().with_orders(observed.orders)
        return JoinState(memory, observed, np.zeros(len(self.sides), np.int64), 0)

    def step(
        self, state: JoinState, inputs: tuple[Changes, ...], until_us: int
    ) -> tuple[JoinState, Changes]:
        """Join the changes with the tuples in the state."""
        memory, sided = self.remembered(state.memory, inputs)
        come = [len(changes) for changes in sided]
        memory = self.roomy(memory, come)
        words, ends = words_of(sided)
        parts = self.results(memory, words, ends)
        expire_tuples(memory.state, self.clock_us(until_us))
        found = Changes.concat(parts, self.output_schema)
        memory = replace(memory.compact(), until_us=until_us)
        arrived = state.arrived + np.array(come, np.int64)
        after = replace(state, memory=memory, arrived=arrived)
        return self.looked(self.trimmed(after, sum(come))), found

    def roomy(self, memory: JoinMemory, come: list[int]) -> JoinMemory:
        """Return the memory with room for so many more tuples of each side."""
        return memory.roomy(come)

    def results(self, memory: JoinMemory, words: Int64s, ends: Int64s) -> list[Changes]:
        """Return what comes of changes, and remember them."""
        return [self.combined(memory, room) for room in self.found(memory, in_time(words, ends))]

    def trimmed(self, state: JoinState, arrived: int) -> JoinState:
        """Return the state with a pool that is not mostly spare room, after this many arrivals."""
        memory = state.memory
        if not is_too_roomy(memory.pool, memory.pooled + arrived):
            return state
        # A state that was read has no more room than it needs.
        loaded = self.read(self.write(state)).memory
        return replace(state, memory=loaded.looked_at_as(memory))

    def clock_us(self, until_us: int) -> int:
        """Return the instant before which nothing will come: tuples that expire by then can go."""
        if self.slide_us is None or until_us == NEVER:
            return until_us - 1
        return -(-until_us // self.slide_us) * self.slide_us

    def looked(self, state: JoinState) -> JoinState:
        """Return the state with the best orders for the statistics so far."""
        memory = state.memory
        if len(self.sides) <= 2 or not is_worth_a_look(int(state.arrived.sum())):
            return state
        looks = [
            Look(int(arrived), int(living), int(living), int(seen[0]), int(seen[2]))
            for arrived, living, seen in zip(state.arrived, memory.counts, memory.seen, strict=True)
        ]
        elapsed_us = memory.until_us - state.looked_us if state.looked_us else 0
        observed = after_look(state.observed, looks, elapsed_us)
        memory = memory.with_orders(observed.orders)
        return JoinState(memory, observed, np.zeros_like(state.arrived), memory.until_us)

    def remembered(
        self, memory: JoinMemory, inputs: tuple[Changes, ...]
    ) -> tuple[JoinMemory, list[Sided]]:
        """Return the memory with the values of the changes, and all changes that may join."""
        logs = list(memory.logs)
        sided: list[Sided] = []
        for number, (side, given) in enumerate(zip(self.sides, inputs, strict=True)):
            # A tuple with a null key joins with nothing, now and later.
            changes, keys = without_null(given, self.keys_of(number, side, given))
            numbers, logs[number] = append_coming(logs[number], changes)
            sided.append(self.sided(number, changes, keys, numbers))
        return replace(memory, logs=tuple(logs)), sided

    def keys_of(self, number: int, side: JoinSide, changes: Changes) -> Fingerprints:
        """Return the keys of changes; of a join by a band, the cell of it."""
        if self.band is None:
            columns = [evaluate(key, changes.rows) for key in side.keys]
            return fingerprints(columns, len(changes))
        value = evaluate(self.band.left if number == 0 else self.band.right, changes.rows)
        null = value.is_null().to_numpy(zero_copy_only=False)
        if not pa.types.is_floating(value.type):
            whole = value.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
            cell = whole // max(1, ceil(self.band.width))
        else:
            # Twice as wide as needed, so that rounding moves no value by more than one cell.
            floats = value.fill_null(0.0).to_numpy(zero_copy_only=False).astype(np.float64)
            apart = np.floor(floats / (2 * (self.band.width or 1.0)))
            cell = np.clip(np.nan_to_num(apart), -(2.0**62), 2.0**62).astype(np.int64)
            # NaN is equal to itself and near nothing else.
            cell = np.where(np.isnan(apart), NAN_CELL, cell)
        return Fingerprints(cell, np.zeros(len(cell), np.int64), null)

    def sided(self, number: int, changes: Changes, keys: Fingerprints, numbers: Int64s) -> Sided:
        """Return changes of a side with what they are found by.

        Of a join by a band, the right side stands in three cells: its own and those beside
        it. Two values that are near enough meet in exactly one.
        """
        if self.band is None or number == 0:
            return Sided((keys.first, keys.second), changes, numbers)
        places = np.repeat(np.arange(len(changes)), 3)
        beside = np.tile(np.array([-1, 0, 1]), len(changes))
        thrice = changes.take(places)
        thrice = replace(thrice, id=thrice.id ^ beside)  # three tuples need three names
        return Sided((keys.first[places] + beside, keys.second[places]), thrice, numbers[places])

    def found(self, memory: JoinMemory, changes: Int64s) -> Iterator[JoinRoom]:
        """Yield the results of changes, batch by batch, in the order in which they are found."""
        sides = len(self.sides)
        room = empty_room(ROOM, sides)
        scratch = np.zeros((4, sides), np.int64)
        progress = np.zeros(6, np.int64)
        progress[DEPTH] = -1
        done = False
        while not done:
            done = join_changes(memory.state, changes, scratch, progress, room)
            written = int(progress[WRITTEN])
            if written:
                yield JoinRoom._make(column[:written].copy() for column in room)

    def combined(self, memory: JoinMemory, room: JoinRoom) -> Changes:
        """Return results as rows: those on which the condition is true."""
        columns: dict[str, pa.Array] = {}
        answer_exp: list[pa.Array] = []
        for side, log in enumerate(memory.logs):
            rows = log.take(np.ascontiguousarray(room.rows[:, side]))
            columns |= dict(zip(rows.schema.names, rows.columns, strict=True))
            if ANSWER_EXP in rows.schema.names:
                answer_exp.append(rows.column(ANSWER_EXP))
        if answer_exp:
            columns[ANSWER_EXP] = pc.min_element_wise(*answer_exp)
        arrays = [columns[name] for name in self.output_schema.names]
        results = Changes(
            pa.RecordBatch.from_arrays(arrays, schema=self.output_schema),
            room.at,
            room.exp,
            room.sign,
            room.id,
        )
        if self.condition is None:
            return results
        passing = evaluate_predicate(self.condition, results.rows)
        return results.take(np.flatnonzero(passing.to_numpy(zero_copy_only=False)))

    def write(self, state: JoinState) -> bytes:
        """Write the state out."""
        memory = state.memory
        facts = {"until_us": memory.until_us, "sides": len(self.sides)}
        parts = []
        for side in range(len(self.sides)):
            parts.append(write_rows("JoinWindows", memory.words(side), facts))
            parts.append(write_rows("JoinWindows", memory.values(side), {}))
        return join_parts(parts)

    def read(self, written: bytes) -> JoinState:
        """Read back what `write` wrote."""
        parts = parts_of("JoinWindows", written, 2 * len(self.sides))
        state = self.initial_state()
        memory = state.memory
        for side, each in enumerate(self.sides):
            words, facts = read_rows("JoinWindows", parts[2 * side], WORD_SCHEMA)
            values, _ = read_rows("JoinWindows", parts[2 * side + 1], each.schema)
            more = [words.num_rows if number == side else 0 for number in range(len(self.sides))]
            memory = self.roomy(memory, more)
            memory = memory.with_tuples(side, words, values, facts["until_us"])
        return replace(state, memory=memory, looked_us=memory.until_us)

    def size(self, state: JoinState) -> Size:
        """Return the size of the state."""
        return Size(state.memory.tuples, state.memory.nbytes)


def empty_room(size: int, sides: int) -> JoinRoom:
    """Return room for this many results."""
    at, exp, ids = (np.empty(size, np.int64) for _ in range(3))
    return JoinRoom(np.empty((size, sides), np.int64), at, exp, ids, np.empty(size, np.int8))


def in_time(words: Int64s, ends: Int64s) -> Int64s:
    """Return the changes of all sides in order of time; those of each side already are."""
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
    if np.count_nonzero(ends > starts) <= 1:
        return frozen(words)
    merged = np.empty_like(words)
    merge_in_time(frozen(words), np.stack([starts, ends], axis=1), merged)
    return frozen(merged)
