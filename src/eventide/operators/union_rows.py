"""UNION ALL of rows that never go, in no order: the rows of all inputs."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from eventide.operators.columns import concat_batches
from eventide.operators.filter_project import Stateless


@dataclass(frozen=True)
class UnionRows(Stateless):
    """The rows of all inputs; their columns are matched by place."""

    output_schema: pa.Schema

    def step(
        self,
        state: None,
        inputs: tuple[pa.RecordBatch, ...],
        until_us: int,  # noqa: ARG002 - the contract of an operator
    ) -> tuple[None, pa.RecordBatch]:
        """Return the rows of one input after those of the other."""
        return state, concat_batches([self.alike(rows) for rows in inputs], self.output_schema)

    def alike(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with the columns of the output."""
        columns = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(rows.columns, self.output_schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.output_schema)
