"""Selection and projection of tuples that come and go, without state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.operators.changes import Changes
from eventide.operators.expressions.evaluate import evaluate, evaluate_predicate
from eventide.operators.filter_project import Stateless
from eventide.plan.expressions import Column, Expression, Named
from eventide.plan.standing.nodes import ANSWER_EXP


@dataclass(frozen=True)
class SelectTuples(Stateless):
    """Passes the tuples on which the condition is true, when they come and when they go."""

    condition: Expression
    output_schema: pa.Schema

    def step(
        self,
        state: None,
        inputs: tuple[Changes, ...],
        until_us: int,  # noqa: ARG002 - the contract of an operator
    ) -> tuple[None, Changes]:
        """Return the changes of tuples that pass."""
        (changes,) = inputs
        if not len(changes):
            return state, changes
        passing = evaluate_predicate(self.condition, changes.rows)
        if passing.true_count == len(changes):
            return state, changes
        return state, changes.take(np.flatnonzero(passing.to_numpy(zero_copy_only=False)))


@dataclass(frozen=True)
class ProjectTuples(Stateless):
    """Computes the named expressions of tuples, whenever these come or go."""

    items: tuple[Named, ...]
    output_schema: pa.Schema

    def step(
        self,
        state: None,
        inputs: tuple[Changes, ...],
        until_us: int,  # noqa: ARG002 - the contract of an operator
    ) -> tuple[None, Changes]:
        """Return the changes with the values computed."""
        (changes,) = inputs
        columns = [self.computed(item, changes.rows) for item in self.items]
        if ANSWER_EXP in self.output_schema.names:
            columns.append(changes.rows.column(ANSWER_EXP))
        rows = pa.RecordBatch.from_arrays(columns, schema=self.output_schema)
        return state, changes.with_rows(rows)

    def computed(self, item: Named, rows: pa.RecordBatch) -> pa.Array:
        """Return the value of an item; a column is passed on as it is."""
        if isinstance(item.expression, Column):
            return rows.column(item.expression.name)
        return evaluate(item.expression, rows)


@dataclass(frozen=True)
class NumberTuples(Stateless):
    """Adds the id of each tuple as its last column, so that equal tuples can be told apart."""

    output_schema: pa.Schema

    def step(
        self,
        state: None,
        inputs: tuple[Changes, ...],
        until_us: int,  # noqa: ARG002 - the contract of an operator
    ) -> tuple[None, Changes]:
        """Return the changes with their ids."""
        (changes,) = inputs
        columns = [*changes.rows.columns, pa.array(changes.id, pa.int64())]
        rows = pa.RecordBatch.from_arrays(columns, schema=self.output_schema)
        return state, changes.with_rows(rows)
