"""DISTINCT: one row for each different one. There are three forms, all with the same answer.

    successors   for inputs whose tuples go when they expire and not before: keeps of each value the
                 tuple in the answer, and the one of those that came since that lives longest;
                 nothing is ever taken back
    counted      counts the living tuples of each value: a value comes with the first and is taken
                 back with the last, so that a value that stays is not emitted again
    stored       keeps all tuples: when the one in the answer goes, the oldest other one takes its
                 place

The form with successors does not work in direct and negative execution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.errors import PlanError
from eventide.instants import START_OF_TIME_US
from eventide.kernels.compiled import Int64s
from eventide.kernels.lifetimes import successors as kernels
from eventide.kernels.lifetimes.emitted import Arriving, Emitted, all_emitted, arriving
from eventide.kernels.lifetimes.expiring import longest_lifetime
from eventide.kernels.lifetimes.value_chains import ONE, VALUE
from eventide.operators.changes import Changes
from eventide.operators.checking import filled, require_lengths, require_living
from eventide.operators.fingerprints import fingerprints
from eventide.operators.operator import Size
from eventide.operators.standing.compaction import is_too_roomy
from eventide.operators.standing.row_log import RowLog, append_coming, is_sparse
from eventide.operators.standing.sets.sides import (
    PLAIN,
    FollowsSides,
    Sides,
    SidesState,
    emitted_changes,
)
from eventide.operators.state import join_parts, parts_of, read_rows, write_rows
from eventide.operators.stateful import Stateful
from eventide.plan.standing.edges import Edge
from eventide.plan.standing.execution import Execution

Form = Literal["successors", "counted", "stored"]

_NAME = "DISTINCT"
_CHOSEN = pa.schema([(name, pa.int64()) for name in ("first", "second", "exp", "id")])


@dataclass(frozen=True, slots=True)
class RepresentativesState:
    """The values in the answer, the rows of their tuples, and the end of the last step."""

    chosen: kernels.Representatives
    log: RowLog
    until_us: int = START_OF_TIME_US


@dataclass(frozen=True, slots=True)
class SuccessorDistinct(Stateful[RepresentativesState]):
    """DISTINCT over tuples that go when they expire and not before."""

    schema: pa.Schema
    edge: Edge = PLAIN

    def __post_init__(self) -> None:
        if self.edge.strict:
            message = "DISTINCT by successors cannot follow tuples that go before their time"
            raise PlanError(message, hint="count the tuples of each value")

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of the output."""
        return self.schema

    def initial_state(self) -> RepresentativesState:
        """Return the state before the first instant."""
        chosen = kernels.no_representatives(self.edge.lifetime_us or 1)
        return RepresentativesState(chosen, RowLog.empty(self.schema))

    def step(
        self, state: RepresentativesState, inputs: tuple[Changes, ...], until_us: int
    ) -> tuple[RepresentativesState, Changes]:
        """Take the tuples that come at instants before `until_us`."""
        (changes,) = inputs
        assert not len(changes) or changes.sign.min() > 0, "tuples go before their time"
        words = fingerprints(changes.rows.columns, len(changes))
        numbers, log = append_coming(state.log, changes)
        key = (words.first, words.second)
        source = arriving(changes.at, changes.exp, changes.sign, changes.id, key, numbers)
        chosen, emitted = _follow(state.chosen, source, until_us)
        out = emitted_changes(emitted, log)
        living = _living(chosen)
        if is_sparse(log.size, living):
            in_use, following = _handles(chosen)
            rows = (chosen.rows[in_use], chosen.next_rows[following])
            log = log.kept(np.concatenate(rows))
            chosen.rows[in_use] = np.arange(len(in_use))
            chosen.next_rows[following] = np.arange(len(in_use), log.end)
        after = RepresentativesState(chosen, log, until_us)
        if is_too_roomy(len(chosen.rows), living + len(changes)):
            # A state that was read has no more room than it needs.
            after = self.read(self.write(after))
        return after, out

    def write(self, state: RepresentativesState) -> bytes:
        """Write the state out: the tuples in the answer, then their successors."""
        chosen = state.chosen
        in_use, following = _handles(chosen)
        both = np.concatenate((in_use, following))
        exps = (chosen.calendar.exps[in_use], chosen.next_exps[following])
        ids = (chosen.ids[in_use], chosen.next_ids[following])
        rows = (chosen.rows[in_use], chosen.next_rows[following])
        columns = [
            chosen.first[both],
            chosen.second[both],
            np.concatenate(exps),
            np.concatenate(ids),
        ]
        arrays = [to_arrow(column) for column in columns]
        return join_parts(
            [
                write_rows(_NAME, state.log.take(np.concatenate(rows)), {"until": state.until_us}),
                write_rows(
                    f"{_NAME}, chosen", pa.RecordBatch.from_arrays(arrays, schema=_CHOSEN), {}
                ),
            ]
        )

    def read(self, written: bytes) -> RepresentativesState:
        """Read back what `write` wrote."""
        parts = parts_of(_NAME, written, 2)
        rows, facts = read_rows(_NAME, parts[0], self.schema)
        written_rows, _ = read_rows(f"{_NAME}, chosen", parts[1], _CHOSEN)
        first, second, exp, id_ = (
            filled(column, "tuples in the answer") for column in written_rows.columns
        )
        state, until_us, length = self.initial_state(), facts["until"], len(first)
        require_lengths(rows.num_rows, (first,), "tuples in the answer and their rows")
        require_living(exp, until_us)
        chosen = state.chosen
        if length:
            at, sign = np.full(length, until_us - 1), np.ones(length, np.int8)
            source = arriving(at, exp, sign, id_, (first, second), np.arange(length))
            chosen, _ = _follow(chosen, source, until_us)
        return RepresentativesState(chosen, state.log.append(rows), until_us)

    def size(self, state: RepresentativesState) -> Size:
        """Return the size of the state."""
        chosen = state.chosen
        arrays: list[npt.NDArray[Any]] = [*chosen.keys, *chosen.calendar, *chosen[2:]]
        held = sum(array.nbytes for array in arrays) + state.log.nbytes
        return Size(_living(chosen), held)


