"""The state of the match operator: rows by key, and where each key stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import int64s
from eventide.arrays import to_arrow
from eventide.instants import START_OF_TIME_US
from eventide.kernels.compiled import Bools, Int64s
from eventide.kernels.ordering import ranges
from eventide.operators.columns import concat_batches
from eventide.schema import TS


@dataclass(frozen=True)
class MatchState:
    """Rows by key, and what is known of each key.

    Key k has `kept[k]` of the rows. The first start row to decide is its row number `begin[k]`;
    rows before `seen[k]` could be tested at the last step. `whole` says that its first row here is
    its very first row, `numbers` counts its matches. `matched` marks rows of matches, if the output
    needs it. A key is `due` when the time of a start row is over.
    """

    rows: pa.RecordBatch
    keys: tuple[pa.Array, ...]
    kept: Int64s
    begin: Int64s
    seen: Int64s
    numbers: Int64s
    whole: Bools
    matched: Bools
    due: Int64s
    watermark_us: int = START_OF_TIME_US

    @property
    def weight(self) -> int:
        """How many keys and rows there are."""
        return len(self.kept) + int(self.rows.num_rows)

    @property
    def nbytes(self) -> int:
        """How many bytes they take."""
        marks = (self.whole, self.matched, self.due)
        arrays = (self.kept, self.begin, self.seen, self.numbers, *marks)
        return int(self.rows.nbytes + sum(each.nbytes for each in (*self.keys, *arrays)))

    @cached_property
    def starts(self) -> Int64s:
        """Where the rows of each key begin."""
        return np.asarray(np.cumsum(self.kept) - self.kept)

    def times_at(self, rows: int, otherwise_us: int) -> Int64s:
        """Return the times of the rows so many behind the first start row of each key."""
        found = np.full(len(self.kept), otherwise_us, np.int64)
        there = np.flatnonzero(self.begin + rows < self.kept)
        places = self.starts[there] + self.begin[there] + rows
        found[there] = int64s(self.rows.column(TS))[places]
        return found

    def take(self, keys: Int64s) -> Self:
        """Return the state of some keys, by number."""
        places = ranges(self.starts[keys], self.kept[keys])
        chosen = to_arrow(keys)
        return replace(
            self,
            rows=self.rows.take(to_arrow(places)),
            keys=tuple(key.take(chosen) for key in self.keys),
            kept=self.kept[keys],
            begin=self.begin[keys],
            seen=self.seen[keys],
            numbers=self.numbers[keys],
            whole=self.whole[keys],
            matched=self.matched[places] if len(self.matched) else self.matched,
            due=self.due[keys],
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
    """Return the state of the keys [first, last); their rows are elsewhere."""
    keys = slice(first, last)
    return replace(
        state,
        keys=tuple(key.slice(first, last - first) for key in state.keys),
        begin=state.begin[keys],
        seen=state.seen[keys],
        numbers=state.numbers[keys],
        whole=state.whole[keys],
        matched=state.matched[offsets[first] : offsets[last]],
    )


def with_keys(state: MatchState, keys: tuple[pa.Array, ...]) -> MatchState:
    """Return the state with more keys behind its own, of which nothing is known."""
    known = (state.kept, state.begin, state.seen, state.numbers, state.whole)
    return MatchState(state.rows, keys, *known, state.matched, state.due, state.watermark_us)


def joined(states: Sequence[MatchState], schema: pa.Schema) -> MatchState:
    """Return the states of several ranges of keys as one."""
    if len(states) == 1:
        return states[0]
    columns = zip(*(state.keys for state in states), strict=True)
    return MatchState(
        concat_batches([state.rows for state in states], schema),
        tuple(pa.concat_arrays(column) for column in columns),
        np.concatenate([state.kept for state in states]),
        np.concatenate([state.begin for state in states]),
        np.concatenate([state.seen for state in states]),
        np.concatenate([state.numbers for state in states]),
        np.concatenate([state.whole for state in states]),
        np.concatenate([state.matched for state in states]),
        np.concatenate([state.due for state in states]),
        states[0].watermark_us,
    )
