"""Functions that only kernels call have no machine code of their own.

numba optimises every function together with all that it calls, and emits machine code for it. The
code of a kernel with pieces in layers would be optimised once in each layer: a third of the time of
compiling a search for row patterns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult


class PieceLibrary(JITCodeLibrary):
    """Code that is linked into kernels, which are optimised and emitted as a whole."""

    def _optimize_final_module(self) -> None:
        """Leave it to the kernel."""

    def _finalize_final_module(self) -> None:
        """Let it be linked, but do not emit it."""
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002 - numba's signature
        """Return numba's null pointer: nothing outside of kernels can call a piece."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:  # noqa: ANN401 - what numba asks to set an environment
        """Return something that sets no environment: `set_environments` does, in the kernel."""
        return _NoEnvironments()


class ApartLibrary(PieceLibrary):
    """Code that is not put into its callers: they call it."""

    def add_ir_module(self, ir_module: Any) -> None:  # noqa: ANN401 - llvmlite's
        """Mark all that the module defines."""
        for function in ir_module.functions:
            if not function.is_declaration and "alwaysinline" not in function.attributes:
                function.attributes.add("noinline")
        super().add_ir_module(ir_module)


class _NoEnvironments:
    def set_env(self, name: str, environment: object) -> None:
        """Do nothing: the environment of a piece is a variable of the kernel."""


class PieceCompiler(Compiler):
    """Compiles pieces of kernels."""

    library = PieceLibrary

    def compile_extra(self, func: Callable[..., Any]) -> CompileResult:
        """Compile a function into a library of the kind above."""
        self.state.library = self.library(self.state.targetctx.codegen(), func.__qualname__)
        return super().compile_extra(func)


class ApartCompiler(PieceCompiler):
    """Compiles pieces that stay functions of their own."""

    library = ApartLibrary


def set_environments(compiled: CompileResult) -> None:
    """Set the variables of a compiled kernel that point to the environments of its pieces."""
    for environment in compiled._find_referenced_environments():
        compiled.library.codegen.set_env(environment.env_name, environment)
