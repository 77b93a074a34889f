"""Row patterns over a slice: find where its matches begin, then run as usual."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eventide.engines.history.slices import SEARCHED_BACK, NoEntryError
from eventide.instants import END_OF_TIME_US, START_OF_TIME_US, TimeRange
from eventide.operators.columns import concat_batches
from eventide.operators.key_layers import KeyLayers
from eventide.operators.patterns.entry import entry_of, state_at
from eventide.operators.patterns.match import MatchRows
from eventide.operators.tree import OperatorTree
from eventide.plan.patterns.tree import Repeat, walk_pattern
from eventide.schema import TS
from eventide.store.index.ranges import ValueRange
from eventide.store.order import int64_view
from eventide.store.source import EventSource

FURTHER_BACK = 4
"""How many times as far back to read when no beginning was found."""
MOST_WORK = 5_000_000
"""How many rows may be walked to find a beginning: more take longer than slices save."""


def finds_matches(tree: OperatorTree) -> bool:
    """Whether a tree looks for row patterns."""
    return any(isinstance(each, MatchRows) for each in tree.operators)


def matcher_of(tree: OperatorTree) -> MatchRows:
    """Return the operator of a tree that finds matches."""
    return next(each for each in tree.operators if isinstance(each, MatchRows))


def run_match_slice(
    tree: OperatorTree,
    source: EventSource,
    owned: TimeRange,
    where: dict[str, ValueRange],
    furthest_us: int = END_OF_TIME_US,
) -> list[pa.RecordBatch]:
    """Return the matches of a pattern that one slice owns.

    It looks for the beginning of its matches no further back than `furthest_us`.
    """
    below = len(tree.stateless)
    operator = matcher_of(tree)
    within_us = operator.node.within_us
    assert within_us is not None
    scanned = tree.scan.time_range.intersect(source.time_range)
    back_us = SEARCHED_BACK * within_us
    while True:
        start_us = max(owned.start_us - back_us, START_OF_TIME_US)
        end_us = min(owned.end_us + within_us, END_OF_TIME_US)
        read = TimeRange(start_us, end_us).intersect(scanned)
        rows = read_rows(tree, source, read, where)
        is_first = start_us <= scanned.start_us
        bounded = furthest_us < END_OF_TIME_US
        if bounded and not is_first and work_of(operator, rows, owned.start_us) > MOST_WORK:
            raise NoEntryError
        entry = 0 if is_first else entry_of(operator, rows, start_us, owned.start_us)
        if entry is not None:
            break
        back_us *= FURTHER_BACK
        if back_us > furthest_us:
            raise NoEntryError
    states = [each.initial_state() for each in tree.operators[below:]]
    states[0] = KeyLayers.of(state_at(rows, entry))
    nothing = rows.slice(rows.num_rows)
    _, results = tree.above(below).step(tuple(states), (nothing,), end_us)
    return [results] if results.num_rows else []


def work_of(operator: MatchRows, rows: pa.RecordBatch, owned_from_us: int) -> int:
    """Return how many rows may have to be read to see where matches before a slice end."""
    ts = int64_view(rows.column(TS))
    within_us = operator.node.within_us or 0
    before, near = np.searchsorted(ts, [owned_from_us, owned_from_us - within_us]).tolist()
    repeats = any(
        isinstance(part, Repeat) and part.at_most is None
        for part in walk_pattern(operator.node.pattern)
    )
    longest = int(before - near)
    if operator.node.strategy == "contiguous" and not repeats:
        longest = min(longest, len(operator.automaton.nodes))
    return int(before) * longest


def read_rows(
    tree: OperatorTree, source: EventSource, read: TimeRange, where: dict[str, ValueRange]
) -> pa.RecordBatch:
    """Return the rows of a period that the matcher gets, as one batch."""
    names = [name for name, _ in tree.scan.columns]
    batches = []
    below = tree.lowest(len(tree.stateless))
    states = below.initial_state()
    for rows in source.scan(names, read, where) if not read.is_empty else ():
        _, passed = below.step(states, (rows,), END_OF_TIME_US)
        batches.append(passed)
    return concat_batches(batches, matcher_of(tree).source_schema)
