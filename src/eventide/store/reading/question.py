"""A question to the index: functions of attributes, and the partial columns they come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa

from eventide.arrays import no_rows, to_arrow
from eventide.errors import SchemaError, listed
from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.store.answers import FUNCTIONS
from eventide.schema import TS, Schema
from eventide.store.index.aggregates import (
    BUILT_IN,
    BoundAggregate,
    find_registered,
    registered_names,
)
from eventide.store.index.attribute_summaries import LEAST
from eventide.store.index.summaries import SummaryLayout
from eventide.store.order import int64_view
from eventide.store.reading.descent.words import KINDS
from eventide.store.reading.scan import StreamColumns
from eventide.store.segments.segment import Segment

ROWS = pa.field("rows", pa.int64())


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate that is asked for: a function of an attribute, or the count of all events."""

    function: str
    attribute: str | None = None

    def __str__(self) -> str:
        return f"{self.function}({self.attribute or '*'})"


@dataclass(frozen=True, slots=True)
class Finishers:
    """How answers come from words, see kernels/store/answers.py.

    `functions` are asked of each attribute. A column is one of them: which attribute, or -1 for the
    count of all events, which function of it, and the type of the answer.
    """

    functions: tuple[Int64s, ...]
    columns: tuple[tuple[int, int, pa.DataType], ...]
    schema: pa.Schema


@dataclass(frozen=True)
class AggregateQuestion:
    """Calls, and the partial columns that answer them."""

    calls: tuple[AggregateCall, ...]
    schema: Schema
    layout: SummaryLayout

    @classmethod
    def of(cls, calls: Sequence[AggregateCall], schema: Schema) -> AggregateQuestion:
        """Check calls against a schema."""
        attributes: dict[str, None] = {}
        bound: dict[BoundAggregate, None] = {}
        for call in calls:
            if call.attribute is None:
                if call.function != "count":
                    message = f"{call} is not an aggregate"
                    raise SchemaError(message, hint="only count(*) takes all attributes")
                continue
            schema.type_of(call.attribute)
            attributes[call.attribute] = None
            bound.update(dict.fromkeys(needed_by(call.function, call.attribute)))
        layout = SummaryLayout.of(schema, tuple(attributes), tuple(bound), summed(calls, schema))
        for call in calls:
            if call.attribute is not None and not layout.has(call.function, call.attribute):
                raise no_such_aggregate(call, schema)
        return cls(tuple(calls), schema, layout)

    @cached_property
    def summed(self) -> tuple[str, ...]:
        """The attributes whose sums of floats are asked for, alone or in an average."""
        return summed(self.calls, self.schema)

    @cached_property
    def stored(self) -> pa.Schema:
        """The columns of entries that matter."""
        least = {f"{name}.{LEAST}" for name in self.summed}
        return pa.schema([ROWS, *(each for each in self.layout.arrow if each.name not in least)])

    def of_stored(self, entries: pa.RecordBatch) -> pa.RecordBatch:
        """Return the partials of entries of the index."""
        if not self.summed:
            return entries.select(self.stored.names)
        return self.joined(entries.column(ROWS.name), self.layout.of_stored(entries))

    @cached_property
    def attributes(self) -> list[str]:
        """The attributes to read where rows are needed."""
        return list(dict.fromkeys([TS, *self.layout.types]))

    @cached_property
    def numbers(self) -> tuple[tuple[str, int], ...] | None:
        """The attributes and the kinds of their words; None if a summary does not fit words."""
        types = {name: kind.kind for name, kind in self.layout.types.items()}
        if self.layout.stored or any(kind not in KINDS for kind in types.values()):
            return None
        return tuple((name, KINDS[types[name]]) for name in self.layout.attributes)

    @cached_property
    def finishers(self) -> Finishers | None:
        """How answers come from words; None if some do not."""
        if self.numbers is None:
            return None
        functions: list[list[int]] = [[] for _ in self.numbers]
        columns: list[tuple[int, int, pa.DataType]] = []
        for call in self.calls:
            if call.attribute is None:
                columns.append((-1, 0, pa.int64()))
                continue
            if call.function not in FUNCTIONS:
                return None
            place = self.layout.attributes.index(call.attribute)
            columns.append((place, len(functions[place]), self.type_of(call)))
            functions[place].append(FUNCTIONS.index(call.function))
        fields = [
            pa.field(str(call), kind)
            for call, (_, _, kind) in zip(self.calls, columns, strict=True)
        ]
        numbered = tuple(frozen(np.array(each, np.int64)) for each in functions)
        return Finishers(numbered, tuple(columns), pa.schema(fields))

    def type_of(self, call: AggregateCall) -> pa.DataType:
        """Return the type of a function of a number or a time."""
        assert call.attribute is not None
        argument = self.schema.type_of(call.attribute)
        if call.function == "count":
            return pa.int64()
        if call.function in ("min", "max") or (call.function, argument.kind) == ("sum", "int64"):
            return argument.arrow
        return pa.float64()

    def known_to(self, segment: Segment, columns: StreamColumns) -> bool:
        """Whether the index of a segment has everything asked for."""
        own = segment.form
        return (
            all(columns.stored_in(segment, [name]) for name in self.layout.types)
            and all(name in own.summaries for name in self.layout.attributes)
            and all(
                (each.aggregate.name, each.attribute) in own.aggregates
                for each in self.layout.stored
            )
        )

    def of_rows(self, rows: pa.RecordBatch, bounds: Int64s) -> pa.RecordBatch:
        """Return the partials of each run of rows."""
        counts = to_arrow(np.diff(bounds))
        return self.joined(counts, self.layout.summarise(rows, bounds))

    def of_entries(self, entries: pa.RecordBatch, bounds: Int64s) -> pa.RecordBatch:
        """Return the partials of each run of partials; a run may be empty."""
        rows = np.concatenate([[0], np.cumsum(int64_view(entries.column(ROWS.name)))])
        counts = to_arrow(rows[bounds[1:]] - rows[bounds[:-1]])
        return self.joined(counts, self.layout.merge(entries, bounds))

    def joined(self, rows: pa.Array, summaries: pa.RecordBatch) -> pa.RecordBatch:
        """Put the two halves of partials together."""
        fields = [ROWS, *summaries.schema]
        return pa.RecordBatch.from_arrays([rows, *summaries.columns], schema=pa.schema(fields))

    @cached_property
    def empty(self) -> pa.RecordBatch:
        """No partials."""
        return no_rows(pa.schema([ROWS, *self.layout.arrow]))

    def answers(self, partials: pa.RecordBatch) -> pa.RecordBatch:
        """Return the answers, a row for each row of partials."""
        columns = [
            partials.column(ROWS.name)
            if call.attribute is None
            else self.layout.finish(call.function, call.attribute, partials)
            for call in self.calls
        ]
        return pa.RecordBatch.from_arrays(columns, [str(call) for call in self.calls])


