"""Partial results of several aggregates: those that need the same share it.

A sum and a mean of the same column have one partial; so have a median and a count of different
values, which both need all values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from eventide.accumulators import Accumulator, Groups
from eventide.accumulators.kept import DistinctCount, KeptValues, ValueList
from eventide.accumulators.moments import Covariance, Deviation
from eventide.accumulators.sums import COUNT, Average, IntegerSum
from eventide.arrays import to_arrow
from eventide.kernels.compiled import Int64s
from eventide.operators.aggregate import accumulator_of, lift
from eventide.plan.expressions import Aggregate


@dataclass(frozen=True, slots=True)
class Partial:
    """A partial result: how it is merged, of what, and its first and last column."""

    accumulator: Accumulator
    aggregate: Aggregate
    columns: slice


@dataclass(frozen=True, slots=True)
class Partials:
    """The partial results of some aggregates, and how each aggregate is finished from one."""

    parts: tuple[Partial, ...]
    finished: tuple[tuple[Accumulator, slice], ...]
    schema: pa.Schema

    @classmethod
    def of(cls, aggregates: Iterable[Aggregate]) -> Partials:
        """Return the partial results of aggregates; without any, there is a count."""
        parts: dict[object, Partial] = {}
        finished: list[tuple[Accumulator, slice]] = []
        types: list[pa.DataType] = []
        for aggregate in aggregates:
            accumulator = accumulator_of(aggregate)
            add_part(parts, types, merging(accumulator), aggregate)
            part = parts[key_of(merging(accumulator), aggregate)]
            finished.append((accumulator, part.columns))
        if not parts:
            add_part(parts, types, COUNT, Aggregate("count", None))
        names = [f"p{number}" for number in range(len(types))]
        schema = pa.schema(list(zip(names, types, strict=True)))
        return cls(tuple(parts.values()), tuple(finished), schema)

    def lifted(
        self, rows: pa.RecordBatch, groups: Groups, events: Int64s | None = None
    ) -> pa.RecordBatch:
        """Reduce events to one partial for each group; with `events`, these in this order."""
        arrays: list[pa.Array] = []
        chosen = None if events is None else to_arrow(events)
        for part in self.parts:
            columns = lift(part.aggregate, part.accumulator, rows)
            if chosen is not None:
                columns = [column.take(chosen) for column in columns]
            arrays += part.accumulator.by_group(columns, groups)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def merged(self, partials: pa.RecordBatch, groups: Groups) -> pa.RecordBatch:
        """Merge the partials of each group, which are in order of time."""
        columns, arrays = partials.columns, []
        for part in self.parts:
            arrays += part.accumulator.by_group(columns[part.columns], groups)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def answers(self, partials: pa.RecordBatch) -> list[pa.Array]:
        """Return the aggregates, one column each."""
        columns = partials.columns
        return [accumulator.finish(columns[place]) for accumulator, place in self.finished]


def add_part(
    parts: dict[object, Partial],
    types: list[pa.DataType],
    accumulator: Accumulator,
    aggregate: Aggregate,
) -> None:
    """Add a partial result, unless it is there, and the types of its columns."""
    key = key_of(accumulator, aggregate)
    if key not in parts:
        first = len(types)
        types += accumulator.types
        parts[key] = Partial(accumulator, aggregate, slice(first, len(types)))


def key_of(accumulator: Accumulator, aggregate: Aggregate) -> object:
    """Return what two partial results have in common if they are the same."""
    return accumulator, aggregate.argument, aggregate.second, aggregate.condition


def merging(accumulator: Accumulator) -> Accumulator:
    """Return an accumulator that merges as another does; how it finishes does not matter."""
    match accumulator:
        case Average(sum=total):
            return merging(total)
        case IntegerSum():
            return replace(accumulator, described="", span=None)
        case Deviation():
            return Deviation("variance")
        case Covariance():
            return Covariance("corr")
        case KeptValues() if not isinstance(accumulator, ValueList):
            return DistinctCount(accumulator.type)
    return accumulator
