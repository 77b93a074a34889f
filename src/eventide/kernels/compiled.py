"""How a kernel is compiled, and the types of its arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numba
import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32] | npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int64] | npt.NDArray[np.float64]

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")
Element = TypeVar("Element", bound=np.generic)


def kernel(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Compile on first use and keep the machine code on disk for the next process.

    The lock of the interpreter is released while a kernel runs, so that slices of a query run
    in parallel threads.
    """
    compiled: Callable[Arguments, Returned]
    try:
        compiled = numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:  # no folder to keep machine code in can be written to
        compiled = numba.njit(nogil=True)(function)
    return compiled


def inlined(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Compile a piece that only kernels call, into the kernel that calls it."""
    compiled: Callable[Arguments, Returned] = numba.njit(inline="always")(function)
    return compiled


def frozen(array: npt.NDArray[Element]) -> npt.NDArray[Element]:
    """Return a read-only, contiguous view: what a kernel takes as input."""
    view = np.ascontiguousarray(array)[:]
    view.flags.writeable = False
    return view
