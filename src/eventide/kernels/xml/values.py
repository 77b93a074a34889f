"""String values, one behind the other."""

from __future__ import annotations

from eventide.kernels.compiled import Int64s, lean_kernel
from eventide.kernels.xml.arrays import Bytes


@lean_kernel
def copy_values(text: Bytes, starts: Int64s, offsets: Int64s, values: Bytes) -> None:
    """Copy parts of a text: part i begins at starts[i], and fills [offsets[i], offsets[i + 1])."""
    for part in range(len(starts)):
        start, first = starts[part], offsets[part]
        for place in range(offsets[part + 1] - first):
            values[first + place] = text[start + place]
