"""The state of situations, by key: a step takes the keys that it needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Self

import numpy as np
import pyarrow as pa

from eventide.kernels.compiled import Int64s
from eventide.kernels.grouping import order_by_key
from eventide.kernels.ordering import ranges
from eventide.kernels.situations.runs import due_times
from eventide.operators.columns import concat_batches
from eventide.operators.key_layer import NEVER
from eventide.operators.situations.runs import (
    LONGEST_US,
    KeyStates,
    Runs,
    run_codes,
)
from eventide.operators.situations.values import Parts


@dataclass(frozen=True)
class KeyedSituations:
    """Keys, their runs, and partial aggregates for each symbol, by number of the run.

    `reported` counts the matches of each key. `pending` has the members, by number of the run, of
    matches that were reported while some were open. Closed runs are needed for `within_us`.
    """

    known: KeyStates
    runs: Runs
    parts: tuple[Parts, ...]
    reported: Int64s
    pending: Int64s
    gap_us: int | None
    within_us: int | None

    @property
    def keys(self) -> tuple[pa.Array, ...]:
        """The columns of the keys."""
        return self.known.keys

    @property
    def weight(self) -> int:
        """How many keys, runs and parts there are."""
        return len(self.known) + len(self.runs) + sum(len(each.run) for each in self.parts)

    @property
    def nbytes(self) -> int:
        """How many bytes they take."""
        parts = [each.columns.nbytes + each.run.nbytes for each in self.parts]
        arrays = (*self.keys, self.known.table, self.runs.table, self.reported, self.pending)
        return int(sum(each.nbytes for each in arrays) + sum(parts))

    @cached_property
    def due(self) -> Int64s:
        """When the silence of each key ends its runs, else its closed runs are no longer needed."""
        due = np.full(len(self.known), NEVER, np.int64)
        key, _, start_ts, _, _, end_pos, _ = self.runs.columns
        held, _, last_ts = self.known.table
        gap_us, within_us = bounded(self.gap_us), bounded(self.within_us)
        due_times((key, start_ts, end_pos), (held, last_ts), gap_us, within_us, due)
        return due

    @cached_property
    def by_key(self) -> tuple[Int64s, Int64s]:
        """The runs in order of their keys, and where those of each key begin."""
        order = np.empty(len(self.runs), np.int64)
        offsets = np.zeros(len(self.known) + 1, np.int64)
        order_by_key(run_codes(self.runs.key), offsets, order)
        return order, offsets

    def take(self, keys: Int64s) -> Self:
        """Return the state of some keys, by number."""
        order, offsets = self.by_key
        if len(keys) == 1:
            return self._one(int(keys[0]), order, offsets)
        counts = offsets[1:][keys] - offsets[keys]
        kept = order[ranges(offsets[keys], counts)]
        number = np.repeat(np.arange(len(keys)), counts)
        return type(self)(
            self.known.take(keys),
            self.runs.take(kept).of_keys(number),
            tuple(each.take(kept) for each in self.parts),
            self.reported[keys],
            self._pending_of(kept),
            self.gap_us,
            self.within_us,
        )

    def _one(self, key: int, order: Int64s, offsets: Int64s) -> Self:
        """Return the state of one key: an event has no time for more."""
        kept = order[offsets[key] : offsets[key + 1]]
        runs = self.runs.take(kept)
        runs.table[0] = 0
        return type(self)(
            self.known.one(key),
            runs,
            tuple(each.take(kept) for each in self.parts),
            self.reported[key : key + 1],
            self._pending_of(kept),
            self.gap_us,
            self.within_us,
        )

    def _pending_of(self, runs: Int64s) -> Int64s:
        """Return the pending matches of some runs, by the places of these."""
        if not len(self.pending):
            return self.pending
        place = np.full(len(self.runs), -1, np.int64)
        place[runs] = np.arange(len(runs))
        return np.asarray(place[self.pending[place[self.pending[:, 0]] >= 0]])

    def joined(self, others: Sequence[Self]) -> Self:
        """Return these keys, then those of other parts."""
        each = [self, *others]
        keys = before(len(one.known) for one in each)
        runs = before(len(one.runs) for one in each)
        table = np.concatenate([one.runs.table for one in each], axis=1)
        return type(self)(
            self.known.joined([other.known for other in others]),
            Runs(table).of_keys(moved_on([one.runs.key for one in each], keys)),
            tuple(
                Parts(
                    concat_batches([one.columns for one in parts], parts[0].columns.schema),
                    moved_on([one.run for one in parts], runs),
                )
                for parts in zip(*(one.parts for one in each), strict=True)
            ),
            np.concatenate([one.reported for one in each]),
            moved_on([one.pending for one in each], runs),
            self.gap_us,
            self.within_us,
        )


def bounded(length_us: int | None) -> int:
    """Return a length of time as kernels take it; none is negative."""
    return -1 if length_us is None else min(length_us, LONGEST_US)


def before(counts: Iterable[int]) -> list[int]:
    """Return for each count the sum of those before it."""
    return list(accumulate(counts, initial=0))[:-1]


def moved_on(numbers: Sequence[Int64s], by: Sequence[int]) -> Int64s:
    """Return lists of numbers as one, those of each list larger by a number."""
    return np.concatenate([each + more for each, more in zip(numbers, by, strict=True)])
