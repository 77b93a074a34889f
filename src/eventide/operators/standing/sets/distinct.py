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

from eventide.batch import START_OF_TIME_US
from eventide.errors import PlanError
from eventide.kernels.compiled import Int64s
from eventide.kernels.lifetimes import successors as kernels
from eventide.kernels.lifetimes.emitted import Arriving, Emitted, all_emitted, arriving
from eventide.kernels.lifetimes.expiring import longest_lifetime
from eventide.kernels.lifetimes.value_chains import ONE, VALUE
from eventide.operators.checking import filled, require_lengths, require_living
from eventide.operators.fingerprints import fingerprints
from eventide.operators.standing.changes import Changes
from eventide.operators.standing.compaction import is_too_roomy
from eventide.operators.standing.operator import Size
from eventide.operators.standing.row_log import RowLog, is_sparse, numbered
from eventide.operators.standing.sets.sides import (
    PLAIN,
    FollowsSides,
    Sides,
    SidesState,
    told_changes,
)
from eventide.operators.state import join_parts, parts_of, read_rows, write_rows
from eventide.operators.stateful import Stateful
from eventide.plan.standing.execution import Execution
from eventide.plan.standing.update_patterns import Edge

Form = Literal["successors", "counted", "stored"]

_NAME = "DISTINCT"
_SHOWN = pa.schema([(name, pa.int64()) for name in ("first", "second", "exp", "id")])


@dataclass(frozen=True, slots=True)
class ShownState:
    """The values in the answer, the rows of their tuples, and the end of the last step."""

    shown: kernels.Shown
    log: RowLog
    until_us: int = START_OF_TIME_US


@dataclass(frozen=True, slots=True)
class SuccessorDistinct(Stateful[ShownState]):
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

    def initial_state(self) -> ShownState:
        """Return the state before the first instant."""
        shown = kernels.nothing_shown(self.edge.lifetime_us or 1)
        return ShownState(shown, RowLog.empty(self.schema))

    def step(
        self, state: ShownState, inputs: tuple[Changes, ...], until_us: int
    ) -> tuple[ShownState, Changes]:
        """Take the tuples that come at instants before `until_us`."""
        (changes,) = inputs
        assert not len(changes) or changes.sign.min() > 0, "tuples go before their time"
        words = fingerprints(changes.rows.columns, len(changes))
        numbers, log = numbered(state.log, changes)
        key = (words.first, words.second)
        source = arriving(changes.at, changes.exp, changes.sign, changes.id, key, numbers)
        shown, told = _follow(state.shown, source, until_us)
        out = told_changes(told, log)
        living = _living(shown)
        if is_sparse(log.size, living):
            showing, following = _handles(shown)
            rows = (shown.rows[showing], shown.next_rows[following])
            log = log.kept(np.concatenate(rows))
            shown.rows[showing] = np.arange(len(showing))
            shown.next_rows[following] = np.arange(len(showing), log.end)
        after = ShownState(shown, log, until_us)
        if is_too_roomy(len(shown.rows), living + len(changes)):
            # A state that was read has no more room than it needs.
            after = self.read(self.write(after))
        return after, out

    def write(self, state: ShownState) -> bytes:
        """Write the state out: the tuples in the answer, then their successors."""
        shown = state.shown
        showing, following = _handles(shown)
        both = np.concatenate((showing, following))
        exps = (shown.calendar.exps[showing], shown.next_exps[following])
        ids = (shown.ids[showing], shown.next_ids[following])
        rows = (shown.rows[showing], shown.next_rows[following])
        columns = [shown.first[both], shown.second[both], np.concatenate(exps), np.concatenate(ids)]
        arrays = [pa.array(column) for column in columns]
        return join_parts(
            [
                write_rows(_NAME, state.log.take(np.concatenate(rows)), {"until": state.until_us}),
                write_rows(
                    f"{_NAME}, shown", pa.RecordBatch.from_arrays(arrays, schema=_SHOWN), {}
                ),
            ]
        )

    def read(self, written: bytes) -> ShownState:
        """Read back what `write` wrote."""
        parts = parts_of(_NAME, written, 2)
        rows, facts = read_rows(_NAME, parts[0], self.schema)
        told, _ = read_rows(f"{_NAME}, shown", parts[1], _SHOWN)
        first, second, exp, id_ = (filled(column, "tuples shown") for column in told.columns)
        state, until_us, length = self.initial_state(), facts["until"], len(first)
        require_lengths(rows.num_rows, (first,), "tuples shown and their rows")
        require_living(exp, until_us)
        shown = state.shown
        if length:
            at, sign = np.full(length, until_us - 1), np.ones(length, np.int8)
            source = arriving(at, exp, sign, id_, (first, second), np.arange(length))
            shown, _ = _follow(shown, source, until_us)
        return ShownState(shown, state.log.append(rows), until_us)

    def size(self, state: ShownState) -> Size:
        """Return the size of the state."""
        shown = state.shown
        arrays: list[npt.NDArray[Any]] = [*shown.keys, *shown.calendar, *shown[2:]]
        held = sum(array.nbytes for array in arrays) + state.log.nbytes
        return Size(_living(shown), held)


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


def _follow(shown: kernels.Shown, source: Arriving, until_us: int) -> tuple[kernels.Shown, Emitted]:
    roomy = kernels.roomy_shown(shown, len(source.at), longest_lifetime(source.at, source.exp))
    progress = np.zeros(1, np.int64)
    return roomy, all_emitted(
        lambda room: kernels.follow_shown(roomy, source, until_us, progress, room), len(source.at)
    )


def _living(shown: kernels.Shown) -> int:
    facts = shown.facts
    return int(facts[kernels.USED] - facts[kernels.FREE] + facts[kernels.FOLLOWED])


def _handles(shown: kernels.Shown) -> tuple[Int64s, Int64s]:
    """Return the handles of values in the answer, and of those with a successor."""
    later = shown.next_exps > shown.calendar.exps
    return np.flatnonzero(shown.alive), np.flatnonzero(shown.alive & later)
