"""Temporal patterns over a slice: what it has to read.

A slice owns the matches that are detected in its period. Their situations began no longer than
WITHIN before, so it reads from there. One earlier event is enough: situations that hold on it began
too long ago to matter, and those that do not hold on it have not begun yet. Nothing behind the
slice is read: a key that falls silent before its end does so no matter what follows.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from eventide.instants import END_OF_TIME_US, START_OF_TIME_US, TimeRange
from eventide.operators.situations.match import MatchSituations
from eventide.operators.tree import OperatorTree
from eventide.store.index.ranges import ValueRange
from eventide.store.source import EventSource

LOOKED_AT = 64
"""About this many events are searched first for the last one before a slice."""
FURTHER_BACK = 4
"""How many times as many are searched next, until one is found."""


def temporal_matcher(tree: OperatorTree) -> MatchSituations | None:
    """Return the operator of a tree that finds temporal patterns, if it has one."""
    found = (each for each in tree.operators if isinstance(each, MatchSituations))
    return next(found, None)


def rows_of_slice(
    tree: OperatorTree,
    within_us: int,
    source: EventSource,
    owned: TimeRange,
    where: dict[str, ValueRange],
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that a pattern needs for the matches that a slice owns."""
    scanned = tree.scan.time_range.intersect(source.time_range)
    from_us = max(owned.start_us - within_us, START_OF_TIME_US)
    read = TimeRange(from_us, owned.end_us).intersect(scanned)
    rows = read_rows(tree, source, read, where)
    first = next(rows, None)
    if first is None:
        return
    earlier = last_row(tree, source, TimeRange(scanned.start_us, read.start_us), where)
    if earlier is not None:
        yield earlier
    yield first
    yield from rows


def read_rows(
    tree: OperatorTree, source: EventSource, read: TimeRange, where: dict[str, ValueRange]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a period that the matcher gets."""
    names = [name for name, _ in tree.scan.columns]
    below = tree.lowest(len(tree.stateless))
    states = below.initial_state()
    for rows in source.scan(names, read, where) if not read.is_empty else ():
        _, passed = below.step(states, (rows,), END_OF_TIME_US)
        if passed.num_rows:
            yield passed


def last_row(
    tree: OperatorTree, source: EventSource, earlier: TimeRange, where: dict[str, ValueRange]
) -> pa.RecordBatch | None:
    """Return the last row of a period that the matcher gets, or None if it gets none."""
    lasts = source.time_range.end_us - source.time_range.start_us
    reach_us = max(1, LOOKED_AT * lasts // max(1, source.row_count))
    end_us = earlier.end_us
    while end_us > earlier.start_us:
        start_us = max(earlier.start_us, end_us - reach_us)
        found = None
        for rows in read_rows(tree, source, TimeRange(start_us, end_us), where):
            found = rows
        if found is not None:
            return found.slice(found.num_rows - 1)
        end_us = start_us
        reach_us *= FURTHER_BACK
    return None