def no_such_aggregate(call: AggregateCall, schema: Schema) -> SchemaError:
    """Return the error for a function that does not exist, or not for such attributes."""
    assert call.attribute is not None
    hint = f"there are {listed(sorted((*BUILT_IN, *registered_names())))}"
    if call.function not in BUILT_IN and find_registered(call.function) is None:
        return SchemaError(f"no aggregate {call.function!r}", hint=hint)
    kind = schema.type_of(call.attribute)
    return SchemaError(f"there is no {call}: {call.attribute} is {kind}", hint=hint)


def summed(calls: Sequence[AggregateCall], schema: Schema) -> tuple[str, ...]:
    """Return the attributes whose sums of floats are asked for, alone or in an average."""
    names = (
        call.attribute
        for call in calls
        if call.attribute is not None
        and schema.type_of(call.attribute).kind == "float64"
        and _needs_sum(call.function)
    )
    return tuple(dict.fromkeys(names))


def _needs_sum(function: str) -> bool:
    if function in ("sum", "avg"):
        return True
    found = find_registered(function)
    return found is not None and any(map(_needs_sum, found.needs))


@lru_cache(maxsize=256)
def question_of(calls: tuple[AggregateCall, ...], schema: Schema) -> AggregateQuestion:
    """Return a question; the same one is checked only once."""
    return AggregateQuestion.of(calls, schema)


def needed_by(function: str, attribute: str) -> Iterator[BoundAggregate]:
    """Yield what has to be stored for a function beyond the summary, its needs first."""
    found = None if function in BUILT_IN else find_registered(function)
    if found is None:
        return
    for need in found.needs:
        yield from needed_by(need, attribute)
    if found.kind != "virtual":
        yield BoundAggregate(function, attribute)
