"""Many kernels compiled at once, in several processes: all that the known queries need."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from numba.core.registry import cpu_target

from eventide.kernels.machine_code.notice import keep_quiet
from eventide.kernels.machine_code.signatures import parse_signature
from eventide.kernels.machine_code.sources import PACKAGE

LISTED = Path(__file__).with_name("signatures.txt")


def listed_kernels() -> dict[str, list[str]]:
    """Return the types of arguments that each kernel is called with, by its name."""
    found: dict[str, list[str]] = {}
    for line in LISTED.read_text().splitlines():
        name, _, text = line.partition(": ")
        found.setdefault(name, []).append(text)
    return found


def named_kernel(name: str) -> Any:  # noqa: ANN401 - numba's dispatcher
    """Return a kernel by the names of its module and function: `key_table.look_up`."""
    module, _, function = name.rpartition(".")
    return getattr(import_module(f"{PACKAGE}.{module}"), function)


def missing_kernels() -> dict[str, list[str]]:
    """Return what is on the list and neither shipped nor compiled yet."""
    cpu = cpu_target.target_context.codegen().magic_tuple()
    missing: dict[str, list[str]] = {}
    for name, texts in listed_kernels().items():
        cache = named_kernel(name)._cache
        for text in texts:
            if not any(path.exists() for path in cache.places(parse_signature(text), cpu)):
                missing.setdefault(name, []).append(text)
    return missing


def compile_kernel(name: str, texts: Iterable[str]) -> str:
    """Compile a kernel for several signatures, and return its name."""
    kernel = named_kernel(name)
    for text in texts:
        kernel.compile(parse_signature(text))
    return name


def compile_kernels(wanted: dict[str, list[str]], say: Callable[[str], None]) -> None:
    """Compile kernels on all cores, and say the name of each that is ready.

    Those with many arrays take longest, so they come first.
    """
    order = sorted(wanted, key=lambda name: -sum(map(len, wanted[name])))
    if not order:
        return
    # A forked process would share locks that another thread may hold just then.
    spawn = get_context("spawn")
    with ProcessPoolExecutor(usable_cores(), spawn, initializer=begin_compiling) as processes:
        ready = [processes.submit(compile_kernel, name, wanted[name]) for name in order]
        try:
            for each in as_completed(ready):
                say(each.result())
        except BaseException:
            processes.shutdown(wait=False, cancel_futures=True)
            raise


def begin_compiling() -> None:
    """Say nothing, and collect garbage seldom: a compiler makes many objects, and keeps most."""
    keep_quiet()
    gc.set_threshold(200_000)


def usable_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
