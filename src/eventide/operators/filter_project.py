"""Rows in, rows out, no state: filter rows by a condition, compute expressions of each row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from eventide.batch import Batch
from eventide.errors import StateError
from eventide.operators.expressions.evaluate import evaluate, evaluate_predicate
from eventide.operators.stateful import Stateful
from eventide.plan.expressions import Column, Expression, Named


class Stateless(Stateful[None]):
    """The state of an operator that keeps nothing."""

    def initial_state(self) -> None:
        """Return nothing."""

    def write(self, state: None) -> bytes:  # noqa: ARG002 - the contract of an operator
        """Write nothing."""
        return b""

    def read(self, written: bytes) -> None:
        """Read nothing back."""
        if written:
            message = f"expected an empty state, found {len(written)} bytes"
            raise StateError(message, hint="load a state with the query that wrote it")


@dataclass(frozen=True)
class FilterRows(Stateless):
    """Keeps the rows on which `condition` is true."""

    condition: Expression
    output_schema: pa.Schema

    def step(self, state: None, batch: Batch) -> tuple[None, Batch]:
        """Return the rows that pass."""
        if batch.rows.num_rows == 0:
            return state, batch
        return state, Batch(batch.rows.filter(self.passing(batch.rows)), batch.watermark_us)

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

    def step(self, state: None, batch: Batch) -> tuple[None, Batch]:
        """Return one row for each row of the batch."""
        if batch.rows.schema.names == self.plain_names:
            return state, batch
        columns = [evaluate(item.expression, batch.rows) for item in self.items]
        return state, Batch(
            pa.RecordBatch.from_arrays(columns, schema=self.output_schema), batch.watermark_us
        )
