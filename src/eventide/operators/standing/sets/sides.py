"""The state that DISTINCT, EXCEPT ALL and EXISTS share: tuples of two sides, counted by value.

The kernel is kernels/lifetimes/two_sides.py. This module keeps the values of the tuples, makes room
for new ones, and writes states out: the living tuples, which are taken in again to load.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.instants import START_OF_TIME_US
from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.lifetimes.emitted import Arriving, Emitted, all_emitted, arriving
from eventide.kernels.lifetimes.expiring import CALENDAR, SWEPT, WAITS, longest_lifetime
from eventide.kernels.lifetimes.two_sides import (
    TwoSides,
    empty_sides,
    follow_sides,
    roomy_sides,
    start_of_step,
)
from eventide.kernels.lifetimes.value_chains import (
    ALIVE,
    ALL_LEFTS,
    ALL_RIGHTS,
    DEAD,
    EXP,
    FIRST,
    FREE_VALUES,
    ID,
    LEFT,
    OF,
    OF_RIGHT,
    RIGHT,
    RIGHTS,
    SECOND,
    TUPLE_MARKS,
    TUPLE_OUT_ID,
    TUPLE_ROW,
    VALUE,
    VALUE_MARKS,
    VALUE_OUT_ID,
    VALUE_ROW,
    VALUES_USED,
)
from eventide.operators.changes import NEVER, Changes
from eventide.operators.checking import (
    filled,
    require,
    require_lengths,
    require_living,
    require_within,
)
from eventide.operators.fingerprints import Fingerprints
from eventide.operators.operator import Size
from eventide.operators.standing.compaction import is_too_roomy
from eventide.operators.standing.row_log import RowLog, append_coming, is_sparse
from eventide.operators.state import join_parts, parts_of, read_rows, write_rows
from eventide.operators.stateful import Stateful
from eventide.plan.standing.edges import Edge, UpdatePattern
from eventide.plan.standing.execution import Execution

_MODES: dict[Execution, int] = {"aware": CALENDAR, "negative": WAITS, "direct": SWEPT}
_KEPT = pa.schema([(name, pa.int64()) for name in ("first", "second", "exp", "id", "out_id")])
_COUNTED = pa.schema(
    [(name, pa.int64()) for name in ("first", "second", "exp", "id", "row", "copies")]
)


PLAIN = Edge(UpdatePattern.WEAK, None)
"""An input whose tuples go when they expire, in any order."""


@dataclass(frozen=True, slots=True)
class SidesState:
    """The tuples, the rows of those that may come into the answer, and the end of the last step."""

    sides: TwoSides
    log: RowLog
    until_us: int = START_OF_TIME_US


@dataclass(frozen=True, slots=True)
class Sides:
    """How two sides are followed: the rule of kernels/lifetimes/two_sides.py, and the inputs."""

    name: str
    schema: pa.Schema
    rule: int
    execution: Execution
    left: Edge = PLAIN
    right: Edge = PLAIN

    @property
    def _of_values(self) -> bool:
        """Whether the answer has values, not left tuples."""
        return self.rule == VALUE

    def initial_state(self) -> SidesState:
        """Return the state before the first instant."""
        mode = _MODES[self.execution]
        named = int(self.left.strict or mode == WAITS)
        if self.right.strict and mode != WAITS:
            named |= 2
        longest_us = max(self.left.lifetime_us or 1, self.right.lifetime_us or 1)
        sides = empty_sides(self.rule, mode, named, longest_us)
        return SidesState(sides, RowLog.empty(self.schema))

    def step(
        self,
        state: SidesState,
        changes: tuple[Changes, Changes],
        keys: tuple[Fingerprints, Fingerprints],
        until_us: int,
    ) -> tuple[SidesState, Changes]:
        """Take in the changes of both sides; the keys are those of their rows."""
        edges = (self.left, self.right)
        for edge, change in zip(edges, changes, strict=True):
            strict = edge.strict or self.execution == "negative"
            assert strict or not len(change) or change.sign.min() > 0, "tuples go before their time"
        numbers, log = append_coming(state.log, changes[RIGHT if self._of_values else LEFT])
        nowhere = np.full(len(changes[RIGHT]), -1, np.int64)
        rows = (nowhere[:0], numbers) if self._of_values else (numbers, nowhere)
        left, right = (
            arriving(each.at, each.exp, each.sign, each.id, (words.first, words.second), places)
            for each, words, places in zip(changes, keys, rows, strict=True)
        )
        sides, emitted = _follow(state.sides, left, right, until_us)
        out = emitted_changes(emitted, log)
        return self._compacted(SidesState(sides, log, until_us), sum(map(len, changes))), out

    def _compacted(self, state: SidesState, arrived: int) -> SidesState:
        """Return the state without most of the spare room, after this many arrivals."""
        facts = state.sides.facts
        held = int(facts[ALL_LEFTS] + facts[ALL_RIGHTS])
        if is_too_roomy(len(state.sides.tuples), held + arrived):
            # A state that was read has no more room than it needs.
            return self.read(self.write(state))
        living = int(facts[VALUES_USED] - facts[FREE_VALUES])
        if not self._of_values:
            living = int(facts[ALL_LEFTS])
        if not is_sparse(state.log.size, living):
            return state
        rows, handles = self._rows_in_use(state.sides)
        log = state.log.kept(rows[handles])
        rows[handles] = np.arange(len(handles))
        return SidesState(state.sides, log, state.until_us)

    def _rows_in_use(self, sides: TwoSides) -> tuple[Int64s, Int64s]:
        """Return the numbers of rows by handle, and the handles in use, in order of these."""
        if self._of_values:
            rows, marks = sides.values[:, VALUE_ROW], sides.values[:, VALUE_MARKS]
            handles = np.flatnonzero(marks)
        else:
            rows, marks = sides.tuples[:, TUPLE_ROW], sides.tuples[:, TUPLE_MARKS]
            gone = ALIVE | DEAD | OF_RIGHT
            handles = np.flatnonzero((marks & gone) == ALIVE)
        return rows, handles[np.argsort(rows[handles], kind="stable")]

    def size(self, state: SidesState) -> Size:
        """Return the size of the state."""
        sides = state.sides
        arrays: list[npt.NDArray[Any]] = [sides.tuples, sides.values, sides.inserted]
        arrays += [*sides.keys, *sides.ids, *sides.expiring.calendar, sides.expiring.listed]
        held = int(sides.facts[ALL_LEFTS] + sides.facts[ALL_RIGHTS])
        return Size(held, sum(array.nbytes for array in arrays) + state.log.nbytes)

    def write(self, state: SidesState) -> bytes:
        """Write the state out: the living tuples, in order of arrival."""
        sides = state.sides
        rows, handles = self._rows_in_use(sides)
        values = state.log.take(rows[handles])
        places = np.full(len(sides.values), -1, np.int64)
        kept: tuple[Int64s, ...]
        if self._of_values:
            held = sides.values[handles]
            first, second, out_ids = (held[:, [FIRST, SECOND, VALUE_OUT_ID]]).T
            places[handles] = np.arange(len(handles))
            exps, none = np.full(len(handles), NEVER), np.zeros(len(handles), np.int64)
            kept = (first, second, exps, none, out_ids)
        else:
            held = sides.tuples[handles]
            words = sides.values[held[:, OF]]
            kept = (
                words[:, FIRST],
                words[:, SECOND],
                held[:, EXP],
                held[:, ID],
                held[:, TUPLE_OUT_ID],
            )
        counted = self._counted(sides, places)
        return join_parts(
            [
                write_rows(self.name, values, {"until": state.until_us}),
                write_rows(f"{self.name}, left", _batch(kept, _KEPT), {}),
                write_rows(f"{self.name}, right", _batch(counted, _COUNTED), {}),
            ]
        )

    def _counted(self, sides: TwoSides, places: Int64s) -> tuple[Int64s, ...]:
        """Return the right tuples as columns, or how many there are of each value."""
        if self.execution == "negative":
            used = sides.values[:, VALUE_MARKS] != 0
            handles = np.flatnonzero(used & (sides.values[:, RIGHTS] > 0))
            copies = sides.values[handles, RIGHTS]
            exp, id_ = np.full(len(handles), NEVER), np.zeros(len(handles), np.int64)
        else:
            marks = sides.tuples[:, TUPLE_MARKS]
            found = np.flatnonzero(marks == ALIVE | OF_RIGHT)
            handles = sides.tuples[found, OF]
            exp, id_ = sides.tuples[found, EXP], sides.tuples[found, ID]
            copies = np.ones(len(handles), np.int64)
        # Values are assigned handles again in the order of their rows.
        order = np.argsort(places[handles], kind="stable")
        words = sides.values[handles[order]]
        return (
            words[:, FIRST],
            words[:, SECOND],
            exp[order],
            id_[order],
            places[handles[order]],
            copies[order],
        )

    def read(self, written: bytes) -> SidesState:
        """Read back what `write` wrote: the living tuples come again, all at the last instant."""
        first, second, third = parts_of(self.name, written, 3)
        values, facts = read_rows(self.name, first, self.schema)
        kept = _columns(read_rows(f"{self.name}, left", second, _KEPT)[0])
        counted = _columns(read_rows(f"{self.name}, right", third, _COUNTED)[0])
        state, until_us = self.initial_state(), facts["until"]
        self._check(values.num_rows, kept, counted, until_us)
        log = state.log.append(values)
        left_words, out_ids = kept[:4], kept[4]
        if self._of_values:
            left_words = [column[:0] for column in left_words]
        left = _again(left_words, np.arange(len(left_words[0])), until_us)
        repeated = [np.repeat(column, counted[5]) for column in counted[:5]]
        right = _again(repeated[:4], repeated[4], until_us)
        sides = state.sides
        if values.num_rows or len(right.at):
            sides, _ = _follow(sides, left, right, until_us)
        # They keep the ids that they have in the answer; handles are assigned in order.
        if self._of_values:
            sides.values[: len(out_ids), VALUE_OUT_ID] = out_ids
        else:
            sides.tuples[: len(out_ids), TUPLE_OUT_ID] = out_ids
        return SidesState(sides, log, until_us)

    def _check(self, rows: int, kept: list[Int64s], counted: list[Int64s], until_us: int) -> None:
        """Refuse tuples without a row, tuples that have gone, and impossible counts."""
        require_lengths(rows, (kept[0],), "tuples and their rows")
        require_living(kept[2], until_us)
        require_living(counted[2], until_us)
        *_, row, copies = counted
        require_within(row, 0 if self._of_values else -1, rows, "rows of values")
        require_within(copies, 1, 2**31, "copies of values")
        require(float(copies.sum(dtype=np.float64)) < 2**31, "too many copies of values")


class FollowsSides(Stateful[SidesState]):
    """An operator whose whole state is that of its sides."""

    schema: pa.Schema

    @property
    @abstractmethod
    def sides(self) -> Sides:
        """The rule for the two sides."""

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of the output."""
        return self.schema

    def initial_state(self) -> SidesState:
        """Return the state before the first instant."""
        return self.sides.initial_state()

    def write(self, state: SidesState) -> bytes:
        """Write the state out."""
        return self.sides.write(state)

    def read(self, written: bytes) -> SidesState:
        """Read back what `write` wrote."""
        return self.sides.read(written)

    def size(self, state: SidesState) -> Size:
        """Return the size of the state."""
        return self.sides.size(state)


