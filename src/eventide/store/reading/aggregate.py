"""Aggregates over spans of time, from the index: only the two ends of a span are read.

Segments that lie wholly in a span answer from what the manifest knows of them. In the others the
index is descended along the ends of the span, at most two paths; entries in between answer for
everything below them, and of the leaves that an end cuts only the rows inside are summed up. What
the index of a segment does not know, because the aggregate or the attribute came later or the
stream does without, is computed from its rows: the answer is the same, and takes longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from eventide.batch import TimeRange, moment
from eventide.errors import SchemaError, StoreError, listed
from eventide.kernels.compiled import Bools, Int64s
from eventide.schema import TS, Schema
from eventide.store.index.aggregates import (
    BUILT_IN,
    BoundAggregate,
    find_registered,
    registered_names,
)
from eventide.store.index.summaries import SummaryLayout
from eventide.store.order import int64_array, int64_view
from eventide.store.reading.scan import Columns, Wanted, chosen, leaf_pieces, scan_parts
from eventide.store.segments.segment import Segment
from eventide.store.segments.tree import those, touching, within
from eventide.store.snapshot import Snapshot

ROWS = pa.field("rows", pa.int64())
SPAN = ["ts_min", "ts_max"]
SPAN_FIELDS = [pa.field(name, pa.int64()) for name in SPAN]


@dataclass(frozen=True, slots=True)
class Call:
    """An aggregate that is asked for: a function of an attribute, or the count of all events."""

    function: str
    attribute: str | None = None

    def __str__(self) -> str:
        return f"{self.function}({self.attribute or '*'})"


@dataclass(frozen=True)
class Question:
    """Calls, and the partial columns that answer them."""

    calls: tuple[Call, ...]
    schema: Schema
    layout: SummaryLayout

    @classmethod
    def of(cls, calls: Sequence[Call], schema: Schema) -> Question:
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
        layout = SummaryLayout.of(schema, tuple(attributes), tuple(bound))
        for call in calls:
            if call.attribute is not None and not layout.has(call.function, call.attribute):
                raise no_such_aggregate(call, schema)
        return cls(tuple(calls), schema, layout)

    @cached_property
    def names(self) -> list[str]:
        """The columns of entries that matter."""
        return [ROWS.name, *self.layout.arrow.names]

    @cached_property
    def attributes(self) -> list[str]:
        """The attributes to read where rows have to be."""
        return list(dict.fromkeys([TS, *self.layout.types]))

    def known_to(self, segment: Segment, columns: Columns) -> bool:
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
        counts = int64_array(np.diff(bounds))
        return self.joined(counts, self.layout.summarise(rows, bounds))

    def of_entries(self, entries: pa.RecordBatch, bounds: Int64s) -> pa.RecordBatch:
        """Return the partials of each run of partials; a run may be empty."""
        rows = np.concatenate([[0], np.cumsum(int64_view(entries.column(ROWS.name)))])
        counts = int64_array(rows[bounds[1:]] - rows[bounds[:-1]])
        return self.joined(counts, self.layout.merge(entries, bounds))

    def joined(self, rows: pa.Array, summaries: pa.RecordBatch) -> pa.RecordBatch:
        """Put the two halves of partials together."""
        fields = [ROWS, *summaries.schema]
        return pa.RecordBatch.from_arrays([rows, *summaries.columns], schema=pa.schema(fields))

    @cached_property
    def empty(self) -> pa.RecordBatch:
        """No partials."""
        return pa.RecordBatch.from_pylist([], schema=pa.schema([ROWS, *self.layout.arrow]))

    def answers(self, partials: pa.RecordBatch) -> pa.RecordBatch:
        """Return what was asked for, a row for each row of partials."""
        columns = [
            partials.column(ROWS.name)
            if call.attribute is None
            else self.layout.finish(call.function, call.attribute, partials)
            for call in self.calls
        ]
        return pa.RecordBatch.from_arrays(columns, [str(call) for call in self.calls])


def no_such_aggregate(call: Call, schema: Schema) -> SchemaError:
    """Return the error of a function that is not there, or not for such attributes."""
    assert call.attribute is not None
    hint = f"there are {listed(sorted((*BUILT_IN, *registered_names())))}"
    if call.function not in BUILT_IN and find_registered(call.function) is None:
        return SchemaError(f"no aggregate {call.function!r}", hint=hint)
    kind = schema.type_of(call.attribute)
    return SchemaError(f"there is no {call}: {call.attribute} is {kind}", hint=hint)


@lru_cache(maxsize=256)
def question_of(calls: tuple[Call, ...], schema: Schema) -> Question:
    """Return a question, checked once."""
    return Question.of(calls, schema)


def needed_by(function: str, attribute: str) -> Iterator[BoundAggregate]:
    """Yield what has to be stored for a function beyond the summary, what it needs first."""
    found = None if function in BUILT_IN else find_registered(function)
    if found is None:
        return
    for need in found.needs:
        yield from needed_by(need, attribute)
    if found.kind != "virtual":
        yield BoundAggregate(function, attribute)


def aggregate(
    snapshot: Snapshot, calls: Sequence[Call], cuts: Sequence[int], groups: Int64s | None = None
) -> pa.RecordBatch:
    """Return aggregates of the spans [cuts[i], cuts[i + 1]), one row each.

    With `groups`, which numbers the spans from 0, one row for each group of spans instead.
    """
    question = question_of(tuple(calls), snapshot.schema)
    return answers_of(question, span_partials(snapshot, question, cuts), groups)


def answers_of(
    question: Question, partials: pa.RecordBatch, groups: Int64s | None
) -> pa.RecordBatch:
    """Return the answers from the partials of each span: a row for each, or for each group."""
    if groups is not None:
        order = np.argsort(groups, kind="stable")
        bounds = np.searchsorted(groups[order], np.arange(int(groups.max(initial=-1)) + 2))
        partials = question.of_entries(partials.take(pa.array(order)), bounds)
    return question.answers(partials)


def span_partials(snapshot: Snapshot, question: Question, cuts: Sequence[int]) -> pa.RecordBatch:
    """Return the partials of each span."""
    if has_short_spans(snapshot, cuts):
        return partials_of_rows(snapshot, question, cuts)
    return partials_of_index(snapshot, question, cuts)


def has_short_spans(snapshot: Snapshot, cuts: Sequence[int]) -> bool:
    """Whether spans are so many that most cut leaves, and rows are read sooner than an index."""
    leaves = sum(segment.leaves for segment in snapshot.segments)
    # The rows are cut in order of time; a span that ends before it starts is left to the index.
    in_order = all(start <= end for start, end in pairwise(cuts))
    is_whole = not any(segment.thinned for segment in snapshot.segments)
    return in_order and is_whole and len(cuts) - 1 > max(leaves, 8)


def partials_of_index(
    snapshot: Snapshot, question: Question, cuts: Sequence[int]
) -> pa.RecordBatch:
    """Return the partials of each span from the index, and from rows where that has to be."""
    found: list[pa.RecordBatch] = []
    bounds = [0]
    for start, end in pairwise(cuts):
        parts = partials_in(snapshot, question, TimeRange(start, end))
        found += parts
        bounds.append(bounds[-1] + sum(part.num_rows for part in parts))
    together = pa.concat_batches([question.empty, *found])
    return question.of_entries(together, np.array(bounds, np.int64))


def partials_of_rows(snapshot: Snapshot, question: Question, cuts: Sequence[int]) -> pa.RecordBatch:
    """Return the partials of each span from its rows: cheaper where spans are short."""
    every = np.array(cuts, np.int64)
    parts = [question.empty]
    places = [np.empty(0, np.int64)]
    for rows in snapshot.scan(question.attributes, TimeRange(int(every[0]), int(every[-1]))):
        ts = int64_view(rows.column(TS))
        # Only the spans that the rows touch: a batch is short against the whole.
        first = int(np.searchsorted(every, ts[0], "right")) - 1
        last = int(np.searchsorted(every, ts[-1], "right"))
        parts.append(question.of_rows(rows, np.searchsorted(ts, every[first : last + 1])))
        places.append(np.arange(first, last))
    together, spans = pa.concat_batches(parts), np.concatenate(places)
    bounds = np.searchsorted(spans, np.arange(len(cuts)))
    return question.of_entries(together, bounds)


def partials_in(
    snapshot: Snapshot, question: Question, time_range: TimeRange
) -> list[pa.RecordBatch]:
    """Return partials that together stand for every event of a time range."""
    if time_range.is_empty:
        return []
    columns = Columns(snapshot.schema, snapshot.manifest.column_ids)
    directory = directory_of(snapshot, question, columns)
    parts: list[pa.RecordBatch] = []
    touched = touching(directory.entries, time_range)
    whole = within(directory.entries, time_range) & directory.known
    if whole.any():
        parts.append(those(directory.entries.select(question.names), whole))
    for place in np.flatnonzero(touched & ~whole):
        segment = snapshot.segments[place]
        parts += segment_partials(snapshot.path, segment, question, columns, time_range)
    wanted = Wanted(columns, tuple(question.attributes), time_range, {})
    for rows in snapshot.memory:
        if rows.num_rows:
            inside = chosen(rows, wanted, question.attributes, cut=True)
            if inside.num_rows:
                parts.append(question.of_rows(inside, np.array([0, inside.num_rows], np.int64)))
    return parts


@dataclass(frozen=True, slots=True)
class Directory:
    """One entry for each segment, and which of them know what is asked for."""

    segments: tuple[Segment, ...]
    entries: pa.RecordBatch
    known: Bools


def directory_of(snapshot: Snapshot, question: Question, columns: Columns) -> Directory:
    """Return the segments as entries of an index above theirs; made once for a question."""
    made = snapshot.view.directories
    held = made.get(question.calls)
    if not (isinstance(held, Directory) and is_same(held.segments, snapshot.segments)):
        names = [*SPAN, *question.names]
        schema = pa.schema([*SPAN_FIELDS, ROWS, *question.layout.arrow])
        known = [question.known_to(segment, columns) for segment in snapshot.segments]
        entries = [
            segment.summary().select(names) if knows else unknown_entry(segment, schema)
            for segment, knows in zip(snapshot.segments, known, strict=True)
        ]
        empty = pa.RecordBatch.from_pylist([], schema=schema)
        together = pa.concat_batches([empty, *entries])
        held = Directory(snapshot.segments, together, np.array(known, np.bool_))
        made[question.calls] = held
    return held


def is_same(one: Sequence[Segment], other: Sequence[Segment]) -> bool:
    """Whether two lists have the very same segments; comparing all they hold takes too long."""
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def unknown_entry(segment: Segment, schema: pa.Schema) -> pa.RecordBatch:
    """Return an entry that says no more than where a segment begins and ends."""
    span = {"ts_min": segment.ts_min, "ts_max": segment.ts_max}
    return pa.RecordBatch.from_pylist([span], schema=schema)


def segment_partials(
    folder: Path,
    segment: Segment,
    question: Question,
    columns: Columns,
    time_range: TimeRange,
) -> Iterator[pa.RecordBatch]:
    """Yield partials for the events that a segment has in a time range."""
    wanted = Wanted(columns, tuple(question.attributes), time_range, {})
    if not question.known_to(segment, columns):
        if segment.thinned:
            raise thinned_away(folder, segment)
        for rows in scan_parts(folder, [segment], (), wanted):
            yield question.of_rows(rows, np.array([0, rows.num_rows], np.int64))
        return
    whole, cut = segment.tree(folder).cover(time_range, question.names)
    yield from whole
    for leaves in cut:
        if segment.thinned:
            raise thinned_away(folder, segment)
        for piece in leaf_pieces(folder, segment, leaves):
            rows = piece.read(wanted, question.attributes)
            yield question.of_rows(rows, np.array([0, rows.num_rows], np.int64))


def thinned_away(folder: Path, segment: Segment) -> StoreError:
    """Return the error of a question that only events could answer, which are gone."""
    message = f"the events of {folder.name} in this span were thinned to aggregates"
    span = f"{moment(segment.ts_min)} to {moment(segment.ts_max)}"
    hint = f"ask for a span that has all or nothing of {span}; `stats()` lists such spans"
    return StoreError(message, hint=hint)
