"""How a kernel is compiled, and the types of its arrays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba
import numpy as np
import numpy.typing as npt
from numba.core import event

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32] | npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int64] | npt.NDArray[np.float64]

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")
Element = TypeVar("Element", bound=np.generic)


def forget_stale_code(folder: Path) -> None:
    """Remove machine code on disk if any file of kernels has changed since it was compiled.

    Numba checks only the file of a kernel, not those of the functions it calls.
    """
    sources = sorted(folder.rglob("*.py"))
    stamp = "\n".join(
        f"{path.relative_to(folder)} {path.stat().st_size} {path.stat().st_mtime_ns}"
        for path in sources
    )
    noted = folder / "__pycache__" / "kernels.stamp"
    try:
        if noted.exists() and noted.read_text() == stamp:
            return
        for code in folder.rglob("*.nb[ci]"):
            code.unlink(missing_ok=True)
        noted.parent.mkdir(exist_ok=True)
        noted.write_text(stamp)
    except OSError:
        # A folder that cannot be written to has no code of ours, or code that stays right.
        return


forget_stale_code(Path(__file__).parent)


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


# Lean code makes no arrays and returns none, so references to arrays need not be counted. To take
# an array out of a tuple otherwise costs two atomic additions: in a loop over events this may be
# half of the time, and most of the time of compiling. The caller of a lean kernel holds the arrays
# meanwhile.
_LEAN: dict[str, Any] = {"nogil": True, "_nrt": False}
# Only kernels call their pieces: what Python and C would need to call them is not compiled.
_PIECE: dict[str, Any] = {**_LEAN, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def lean_kernel(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Compile a kernel that makes no arrays, and keep the machine code on disk."""
    compiled: Callable[Arguments, Returned]
    try:
        compiled = numba.njit(cache=True, **_LEAN)(function)
    except RuntimeError:  # no folder to keep machine code in can be written to
        compiled = numba.njit(**_LEAN)(function)
    return compiled


def inline(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Put the source of a function into each kernel that calls it."""
    compiled: Callable[Arguments, Returned] = numba.njit(inline="always")(function)
    return compiled


def inline_lean(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Put the machine code of a lean function into its callers, for it takes too many arrays."""
    compiled: Callable[Arguments, Returned] = numba.njit(forceinline=True, **_PIECE)(function)
    return compiled


def call_lean(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Compile a lean function that lean kernels call from several places.

    A callee is optimised again in every function that calls it: have few of them, not in layers.
    """
    compiled: Callable[Arguments, Returned] = numba.njit(**_PIECE)(function)
    return compiled


class _FirstCompilation(event.Listener):
    """Says once that something is compiled."""

    def __init__(self, say: Callable[[], None]) -> None:
        self.say = say
        self.said = False

    def on_start(self, event: event.Event) -> None:  # noqa: ARG002 - the contract of a listener
        """Hear that a function is going to be compiled: it was not found on disk."""
        if not self.said:
            self.said = True
            self.say()

    def on_end(self, event: event.Event) -> None:
        """Hear that it has been compiled."""


def when_compiling(say: Callable[[], None]) -> None:
    """Call `say` when a kernel is compiled for the first time in this process.

    On a new machine that takes from seconds to half a minute, and would look like a hang.
    """
    event.register("numba:compile", _FirstCompilation(say))  # type: ignore[no-untyped-call]


def frozen(array: npt.NDArray[Element]) -> npt.NDArray[Element]:
    """Return a read-only, contiguous view: what a kernel takes as input."""
    view = np.ascontiguousarray(array)[:]
    view.flags.writeable = False
    return view
