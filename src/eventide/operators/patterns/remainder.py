"""What remains of each key after a step: the rows that its undecided start rows need."""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Bools, Int64s, frozen
from eventide.kernels.ordering import ranges
from eventide.kernels.patterns.remainder import DUE, FACTS, KEPT, RestRules, keep_rest
from eventide.kernels.patterns.tables import Partitions
from eventide.operators.columns import rows_at
from eventide.operators.key_parts import KeyColumns
from eventide.operators.patterns.masks import RowsByKey
from eventide.operators.patterns.state import MatchState

NO_TIMES = frozen(np.empty(0, np.int64))


def remainder(
    by_key: RowsByKey,
    keys: KeyColumns,
    parts: Partitions,
    matched: Bools,
    keeping: RestRules,
) -> tuple[MatchState, Int64s]:
    """Return the state without what later rows cannot need, and the keys that it has, by number."""
    known = len(parts.begin)
    facts, stayed = np.empty((FACTS, known), np.int64), np.empty(known, np.int64)
    rows = np.empty(by_key.count, np.int64)
    times, order = times_for(by_key, keeping), frozen(by_key.order)
    count, kept = keep_rest(times, order, parts, keeping, stayed, facts, rows)
    if count < known:
        # A copy: a view would hold the memory of all keys.
        facts, stayed = facts[:, :count].copy(), stayed[:count].copy()
    if len(matched):
        lengths = facts[KEPT]
        matched = matched[ranges(parts.offsets[1:][stayed] - lengths, lengths)]
    all_rows = kept == by_key.rows.num_rows and by_key.in_key_order
    unchanged = count == len(by_key.offsets) - 1 and keys.places is None
    after = MatchState(
        by_key.rows if all_rows else rows_at(by_key.rows, rows[:kept]),
        keys.columns if unchanged else keys.take(stayed),
        facts,
        matched,
        keeping.watermark_us,
    )
    return after, stayed


def due_times(by_key: RowsByKey, parts: Partitions, keeping: RestRules) -> Int64s:
    """Return when the time of the next undecided start row of each key is over."""
    known = len(parts.begin)
    facts, stayed = np.empty((FACTS, known), np.int64), np.empty(known, np.int64)
    rows = np.empty(by_key.count, np.int64)
    times, order = times_for(by_key, keeping), frozen(by_key.order)
    keep_rest(times, order, parts, keeping._replace(keys=True), stayed, facts, rows)
    return np.asarray(facts[DUE])


def times_for(by_key: RowsByKey, keeping: RestRules) -> Int64s:
    """Return the times of rows, if start rows run out of time."""
    return frozen(by_key.times) if keeping.within_us >= 0 else NO_TIMES
