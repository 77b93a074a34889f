"""How a kernel is compiled, and the types of its arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numba
import numpy as np
import numpy.typing as npt

from eventide.kernels.machine_code.cache import KernelCache
from eventide.kernels.machine_code.notice import tell
from eventide.kernels.pieces import ApartCompiler, PieceCompiler

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32] | npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int64] | npt.NDArray[np.float64]

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")
Element = TypeVar("Element", bound=np.generic)

tell()

# Python calls kernels, C does not: what it would need to call them is not compiled.
_KERNEL: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True}
# Only kernels call their pieces: what Python would need to call them is not compiled either.
_PIECE: dict[str, Any] = {**_KERNEL, "no_cpython_wrapper": True, "pipeline_class": PieceCompiler}
# Lean code makes no arrays and returns none, so references to arrays need not be counted. To take
# an array out of a tuple otherwise costs two atomic additions: in a loop over events this may be
# half of the time, and most of the time of compiling. The caller of a lean kernel holds the arrays
# meanwhile.
_LEAN: dict[str, Any] = {**_KERNEL, "_nrt": False}
_LEAN_PIECE: dict[str, Any] = {**_PIECE, **_LEAN}


def kernel(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Compile on first use and keep the machine code on disk for the next process.

    The lock of the interpreter is released while a kernel runs, so that slices of a query run
    in parallel threads.
    """
    return _kept(numba.njit(**_KERNEL)(function), function)


def lean_kernel(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Compile a kernel that makes no arrays, and keep the machine code on disk."""
    return _kept(numba.njit(**_LEAN)(function), function)


def _kept(
    compiled: Any,  # noqa: ANN401 - numba's dispatcher
    function: Callable[Arguments, Returned],
) -> Callable[Arguments, Returned]:
    """Let numba look for machine code on disk, and put it there."""
    compiled._cache = KernelCache(function)
    kernel: Callable[Arguments, Returned] = compiled
    return kernel


def inline(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Put the source of a function into each kernel that calls it."""
    compiled: Callable[Arguments, Returned] = numba.njit(inline="always")(function)
    return compiled


def inline_lean(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Put the machine code of a lean function into its callers, for it takes too many arrays."""
    compiled: Callable[Arguments, Returned] = numba.njit(forceinline=True, **_LEAN_PIECE)(function)
    return compiled


def call(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Compile a function that only kernels call, from several places or because it is long."""
    compiled: Callable[Arguments, Returned] = numba.njit(**_PIECE)(function)
    return compiled


def call_lean(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Compile a lean function that lean kernels call from several places.

    A callee is optimised again in every kernel that calls it.
    """
    compiled: Callable[Arguments, Returned] = numba.njit(**_LEAN_PIECE)(function)
    return compiled


def apart_lean(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Compile a long lean function once in each kernel, however often it is called there.

    A compiler takes more than twice as long for a function that is twice as long. The call has its
    price, one move for each part of each array: so this is for what happens seldom.
    """
    options = {**_LEAN_PIECE, "pipeline_class": ApartCompiler, "forceinline": False}
    compiled: Callable[Arguments, Returned] = numba.njit(**options)(function)
    return compiled


def frozen(array: npt.NDArray[Element]) -> npt.NDArray[Element]:
    """Return a read-only, contiguous view: what a kernel takes as input."""
    flags = array.flags
    if flags.c_contiguous and not flags.writeable:
        return array
    view = array.view() if flags.c_contiguous else np.ascontiguousarray(array)
    view.setflags(write=False)
    return view
