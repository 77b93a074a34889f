"""The windows of a template: one operator for all its queries, with a table of their windows."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import int64s
from eventide.engines.build import Building, build_live_tree, operators_of
from eventide.engines.live.feeds import within
from eventide.engines.live.sharing.known import KnownPortions
from eventide.errors import StateError
from eventide.instants import END_OF_TIME_US, START_OF_TIME_US
from eventide.kernels.compiled import Int64s
from eventide.operators.operator import Operator, Size
from eventide.operators.sharing.refreshes import ReportRefreshes
from eventide.operators.sharing.turns import AT_ONCE, RefreshTurn, not_now
from eventide.operators.sharing.windows import AggregateManyWindows, ManyWindowsState, near
from eventide.operators.state import join_parts, split_parts
from eventide.operators.tree import OperatorTree, States
from eventide.plan.nodes import Scan, scans_of
from eventide.plan.sharing.parts import disjoint_parts
from eventide.plan.sharing.portion import Portion
from eventide.plan.sharing.query_windows import AskedWindow, QueryWindows
from eventide.plan.sharing.refreshes import Refreshed
from eventide.plan.sharing.windows import ManyWindows
from eventide.plan.standing.nodes import AT, EXP
from eventide.schema import INT64, SEQ, row_schema

FROM_THE_START = 0
"""The number of the first event of queries whose state has not seen any."""
_ROW = struct.Struct("<qq?")


@operators_of.register
def many_windows(node: ManyWindows, how: Building) -> tuple[Operator[Any], ...]:  # noqa: ARG001
    """Return the operator."""
    return (AggregateManyWindows(node, row_schema(node.row)),)


@operators_of.register
def refreshed(node: Refreshed, how: Building) -> tuple[Operator[Any], ...]:  # noqa: ARG001
    """Return the operator."""
    return (ReportRefreshes(node),)


@dataclass(slots=True)
class RefreshDelays:
    """How far event time had gone on when refreshes were computed."""

    rows: int = 0
    """How many rows of refreshes there were."""
    most_us: int = 0
    overdue: int = 0
    """How many of them were of refreshes after which the next one was due as well."""
    left_out: int = 0
    """How many refreshes were left out because periods were stretched."""

    @classmethod
    def of_all(cls, every: Sequence[RefreshDelays]) -> RefreshDelays:
        """Return those of several windows together."""
        return cls(
            sum(each.rows for each in every),
            max((each.most_us for each in every), default=0),
            sum(each.overdue for each in every),
            sum(each.left_out for each in every),
        )

    def add(self, ended: pa.RecordBatch, until_us: int) -> None:
        """Note the rows of refreshes that are computed when time has come to an instant."""
        at, exp = (int64s(ended.column(name)) for name in (AT, EXP))
        self.rows += len(at)
        self.most_us = max(self.most_us, until_us - int(at.min()))
        self.overdue += int((exp < until_us).sum())


@dataclass
class WindowsRun:
    """Windows in a state: changed in place by steps, and as queries come and go."""

    node: ManyWindows
    table: QueryWindows
    tree: OperatorTree
    states: States = field(default=())
    delays: RefreshDelays = field(default_factory=RefreshDelays)

    @classmethod
    def of(cls, windows: ManyWindows, scans: Mapping[str, Scan]) -> WindowsRun:
        """Return windows of no query, over all columns of a stream: conditions may be on any."""
        table = QueryWindows()
        (scan,) = scans_of(windows)
        columns = dict(scans[scan.stream].columns) | {SEQ: INT64}
        node = replace(windows, source=replace(scan, columns=tuple(columns.items())), table=table)
        tree = build_live_tree(node)
        return cls(node, table, tree, tree.initial_state())

    @cached_property
    def stream(self) -> str:
        """The stream whose events they are over."""
        return self.tree.scan.stream

    def add(self, portion: Portion, since_seq: int) -> None:
        """Add queries that count the events from a number on, unless they are there."""
        self.table.join(portion.asked, since_seq)

    def drop(self, numbers: Int64s) -> None:
        """Let queries go, if they are here."""
        for number in numbers.tolist():
            if number in self.table:
                self.table.drop(number)
        if not len(self.table):
            self.states = self.tree.initial_state()

    def has_all(self, numbers: Int64s) -> bool:
        """Whether all of these queries are in the table."""
        return all(number in self.table for number in numbers.tolist())

    @property
    def operator(self) -> AggregateManyWindows:
        """Its only operator."""
        return cast("AggregateManyWindows", self.tree.operators[0])

    @property
    def state(self) -> ManyWindowsState:
        """The state of the operator."""
        return cast("ManyWindowsState", self.states[0])

    def take(self, events: Mapping[str, pa.RecordBatch], until_us: int, stretch: int) -> None:
        """Take the events before an instant, and let what is due wait."""
        self.state.turn = not_now(stretch)
        self.stepped(events[self.stream], until_us)

    def step(
        self, events: Mapping[str, pa.RecordBatch], until_us: int, turn: RefreshTurn = AT_ONCE
    ) -> pa.RecordBatch:
        """Take the events before an instant; return the windows that have ended.

        A turn says which refreshes are computed; windows that are reported once always are.
        """
        self.state.turn = turn if self.node.refreshes else AT_ONCE
        ended = self.stepped(events[self.stream], until_us)
        if self.node.refreshes and ended.num_rows and until_us != END_OF_TIME_US:
            self.delays.add(ended, until_us)
        self.delays.left_out += self.state.left_out
        self.state.left_out = 0
        return ended

    def stepped(self, events: pa.RecordBatch, until_us: int) -> pa.RecordBatch:
        """Take a step of the operator."""
        leaf = self.tree.leaves[0]
        rows = within(events.select(leaf.schema.names), leaf.scan.time_range)
        self.states, ended = self.tree.step(self.states, (rows,), until_us)
        return ended

    @property
    def waiting(self) -> int:
        """How many queries have a refresh that is due and waits for its turn."""
        state = self.state
        closed_us = near(state.closed_us)
        if not self.node.refreshes or state.next_due > closed_us:
            return 0
        known = len(state.births)
        waits = (state.due <= closed_us) & (state.births == self.table.births[:known])
        _, offsets = self.table.members
        return int(np.diff(offsets)[:known][waits].sum())

    def go_on_from(self, other: WindowsRun) -> None:
        """Take over what is next for the queries of another state, which becomes one with this."""
        self.operator.set_due_of(self.state, other.operator.due_of(other.state))

    def reached(self, until_us: int) -> int:
        """Return the instant before which all windows are reported."""
        return self.tree.reached(self.states, until_us)

    @property
    def due_us(self) -> int:
        """The instant at which the next window ends; the beginning of time if it is not known."""
        operator, state = self.tree.placed[0].operator, self.states[0]
        assert isinstance(operator, AggregateManyWindows)
        known = state.version == self.table.version and not self.node.refreshes
        return int(state.next_due) if known else START_OF_TIME_US

    def only(self, numbers: Int64s) -> WindowsRun:
        """Return the windows of some queries in a state of their own."""
        (scan,) = scans_of(self.node)
        alone = WindowsRun.of(self.node, {self.stream: scan})
        for row in self.table.rows:
            asked = AskedWindow(row.number, row.window, row.condition)
            alone.table.add(asked, row.since_seq, self.table.cover(row.number))
        alone.states = alone.tree.read(self.tree.write(self.states))
        others = np.array([row.number for row in self.table.rows], np.int64)
        alone.drop(others[~np.isin(others, numbers)])
        return alone

    def settle(self) -> None:
        """Count the events that wait; a value of theirs may overflow."""
        self.operator.take(self.state)

    @property
    def sizes(self) -> tuple[tuple[str, Size], ...]:
        """How much is remembered."""
        return self.tree.sizes(self.states)

    def write(self) -> bytes:
        """Write the table and the state out."""
        rows = b"".join(
            _ROW.pack(row.number, row.since_seq, self.table.cover(row.number) == (row.condition,))
            for row in self.table.rows
        )
        return join_parts([rows, self.tree.write(self.states)])

    def read(self, written: bytes, known: KnownPortions) -> None:
        """Go on from what `write` wrote, with the queries that are known."""
        rows, states = split_parts(written)
        numbers = np.array([row[0] for row in _ROW.iter_unpack(rows)], np.int64)
        asked = {each.number: each for own in known.among(numbers) for each in own.asked}
        for number, since_seq, is_whole in _ROW.iter_unpack(rows):
            if number not in asked:
                message = f"the state is of a query {number} that is not known"
                raise StateError(message, hint="subscribe to the same queries first")
            own = asked[number]
            cover = (own.condition,) if is_whole else disjoint_parts(own.condition)
            self.table.add(own, since_seq, cover)
        self.states = self.tree.read(states)
