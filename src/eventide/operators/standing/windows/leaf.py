"""The base of all windows of a standing query: their place in it, and their output."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import int64s
from eventide.arrays import to_arrow
from eventide.kernels.compiled import Bools, Int64s
from eventide.kernels.lifetimes.stream_windows import ID
from eventide.operators.changes import NEVER, Changes
from eventide.operators.standing.ids import leaf_ids
from eventide.operators.standing.windows.log import EmittedTuples, TupleLog
from eventide.plan.standing.execution import Execution
from eventide.plan.standing.nodes import ANSWER_EXP
from eventide.plan.standing.windows import Windowed
from eventide.schema import SEQ


@dataclass(frozen=True)
class LeafWindow:
    """A window, the leaf of a query with this number, and how the query is executed.

    With `slide_us` all instants are rounded up to its multiples. With `answer_exp` rows have
    one more column. Within an instant a window first emits the tuples that go, then those that
    come, each in order of arrival.
    """

    node: Windowed
    number: int
    slide_us: int | None = None
    execution: Execution = "aware"
    answer_exp: bool = False

    @cached_property
    def value_schema(self) -> pa.Schema:
        """The columns of the events, under the names of the window."""
        return pa.schema([(name, kind.arrow) for name, kind in self.node.row.items()])

    @cached_property
    def output_schema(self) -> pa.Schema:
        """The columns of the output."""
        schema = self.value_schema
        return schema.append(pa.field(ANSWER_EXP, pa.int64())) if self.answer_exp else schema

    @cached_property
    def label(self) -> str:
        """The owner of the state: no other window can read it."""
        slide = "" if self.slide_us is None else f" SLIDE {self.slide_us}"
        return f"leaf {self.number}, {self.node.window}{slide}, {self.execution}"

    def values(self, rows: pa.RecordBatch, places: Bools | None = None) -> pa.RecordBatch:
        """Return the values of events, or of some of them."""
        columns = [rows.column(name) for name in self.node.source.row]
        values = pa.RecordBatch.from_arrays(columns, schema=self.value_schema)
        return values if places is None else values.filter(to_arrow(places))

    def ids(self, rows: pa.RecordBatch) -> Int64s:
        """Return the ids of events."""
        return leaf_ids(int64s(rows.column(SEQ)), self.number)

    def with_answer_exp(self, values: pa.RecordBatch, exp: Int64s) -> pa.RecordBatch:
        """Return values with all columns that come out."""
        if not self.answer_exp:
            return values
        answer_exp = np.full(len(exp), NEVER) if self.node.internal else exp
        columns = [*values.columns, to_arrow(answer_exp)]
        return pa.RecordBatch.from_arrays(columns, schema=self.output_schema)

    def changes(self, log: TupleLog, emitted: EmittedTuples, exp: Int64s) -> Changes:
        """Return the output of a log as changes."""
        if not len(emitted.numbers):
            return Changes.nothing(self.output_schema)
        rows = self.with_answer_exp(log.values.take(emitted.numbers), exp)
        return Changes(rows, emitted.at, exp, emitted.sign, log.facts[ID, emitted.numbers])
