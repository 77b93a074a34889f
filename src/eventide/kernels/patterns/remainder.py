"""Where each key stands among its rows, and what remains of it after its matches.

That is the rows from its first undecided start row on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Bools, Int64s, lean_kernel
from eventide.kernels.key_entries import number_others
from eventide.kernels.key_table import KeyTable
from eventide.kernels.patterns.tables import Partitions

# What is known of a key between two steps: the rows of an array. Places are counted from the first
# row of the key that is kept.
KEPT, BEGIN, SEEN, NUMBER, WHOLE, DUE = range(6)
FACTS = 6
NEVER = np.int64(2**63 - 1)
"""When a key is due without WITHIN, or without a start row that waits."""


class RestRules(NamedTuple):
    """How much is kept of a key: so many rows before its first undecided start row.

    With `keys`, also keys without rows, with `idle` those as well of which nothing is known any
    more. A start row waits for `within_us`; -1 is for ever.
    """

    back: int
    keys: bool
    within_us: int
    watermark_us: int
    idle: bool = False


@lean_kernel
def stand(
    offsets: Int64s,
    facts: Int64s,
    ahead: int,
    ended: bool,
    places: Int64s,
    wholes: Bools,
) -> None:
    """Write the `begin`, `known`, `seen` and `numbers` of `Partitions`, and its `whole`.

    Keys behind those that have facts are new. Rows with fewer than `ahead` behind them cannot be
    tested yet, unless none will follow.
    """
    for k in range(len(wholes)):
        low, high = offsets[k], offsets[k + 1]
        is_new = k >= facts.shape[1]
        places[0, k] = low if is_new else low + facts[BEGIN, k]
        places[1, k] = high if ended else max(high - ahead, low)
        places[2, k] = low if is_new else low + facts[SEEN, k]
        places[3, k] = 0 if is_new else facts[NUMBER, k]
        wholes[k] = is_new or facts[WHOLE, k] != 0


# The arrays of `arrange`: what it writes of each key, and of each row.
OFFSET, FIRST, KNOWN, TESTED, MATCHES = range(5)
ORDER, TIME, FRESH, CODE = range(4)
KEY_ARRAYS, ROW_ARRAYS = 5, 4


@lean_kernel
def arrange(
    table: KeyTable,
    first: Int64s,
    second: Int64s,
    facts: Int64s,
    ts: Int64s,
    ahead: int,
    ended: bool,
    by_key: Int64s,
    by_row: Int64s,
    wholes: Bools,
) -> tuple[int, bool]:
    """Put the kept rows of keys and those that follow in order of keys, and say where keys stand.

    The table has the keys with facts; the words of the rows that follow are given, and new keys are
    put into the table. Writes what `stand` does, and the order of rows with their times, if `ts`
    has those of the rows as they lie. Returns how many keys there are, and whether the rows lie in
    that order.
    """
    old, rows = facts.shape[1], len(first)
    codes, order = by_row[CODE], by_row[ORDER]
    count = old + number_others(table, first, second, old, codes, by_row[FRESH])
    offsets, places = by_key[OFFSET], by_key[MATCHES]
    offsets[0] = 0
    for k in range(count):
        offsets[k + 1] = facts[KEPT, k] if k < old else 0
    for i in range(rows):
        offsets[codes[i] + 1] += 1
    for k in range(count):
        offsets[k + 1] += offsets[k]
        places[k] = offsets[k]
    lying, stays = 0, True
    for k in range(old):
        stays &= places[k] == lying
        for _ in range(facts[KEPT, k]):
            order[places[k]] = lying
            places[k] += 1
            lying += 1
    for i in range(rows):
        place = places[codes[i]]
        order[place] = lying + i
        places[codes[i]] += 1
        stays &= place == lying + i
    if len(ts):
        for i in range(lying + rows):
            by_row[TIME, i] = ts[order[i]]
    for k in range(count):
        low, high, is_new = offsets[k], offsets[k + 1], k >= old
        by_key[FIRST, k] = low if is_new else low + facts[BEGIN, k]
        by_key[KNOWN, k] = high if ended else max(high - ahead, low)
        by_key[TESTED, k] = low if is_new else low + facts[SEEN, k]
        by_key[MATCHES, k] = 0 if is_new else facts[NUMBER, k]
        wholes[k] = is_new or facts[WHOLE, k] != 0
    return count, stays


@lean_kernel
def keep_rest(
    ts: Int64s, order: Int64s, parts: Partitions, keeping: RestRules, stayed: Int64s,
    facts: Int64s, rows: Int64s,
) -> tuple[int, int]:  # fmt: skip
    """Write the numbers of the keys that remain, their facts and rows; return how many there are.

    Row i in key order is row `order[i]`. The first start row of a key that has not run out of time
    at the watermark is the one that the key is due for.
    """
    keys, kept = 0, 0
    for k in range(len(parts.begin)):
        low, high = parts.offsets[k], parts.offsets[k + 1]
        begin = min(parts.begin[k], high)
        first = max(begin - keeping.back, low)
        if first == high and not keeping.keys:
            if keeping.idle:
                stayed[keys] = k
                facts[:, keys] = 0
                facts[WHOLE, keys], facts[DUE, keys] = 1, NEVER
                keys += 1
            continue
        due = NEVER
        if keeping.within_us >= 0:
            waits = begin
            while waits < high and ts[waits] < keeping.watermark_us - keeping.within_us:
                waits += 1
            if waits < high:
                due = ts[waits] + keeping.within_us
        stayed[keys] = k
        facts[KEPT, keys] = high - first
        facts[BEGIN, keys] = begin - first
        facts[SEEN, keys] = parts.known[k] - first
        facts[NUMBER, keys] = parts.numbers[k]
        facts[WHOLE, keys] = parts.whole[k] and first == low
        facts[DUE, keys] = due
        keys += 1
        for row in range(first, high):
            rows[kept] = order[row]
            kept += 1
    return keys, kept
