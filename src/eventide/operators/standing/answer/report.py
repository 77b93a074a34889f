"""The root of a standing query: which changes of its answer are reported, and when."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import int64s
from eventide.arrays import to_arrow
from eventide.errors import PlanError, StateError, UnsupportedError
from eventide.kernels.compiled import Bools, Int64s
from eventide.operators.changes import NEVER, Changes
from eventide.operators.columns import concat_batches
from eventide.operators.operator import Size
from eventide.operators.standing.answer.expiring_rows import ExpiringRows, ExpiringState
from eventide.operators.standing.answer.keeping import Structure
from eventide.operators.standing.answer.output_window import LastBirths, lasting
from eventide.operators.standing.answer.refresh import Lifetimes, Waiting, has_refresh
from eventide.operators.standing.answer.turnover import net_changes, net_turnover
from eventide.operators.standing.answer.view import View, ViewState, structure_for
from eventide.operators.standing.row_log import RowLog
from eventide.operators.state import join_parts, read_rows, split_parts, write_rows
from eventide.operators.stateful import Stateful
from eventide.plan.standing.edges import Edge, UpdatePattern
from eventide.plan.standing.execution import Execution
from eventide.plan.standing.nodes import ANSWER_EXP, AT, EXP, LIVE, SIGN, Report
from eventide.plan.standing.windows import RangeWindow, RowsWindow
from eventide.schema import TIMESTAMP


@dataclass(slots=True)
class ReportState:
    """The state; each part only if it is needed.

    The rows of the edge, where births have to be told from rows that were there already; the
    answer, with the rows that leave it or without; the rows of a window over the last births;
    births that wait for a refresh.
    """

    edge: ViewState | None
    answer: ViewState | None
    expiring: ExpiringState | None
    last: RowLog | None
    waiting: Waiting | None


@dataclass(frozen=True)
class Reporter(Stateful[ReportState]):
    """Turns the changes on the topmost edge of a plan into reports.

    `answer_schema` has the columns of the answer, `edge` says how its rows come and go as the
    operators keep them. With `all_internal` rows only come. With `answer_exp` one more
    column says until when a row is in the answer. The report is as in the plan node
    `Standing`. Without `keeps_answer`, the answer is kept only if reports need it. `settled` says
    that at no instant a row comes that equals one that goes, and that rows that go come first.
    """

    answer_schema: pa.Schema
    edge: Edge
    report: Report = "current"
    slide_us: int | None = None
    restore: bool = False
    output_window: RangeWindow | RowsWindow | None = None
    all_internal: bool = False
    answer_exp: bool = False
    execution: Execution = "aware"
    keeps_answer: bool = True
    partitions: int | None = None
    settled: bool = False

    def __post_init__(self) -> None:
        strict = self.edge.pattern == UpdatePattern.STRICT
        if self.answer_exp and strict:
            message = "internal windows beside others need results that know when they end"
            raise PlanError(message, hint="make all windows INTERNAL, or none")
        if self.output_window is not None and self.report != "current":
            message = f"a window over results has an answer of its own, no {self.report}"
            raise PlanError(message, hint="ask for WSTREAM alone")

    @cached_property
    def output_schema(self) -> pa.Schema:
        """The columns of reports."""
        fields = [pa.field(AT, TIMESTAMP.arrow)]
        if self.report == "rstream" and self.restore:
            fields.append(pa.field(LIVE, pa.bool_()))
        fields += list(self.answer_schema)
        if self.report == "current":
            fields.append(pa.field(EXP, TIMESTAMP.arrow))
            if self._strict:
                fields.append(pa.field(SIGN, pa.int8()))
        return pa.schema(fields)

    def initial_state(self) -> ReportState:
        """Return the state before the first instant."""
        edge, answer, expiring = self._edge_view, self._answer_view, self._expiring_rows
        return ReportState(
            None if edge is None else edge.initial_state(),
            None if answer is None else answer.initial_state(),
            None if expiring is None else expiring.initial_state(),
            None if self._last_births is None else RowLog.empty(self.answer_schema),
            Waiting.none(self.answer_schema) if self.restore else None,
        )

    def step(
        self, state: ReportState, inputs: tuple[Changes, ...], until_us: int
    ) -> tuple[ReportState, pa.RecordBatch]:
        """Take all changes before `until_us` not given before; return the reports."""
        changes = self._external(inputs[0])
        if self._only_births:
            changes = self._births(state, changes, until_us)
        if self._last_births is not None and state.last is not None:
            # Joins find the results of an instant in any order; which of them are the last must
            # not depend on that.
            births = changes.take(np.lexsort((changes.id, changes.at)))
            state.last, changes = self._last_births.step(state.last, births)
        match self.report:
            case "current":
                return state, self._changes(state, changes, until_us)
            case "rstream":
                return state, self._contents(state, changes, until_us)
            case _:
                return state, self._turnover(state, changes, until_us)

    def current(self, state: ReportState, sooner_us: int = 0) -> pa.RecordBatch:
        """Return the answer at the last instant before the last `until_us`.

        With `sooner_us`, as if all rows expired that much sooner, where it is known when they do.
        """
        if self._last_births is not None and state.last is not None:
            return state.last.take(self._last_births.living(state.last))
        if self._expiring_rows is not None and state.expiring is not None:
            return self._expiring_rows.current(state.expiring, sooner_us)
        if sooner_us:
            message = f"the {self.execution} execution does not keep when rows of the answer go"
            raise UnsupportedError(message, hint="the aware execution does")
        if self._answer_view is None or state.answer is None:
            message = f"the answer is not kept: an {self.report} can do without it"
            raise PlanError(message, hint="build the reporter with keeps_answer=True")
        return self._answer_view.current(state.answer)

    def write(self, state: ReportState) -> bytes:
        """Write the state out."""
        parts = []
        if self._edge_view is not None and state.edge is not None:
            parts.append(self._edge_view.write(state.edge))
        if self._answer_view is not None and state.answer is not None:
            parts.append(self._answer_view.write(state.answer))
        if self._expiring_rows is not None and state.expiring is not None:
            parts.append(self._expiring_rows.write(state.expiring))
        if self._last_births is not None and state.last is not None:
            rows = state.last.take(self._last_births.living(state.last))
            parts.append(write_rows("LastBirths", rows, {}))
        if state.waiting is not None:
            parts.append(state.waiting.write())
        return join_parts(parts)

    def read(self, written: bytes) -> ReportState:
        """Read back what `write` wrote."""
        parts = split_parts(written)
        state = self.initial_state()
        wanted = (state.edge, state.answer, state.expiring, state.last, state.waiting)
        if len(parts) != sum(part is not None for part in wanted):
            message = "the state of the reports is that of another query"
            raise StateError(message, hint="load a state with the query that wrote it")
        remaining = iter(parts)
        if self._edge_view is not None:
            state.edge = self._edge_view.read(next(remaining))
        if self._answer_view is not None:
            state.answer = self._answer_view.read(next(remaining))
        if self._expiring_rows is not None:
            state.expiring = self._expiring_rows.read(next(remaining))
        if state.last is not None:
            rows, _ = read_rows("LastBirths", next(remaining), self.answer_schema)
            state.last = state.last.append(rows)
        if state.waiting is not None:
            state.waiting = Waiting.read(next(remaining), self.answer_schema)
        return state

    def size(self, state: ReportState) -> Size:
        """Return the size of the state."""
        sizes = []
        if self._edge_view is not None and state.edge is not None:
            sizes.append(self._edge_view.size(state.edge))
        if self._answer_view is not None and state.answer is not None:
            sizes.append(self._answer_view.size(state.answer))
        if self._expiring_rows is not None and state.expiring is not None:
            sizes.append(self._expiring_rows.size(state.expiring))
        if self._last_births is not None and state.last is not None:
            living = len(self._last_births.living(state.last))
            sizes.append(Size(living, state.last.nbytes))
        if state.waiting is not None:
            sizes.append(state.waiting.size)
        return Size(sum(size.tuples for size in sizes), sum(size.bytes for size in sizes))

    @property
    def _only_births(self) -> bool:
        """Whether it does not matter to the answer when rows go."""
        return self.all_internal or self.output_window is not None

    @property
    def _strict(self) -> bool:
        """Whether rows of the answer may go before they expire."""
        return self._answer_edge.pattern == UpdatePattern.STRICT

    @cached_property
    def _last_births(self) -> LastBirths | None:
        """The window over the last births, if there is one."""
        if isinstance(self.output_window, RowsWindow):
            return LastBirths(self.output_window.count)
        return None

    @cached_property
    def _answer_edge(self) -> Edge:
        """How rows of the answer come and go."""
        match self.output_window:
            case RowsWindow():
                return Edge(UpdatePattern.STRICT, None)
            case RangeWindow(size_us=size):
                return Edge(UpdatePattern.WEAKEST, size, in_order=True)
        if self.all_internal:
            return Edge(UpdatePattern.MONOTONIC, None, in_order=True)
        return self.edge

    @cached_property
    def _edge_view(self) -> View | None:
        """The rows of the edge, if births depend on them but the answer is something else."""
        if not (self._only_births and self.edge.pattern == UpdatePattern.STRICT):
            return None
        structure = structure_for(self.edge, self.execution)
        return View(self.answer_schema, structure, self.partitions)

    @cached_property
    def _keeps_answer(self) -> bool:
        """Whether the answer is kept, for reports or for `current`."""
        lasting_rows = self._answer_edge.pattern == UpdatePattern.MONOTONIC
        needed = (
            self.report == "rstream"
            or (self.report == "dstream" and not lasting_rows)
            or (self.report == "istream" and self._strict)
        )
        return self._last_births is None and (needed or self.keeps_answer)

    @cached_property
    def _structure(self) -> Structure:
        """How the answer is kept if it matters which rows leave it."""
        # Expiries are not announced for rows that last longer than their parts.
        own = self.execution == "negative" and (self._only_births or self.answer_exp)
        return structure_for(self._answer_edge, "aware" if own else self.execution)

    @cached_property
    def _expiring_rows(self) -> ExpiringRows | None:
        """The rows of the answer, if they are needed but not when each of them leaves."""
        by_itself = self._structure in ("ring", "calendar") and self.partitions is None
        unreported = self.report in ("current", "istream")
        return (
            ExpiringRows(self.answer_schema)
            if self._keeps_answer and by_itself and unreported
            else None
        )

    @cached_property
    def _answer_view(self) -> View | None:
        """The rows of the answer, if they are needed and it matters which rows leave."""
        if not self._keeps_answer or self._expiring_rows is not None:
            return None
        return View(self.answer_schema, self._structure, self.partitions)

    def _external(self, changes: Changes) -> Changes:
        """Return changes that expire with those of their parts whose windows are not internal."""
        if not self.answer_exp:
            return changes
        changes = changes.take(np.flatnonzero(changes.sign > 0))
        exp = int64s(changes.rows.column(ANSWER_EXP))
        rows = changes.rows.select(self.answer_schema.names)
        return lasting(changes.with_rows(rows), exp)

    def _births(self, state: ReportState, changes: Changes, until_us: int) -> Changes:
        """Return only the births; each lasts for ever, or for the length of the output window."""
        if self._edge_view is not None and state.edge is not None:
            edge, net, _ = net_turnover(self._edge_view, state.edge, changes, until_us)
            state.edge = self._edge_view.tidied(edge)
            births = changes.take(net.births)
        else:
            births = changes.take(np.flatnonzero(changes.sign > 0))
        if isinstance(self.output_window, RangeWindow):
            return lasting(births, births.at + self.output_window.size_us)
        return lasting(births, np.full(len(births), NEVER, np.int64))

    def _take_expiring(self, state: ReportState, changes: Changes, until_us: int) -> None:
        """Take changes into an answer that is kept without the rows that leave it."""
        if self._expiring_rows is not None and state.expiring is not None:
            state.expiring = self._expiring_rows.step(state.expiring, changes, until_us)

    def _changes(self, state: ReportState, changes: Changes, until_us: int) -> pa.RecordBatch:
        """Return the changes of the answer; expiries are not reported."""
        self._take_expiring(state, changes, until_us)
        if self._answer_view is not None and state.answer is not None:
            answer, _ = self._answer_view.step(state.answer, changes, until_us)
            state.answer = self._answer_view.tidied(answer)
        reported = (changes.sign > 0) | (changes.at < changes.exp)
        if not reported.all():
            changes = changes.take(np.flatnonzero(reported))
        if self._strict and not self.settled:
            changes = net_changes(changes)
        columns = [_times(changes.at), *changes.rows.columns, _times(changes.exp)]
        if self._strict:
            columns.append(to_arrow(changes.sign))
        return pa.RecordBatch.from_arrays(columns, schema=self.output_schema)

    def _turnover(self, state: ReportState, changes: Changes, until_us: int) -> pa.RecordBatch:
        """Return the rows that were born, or that died; some wait for the next refresh."""
        births = np.flatnonzero(changes.sign > 0)
        self._take_expiring(state, changes, until_us)
        if self._answer_view is not None and state.answer is not None:
            view = self._answer_view
            if self._strict:
                answer, net, _ = net_turnover(view, state.answer, changes, until_us)
                births, deaths = net.births, net.deaths
            else:
                answer, deaths = view.step(state.answer, changes, until_us)
            state.answer = view.tidied(answer)
            if self.report == "dstream":
                deaths = deaths.in_order()
                return self._reported(answer.log.take(deaths.numbers), deaths.at)
        elif self.report == "dstream":
            births = births[:0]  # without an answer, because nothing ever goes
        born = changes.take(births)
        if state.waiting is None or self.slide_us is None:
            return self._reported(born.rows, born.at)
        waiting = state.waiting.joined_by(born.rows, born.at, born.exp)
        state.waiting, due = waiting.reported(self.slide_us, until_us)
        return self._reported(due.rows, due.at)

    def _contents(self, state: ReportState, changes: Changes, until_us: int) -> pa.RecordBatch:
        """Return the whole answer at each refresh, or at each instant that changed it."""
        view, before = self._answer_view, state.answer
        assert view is not None and before is not None  # noqa: PT018 - an rstream needs it
        births = np.flatnonzero(changes.sign > 0)
        if self._strict:
            answer, net, deaths = net_turnover(view, before, changes, until_us)
            births, changed = net.births, net.deaths.at
        else:
            answer, deaths = view.step(before, changes, until_us)
            changed = deaths.at
        instants = np.union1d(changes.at[births], changed)
        at, numbers = np.zeros((2, 0), np.int64)
        if self.slide_us is None and len(instants):
            lifetimes = Lifetimes.of(view, before, answer, changes, deaths)
            at, numbers = lifetimes.at_instants(instants)
        elif self.slide_us is not None and has_refresh(before.until_us, until_us, self.slide_us):
            lifetimes = Lifetimes.of(view, before, answer, changes, deaths)
            at, numbers = lifetimes.at_refreshes(self.slide_us)
        rows = answer.log.take(numbers)
        state.answer = view.tidied(answer)
        if state.waiting is None or self.slide_us is None:
            return self._reported(rows, at)
        born = changes.take(births)
        waiting = state.waiting.joined_by(born.rows, born.at, born.exp)
        state.waiting, due = waiting.reported(self.slide_us, until_us)
        gone = np.flatnonzero(due.gone(rows, at, strict=self._strict))
        both = concat_batches([rows, due.rows.take(to_arrow(gone))], self.answer_schema)
        at = np.concatenate([at, due.at[gone]])
        live = np.arange(len(at)) < rows.num_rows
        order = np.argsort(at, kind="stable")
        return self._reported(both.take(to_arrow(order)), at[order], live[order])

    def _reported(
        self, rows: pa.RecordBatch, at: Int64s, live: Bools | None = None
    ) -> pa.RecordBatch:
        """Return rows with the instant at which they are reported."""
        reported = [_times(at)] if live is None else [_times(at), to_arrow(live)]
        return pa.RecordBatch.from_arrays([*reported, *rows.columns], schema=self.output_schema)


def _times(instants: Int64s) -> pa.Array:
    """Return instants as a column; null where there is none."""
    never = instants == NEVER
    numbers = to_arrow(instants, ~never) if never.any() else to_arrow(instants)
    return numbers.cast(TIMESTAMP.arrow)
