"""The rows of a step in order of keys: those that were kept, then those that have come."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import one_spelling
from eventide.kernels.compiled import Int32s, frozen
from eventide.kernels.patterns.remainder import (
    FIRST,
    FRESH,
    KEY_ARRAYS,
    OFFSET,
    ORDER,
    ROW_ARRAYS,
    TIME,
    arrange,
    stand,
)
from eventide.kernels.patterns.tables import Partitions
from eventide.operators.columns import concat_batches
from eventide.operators.key_layers import MANY_EVENTS, TakenKeys
from eventide.operators.key_parts import KeyColumns, KeyOrder
from eventide.operators.patterns.masks import RowsByKey, times_lying
from eventide.operators.patterns.remainder import NO_TIMES
from eventide.operators.patterns.state import MatchState
from eventide.schema import TS

IDLE_EVENTS = 256
"""In steps of fewer events no key is kept of which nothing is known any more."""
IDLE_FOR_EACH_EVENT = 2
"""They all go when there are more keys for each event."""


@dataclass(frozen=True, slots=True)
class StepWork:
    """The kept and the new rows of some keys, what is known of the keys, and their columns.

    `parts` says where each key stands, if that is known yet.
    """

    by_key: RowsByKey
    state: MatchState
    keys: KeyColumns
    parts: Partitions | None = None
    idle: bool = False
    """Whether keys of which nothing is known any more may stay."""


@dataclass(frozen=True, slots=True)
class RowOrder:
    """How the rows of a step are put in order."""

    schema: pa.Schema
    reach_ahead: int
    timeless: bool
    """Whether it does not matter when rows are."""
    marked: bool
    """Whether it matters which rows were in matches."""
    threads: int = 1

    def arranged(self, taken: TakenKeys[MatchState], rows: pa.RecordBatch, ended: bool) -> StepWork:
        """Return the kept and the new rows by key."""
        if taken.asked.columns and rows.num_rows < MANY_EVENTS:
            return self.few_together(taken, rows, ended)
        codes, columns, count = taken.numbered(self.threads)
        return self.together(taken.part, rows, codes, KeyColumns(tuple(columns)), count)

    def together(
        self, state: MatchState, rows: pa.RecordBatch, codes: Int32s, keys: KeyColumns, count: int
    ) -> StepWork:
        """Return the rows by key; those that follow are of the keys with these numbers."""
        ordered, in_order = KeyOrder.behind(state.kept, codes, count, self.threads)
        everything = concat_batches([state.rows, rows], self.schema)
        by_key = RowsByKey(everything, ordered.order, ordered.offsets, in_order)
        return StepWork(by_key, self.with_marks(state, by_key), keys)

    def partitions(self, by_key: RowsByKey, state: MatchState, ended: bool) -> Partitions:
        """Return where each key stands."""
        offsets = frozen(by_key.offsets)
        count = len(offsets) - 1
        places, whole = np.empty((4, count), np.int64), np.empty(count, np.bool_)
        stand(offsets, frozen(state.facts), self.reach_ahead, ended, places, whole)
        begin, known, seen, numbers = frozen(places)
        return Partitions(offsets, begin, known, frozen(whole), seen, numbers)

    def few_together(
        self, taken: TakenKeys[MatchState], rows: pa.RecordBatch, ended: bool
    ) -> StepWork:
        """Return the rows by key, few of them new, and where each key stands: by one kernel."""
        state, asked, events = taken.part, taken.asked, rows.num_rows
        everything = concat_batches([state.rows, rows], self.schema)
        lying = NO_TIMES if self.timeless else times_lying(everything)
        most = state.count + events
        of_keys = np.empty((KEY_ARRAYS, most + 1), np.int64)
        of_rows = np.empty((ROW_ARRAYS, everything.num_rows), np.int64)
        whole = np.empty(most, np.bool_)
        count, in_order = arrange(
            taken.roomy_table(),
            *asked.words,
            frozen(state.facts),
            NO_TIMES if lying is None else lying,
            self.reach_ahead,
            ended,
            of_keys,
            of_rows,
            whole,
        )
        for each in (of_keys, of_rows, whole):
            each.setflags(write=False)
        offsets = of_keys[OFFSET, : count + 1]
        begin, known, seen, numbers = of_keys[FIRST:, :count]
        parts = Partitions(offsets, begin, known, whole[:count], seen, numbers)
        by_key = RowsByKey(everything, of_rows[ORDER], offsets, in_order)
        if lying is not None and len(lying):
            by_key.viewed[TS, 0] = of_rows[TIME]
        keys = KeyColumns(state.keys)
        fresh = of_rows[FRESH, : count - state.count]
        taken.number_fresh(fresh)
        if len(fresh):
            pairs = zip(state.keys, map(one_spelling, asked.columns), strict=True)
            places = np.concatenate([np.arange(state.count), fresh + state.count])
            keys = KeyColumns(tuple(map(pa.concat_arrays, pairs)), places)
        # To forget keys and know them again would take longer than all the rest.
        idle = taken.is_whole and events >= IDLE_EVENTS and count <= IDLE_FOR_EACH_EVENT * events
        return StepWork(by_key, self.with_marks(state, by_key), keys, parts, idle)

    def with_marks(self, state: MatchState, by_key: RowsByKey) -> MatchState:
        """Return the state with marks of all rows in key order, if they are needed."""
        if not self.marked:
            return state
        matched = np.zeros(by_key.count, np.bool_)
        matched[: len(state.matched)] = state.matched
        return replace(state, matched=matched[by_key.order])
