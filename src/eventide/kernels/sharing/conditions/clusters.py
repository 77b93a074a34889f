"""Which equalities conditions are found by: one column, or two that leave fewer conditions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from eventide.kernels.compiled import Floats, Int32s, Int64s, lean_kernel
from eventide.kernels.hashing import GOLDEN, mixed
from eventide.kernels.sharing.conditions.programs import Octets

Matrix = npt.NDArray[np.float64]
Places = npt.NDArray[np.int32]


class Equalities(NamedTuple):
    """What conditions of each shape ask to be equal to a constant: columns and slots.

    Those of a shape are [starts[shape], starts[shape] + counts[shape]). `dense` numbers the columns
    that are asked for by any of the conditions at hand, -1 for others.
    """

    starts: Int32s
    counts: Int32s
    columns: Int32s
    slots: Int32s
    dense: Int32s


@lean_kernel
def sketch_constants(
    equalities: Equalities, shapes: Int32s, bases: Int32s, constants: Int64s, sketch: Octets
) -> None:
    """Mark the hash of each constant in the row of its column: so few are unmarked, so many are."""
    mask = np.uint64(sketch.shape[1] - 1)
    for i in range(len(shapes)):
        start = equalities.starts[shapes[i]]
        for k in range(start, start + equalities.counts[shapes[i]]):
            word = mixed(np.uint64(constants[bases[i] + equalities.slots[k]]) + GOLDEN)
            sketch[equalities.dense[equalities.columns[k]], np.int64(word & mask)] = 1


@lean_kernel
def weigh_pairs(
    equalities: Equalities, shapes: Int32s, shares: Floats, costs: Floats, gains: Matrix
) -> None:
    """Add to `gains` what each pair of columns would save of the costs of conditions.

    `shares` has the share of conditions that an equality with a column leaves.
    """
    for i in range(len(shapes)):
        start = equalities.starts[shapes[i]]
        end = start + equalities.counts[shapes[i]]
        for k in range(start, end):
            one = equalities.dense[equalities.columns[k]]
            for m in range(k + 1, end):
                other = equalities.dense[equalities.columns[m]]
                gain = costs[i] - shares[one] * shares[other]
                if gain > 0.0 and one != other:
                    gains[min(one, other), max(one, other)] += gain


@lean_kernel
def choose_equalities(
    equalities: Equalities,
    shapes: Int32s,
    shares: Floats,
    chosen: Octets,
    costs: Floats,
    choices: Int32s,
) -> None:
    """Write for each condition its cheapest choice: two places in `equalities`.

    The second may be -1, for none. Pairs may be chosen if `chosen` has them.
    """
    for i in range(len(shapes)):
        start = equalities.starts[shapes[i]]
        end = start + equalities.counts[shapes[i]]
        for k in range(start, end):
            one = equalities.dense[equalities.columns[k]]
            if shares[one] < costs[i]:
                costs[i] = shares[one]
                choices[i, 0], choices[i, 1] = k, -1
            for m in range(k + 1, end):
                other = equalities.dense[equalities.columns[m]]
                share = shares[one] * shares[other]
                if share < costs[i] and chosen[min(one, other), max(one, other)]:
                    costs[i] = share
                    choices[i, 0], choices[i, 1] = k, m


@lean_kernel
def keys_of_choices(
    equalities: Equalities,
    shapes: Int32s,
    bases: Int32s,
    constants: Int64s,
    choices: Int32s,
    cluster_of: Places,
    clusters: Int32s,
    first: Int64s,
    second: Int64s,
    skipped: Int32s,
) -> None:
    """Write the cluster and the key of each condition.

    `cluster_of[one, other]` is the cluster of a pair of columns, `cluster_of[one, one]` of one.
    Equalities come first among the tests of a condition. `skipped` becomes how many of them the
    key has decided from the start.
    """
    for i in range(len(shapes)):
        k, m = choices[i, 0], choices[i, 1]
        base, start = bases[i], equalities.starts[shapes[i]]
        skipped[i] = (k == start) + (k == start and m == start + 1)
        one = equalities.dense[equalities.columns[k]]
        first[i] = constants[base + equalities.slots[k]]
        second[i] = 0
        if m < 0:
            clusters[i] = cluster_of[one, one]
            continue
        other = equalities.dense[equalities.columns[m]]
        word = constants[base + equalities.slots[m]]
        if one < other:
            clusters[i], second[i] = cluster_of[one, other], word
        else:
            clusters[i], second[i] = cluster_of[other, one], first[i]
            first[i] = word
