"""Machine code that came with a wheel: a folder for each level of CPU."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

from llvmlite import binding
from numba.core import config

SHIPPED = Path(__file__).with_name("shipped")

# The best first. A level is a CPU by LLVM's name, and the features that it has beyond the one
# after it, by LLVM's names.
_V2 = {"cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"}
_V3 = _V2 | {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"}
_V4 = _V3 | {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"}
LEVELS: dict[str, dict[str, set[str]]] = {
    "x86_64": {"x86-64-v4": _V4, "x86-64-v3": _V3},
    "aarch64": {"generic": set()},
    "arm64": {"generic": set()},  # as macOS calls it
}


def levels() -> dict[str, set[str]]:
    """Return the levels of CPU that wheels have code for on this kind of machine."""
    return LEVELS.get(platform.machine(), {})


def cpu_is_named() -> bool:
    """Whether NUMBA_CPU_NAME names another CPU than this one to compile for."""
    named: str | None = getattr(config, "CPU_NAME")  # noqa: B009 - numba makes it at run time
    return named is not None


@cache
def shipped_level() -> str | None:
    """Return the best level that a wheel brought code for and this CPU has, None without one."""
    if cpu_is_named() or not SHIPPED.is_dir():
        return None
    has = binding.get_host_cpu_features()
    for level, features in levels().items():
        if (SHIPPED / level).is_dir() and all(has.get(feature) for feature in features):
            return level
    return None
