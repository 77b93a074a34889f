"""Where each key stands among its rows, and what remains of it after its matches.

That is the rows from its first undecided start row on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Bools, Int64s, lean_kernel
from eventide.kernels.patterns.tables import Partitions

# What is written of each key that remains.
KEY, KEPT, BEGIN, SEEN, NUMBER, DUE = range(6)
FACTS = 6
NEVER = np.int64(2**63 - 1)
"""When a key is due without WITHIN, or without a start row that waits."""


class RestRules(NamedTuple):
    """How much is kept of a key: so many rows before its first undecided start row.

    With `keys`, also keys without rows. A start row waits for `within_us`; -1 is for ever.
    """

    back: int
    keys: bool
    within_us: int
    watermark_us: int


@lean_kernel
def stand(
    offsets: Int64s,
    begin: Int64s,
    seen: Int64s,
    numbers: Int64s,
    whole: Bools,
    ahead: int,
    ended: bool,
    places: Int64s,
    wholes: Bools,
) -> None:
    """Write the `begin`, `known`, `seen` and `numbers` of `Partitions`, and its `whole`.

    Those of a state are counted from the first row of a key; later keys are new. Rows with fewer
    than `ahead` behind them cannot be tested yet, unless none will follow.
    """
    for k in range(len(wholes)):
        low, high = offsets[k], offsets[k + 1]
        is_new = k >= len(begin)
        places[0, k] = low if is_new else low + begin[k]
        places[1, k] = high if ended else max(high - ahead, low)
        places[2, k] = low if is_new else low + seen[k]
        places[3, k] = 0 if is_new else numbers[k]
        wholes[k] = is_new or whole[k]


@lean_kernel
def keep_rest(
    ts: Int64s, order: Int64s, parts: Partitions, keeping: RestRules, facts: Int64s, whole: Bools,
    rows: Int64s,
) -> tuple[int, int]:  # fmt: skip
    """Write the keys that remain, with their facts, and their rows; return how many there are.

    Row i in key order is row `order[i]`. The first start row of a key that has not run out of time
    at the watermark is the one that the key is due for.
    """
    keys, kept = 0, 0
    for k in range(len(parts.begin)):
        low, high = parts.offsets[k], parts.offsets[k + 1]
        begin = min(parts.begin[k], high)
        first = max(begin - keeping.back, low)
        if first == high and not keeping.keys:
            continue
        due = NEVER
        if keeping.within_us >= 0:
            waits = begin
            while waits < high and ts[waits] < keeping.watermark_us - keeping.within_us:
                waits += 1
            if waits < high:
                due = ts[waits] + keeping.within_us
        facts[KEY, keys] = k
        facts[KEPT, keys] = high - first
        facts[BEGIN, keys] = begin - first
        facts[SEEN, keys] = parts.known[k] - first
        facts[NUMBER, keys] = parts.numbers[k]
        facts[DUE, keys] = due
        whole[keys] = parts.whole[k] and first == low
        keys += 1
        for row in range(first, high):
            rows[kept] = order[row]
            kept += 1
    return keys, kept
