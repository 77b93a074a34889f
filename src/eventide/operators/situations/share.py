"""The keys of a step and their events, cut by key so that threads can follow their situations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import int64s
from eventide.arrays import to_arrow
from eventide.kernels.compiled import Int32s, Int64s, frozen
from eventide.kernels.ordering import merge_order
from eventide.kernels.situations.runs import divide_rows
from eventide.operators.columns import concat_batches
from eventide.operators.key_layers import TakenKeys
from eventide.operators.key_parts import count_rows, key_parts, row_parts
from eventide.operators.situations.keys import KeyedSituations
from eventide.operators.situations.runs import Derivation
from eventide.schema import TS
from eventide.threads import in_threads


@dataclass(frozen=True, slots=True)
class Share:
    """Some keys of a step, all or a range of them, with their state and their events.

    `codes` number the keys of the events, `bits` say which conditions hold on them, and `places`
    are those of the events among all of the step: so positions do not depend on the shares.
    """

    held: KeyedSituations
    codes: Int32s
    ts: Int64s
    bits: Int64s
    places: Int64s
    keys: Sequence[pa.Array]
    first_key: int
    step_rows: int
    step_keys: int

    @property
    def count(self) -> int:
        """How many keys there are."""
        return len(self.keys[0]) if self.keys else 1

    @property
    def is_whole(self) -> bool:
        """Whether it has all keys of the step."""
        return self.count == self.step_keys


def shares_of(
    taken: TakenKeys[KeyedSituations], derivation: Derivation, rows: pa.RecordBatch, threads: int
) -> list[Share]:
    """Return the keys and events of a step: as one share, or several if threads can share them."""
    codes, keys, count = taken.numbered(threads)
    events = rows.num_rows
    ts, bits = int64s(rows.column(TS)), bits_of(derivation, rows, threads)
    counts = count_rows(codes, count, threads) if threads > 1 else np.zeros((0, count), np.int64)
    parts = key_parts(np.cumsum([0, *counts.sum(axis=0)]), threads)
    if len(parts) == 1:
        every = frozen(np.arange(events))
        return [Share(taken.part, codes, ts, bits, every, keys, 0, events, count)]
    in_parts = divided((frozen(ts), codes, bits), parts, counts, threads)
    known = len(taken.part.known)
    assert taken.part.by_key  # computed once, not by each thread

    def share(part: int) -> Share:
        first, last = parts[part]
        own_ts, own_codes, own_bits, places = in_parts[part]
        return Share(
            taken.part.take(np.arange(min(first, known), min(last, known))),
            own_codes,
            own_ts,
            own_bits,
            places,
            [key.slice(first, last - first) for key in keys],
            first,
            events,
            count,
        )

    return in_threads(share, range(len(parts)), threads)


def divided(
    rows: tuple[Int64s, Int32s, Int64s],
    parts: Sequence[tuple[int, int]],
    counts: Int64s,
    threads: int,
) -> list[tuple[Int64s, Int32s, Int64s, Int64s]]:
    """Return the times, keys and bits of rows, and their places, for each part of the keys.

    Each thread writes a range of rows, of which `counts` says how many each key has.
    """
    count, bounds = len(rows[0]), row_parts(len(rows[0]), threads)
    firsts = np.array([first for first, _ in parts])
    # The rows of a part lie range by range.
    sizes = np.add.reduceat(counts, firsts, axis=1).T
    ends = sizes.cumsum().reshape(sizes.shape)
    part_of_key = np.repeat(np.arange(len(parts)), [last - first for first, last in parts])
    ts, bits, places = (np.empty(count, np.int64) for _ in range(3))
    codes = np.empty(count, np.int32)

    def divide(turn: int) -> None:
        place = (ends - sizes)[:, turn].copy()
        written = (ts, codes, bits, places)
        divide_rows(rows, *bounds[turn], frozen(part_of_key), frozen(firsts), place, written)

    in_threads(divide, range(len(bounds)))
    cuts = pairwise([0, *ends[:, -1].tolist()])
    return [
        (
            frozen(ts[low:high]),
            frozen(codes[low:high]),
            frozen(bits[low:high]),
            frozen(places[low:high]),
        )
        for low, high in cuts
    ]


def bits_of(derivation: Derivation, rows: pa.RecordBatch, threads: int) -> Int64s:
    """Return which conditions are true on each row, computed in threads."""
    bits = np.zeros(rows.num_rows, np.int64)

    def add_bits(part: tuple[int, int]) -> None:
        first, last = part
        derivation.add_bits(rows.slice(first, last - first), bits[first:last])

    in_threads(add_bits, row_parts(rows.num_rows, threads))
    return frozen(bits)


def merged_rows(
    parts: Sequence[pa.RecordBatch], positions: Sequence[Int64s], threads: int
) -> pa.RecordBatch:
    """Return rows of several shares in order of their positions, which ascend in each share."""
    if len(parts) == 1:
        return parts[0]
    rows = concat_batches(parts, parts[0].schema)
    offsets = np.cumsum([0, *map(len, positions)])
    order = np.empty(rows.num_rows, np.int64)
    merge_order(frozen(np.concatenate(positions)), offsets, order)
    places = to_arrow(order)
    taken = in_threads(lambda column: column.take(places), rows.columns, threads)
    return pa.RecordBatch.from_arrays(taken, schema=rows.schema)
