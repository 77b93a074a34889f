"""Rows in, rows out, no state: filter rows by a condition, compute expressions of each row."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from eventide.errors import StateError
from eventide.operators.columns import rows_where
from eventide.operators.dividing import Wanted
from eventide.operators.expressions.evaluate import evaluate, evaluate_predicate
from eventide.operators.operator import Size
from eventide.operators.stateful import Stateful
from eventide.plan.expressions import Column, Expression, Named


class Stateless(Stateful[None]):
    """The state of an operator that keeps nothing."""

    def initial_state(self) -> None:
        """Return nothing."""

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


@dataclass(frozen=True)
class FilterRows(Stateless):
    """Keeps the rows on which `condition` is true.

    `narrows` says that the columns of `output_schema` are fewer than those of the rows.
    """

    condition: Expression
    output_schema: pa.Schema
    narrows: bool = field(default=False, compare=False)

    def step(
        self,
        state: None,
        inputs: tuple[pa.RecordBatch, ...],
        until_us: int,  # noqa: ARG002 - the contract of an operator
    ) -> tuple[None, pa.RecordBatch]:
        """Return the rows that pass."""
        (rows,) = inputs
        wanted = rows.select(self.output_schema.names) if self.narrows else rows
        return state, rows_where(self.passing(rows), wanted) if rows.num_rows else wanted

    def passing(self, rows: pa.RecordBatch) -> pa.Array:
        """Return which rows pass."""
        return evaluate_predicate(self.condition, rows)


@dataclass(frozen=True)
class ProjectRows(Stateless):
    """Computes the named expressions."""

    items: tuple[Named, ...]
    output_schema: pa.Schema

    @cached_property
    def plain_names(self) -> list[str] | None:
        """The columns, if they are only passed on under their own names."""
        plain = all(item.expression == Column(item.name, item.type) for item in self.items)
        return [item.name for item in self.items] if plain else None

    def step(
        self,
        state: None,
        inputs: tuple[pa.RecordBatch, ...],
        until_us: int,  # noqa: ARG002 - the contract of an operator
    ) -> tuple[None, pa.RecordBatch]:
        """Return one row for each row."""
        (rows,) = inputs
        if rows.schema.names == self.plain_names:
            return state, rows
        columns = [evaluate(item.expression, rows) for item in self.items]
        return state, pa.RecordBatch.from_arrays(columns, schema=self.output_schema)
