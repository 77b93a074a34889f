"""Aggregates over periods, from the index: only the two ends of a period are read.

Segments that lie entirely in a period are answered from the manifest. In the others the index is
descended along the ends of the period, at most two paths; entries in between answer for everything
below them, and of the leaves that an end cuts only the rows inside are summed up. If the index of a
segment lacks the aggregate or the attribute, the answer is computed from its rows: it is the same,
and takes longer. Many periods are answered together: periods.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from eventide.arrays import no_rows
from eventide.instants import TimeRange
from eventide.kernels.compiled import Bools, Int64s
from eventide.store.reading.cuts import ListedCuts
from eventide.store.reading.descent.results import direct_answers, direct_partials
from eventide.store.reading.exact import SummedPeriods
from eventide.store.reading.periods import dense, period_partials_of, thinned_away
from eventide.store.reading.proof import proven
from eventide.store.reading.question import AggregateCall, AggregateQuestion, question_of
from eventide.store.reading.scan import StreamColumns, Wanted, chosen, scan_parts, stored_leaves
from eventide.store.segments import tree
from eventide.store.segments.segment import Segment
from eventide.store.segments.tree import those, touching, within
from eventide.store.snapshot import Snapshot

__all__ = [
    "AggregateCall",
    "AggregateQuestion",
    "aggregate",
    "answers_of",
    "has_short_periods",
    "partials_of_index",
    "period_partials",
    "question_of",
]

ENDS = 2
"""A single period has so many cuts."""
NODES_PER_CUT = 8
"""Going down the index to a cut takes as long as reading this many of its nodes, in order."""
PERIOD = ["ts_min", "ts_max"]
PERIOD_FIELDS = [pa.field(name, pa.int64()) for name in PERIOD]


def aggregate(
    snapshot: Snapshot,
    calls: Sequence[AggregateCall],
    cuts: Sequence[int],
    groups: Int64s | None = None,
) -> pa.RecordBatch:
    """Return aggregates of the periods [cuts[i], cuts[i + 1]), one row each.

    With `groups`, which numbers the periods from 0, one row for each group of periods instead.
    """
    question = question_of(tuple(calls), snapshot.schema)
    if groups is None and len(cuts) == ENDS:
        direct = direct_answers(snapshot, question, (cuts[0], cuts[1]))
        if direct is not None:
            return direct
    partials = period_partials(snapshot, question, cuts)
    return answers_of(snapshot, question, partials, cuts, groups)


def answers_of(
    snapshot: Snapshot,
    question: AggregateQuestion,
    partials: pa.RecordBatch,
    cuts: Sequence[int],
    groups: Int64s | None,
) -> pa.RecordBatch:
    """Return the answers from the partials of each period: a row for each, or for each group."""

    def periods_of(rows: Int64s) -> SummedPeriods:
        places, owners = rows, np.arange(len(rows))
        if groups is not None:
            places = np.flatnonzero(np.isin(groups, rows))
            owners = np.searchsorted(rows, groups[places])
        bounds = np.array(cuts, np.int64)
        return SummedPeriods(bounds[places], bounds[places + 1], owners)

    if groups is not None:
        order = np.argsort(groups, kind="stable")
        bounds = np.searchsorted(groups[order], np.arange(int(groups.max(initial=-1)) + 2))
        partials = question.of_entries(partials.take(pa.array(order)), bounds)
    return question.answers(proven(snapshot, question, partials, periods_of))


def period_partials(
    snapshot: Snapshot, question: AggregateQuestion, cuts: Sequence[int]
) -> pa.RecordBatch:
    """Return the partials of each period."""
    if len(cuts) == ENDS or is_descended(snapshot, cuts):
        return partials_of_index(snapshot, question, cuts)
    listed = ListedCuts(np.array(cuts, np.int64))
    return dense(question, period_partials_of(snapshot, question, listed), len(cuts) - 1)


def is_descended(snapshot: Snapshot, cuts: Sequence[int]) -> bool:
    """Whether to go down the index for each period: for few periods of a stream with many leaves.

    Otherwise the entries of all leaves are looked at once; they are kept for the next query. Then
    the periods have to be in order of time.
    """
    nodes = sum(segment.leaves // tree.FAN_OUT for segment in snapshot.segments)
    return len(cuts) * NODES_PER_CUT < nodes or not ascend(cuts)


def has_short_periods(snapshot: Snapshot, cuts: Sequence[int]) -> bool:
    """Whether periods are so many that most leaves have to be read."""
    leaves = sum(segment.leaves for segment in snapshot.segments)
    is_whole = not any(segment.thinned for segment in snapshot.segments)
    return ascend(cuts) and is_whole and len(cuts) - 1 > max(leaves, 8)


def ascend(cuts: Sequence[int]) -> bool:
    """Whether no period ends before it starts."""
    return len(cuts) > 1 and all(start <= end for start, end in pairwise(cuts))


def partials_of_index(
    snapshot: Snapshot, question: AggregateQuestion, cuts: Sequence[int]
) -> pa.RecordBatch:
    """Return the partials of each period from the index, and from rows where necessary."""
    direct = direct_partials(snapshot, question, cuts)
    if direct is not None:
        return direct
    found: list[pa.RecordBatch] = []
    bounds = [0]
    for start, end in pairwise(cuts):
        parts = partials_in(snapshot, question, TimeRange(start, end))
        found += parts
        bounds.append(bounds[-1] + sum(part.num_rows for part in parts))
    together = pa.concat_batches([question.empty, *found])
    return question.of_entries(together, np.array(bounds, np.int64))


def partials_in(
    snapshot: Snapshot, question: AggregateQuestion, time_range: TimeRange
) -> list[pa.RecordBatch]:
    """Return partials that together stand for every event of a time range."""
    if time_range.is_empty:
        return []
    columns = StreamColumns(snapshot.schema, snapshot.manifest.column_ids)
    directory = directory_of(snapshot, question, columns)
    parts: list[pa.RecordBatch] = []
    touched = touching(directory.entries, time_range)
    whole = within(directory.entries, time_range) & directory.known
    if whole.any():
        parts.append(question.of_stored(those(directory.entries, whole)))
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
    """One entry for each segment, and which segments have the aggregates asked for."""

    segments: tuple[Segment, ...]
    column_ids: tuple[int, ...]
    entries: pa.RecordBatch
    known: Bools

    def fits(self, snapshot: Snapshot) -> bool:
        """Whether it is that of a snapshot; a column that came back has another id."""
        return self.column_ids == snapshot.manifest.column_ids and is_same(
            self.segments, snapshot.segments
        )


def directory_of(
    snapshot: Snapshot, question: AggregateQuestion, columns: StreamColumns
) -> Directory:
    """Return the segments as entries of an index above theirs; made once for a question."""
    made = snapshot.view.directories
    held = made.get(question.calls)
    if not (isinstance(held, Directory) and held.fits(snapshot)):
        schema = pa.schema([*PERIOD_FIELDS, *question.stored])
        known = [question.known_to(segment, columns) for segment in snapshot.segments]
        entries = [
            segment.summary().select(schema.names) if knows else unknown_entry(segment, schema)
            for segment, knows in zip(snapshot.segments, known, strict=True)
        ]
        empty = no_rows(schema)
        together = pa.concat_batches([empty, *entries])
        ids = snapshot.manifest.column_ids
        held = Directory(snapshot.segments, ids, together, np.array(known, np.bool_))
        made[question.calls] = held
    return held


def is_same(one: Sequence[Segment], other: Sequence[Segment]) -> bool:
    """Whether two lists have the very same segments; comparing all they hold takes too long."""
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def unknown_entry(segment: Segment, schema: pa.Schema) -> pa.RecordBatch:
    """Return an entry that only says where a segment begins and ends."""
    period = {"ts_min": segment.ts_min, "ts_max": segment.ts_max}
    return pa.RecordBatch.from_pylist([period], schema=schema)


def segment_partials(
    folder: Path,
    segment: Segment,
    question: AggregateQuestion,
    columns: StreamColumns,
    time_range: TimeRange,
) -> Iterator[pa.RecordBatch]:
    """Yield partials for the events that a segment has in a time range."""
    wanted = Wanted(columns, tuple(question.attributes), time_range, {})
    if not question.known_to(segment, columns):
        if segment.thinned:
            raise thinned_away(folder.name, segment)
        for rows in scan_parts(folder, [segment], (), wanted):
            yield question.of_rows(rows, np.array([0, rows.num_rows], np.int64))
        return
    whole, cut = segment.tree(folder).cover(time_range, question.stored.names)
    yield from map(question.of_stored, whole)
    for leaves in cut:
        if segment.thinned:
            raise thinned_away(folder.name, segment)
        for leaf in stored_leaves(folder, segment, leaves):
            rows = leaf.read(wanted, question.attributes)
            yield question.of_rows(rows, np.array([0, rows.num_rows], np.int64))
