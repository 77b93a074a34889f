"""UNION ALL: the changes of several inputs in order of time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.operators.changes import Changes
from eventide.operators.filter_project import Stateless
from eventide.operators.standing.ids import joined_ids


@dataclass(frozen=True)
class MergeOperator(Stateless):
    """Changes of all inputs, those of one instant in order of the inputs; it has no state.

    The columns are those of the first input, matched by place. Ids are mixed with the number of the
    input, because a stream may be several inputs.
    """

    schema: pa.Schema
    inputs: int

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of the output."""
        return self.schema

    def step(
        self,
        state: None,
        inputs: tuple[Changes, ...],
        until_us: int,  # noqa: ARG002 - the contract of an operator
    ) -> tuple[None, Changes]:
        """Take in the changes of all inputs at instants before `until_us`."""
        numbers = range(self.inputs)
        parts = [self._alike(each, number) for number, each in zip(numbers, inputs, strict=True)]
        merged = Changes.concat(parts, self.schema)
        if sum(len(part) > 0 for part in parts) > 1:
            merged = merged.take(np.argsort(merged.at, kind="stable"))
        return state, merged

    def _alike(self, changes: Changes, number: int) -> Changes:
        arrays = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(changes.rows.columns, self.schema, strict=True)
        ]
        rows = changes.rows
        if len(self.schema):
            rows = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        ids = joined_ids(np.full(1, number), changes.id)
        return Changes(rows, changes.at, changes.exp, changes.sign, ids)