def emitted_changes(emitted: Emitted, log: RowLog) -> Changes:
    """Return the changes that a kernel emitted, with the values of its rows."""
    return Changes(log.take(emitted.rows), emitted.at, emitted.exp, emitted.sign, emitted.id)


def _follow(
    sides: TwoSides, left: Arriving, right: Arriving, until_us: int
) -> tuple[TwoSides, Emitted]:
    lefts, rights = len(left.at), len(right.at)
    of_right = np.repeat(np.array([LEFT, RIGHT], np.int8), (lefts, rights))
    source = left if lefts else right
    if lefts and rights:
        order = np.argsort(np.concatenate((left.at, right.at)), kind="stable")
        pairs: list[tuple[Any, Any]] = list(zip(left, right, strict=True))
        source = Arriving(*(frozen(np.concatenate(pair)[order]) for pair in pairs))
        of_right = of_right[order]
    sides = roomy_sides(sides, lefts, rights, longest_lifetime(source.at, source.exp))
    progress, of_right = start_of_step(), frozen(of_right)
    return sides, all_emitted(
        lambda room: follow_sides(sides, source, of_right, until_us, progress, room), len(source.at)
    )


def _again(words: list[Int64s], rows: Int64s, until_us: int) -> Arriving:
    first, second, exp, id_ = words
    at, sign = np.full(len(rows), until_us - 1), np.ones(len(rows), np.int8)
    return arriving(at, exp, sign, id_, (first, second), rows)


def _batch(columns: tuple[Int64s, ...], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [to_arrow(column.astype(np.int64)) for column in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _columns(rows: pa.RecordBatch) -> list[Int64s]:
    return [filled(column, "tuples") for column in rows.columns]
