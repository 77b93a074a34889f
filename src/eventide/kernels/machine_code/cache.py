"""Where numba looks for the machine code of a kernel before it compiles it."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib import import_module
from io import BytesIO
from pathlib import Path
from time import time
from typing import Any, cast
from uuid import uuid4

import llvmlite
import numba
from llvmlite import binding
from numba.core import config
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.environment import Environment, lookup_environment
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

from eventide.kernels.machine_code import shipped
from eventide.kernels.machine_code.signatures import signature_text
from eventide.kernels.machine_code.sources import KERNELS, PACKAGE, sources_digest
from eventide.kernels.pieces import set_environments

Cpu = tuple[str, str, str]
"""What code runs on: the system, the name of the CPU and its features, as LLVM has them."""

DIGEST_BYTES = 32
STALE_S = 7 * 86_400
"""Code of other sources is kept for so long: another checkout may share the folder."""
_CONFIG: Any = config  # which gets its content at run time
_PYTHON = f"py{sys.version_info.major}{sys.version_info.minor}{getattr(sys, 'abiflags', '')}"


class KernelCache(_Cache):
    """The machine code of one kernel on disk: a file for each signature and CPU.

    The name of a file has a digest of all that its content depends on, and no index lists the
    files: processes that compile at the same time cannot spoil each other's code. That is so in
    numba's own cache, which also does not see changes of the functions that a kernel calls.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.module = function.__module__
        self.function = function.__qualname__

    @property
    def cache_path(self) -> str:
        """Return the folder that code is written to first."""
        return str(folders()[0])

    def load_overload(self, sig: tuple[Any, ...], target_context: Any) -> CompileResult | None:  # noqa: ANN401
        """Return compiled code for the types of arguments, None if there is none that fits."""
        for path in self.places(sig, target_context.codegen().magic_tuple()):
            content = read_checked(path)
            loaded = None if content is None else _rebuilt(content, target_context)
            if loaded is not None:
                return loaded
        return None

    def save_overload(self, sig: tuple[Any, ...], data: Any) -> None:  # noqa: ANN401 - a CompileResult
        """Write compiled code, where that is possible."""
        set_environments(data)  # before the kernel runs: this is the first to see it compiled
        name = self.file_name(sig, data.codegen.magic_tuple())
        if name is None or data.library.has_dynamic_globals:
            return
        content = signature_text(sig).encode() + b"\n" + dumps(data._reduce())
        for folder in folders():
            if write_checked(folder / name, content):
                self._forget_stale_code(folder, name)
                return

    def file_name(self, sig: tuple[Any, ...], cpu: Cpu) -> str | None:
        """Return the name of the file for a signature: `key_table.look_up.py311-….….code`."""
        stamp = _stamp(self.module)
        if stamp is None:
            return None
        wanted = sha256(repr((cpu, signature_text(sig))).encode()).hexdigest()[:24]
        return f"{self._stem}{stamp}.{wanted}.code"

    @property
    def _stem(self) -> str:
        return f"{self.module.removeprefix(PACKAGE + '.')}.{self.function}.{_PYTHON}-"

    def places(self, sig: tuple[Any, ...], cpu: Cpu) -> Iterator[Path]:
        """Yield the files that may have the code: shipped for such CPUs, compiled for this one."""
        level = shipped.shipped_level()
        if level is not None:
            name = self.file_name(sig, (cpu[0], level, ""))
            if name is not None:
                yield shipped.SHIPPED / level / name
        name = self.file_name(sig, cpu)
        if name is not None:
            yield from (folder / name for folder in folders())

    def _forget_stale_code(self, folder: Path, name: str) -> None:
        """Remove old code of this kernel, made from other sources or by another numba."""
        current = name[: name.index(".", len(self._stem))]
        for path in folder.glob(f"{self._stem}*.code"):
            if not path.name.startswith(current):
                with suppress(OSError):  # another process may have removed it
                    if path.stat().st_mtime < time() - STALE_S:
                        path.unlink()

    def enable(self) -> None:
        """Do nothing: there is no reason to switch it off."""

    def disable(self) -> None:
        """Do nothing: there is no reason to switch it off."""

    def flush(self) -> None:
        """Forget the code of this kernel, so that it is compiled again."""
        for folder in folders():
            for path in folder.glob(f"{self._stem}*.code"):
                path.unlink(missing_ok=True)


class CodeReader(pickle.Unpickler):
    """Reads compiled code without the modules of numba that have helped to compile it.

    Each function in a kernel has an environment with the names of its module, which only code in
    object mode looks at. There is none here, and to import these modules takes longer than to load
    all kernels of a query.
    """

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - whatever has the name
        """Return what a name in the code stands for."""
        if name == "_rebuild_env":
            return _environment
        return super().find_class(module, name)


def _environment(module: str, constants: list[object], name: str) -> Environment:
    """Return the environment of a function, with the names of its module if there are any yet."""
    known: Environment | None = lookup_environment(name)
    if known is not None:
        return known
    there = sys.modules.get(module)
    made = Environment({"__name__": module} if there is None else vars(there))
    made.consts[:] = constants
    made.env_name = name
    Environment._memo[name] = made
    return made


def _rebuilt(content: bytes, target_context: Any) -> CompileResult | None:  # noqa: ANN401 - numba's
    """Return the code of a file, ready to be called; None if this process cannot make it so.

    The context is not refreshed, which takes longer than to load many kernels: only what compiles
    needs that, and does it.
    """
    _register_runtime()
    _, _, code = content.partition(b"\n")
    try:
        parts = CodeReader(BytesIO(code)).load()
        return cast("CompileResult", CompileResult._rebuild(target_context, *parts))
    except Exception:
        return None


@cache
def folders() -> list[Path]:
    """Return where code may be, the first that can be written to first.

    That is the folder that NUMBA_CACHE_DIR names, or else a folder beside the kernels, or a
    folder of the user.
    """
    if _CONFIG.CACHE_DIR:
        return [Path(_CONFIG.CACHE_DIR, "eventide")]
    own = Path(AppDirs("eventide", appauthor=False).user_cache_dir, "kernels")
    return [KERNELS / "__pycache__", own]


@cache
def _stamp(module: str) -> str | None:
    """Return a digest of the sources of a kernel and of what compiles them."""
    try:
        sources = sources_digest(module)
    except OSError:
        return None
    compilers = f"{numba.__version__} {llvmlite.__version__} {_CONFIG.OPT}".encode()
    return sha256(compilers + sources).hexdigest()[:16]


@cache
def _register_runtime() -> None:
    """Name the functions of numba's runtime that compiled code calls."""
    runtime: Any = import_module("numba.core.runtime._nrt_python")  # compiled, without types
    for name, address in runtime.c_helpers.items():
        binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


def read_checked(path: Path) -> bytes | None:
    """Return the content of a file, None if it is not there or not what was written."""
    try:
        stored = path.read_bytes()
    except OSError:
        return None
    content = stored[DIGEST_BYTES:]
    return content if sha256(content).digest() == stored[:DIGEST_BYTES] else None


def write_checked(path: Path, content: bytes) -> bool:
    """Write a file at once, with a digest before its content. False where that cannot be."""
    unfinished = path.with_name(f"{path.name}.{uuid4().hex}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(sha256(content).digest() + content)
        os.replace(unfinished, path)  # noqa: PTH105 - the same, and does not build another path
    except OSError:
        with suppress(OSError):
            unfinished.unlink()
        return False
    return True
