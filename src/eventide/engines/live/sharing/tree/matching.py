"""Which rows of a stream, of a part or of shared windows which queries take, and who fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import perf_counter

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow, to_numpy
from eventide.engines.live.sharing.channels import FEWEST_PAIRS
from eventide.engines.live.sharing.numbers import LEAF_BITS
from eventide.engines.live.sharing.parts import with_readers
from eventide.engines.live.sharing.run import TemplateRun
from eventide.engines.live.sharing.tree.states import SharedStates
from eventide.engines.live.sharing.tree.templates import SharedTemplates
from eventide.kernels.compiled import Int32s, Int64s
from eventide.operators.tree import TreeLeaf
from eventide.plan.sharing.part_rows import PARTS_FROM
from eventide.plan.sharing.share_windows import WINDOWS
from eventide.plan.sharing.template import QUERY

Matched = dict[int, dict[int, pa.RecordBatch]]
"""The rows of numbered leaves, by the place of their run and the leaf."""


def match(
    tree: SharedTemplates, states: SharedStates, stream: str, rows: pa.RecordBatch, matched: Matched
) -> None:
    """Note which rows of a stream, or of parts, which leaves of templates read."""
    index = states.indexes[stream]
    if not rows.num_rows or not len(index):
        return
    started = perf_counter()
    places, entered = index.matches(rows)
    states.finding_seconds += perf_counter() - started
    if index.failed:
        fail_alone(tree, states, index.failed)
    if not len(places):
        return
    numbers, leaves = entered >> LEAF_BITS, entered & ((1 << LEAF_BITS) - 1)
    if index.failed:
        here = states.numbers.here(numbers)
        places, numbers, leaves = places[here], numbers[here], leaves[here]
    runs, constants = states.numbers.of(numbers)
    for run, leaf, wanted in groups_of(runs, leaves):
        states.runs[run].counts.take(constants[wanted])
        own, who, which = places[wanted], numbers[wanted], constants[wanted]
        if states.runs[run].tree.template.channels and pays(own):
            starts, who = tree.channels.together(own, who)
            own, which = own[starts], which[starts]
        matched.setdefault(run, {})[leaf] = states.runs[run].leaf_rows(leaf, rows, own, who, which)


def fail(tree: SharedTemplates, states: SharedStates, place: int, error: Exception) -> None:
    """End all queries of a template that cannot go on, and those of which it is a part."""
    here = states.numbers.with_parts
    own = with_readers(states, here[states.numbers.of(here)[0] == place])
    states.failed |= dict.fromkeys(own[own < PARTS_FROM].tolist(), error)
    tree.drop(states, own)
    run = states.runs[place]
    fresh = TemplateRun.of(run.tree, tree.scans)
    run.states, run.windows = fresh.states, fresh.windows


def fail_alone(
    tree: SharedTemplates, states: SharedStates, failed: Mapping[int, Exception]
) -> None:
    """End queries whose own conditions have no value for an event."""
    by_number = {entry >> LEAF_BITS: error for entry, error in failed.items()}
    for number, error in by_number.items():
        lost = with_readers(states, np.array([number], np.int64))
        states.failed |= dict.fromkeys(lost[lost < PARTS_FROM].tolist(), error)
        tree.drop(states, lost)


def of_windows(
    states: SharedStates, run: TemplateRun, ended: pa.RecordBatch
) -> dict[int, pa.RecordBatch]:
    """Return the rows of shared windows for the queries that are here, as a leaf reads them."""
    if not ended.num_rows:
        return {}
    numbers = to_numpy(ended.column(QUERY))
    here = np.flatnonzero(states.numbers.here(numbers))
    if not len(here):
        return {}
    _, constants = states.numbers.of(numbers[here])
    run.counts.take(constants)
    (leaf,) = (place for place, each in enumerate(run.tree.tree.leaves) if is_windows(each))
    return {leaf: run.leaf_rows(leaf, ended, here, numbers[here], constants)}


def only_here(states: SharedStates, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows without those of queries that have left."""
    here = states.numbers.here(to_numpy(rows.column(QUERY)))
    return rows if here.all() else rows.filter(to_arrow(here))


def passed_on(
    tree: SharedTemplates,
    states: SharedStates,
    run: TemplateRun,
    rows: pa.RecordBatch,
    matched: Matched,
) -> pa.RecordBatch:
    """Give the rows of parts to the queries that read them; return those of queries."""
    of_parts = to_numpy(rows.column(QUERY)) >= PARTS_FROM
    if of_parts.any():
        match(tree, states, run.tree.rows_name, rows.filter(to_arrow(of_parts)), matched)
    return rows.filter(to_arrow(~of_parts))


def pays(events: Int64s) -> bool:
    """Whether so many queries take each of some events that they are put together."""
    return len(events) >= FEWEST_PAIRS * (1 + int(np.count_nonzero(np.diff(events))))


def is_windows(leaf: TreeLeaf) -> bool:
    """Whether a leaf reads the rows of shared windows."""
    return leaf.scan.stream == WINDOWS


def groups_of(runs: Int32s, leaves: Int64s) -> Iterator[tuple[int, int, slice | Int64s]]:
    """Yield each pair of run and leaf, and its places in order; most often there is one pair."""
    pair = (runs.astype(np.int64) << LEAF_BITS) | leaves
    if (pair == pair[0]).all():
        yield int(runs[0]), int(leaves[0]), slice(None)
        return
    order = np.argsort(pair, kind="stable")
    borders = np.flatnonzero(np.diff(pair[order])) + 1
    for places in np.split(order, borders):
        yield int(runs[places[0]]), int(leaves[places[0]]), places
