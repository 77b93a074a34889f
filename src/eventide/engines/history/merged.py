"""Replay the events of several scans, merged in order of time, through one tree of operators.

Windows in brackets are answered like this too: of each stream, only what can still be in a window
at the last instant is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from eventide.engines.build import build_tree
from eventide.engines.standing.reach import conditions_of, needed_ranges
from eventide.ingest.merging import EventCursor, TimeMerge
from eventide.instants import TimeRange
from eventide.operators.filter_project import Stateless
from eventide.operators.tree import OperatorTree, TreeStep
from eventide.plan.nodes import scans_of
from eventide.plan.standing.update_patterns import windows_of
from eventide.plan.tree import Plan
from eventide.store.index.ranges import ValueRange
from eventide.store.source import EventSource

STEP_ROWS = 1 << 16
"""This many events of a stream go into a step: the results of a join have to fit in memory."""
BLOCK_ROWS = 1 << 18
"""This many if there are no joins, but only operators that like large batches."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read of a stream, once for all leaves that want the same part of it."""

    stream: str
    leaves: tuple[int, ...]
    columns: tuple[str, ...]
    time_range: TimeRange
    where: Mapping[str, ValueRange]


def run_merged(
    plan: Plan,
    sources: Mapping[str, EventSource],
    until_us: int | None,
    tree: OperatorTree | None = None,
    periods: Sequence[TimeRange] | None = None,
) -> list[pa.RecordBatch]:
    """Return the rows of a plan: an answer at the last instant before a time, or all until then.

    The time is mostly that of `newest_of`; without any there is no event. With `periods`, in order
    of time, no other events can matter.
    """
    if until_us is None:
        return []
    tree = build_tree(plan).shared() if tree is None else tree
    read = readings(plan, tree, until_us - 1)
    return list(tree.run(steps_of(tree, read, sources, until_us, periods)))


def newest_of(plan: Plan, sources: Mapping[str, EventSource]) -> int | None:
    """Return the instant after the newest event of all streams below windows, or None.

    All windows of a query are looked at in one instant, even over different streams.
    """
    periods = [sources[stream].time_range for stream in streams_of_windows(plan)]
    return max((period.end_us for period in periods if not period.is_empty), default=None)


def streams_of_windows(plan: Plan) -> frozenset[str]:
    """Return the streams below windows in brackets."""
    return frozenset(scan.stream for window in windows_of(plan) for scan in scans_of(window))


def readings(
    plan: Plan, tree: OperatorTree, now_us: int, *, continuing: bool = False
) -> tuple[Reading, ...]:
    """Return what has to be read for the rows at an instant; see `needed_ranges`."""
    ranges = needed_ranges(plan, now_us, continuing=continuing)
    found: list[Reading] = []
    for number, (leaf, times, where) in enumerate(
        zip(tree.leaves, ranges, conditions_of(plan), strict=True)
    ):
        names = tuple(leaf.schema.names)
        new = Reading(leaf.scan.stream, (number,), names, times, where)
        for place, held in enumerate(found):
            if (held.stream, held.time_range, held.where) == (new.stream, times, where):
                columns = tuple(dict.fromkeys((*held.columns, *names)))
                leaves = (*held.leaves, number)
                found[place] = Reading(held.stream, leaves, columns, times, where)
                break
        else:
            found.append(new)
    return tuple(found)


def steps_of(
    tree: OperatorTree,
    read: Sequence[Reading],
    sources: Mapping[str, EventSource],
    until_us: int,
    periods: Sequence[TimeRange] | None = None,
) -> Iterator[TreeStep]:
    """Yield the events of all leaves in order of time, in steps that end with `until_us`."""
    blocks = all(isinstance(each, Stateless) or each.reads_blocks for each in tree.operators)
    most = BLOCK_ROWS if blocks else STEP_ROWS
    cursors = [(each.leaves, cursor_of(each, sources[each.stream], most, periods)) for each in read]
    return merged_steps(tree, cursors, until_us)


def merged_steps(
    tree: OperatorTree, cursors: Sequence[tuple[Sequence[int], EventCursor]], until_us: int
) -> Iterator[TreeStep]:
    """Yield the events of cursors, each for some leaves, merged in order of time."""
    merge = TimeMerge([cursor for _, cursor in cursors])
    border_us = None
    while border_us != until_us:
        step = merge.step(until_us)
        border_us = step.border_us
        rows: dict[int, pa.RecordBatch] = {}
        for (leaves, _), found in zip(cursors, step.rows, strict=True):
            for leaf in leaves:
                rows[leaf] = found.select(tree.leaves[leaf].schema.names)
        yield TreeStep(tuple(rows[leaf] for leaf in range(len(tree.leaves))), border_us)


def cursor_of(
    read: Reading, source: EventSource, most: int, periods: Sequence[TimeRange] | None = None
) -> EventCursor:
    """Return the events of a reading, in order, in batches of at most so many rows.

    If periods are given, those in them.
    """
    schema = pa.schema([(name, source.schema.type_of(name).arrow) for name in read.columns])
    if read.time_range.is_empty:
        return EventCursor(iter(()), schema)
    asked = [read.time_range]
    if periods is not None:
        asked = [each.intersect(read.time_range) for each in periods]
    rows = (
        batch
        for each in asked
        if not each.is_empty
        for batch in source.scan(read.columns, each, read.where or None)
    )
    return EventCursor(cut(rows, most), schema)


def cut(batches: Iterator[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """Yield batches of no more rows than a step takes."""
    for rows in batches:
        for start in range(0, rows.num_rows, most):
            yield rows.slice(start, most)
