"""Arrays with room to grow."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def longer(array: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    """Return the array with at least this many rows, and room to grow: itself if it has them."""
    if len(array) >= length:
        return array
    grown = np.zeros((max(length, 2 * len(array)), *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


def wider(array: npt.NDArray[Any], width: int) -> npt.NDArray[Any]:
    """Return an array of columns with room for this many rows in each: itself if it has it."""
    if array.shape[1] >= width:
        return array
    grown = np.zeros((array.shape[0], max(width, 2 * array.shape[1])), array.dtype)
    grown[:, : array.shape[1]] = array
    return grown
