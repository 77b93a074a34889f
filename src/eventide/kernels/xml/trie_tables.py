"""Tables of pairs of numbers: what is put in and taken out between steps."""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Int64s, lean_kernel
from eventide.kernels.key_table import KeyTable, put, remove


@lean_kernel
def change_table(table: KeyTable, changes: Int64s) -> None:
    """Put keys of two numbers with a handle, in order; one below 0 takes the key out.

    There has to be room for all of them.
    """
    for i in range(len(changes)):
        if changes[i, 2] < 0:
            remove(table, changes[i, 0], changes[i, 1])
        else:
            put(table, changes[i, 0], changes[i, 1], np.int64(changes[i, 2]))
