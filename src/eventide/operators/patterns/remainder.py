"""What remains of each key after a step: the rows that its undecided start rows need."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.kernels.compiled import Bools, Int64s, frozen
from eventide.kernels.ordering import ranges
from eventide.kernels.patterns.remainder import (
    BEGIN,
    DUE,
    FACTS,
    KEPT,
    KEY,
    NUMBER,
    SEEN,
    RestRules,
    keep_rest,
)
from eventide.kernels.patterns.tables import Partitions
from eventide.operators.patterns.masks import RowsByKey
from eventide.operators.patterns.state import MatchState

NO_TIMES = frozen(np.empty(0, np.int64))


def remainder(
    by_key: RowsByKey,
    keys: tuple[pa.Array, ...],
    parts: Partitions,
    matched: Bools,
    keeping: RestRules,
) -> tuple[MatchState, Int64s]:
    """Return the state without what later rows cannot need, and the keys that it has, by number."""
    known = len(parts.begin)
    facts, whole = np.empty((FACTS, known), np.int64), np.empty(known, np.bool_)
    rows = np.empty(by_key.count, np.int64)
    times, order = times_for(by_key, keeping), frozen(by_key.order)
    count, kept = keep_rest(times, order, parts, keeping, facts, whole, rows)
    # A copy: a view would hold the memory of all keys.
    facts = facts[:, :count].copy()
    stayed, lengths = facts[KEY], facts[KEPT]
    if len(matched):
        matched = matched[ranges(parts.offsets[1:][stayed] - lengths, lengths)]
    all_rows = kept == by_key.rows.num_rows and by_key.in_key_order
    chosen = None if count == len(by_key.offsets) - 1 else to_arrow(stayed)
    after = MatchState(
        by_key.rows if all_rows else by_key.rows.take(to_arrow(rows[:kept])),
        keys if chosen is None else tuple(key.take(chosen) for key in keys),
        lengths,
        facts[BEGIN],
        facts[SEEN],
        facts[NUMBER],
        whole[:count].copy(),
        matched,
        facts[DUE],
        keeping.watermark_us,
    )
    return after, stayed


def due_times(by_key: RowsByKey, parts: Partitions, keeping: RestRules) -> Int64s:
    """Return when the time of the next undecided start row of each key is over."""
    facts = np.empty((FACTS, len(parts.begin)), np.int64)
    whole, rows = np.empty(len(parts.begin), np.bool_), np.empty(by_key.count, np.int64)
    times, order = times_for(by_key, keeping), frozen(by_key.order)
    keep_rest(times, order, parts, keeping._replace(keys=True), facts, whole, rows)
    return np.asarray(facts[DUE])


def times_for(by_key: RowsByKey, keeping: RestRules) -> Int64s:
    """Return the times of rows, if start rows run out of time."""
    return frozen(by_key.times) if keeping.within_us >= 0 else NO_TIMES
