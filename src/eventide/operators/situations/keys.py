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
from eventide.kernels.situations.runs import NEVER as NOT_YET
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
        return len(self.known.held) + len(self.runs) + sum(len(each.run) for each in self.parts)

    @property
    def nbytes(self) -> int:
        """How many bytes they take."""
        known = (*self.keys, self.known.held, self.known.waiting, self.known.last_ts)
        parts = [each.columns.nbytes + each.run.nbytes for each in self.parts]
        arrays = (*known, *self.runs.columns, self.reported, self.pending)
        return int(sum(each.nbytes for each in arrays) + sum(parts))

    @cached_property
    def due(self) -> Int64s:
        """When the silence of each key ends its runs, else its closed runs are no longer needed."""
        due = np.full(len(self.known.held), NEVER, np.int64)
        if self.within_us is not None:
            over = np.flatnonzero(self.runs.end_pos != NOT_YET)
            last = np.full(len(due), -LONGEST_US, np.int64)
            np.maximum.at(last, self.runs.key[over], self.runs.start_ts[over])
            due[self.runs.key[over]] = last[self.runs.key[over]] + min(self.within_us, LONGEST_US)
        if self.gap_us is not None:
            goes_on = np.flatnonzero(self.known.held)
            silent = self.known.last_ts[goes_on] + min(self.gap_us, LONGEST_US)
            # A key whose closed runs were due has been looked at, and would hide its silence.
            due[goes_on] = silent
        return due

    @cached_property
    def by_key(self) -> tuple[Int64s, Int64s]:
        """The runs in order of their keys, and where those of each key begin."""
        order = np.empty(len(self.runs), np.int64)
        offsets = np.zeros(len(self.known.held) + 1, np.int64)
        order_by_key(run_codes(self.runs.key), offsets, order)
        return order, offsets

    def take(self, keys: Int64s) -> Self:
        """Return the state of some keys, by number."""
        order, offsets = self.by_key
        counts = offsets[1:][keys] - offsets[keys]
        kept = order[ranges(offsets[keys], counts)]
        number = np.repeat(np.arange(len(keys)), counts)
        return type(self)(
            self.known.take(keys),
            Runs(number, *(column[kept] for column in self.runs.columns[1:])),
            tuple(each.take(kept) for each in self.parts),
            self.reported[keys],
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
        keys = before(len(one.known.held) for one in each)
        runs = before(len(one.runs) for one in each)
        columns = zip(*(one.runs.columns[1:] for one in each), strict=True)
        return type(self)(
            self.known.joined([other.known for other in others]),
            Runs(moved_on([one.runs.key for one in each], keys), *map(np.concatenate, columns)),
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


def before(counts: Iterable[int]) -> list[int]:
    """Return for each count the sum of those before it."""
    return list(accumulate(counts, initial=0))[:-1]


def moved_on(numbers: Sequence[Int64s], by: Sequence[int]) -> Int64s:
    """Return lists of numbers as one, those of each list larger by a number."""
    return np.concatenate([each + more for each, more in zip(numbers, by, strict=True)])
