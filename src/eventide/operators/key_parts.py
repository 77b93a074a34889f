"""Rows of many keys, cut by key, so that threads can share the work of a step.

Keys have the numbers that one thread would give them, and a part is a range of these. So results
of parts, one after the other, are in the order of one thread wherever that is by key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
import pyarrow as pa

from eventide.kernels.compiled import Int32s, Int64s, frozen
from eventide.kernels.grouping import count_keys, order_behind, order_by_key, order_range
from eventide.kernels.ordering import is_sorted
from eventide.operators.columns import Numbered, at_places, encode_keys, encode_more
from eventide.threads import in_threads

SMALLEST_PART = 100_000
"""With fewer rows a thread costs more than it saves."""
PARTS_A_THREAD = 2
"""So that a thread whose keys take less time gets more of them."""
MANY_KEYS = 8
"""With fewer rows for each key than this, to number keys twice takes more than threads save."""


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """The columns of keys: key k is at `places[k]` of each, or at k."""

    columns: tuple[pa.Array, ...]
    places: Int64s | None = None

    def take(self, keys: Int64s) -> tuple[pa.Array, ...]:
        """Return the columns of some keys, by number."""
        where = keys if self.places is None else self.places[keys]
        return tuple([at_places(column, where) for column in self.columns])

    def part(self, first: int, last: int) -> Self:
        """Return the keys [first, last)."""
        if self.places is not None:
            return type(self)(self.columns, self.places[first:last])
        return type(self)(tuple(column.slice(first, last - first) for column in self.columns))


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """Rows by key: row `order[i]` is the i-th, key k is [offsets[k], offsets[k + 1])."""

    order: Int64s
    offsets: Int64s

    @classmethod
    def of(cls, codes: Int32s, count: int, threads: int = 1) -> Self:
        """Put rows in order of their keys."""
        order, offsets = np.empty(len(codes), np.int64), np.zeros(count + 1, np.int64)
        bounds = row_parts(len(codes), threads)
        if len(bounds) == 1:
            order_by_key(codes, offsets, order)
            return cls(frozen(order), frozen(offsets))
        counts = count_rows(codes, count, threads)
        np.cumsum(counts.sum(axis=0), out=offsets[1:])
        # The rows of a key lie part by part.
        places = offsets[:-1] + np.cumsum(counts, axis=0) - counts
        in_threads(
            lambda turn: order_range(codes, *bounds[turn], places[turn], order), range(len(bounds))
        )
        return cls(frozen(order), frozen(offsets))

    @classmethod
    def behind(cls, kept: Int64s, codes: Int32s, count: int, threads: int = 1) -> tuple[Self, bool]:
        """Put kept rows, by key, and those that follow in order of keys; whether they are already.

        Key k has kept[k] of the first rows.
        """
        if len(row_parts(len(codes), threads)) > 1:
            old = np.repeat(np.arange(len(kept), dtype=np.int32), kept)
            by_key = cls.of(frozen(np.concatenate([old, codes])), count, threads)
            return by_key, count == 1 or is_sorted(by_key.order, by_key.order)
        rows = int(kept.sum()) + len(codes)
        order, offsets = np.empty(rows, np.int64), np.zeros(count + 1, np.int64)
        stays = order_behind(frozen(kept), codes, offsets, order)
        return cls(frozen(order), frozen(offsets)), stays

    def part(self, first: int, last: int) -> Self:
        """Return the rows of the keys [first, last)."""
        low, high = self.offsets[first], self.offsets[last]
        return type(self)(
            frozen(self.order[low:high]), frozen(self.offsets[first : last + 1] - low)
        )


def row_parts(rows: int, threads: int) -> list[tuple[int, int]]:
    """Return ranges of rows for threads to share: a single one if that takes less.

    >>> row_parts(300_000, 2)
    [(0, 150000), (150000, 300000)]
    """
    parts = max(1, min(threads, rows // SMALLEST_PART))
    if parts == 1:
        return [(0, rows)]
    return list(pairwise(np.linspace(0, rows, parts + 1).astype(int).tolist()))


def count_rows(codes: Int32s, count: int, threads: int) -> Int64s:
    """Return how many rows each key has, for each of the parts of `row_parts`."""
    bounds = row_parts(len(codes), threads)
    counts = np.zeros((len(bounds), count), np.int64)
    in_threads(lambda turn: count_keys(codes, *bounds[turn], counts[turn]), range(len(bounds)))
    return counts


def number_in_threads(
    known: Sequence[pa.Array], columns: Sequence[pa.Array], length: int, threads: int
) -> Numbered:
    """Number keys as `encode_more` does, in threads that number those of a range of rows each."""
    bounds = row_parts(length, threads)
    if not columns or len(bounds) == 1 or MANY_KEYS * len(known[0]) > length:
        return encode_more(known, columns, length)

    def own(rows: tuple[int, int]) -> Numbered:
        first, last = rows
        return encode_keys([column.slice(first, last - first) for column in columns], last - first)

    parts = in_threads(own, bounds)
    together = [
        pa.concat_arrays(each) for each in zip(*(keys for _, keys, _ in parts), strict=True)
    ]
    numbers, keys, count = encode_more(known, together, sum(part[2] for part in parts))
    codes = np.empty(length, np.int32)
    firsts = np.cumsum([0, *(part[2] for part in parts)])

    def renumber(turn: int) -> None:
        first, last = bounds[turn]
        np.take(numbers[firsts[turn] : firsts[turn + 1]], parts[turn][0], out=codes[first:last])

    in_threads(renumber, range(len(bounds)))
    return frozen(codes), keys, count


def key_parts(offsets: Int64s, threads: int) -> list[tuple[int, int]]:
    """Return ranges of keys with about as many rows each: a single one if that takes less.

    Key k has the rows [offsets[k], offsets[k + 1]).
    """
    rows, keys = int(offsets[-1]), len(offsets) - 1
    parts = min(PARTS_A_THREAD * threads, rows // SMALLEST_PART) if threads > 1 else 1
    if parts < 2 or keys < 2:
        return [(0, keys)]
    cuts = np.searchsorted(offsets, np.linspace(0, rows, parts + 1)[1:-1])
    # Keys may have no rows at all here, the last ones too.
    return list(pairwise(np.unique([0, *cuts, keys]).tolist()))
