"""Aggregates over the events that end at the same instant.

All of them come in the same step, so nothing is remembered between steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from eventide.errors import StateError
from eventide.operators.dividing import Wanted
from eventide.operators.operator import Size
from eventide.operators.order_rows import sorted_places
from eventide.operators.stateful import Stateful
from eventide.operators.windows.by_time import AggregateWindows
from eventide.plan.aggregates import AGGREGATES
from eventide.plan.algebra.nodes import InstantAggregate
from eventide.plan.expressions import Column, OrderKey
from eventide.plan.windows.nodes import Window, WindowAggregate
from eventide.schema import TS, row_schema


@dataclass(frozen=True)
class AggregateInstants(Stateful[None]):
    """One row for each instant and key with an event, in order of time."""

    node: InstantAggregate
    output_schema: pa.Schema

    @cached_property
    def windows(self) -> AggregateWindows:
        """The windows of a microsecond: each has the events of one instant."""
        node = self.node
        windows = WindowAggregate(node.source, node.keys, Window(1, 1), node.aggregates)
        return AggregateWindows(windows, row_schema(windows.row))

    def initial_state(self) -> None:
        """Return nothing."""

    def step(
        self,
        state: None,
        inputs: tuple[pa.RecordBatch, ...],
        until_us: int,  # noqa: ARG002 - all events of an instant are here
    ) -> tuple[None, pa.RecordBatch]:
        """Take events; return one for each instant and key."""
        (rows,) = inputs
        found = self.windows.combine(self.windows.lift(self.in_order(rows)))
        names = [each.name for each in self.node.computed]
        times = [found.column("window_start")] * 2
        columns = [*times, *(found.column(name) for name in names)]
        return state, pa.RecordBatch.from_arrays(columns, schema=self.output_schema)

    def in_order(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows in order of all columns, if an aggregate depends on an order."""
        functions = [AGGREGATES[item.aggregate.function] for item in self.node.aggregates]
        if not any(each.needs_order for each in functions):
            return rows
        sortable = [each.name for each in rows.schema if not pa.types.is_nested(each.type)]
        names = [TS, *(name for name in sortable if name != TS)]
        keys = tuple(OrderKey(Column(name), nulls_first=True) for name in names)
        return rows.take(sorted_places([rows.column(name) for name in names], keys))

    def of_keys(self, state: None, wanted: Wanted) -> None:
        """Return nothing."""

    def united(self, state: None, other: None) -> None:
        """Return nothing."""

    def write(self, state: None) -> bytes:  # noqa: ARG002 - the contract of an operator
        """Write nothing."""
        return b""

    def read(self, written: bytes) -> None:
        """Read nothing back."""
        if written:
            message = f"expected an empty state, found {len(written)} bytes"
            raise StateError(message, hint="load a state with the query that wrote it")

    def size(self, state: None) -> Size:  # noqa: ARG002 - the contract of an operator
        """Return a size of zero."""
        return Size(0, 0)
