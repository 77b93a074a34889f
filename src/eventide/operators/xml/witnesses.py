"""The witnesses of one pattern as rows. Nothing is remembered: a row depends on one document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow, to_numpy
from eventide.operators.filter_project import Stateless
from eventide.operators.xml.asked import AskedPattern
from eventide.operators.xml.stage import PathStage, string_values
from eventide.plan.xml.nodes import Witnesses
from eventide.schema import DOCUMENT, TS

BYTES_AT_ONCE = 4 << 20
"""Documents of so many bytes are searched at once: their nodes take some times as many."""


@dataclass(frozen=True)
class FindWitnesses(Stateless):
    """One row for each witness of a pattern, in order of the documents."""

    node: Witnesses
    output_schema: pa.Schema

    @cached_property
    def stage(self) -> PathStage:
        """The pattern as an automaton."""
        return PathStage([AskedPattern.of_variables(self.node.pattern.root)])

    @cached_property
    def places(self) -> list[int]:
        """Which variable each column is."""
        return [self.node.pattern.variables.index(name) for name in self.node.columns]

    def step(
        self,
        state: None,
        inputs: tuple[pa.RecordBatch, ...],
        until_us: int,  # noqa: ARG002 - the contract of an operator
    ) -> tuple[None, pa.RecordBatch]:
        """Return the witnesses in documents."""
        (rows,) = inputs
        found = [batch for part in parts_of(rows) for batch in self.found_in(part)]
        if not found:
            return state, pa.RecordBatch.from_pylist([], self.output_schema)
        return state, pa.concat_batches(found)

    def found_in(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the witnesses in some documents."""
        times = to_numpy(rows.column(TS).cast(pa.int64()))
        for part in self.stage.find(rows.column(DOCUMENT).to_pylist()):
            document, nodes = part.of_view(0)
            ts = to_arrow(times[document]).cast(self.output_schema.field(TS).type)
            values = [
                string_values(part.tree, np.ascontiguousarray(nodes[:, place]))
                for place in self.places
            ]
            yield pa.RecordBatch.from_arrays([ts, *values], schema=self.output_schema)


def parts_of(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield rows in parts of documents that are not too large together."""
    documents = rows.column(DOCUMENT)
    if documents.nbytes <= BYTES_AT_ONCE:
        yield rows
        return
    _, bounds, _ = documents.buffers()
    ends = np.frombuffer(bounds, np.int32)[documents.offset :][: len(documents) + 1]
    first = 0
    while first < len(documents):
        limit = int(ends[first]) + BYTES_AT_ONCE
        last = max(first + 1, int(np.searchsorted(ends, limit, "right")) - 1)
        yield rows.slice(first, last - first)
        first = last
