"""Conditions as arrays: their numbers, shapes and constants."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Bools, Int32s, Int64s


class Batch(NamedTuple):
    """Conditions without order: those of each are `constants[bases[i]:]`."""

    numbers: Int64s
    shapes: Int32s
    bases: Int32s
    constants: Int64s

    def __len__(self) -> int:
        return len(self.numbers)

    def at(self, places: Int64s | Bools) -> Batch:
        """Return the conditions at some places."""
        return Batch(self.numbers[places], self.shapes[places], self.bases[places], self.constants)


def no_conditions() -> Batch:
    """Return a batch of no conditions."""
    none = np.zeros(0, np.int64)
    return Batch(none, np.zeros(0, np.int32), np.zeros(0, np.int32), none)


def joined(batches: Iterable[Batch]) -> Batch:
    """Return the conditions of several batches in one."""
    parts = list(batches)
    if not parts:
        return no_conditions()
    before = np.cumsum([0, *(len(part.constants) for part in parts)])[:-1].tolist()
    return Batch(
        np.concatenate([part.numbers for part in parts]),
        np.concatenate([part.shapes for part in parts]),
        np.concatenate(
            [part.bases + np.int32(start) for part, start in zip(parts, before, strict=True)]
        ),
        np.concatenate([part.constants for part in parts]),
    )