@dataclass(frozen=True)
class WholeDistinct(FollowsSides):
    """DISTINCT that knows all living tuples: it counts them, or stores them."""

    schema: pa.Schema
    form: Literal["counted", "stored"]
    execution: Execution = "aware"
    edge: Edge = PLAIN

    @property
    def sides(self) -> Sides:
        """The rule for the two sides."""
        name = f"{_NAME}, {self.form}"
        if self.form == "counted":
            return Sides(name, self.schema, VALUE, self.execution, right=self.edge)
        return Sides(name, self.schema, ONE, self.execution, left=self.edge)

    def step(
        self, state: SidesState, inputs: tuple[Changes, ...], until_us: int
    ) -> tuple[SidesState, Changes]:
        """Take the changes at instants before `until_us`."""
        (changes,) = inputs
        given = (changes, fingerprints(changes.rows.columns, len(changes)))
        nothing = (Changes.nothing(self.schema), fingerprints((), 0))
        left, right = (nothing, given) if self.form == "counted" else (given, nothing)
        return self.sides.step(state, (left[0], right[0]), (left[1], right[1]), until_us)


def distinct_operator(
    schema: pa.Schema, form: Form, execution: Execution = "aware", edge: Edge = PLAIN
) -> SuccessorDistinct | WholeDistinct:
    """Return DISTINCT in one of its forms."""
    if form != "successors":
        return WholeDistinct(schema, form, execution, edge)
    if execution != "aware":
        message = f"DISTINCT by successors is not for {execution} execution"
        raise PlanError(message, hint="store the tuples, or count those of each value")
    return SuccessorDistinct(schema, edge)


def _follow(
    chosen: kernels.Representatives, source: Arriving, until_us: int
) -> tuple[kernels.Representatives, Emitted]:
    roomy = kernels.with_room(chosen, len(source.at), longest_lifetime(source.at, source.exp))
    progress = np.zeros(1, np.int64)
    return roomy, all_emitted(
        lambda room: kernels.follow_representatives(roomy, source, until_us, progress, room),
        len(source.at),
    )


def _living(chosen: kernels.Representatives) -> int:
    facts = chosen.facts
    return int(facts[kernels.USED] - facts[kernels.FREE] + facts[kernels.FOLLOWED])


def _handles(chosen: kernels.Representatives) -> tuple[Int64s, Int64s]:
    """Return the handles of values in the answer, and of those with a successor."""
    later = chosen.next_exps > chosen.calendar.exps
    return np.flatnonzero(chosen.alive), np.flatnonzero(chosen.alive & later)
