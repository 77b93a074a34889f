"""The keys of a step and their events, cut by key so that threads can follow their situations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import int64s
from eventide.arrays import to_arrow
from eventide.kernels.compiled import Int32s, Int64s, frozen
from eventide.kernels.grouping import count_keys
from eventide.kernels.ordering import merge_order
from eventide.kernels.situations.runs import divide_rows
from eventide.operators.key_layers import TakenKeys
from eventide.operators.key_parts import key_parts, row_parts
from eventide.operators.situations.keys import KeyedSituations
from eventide.operators.situations.runs import Derivation
from eventide.schema import TS
from eventide.threads import in_threads

MANY_RESULTS = 10_000
"""With fewer results a thread costs more than it saves."""

Done = TypeVar("Done")


@dataclass(frozen=True, slots=True)
class Share:
    """Some keys of a step, all or a range of them, with their state and their events.

    `codes` number the keys of its events, and `places` are those of the events among all of the
    step: so positions do not depend on the shares. `ts` and `bits`, times and which conditions
    hold, are those of all events.
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


def in_shares(
    work: Callable[[Share], Done],
    taken: TakenKeys[KeyedSituations],
    derivation: Derivation,
    rows: pa.RecordBatch,
    threads: int,
) -> tuple[list[Done], list[pa.Array]]:
    """Do the work of a step: in one share, or in several if threads can share it; and its keys."""
    codes, keys, count = taken.numbered(threads)
    events = rows.num_rows
    ts = frozen(int64s(rows.column(TS)))
    bits, counts = bits_and_counts(derivation, rows, codes, count, threads)
    parts = key_parts(np.cumsum([0, *counts.sum(axis=0)]), threads)
    if len(parts) == 1:
        every = frozen(np.arange(events))
        return [work(Share(taken.part, codes, ts, bits, every, keys, 0, events, count))], keys
    in_parts = divided(codes, parts, counts, threads)
    known = len(taken.part.known)
    assert taken.part.by_key  # computed once, not by each thread

    def work_on(part: int) -> Done:
        first, last = parts[part]
        own_codes, places = in_parts[part]
        held = taken.part.take(np.arange(min(first, known), min(last, known)))
        own_keys = [key.slice(first, last - first) for key in keys]
        share = Share(held, own_codes, ts, bits, places, own_keys, first, events, count)
        return work(share)

    return in_threads(work_on, range(len(parts)), threads), keys


def divided(
    codes: Int32s, parts: Sequence[tuple[int, int]], counts: Int64s, threads: int
) -> list[tuple[Int32s, Int64s]]:
    """Return the keys of rows, and the places of these, for each part of the keys.

    Each thread writes a range of rows, of which `counts` says how many each key has.
    """
    count, bounds = len(codes), row_parts(len(codes), threads)
    firsts = np.array([first for first, _ in parts])
    # The rows of a part lie range by range.
    sizes = np.add.reduceat(counts, firsts, axis=1).T
    ends = sizes.cumsum().reshape(sizes.shape)
    part_of_key = np.repeat(np.arange(len(parts)), [last - first for first, last in parts])
    own_codes, places = np.empty(count, np.int32), np.empty(count, np.int64)

    def divide(turn: int) -> None:
        place = (ends - sizes)[:, turn].copy()
        written = (own_codes, places)
        divide_rows(codes, *bounds[turn], frozen(part_of_key), frozen(firsts), place, written)

    in_threads(divide, range(len(bounds)))
    cuts = pairwise([0, *ends[:, -1].tolist()])
    return [(frozen(own_codes[low:high]), frozen(places[low:high])) for low, high in cuts]


def bits_and_counts(
    derivation: Derivation, rows: pa.RecordBatch, codes: Int32s, count: int, threads: int
) -> tuple[Int64s, Int64s]:
    """Return which conditions are true on each row, and how many rows of each key there are.

    These are counted for each range of rows that a thread has, if several can share them.
    """
    bounds = row_parts(rows.num_rows, threads)
    bits, counts = np.zeros(rows.num_rows, np.int64), np.zeros((len(bounds), count), np.int64)

    def look_at(part: int) -> None:
        first, last = bounds[part]
        derivation.add_bits(rows.slice(first, last - first), bits[first:last])
        if len(bounds) > 1:
            count_keys(codes, first, last, counts[part])

    in_threads(look_at, range(len(bounds)))
    return frozen(bits), counts


def merged_rows(
    parts: Sequence[pa.RecordBatch],
    positions: Sequence[Int64s],
    schema: pa.Schema,
    threads: int,
    values: Sequence[pa.Array] = (),
) -> pa.RecordBatch:
    """Return rows of several shares in order of their positions, which ascend in each share.

    The first columns have the numbers of `values`, which are put in their place.
    """
    if len(parts) == 1 and not values:
        return parts[0]
    count = sum(map(len, positions))
    places: pa.Array | None = None
    if len(parts) > 1:
        order = np.empty(count, np.int64)
        offsets = np.cumsum([0, *map(len, positions)])
        merge_order(frozen(np.concatenate(positions)), offsets, order)
        places = to_arrow(order)

    def in_place(column: int) -> pa.Array:
        found = parts[0].column(column)
        if places is not None:
            found = pa.concat_arrays([part.column(column) for part in parts]).take(places)
        return values[column].take(found) if column < len(values) else found

    columns = range(parts[0].num_columns)
    taken = in_threads(in_place, columns, threads if count >= MANY_RESULTS else 1)
    return pa.RecordBatch.from_arrays(taken, schema=schema)
