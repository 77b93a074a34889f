"""Answer a standing query over what is stored: the streams' events merged in order of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from eventide.engines.build import build_standing
from eventide.engines.standing.choice import chosen_plan
from eventide.engines.standing.reach import conditions_of, needed_ranges, scan_of
from eventide.ingest.merging import EventCursor, TimeMerge
from eventide.instants import TimeRange
from eventide.operators.tree import OperatorTree
from eventide.plan.nodes import scans_of
from eventide.plan.standing.execution import Execution
from eventide.plan.standing.nodes import Standing
from eventide.plan.standing.update_patterns import nodes_of, windows_of
from eventide.plan.tree import Plan
from eventide.store.index.ranges import ValueRange
from eventide.store.source import EventSource

STEP_ROWS = 1 << 16
"""This many events of a stream go into a step: the results of a join have to fit in memory."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read of a stream, once for all windows that want the same part of it."""

    stream: str
    leaves: tuple[int, ...]
    columns: tuple[str, ...]
    time_range: TimeRange
    where: Mapping[str, ValueRange]


@dataclass(frozen=True, slots=True)
class WindowEvents:
    """The events of each window before `until_us` that were in no step before."""

    rows: tuple[pa.RecordBatch, ...]
    until_us: int


def run_standing(
    plan: Standing,
    sources: Mapping[str, EventSource],
    until_us: int | None,
    execution: Execution = "aware",
) -> pa.Table:
    """Return the answer at the last instant before a time, or all that is reported until then.

    The time is mostly that of `until_of`; without any there is no event.
    """
    chosen = chosen_plan(plan, sources).plan
    return run_tree(chosen, build_standing(chosen, execution), sources, until_us)


def run_tree(
    plan: Standing,
    tree: OperatorTree,
    sources: Mapping[str, EventSource],
    until_us: int | None,
) -> pa.Table:
    """Return what a tree of operators makes of stored events."""
    reports: list[pa.RecordBatch] = []
    state: Any = None
    if until_us is not None:
        state = tree.initial_state()
        for step in steps_of(tree, readings(plan, tree, until_us - 1), sources, until_us):
            state, reported = tree.step(state, step.rows, step.until_us)
            if plan.report != "current" and reported.num_rows:
                reports.append(reported)
    if plan.report != "current":
        return pa.Table.from_batches(reports, tree.output_schema)
    answer = [] if state is None else [tree.current(state)]
    return pa.Table.from_batches(answer, tree.answer.answer_schema)


def until_of(plans: Iterable[Standing], sources: Mapping[str, EventSource]) -> int | None:
    """Return the instant after the newest event of all streams, or None if there is no event.

    All standing parts of a query are answered at one instant, even over different streams.
    """
    leaves = [leaf for plan in plans for leaf in windows_of(plan)]
    periods = [sources[scan_of(leaf).stream].time_range for leaf in leaves]
    return max((period.end_us for period in periods if not period.is_empty), default=None)


def newest_of(plan: Plan, sources: Mapping[str, EventSource]) -> int | None:
    """Return the instant after the newest event of all streams below standing parts of a plan.

    Rows that are derived from events may be later.
    """
    periods = [sources[stream].time_range for stream in streams_of_standing(plan)]
    return max((period.end_us for period in periods if not period.is_empty), default=None)


def streams_of_standing(plan: Plan) -> frozenset[str]:
    """Return the streams below standing parts of a plan."""
    standing = (node for node in nodes_of(plan) if isinstance(node, Standing))
    return frozenset(scan.stream for node in standing for scan in scans_of(node))


def readings(
    plan: Standing, tree: OperatorTree, now_us: int, *, continuing: bool = False
) -> tuple[Reading, ...]:
    """Return what has to be read for the answer at an instant; see `needed_ranges`."""
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
) -> Iterator[WindowEvents]:
    """Yield the events of all windows in order of time, in steps that end with `until_us`."""
    cursors = [(each.leaves, cursor_of(each, sources[each.stream])) for each in read]
    return merged_steps(tree, cursors, until_us)


def merged_steps(
    tree: OperatorTree, cursors: Sequence[tuple[Sequence[int], EventCursor]], until_us: int
) -> Iterator[WindowEvents]:
    """Yield the events of cursors, each for some windows, merged in order of time."""
    merge = TimeMerge([cursor for _, cursor in cursors])
    border_us = None
    while border_us != until_us:
        step = merge.step(until_us)
        border_us = step.border_us
        rows: dict[int, pa.RecordBatch] = {}
        for (leaves, _), found in zip(cursors, step.rows, strict=True):
            for leaf in leaves:
                rows[leaf] = found.select(tree.leaves[leaf].schema.names)
        yield WindowEvents(tuple(rows[leaf] for leaf in range(len(tree.leaves))), border_us)


def cursor_of(read: Reading, source: EventSource) -> EventCursor:
    """Return the events of a reading, in order."""
    schema = pa.schema([(name, source.schema.type_of(name).arrow) for name in read.columns])
    if read.time_range.is_empty:
        return EventCursor(iter(()), schema)
    return EventCursor(cut(source.scan(read.columns, read.time_range, read.where or None)), schema)


def cut(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches of no more rows than a step takes."""
    for rows in batches:
        for start in range(0, rows.num_rows, STEP_ROWS):
            yield rows.slice(start, STEP_ROWS)
