"""How often each owner has each value, the most frequent ones first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.accumulators.columns import int64s
from eventide.kernels.compiled import Int64s

_SPARSE = 4
"""With more possible pairs than this for each value, those that occur are numbered."""


@dataclass(frozen=True, slots=True)
class RankedCounts:
    """Different values of owners, in order of owner, amount (large ones first) and value.

    `places` says where each value stands among those that were counted, `amounts` has a row of
    sums for each, and `ranks` its place within its owner, from 0 on.
    """

    owners: Int64s
    places: Int64s
    amounts: Int64s
    ranks: Int64s


def counted(values: pa.Array, owners: Int64s, amounts: Int64s) -> RankedCounts:
    """Add up rows of amounts by owner and value; the first column is what values are ordered by."""
    in_order = _in_order(values)
    width = int(in_order.max(initial=0)) + 1
    names = owners * width + in_order
    most = (int(owners.max(initial=0)) + 1) * width
    known = np.arange(most) if most <= _SPARSE * len(names) else None
    if known is None:
        known, names = np.unique(names, return_inverse=True)
    first = np.full(len(known), -1)
    first[names[::-1]] = np.arange(len(names) - 1, -1, -1)
    sums = np.zeros((amounts.shape[1], len(known)), np.int64)
    for total, amount in zip(sums, amounts.T, strict=True):
        np.add.at(total, names, amount)
    there = np.flatnonzero(first >= 0)
    whose, which = np.divmod(known[there], width)
    ranked = np.lexsort((which, -sums[0, there], whose))
    there, whose = there[ranked], whose[ranked]
    within = np.arange(len(whose)) - np.searchsorted(whose, whose)
    return RankedCounts(whose, first[there], sums[:, there].T, within)


def _in_order(values: pa.Array) -> Int64s:
    """Return numbers from 0 on that compare as values do; only different ones are compared."""
    encoded = values.dictionary_encode()
    ranks = int64s(pc.rank(encoded.dictionary, tiebreaker="dense").cast(pa.int64()))
    found: Int64s = ranks[int64s(encoded.indices.cast(pa.int64()))] - 1
    return found
