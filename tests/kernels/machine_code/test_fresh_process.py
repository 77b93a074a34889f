"""Shipped code in processes that have compiled nothing: the whole way that a wheel takes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from llvmlite import binding

from eventide.kernels.machine_code.shipped import levels

WORDS = "array(uint64, 1d, C)"
PLACES = "array(int64, 1d, C)"
KERNELS = {
    "hashing.spread_words": f"readonly {WORDS}, {WORDS}",
    "grouping.order_by_key": f"readonly array(int32, 1d, C), {PLACES}, {PLACES}",
}
COMPILE = """
import sys
from eventide.kernels.machine_code.warming import compile_kernel
for name, text in zip(sys.argv[1::2], sys.argv[2::2]):
    compile_kernel(name, [text])
"""
# Spark forks the process that has imported everything; its children load code that it has loaded,
# and code that it has not. None of them needs the modules of numba that compiled code is made from.
CALL = """
import os, sys
from pathlib import Path
import numpy as np
from numba.core.event import install_recorder
from eventide.kernels.compiled import frozen
from eventide.kernels.grouping import order_by_key
from eventide.kernels.hashing import spread_words
from eventide.kernels.machine_code import shipped
shipped.SHIPPED = Path(sys.argv[1])

def spread():
    out = np.zeros(2, np.uint64)
    spread_words(frozen(np.array([1, 2], np.uint64)), out)
    return out.tolist()

def order():
    offsets, found = np.zeros(3, np.int64), np.zeros(3, np.int64)
    order_by_key(frozen(np.array([1, 0, 1], np.int32)), offsets, found)
    return found.tolist()

with install_recorder("numba:compile") as recorder:
    print(spread(), flush=True)
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
    imported = "numba.np.arrayobj" in sys.modules
    print(spread(), order(), len(recorder.buffer), imported, flush=True)
"""
SPREAD = [10451216379200822465, 10905525725756348110]


def run(script: str, *arguments: str, **variables: str) -> str:
    """Return what a script prints in a process of its own."""
    command = [sys.executable, "-c", script, *arguments]
    environment = {**os.environ, **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def level_of_this_cpu() -> str:
    has = binding.get_host_cpu_features()
    for level, features in levels().items():
        if all(has.get(feature) for feature in features):
            return level
    return pytest.skip("wheels have no code for this CPU")


def test_a_fresh_process_and_what_it_forks_compile_nothing(tmp_path: Path) -> None:
    level, built, kept = level_of_this_cpu(), tmp_path / "built", tmp_path / "kept"
    listed = [word for pair in KERNELS.items() for word in pair]
    built_for = {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": ""}
    run(COMPILE, *listed, NUMBA_CACHE_DIR=str(built), **built_for)
    (built / "eventide").rename(tmp_path / level)

    printed = run(CALL, str(tmp_path), NUMBA_CACHE_DIR=str(kept))

    in_both = f"{SPREAD} [1, 0, 2] 0 False"
    assert printed.splitlines() == [str(SPREAD), in_both, in_both]
    assert not kept.exists()
