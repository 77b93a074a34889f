"""Expressions over the columns of a batch."""
from __future__ import annotations
import pyarrow as pa
from eventide.plan.expressions import Expression
def evaluate(expression: Expression, rows: pa.RecordBatch) -> pa.Array:
    raise NotImplementedError
def evaluate_predicate(expression: Expression, rows: pa.RecordBatch) -> pa.BooleanArray:
    raise NotImplementedError
