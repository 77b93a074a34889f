"""The operators of a standing query, from the windows over its streams to its reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import pyarrow as pa

from eventide.operators.columns import results_that_fit
from eventide.operators.standing.answer.report import Reporter
from eventide.operators.standing.changes import Changes
from eventide.operators.standing.operator import Size, StandingOperator
from eventide.operators.standing.windows.choice import WindowOperator
from eventide.operators.state import join_parts, parts_of
from eventide.operators.stateful import Stateful
from eventide.plan.standing.nodes import Windowed
from eventide.schema import INT64, SEQ, TIMESTAMP, TS

OnStep = Callable[[int, Changes, float], None]
"""Called with the number of an operator, its output, and how many seconds it took."""


@dataclass(frozen=True, slots=True)
class Placed:
    """An operator, what its node is called, and the numbers of those that feed it.

    Numbers are first those of the windows, then those of the operators above them.
    """

    operator: StandingOperator[Any]
    name: str
    inputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TreeState:
    """The states of all windows and operators, in order, and that of the reporter."""

    windows: tuple[Any, ...]
    operators: tuple[Any, ...]
    report: Any


@dataclass(frozen=True)
class StandingTree(Stateful[TreeState]):
    """The windows, the operators above them, each after its inputs, and the reports.

    A state belongs to the step it is given to, as that of each operator does.
    """

    windows: tuple[WindowOperator, ...]
    operators: tuple[Placed, ...]
    reporter: Reporter

    @property
    def leaves(self) -> tuple[Windowed, ...]:
        """The windows of the plan, left to right."""
        return tuple(window.node for window in self.windows)

    @property
    def input_schemas(self) -> tuple[pa.Schema, ...]:
        """The columns of the events of each window."""
        return tuple(map(event_schema, self.leaves))

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of reports."""
        return self.reporter.output_schema

    @property
    def answer_schema(self) -> pa.Schema:
        """The columns of the answer."""
        return self.reporter.answer_schema

    def initial_state(self) -> TreeState:
        """Return the state before the first instant."""
        return TreeState(
            tuple(window.initial_state() for window in self.windows),
            tuple(placed.operator.initial_state() for placed in self.operators),
            self.reporter.initial_state(),
        )

    def step(
        self,
        state: TreeState,
        rows: tuple[pa.RecordBatch, ...],
        until_us: int,
        on_step: OnStep | None = None,
    ) -> tuple[TreeState, pa.RecordBatch]:
        """Take the events of each window before `until_us`; return the reports."""
        edges: list[Changes] = []
        windows: list[Any] = []
        operators: list[Any] = []

        def add_edge(out: Changes, started: float) -> None:
            if on_step is not None:
                on_step(len(edges), out, perf_counter() - started)
            edges.append(out)

        with results_that_fit():
            for window, before, events in zip(self.windows, state.windows, rows, strict=True):
                started = perf_counter()
                after, out = window.step(before, events, until_us)
                windows.append(after)
                add_edge(out, started)
            for placed, before in zip(self.operators, state.operators, strict=True):
                started = perf_counter()
                inputs = tuple(edges[number] for number in placed.inputs)
                after, out = placed.operator.step(before, inputs, until_us)
                operators.append(after)
                add_edge(out, started)
            report, reported = self.reporter.step(state.report, edges[-1], until_us)
        return TreeState(tuple(windows), tuple(operators), report), reported

    def current(self, state: TreeState, sooner_us: int = 0) -> pa.RecordBatch:
        """Return the answer at the last instant before the last `until_us`.

        With `sooner_us`, as if all rows expired that much sooner.
        """
        return self.reporter.current(state.report, sooner_us)

    def write(self, state: TreeState) -> bytes:
        """Write all states out."""
        windows = [w.write(s) for w, s in zip(self.windows, state.windows, strict=True)]
        operators = [
            placed.operator.write(each)
            for placed, each in zip(self.operators, state.operators, strict=True)
        ]
        return join_parts([*windows, *operators, self.reporter.write(state.report)])

    def read(self, written: bytes) -> TreeState:
        """Read back what `write` wrote."""
        parts = parts_of("the query", written, len(self.windows) + len(self.operators) + 1)
        between = len(self.windows)
        return TreeState(
            tuple(w.read(part) for w, part in zip(self.windows, parts[:between], strict=True)),
            tuple(
                placed.operator.read(part)
                for placed, part in zip(self.operators, parts[between:-1], strict=True)
            ),
            self.reporter.read(parts[-1]),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of windows and operators, by number."""
        windows = (f"window {window.node.alias}" for window in self.windows)
        return (*windows, *(placed.name for placed in self.operators))

    def sizes(self, state: TreeState) -> tuple[tuple[str, Size], ...]:
        """Return the size of each operator's state, from the windows to the answer."""
        windows = [w.size(s) for w, s in zip(self.windows, state.windows, strict=True)]
        operators = [
            placed.operator.size(each)
            for placed, each in zip(self.operators, state.operators, strict=True)
        ]
        sizes = [*windows, *operators, self.reporter.size(state.report)]
        return tuple(zip((*self.names, "answer"), sizes, strict=True))

    def memories(self, state: TreeState) -> tuple[tuple[str, Size], ...]:
        """Return the sizes of all operators that have a state."""
        stateful = (*(each is not None for each in (*state.windows, *state.operators)), True)
        return tuple(size for size, kept in zip(self.sizes(state), stateful, strict=True) if kept)


def event_schema(leaf: Windowed) -> pa.Schema:
    """Return the columns of a window's events: time, place in order of arrival, and the scan's."""
    columns = {TS: TIMESTAMP, SEQ: INT64} | dict(leaf.source.row)
    return pa.schema([(name, kind.arrow) for name, kind in columns.items()])
