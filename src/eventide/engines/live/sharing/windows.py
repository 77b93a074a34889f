"""The windows of a template: one operator for all its queries, with a table of their windows."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.engines.build import Building, build_live_tree, operators_of
from eventide.engines.live.feeds import within
from eventide.kernels.compiled import Int64s
from eventide.operators.operator import Operator, Size
from eventide.operators.sharing.windows import AggregateManyWindows
from eventide.operators.state import join_parts, split_parts
from eventide.operators.tree import OperatorTree, States
from eventide.plan.sharing.query_windows import QueryWindows
from eventide.plan.sharing.windows import ManyWindows
from eventide.plan.windows.nodes import Window
from eventide.schema import row_schema

FROM_THE_START = 0
"""The number of the first event of queries whose state has not seen any."""
_ROW = struct.Struct("<qqqq")


@operators_of.register
def many_windows(node: ManyWindows, how: Building) -> tuple[Operator[Any], ...]:  # noqa: ARG001
    """Return the operator."""
    return (AggregateManyWindows(node, row_schema(node.row)),)


@dataclass
class WindowsRun:
    """Windows in a state: changed in place by steps, and as queries come and go."""

    node: ManyWindows
    table: QueryWindows
    tree: OperatorTree
    states: States = field(default=())

    @classmethod
    def of(cls, windows: ManyWindows) -> WindowsRun:
        """Return windows of no query."""
        table = QueryWindows()
        node = replace(windows, table=table)
        tree = build_live_tree(node)
        return cls(node, table, tree, tree.initial_state())

    @cached_property
    def stream(self) -> str:
        """The stream whose events they are over."""
        return self.tree.scan.stream

    def add(self, numbers: Int64s, windows: tuple[Window, ...], since_seq: int) -> None:
        """Add queries that count the events from a number on, unless they are there."""
        for number, window in zip(numbers.tolist(), windows, strict=True):
            if number not in self.table:
                self.table.add(number, window, since_seq)

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

    def step(self, events: Mapping[str, pa.RecordBatch], until_us: int) -> pa.RecordBatch:
        """Take the events before an instant; return the windows that have ended."""
        leaf = self.tree.leaves[0]
        rows = within(events[self.stream].select(leaf.schema.names), leaf.scan.time_range)
        self.states, ended = self.tree.step(self.states, (rows,), until_us)
        return ended

    def reached(self, until_us: int) -> int:
        """Return the instant before which all windows are reported."""
        return self.tree.reached(self.states, until_us)

    def only(self, numbers: Int64s) -> WindowsRun:
        """Return the windows of some queries in a state of their own."""
        alone = WindowsRun.of(self.node)
        for row in self.table.rows:
            alone.table.add(row.number, row.window, row.since_seq)
        alone.states = alone.tree.read(self.tree.write(self.states))
        others = np.array([row.number for row in self.table.rows], np.int64)
        alone.drop(others[~np.isin(others, numbers)])
        return alone

    @property
    def sizes(self) -> tuple[tuple[str, Size], ...]:
        """How much is remembered."""
        return self.tree.sizes(self.states)

    def write(self) -> bytes:
        """Write the table and the state out."""
        rows = b"".join(
            _ROW.pack(row.number, row.window.size_us, row.window.slide_us, row.since_seq)
            for row in self.table.rows
        )
        return join_parts([rows, self.tree.write(self.states)])

    def read(self, written: bytes) -> None:
        """Go on from what `write` wrote."""
        rows, states = split_parts(written)
        for number, size_us, slide_us, since_seq in _ROW.iter_unpack(rows):
            self.table.add(number, Window(size_us, slide_us), since_seq)
        self.states = self.tree.read(states)
