"""The state of the match operator: rows by key, and where each key stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import int64s
from eventide.instants import START_OF_TIME_US
from eventide.kernels.compiled import Bools, Int64s
from eventide.kernels.ordering import ranges
from eventide.kernels.patterns.remainder import BEGIN, DUE, KEPT
from eventide.operators.columns import at_places, concat_batches, rows_at
from eventide.schema import TS


@dataclass(frozen=True)
class MatchState:
    """Rows by key, and what is known of each key.

    `facts` has a column for each key. It has `KEPT` of the rows. The first start row to decide is
    its row number `BEGIN`; rows before `SEEN` could be tested at the last step. `WHOLE` says that
    its first row here is its very first row, `NUMBER` counts its matches. It is `DUE` when the time
    of a start row is over. `matched` marks rows of matches, if the output needs it.
    """

    rows: pa.RecordBatch
    keys: tuple[pa.Array, ...]
    facts: Int64s
    matched: Bools
    watermark_us: int = START_OF_TIME_US

    @property
    def count(self) -> int:
        """The number of keys."""
        return int(self.facts.shape[1])

    @property
    def kept(self) -> Int64s:
        """How many rows each key has."""
        kept: Int64s = self.facts[KEPT]
        return kept

    @property
    def due(self) -> Int64s:
        """When each key is due."""
        due: Int64s = self.facts[DUE]
        return due

    @property
    def weight(self) -> int:
        """How many keys and rows there are."""
        return self.count + int(self.rows.num_rows)

    @property
    def nbytes(self) -> int:
        """How many bytes they take."""
        arrays = (*self.keys, self.facts, self.matched)
        return int(self.rows.nbytes + sum(each.nbytes for each in arrays))

    @cached_property
    def starts(self) -> Int64s:
        """Where the rows of each key begin."""
        return np.asarray(np.cumsum(self.kept) - self.kept)

    def times_at(self, rows: int, otherwise_us: int) -> Int64s:
        """Return the times of the rows so many behind the first start row of each key."""
        found = np.full(self.count, otherwise_us, np.int64)
        there = np.flatnonzero(self.facts[BEGIN] + rows < self.kept)
        places = self.starts[there] + self.facts[BEGIN][there] + rows
        found[there] = int64s(self.rows.column(TS))[places]
        return found

    def take(self, keys: Int64s) -> Self:
        """Return the state of some keys, by number."""
        places = ranges(self.starts[keys], self.kept[keys])
        return replace(
            self,
            rows=rows_at(self.rows, places),
            keys=tuple(at_places(key, keys) for key in self.keys),
            facts=self.facts.take(keys, axis=1),
            matched=self.matched[places] if len(self.matched) else self.matched,
        )

    def joined(self, others: Sequence[MatchState]) -> MatchState:
        """Return these keys, then those of other states."""
        return joined([self, *others], self.rows.schema)


@dataclass(frozen=True)
class Excerpts:
    """Rows in excerpts, each a stream of its own: excerpt s is [offsets[s], offsets[s + 1]).

    Matches lie between `begin[s]` and `end[s]`; rows outside are there for PREV and NEXT. `keys`
    has the key of each excerpt.
    """

    rows: pa.RecordBatch
    keys: tuple[pa.Array, ...]
    offsets: Int64s
    begin: Int64s
    end: Int64s


def part_of(state: MatchState, offsets: Int64s, first: int, last: int) -> MatchState:
    """Return what is known of the keys [first, last); their rows and columns are elsewhere."""
    return replace(
        state,
        facts=state.facts[:, first:last],
        matched=state.matched[offsets[first] : offsets[last]],
    )


def joined(states: Sequence[MatchState], schema: pa.Schema) -> MatchState:
    """Return the states of several ranges of keys as one."""
    if len(states) == 1:
        return states[0]
    columns = zip(*(state.keys for state in states), strict=True)
    return MatchState(
        concat_batches([state.rows for state in states], schema),
        tuple(pa.concat_arrays(column) for column in columns),
        np.concatenate([state.facts for state in states], axis=1),
        np.concatenate([state.matched for state in states]),
        states[0].watermark_us,
    )
