"""How far consecutive values of a column are apart."""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Bools, Floats, kernel


@kernel
def sum_steps(values: Floats, valid: Bools, out: Floats) -> int:
    """Return how many values are valid and finite; others are left out of `out` too.

    out = (sum of |a_k - a_(k-1)|, lowest, highest, first, last); unchanged without values. An empty
    `valid` means that all are valid.
    """
    count = 0
    for i in range(len(values)):
        value = values[i]
        if (len(valid) > 0 and not valid[i]) or not np.isfinite(value):
            continue
        if count == 0:
            out[0], out[1], out[2], out[3] = 0.0, value, value, value
        else:
            out[0] += abs(value - out[4])
            out[1] = min(out[1], value)
            out[2] = max(out[2], value)
        out[4] = value
        count += 1
    return count
