"""`eventide warm`: compile what queries need before the first of them."""

from __future__ import annotations

from time import perf_counter

import click

from eventide.cli.app import FAILED, Command, Failure
from eventide.cli.terminal import notices
from eventide.sinks.words import plural


@click.command(cls=Command, short_help="Compile what queries need, on all cores.")
def warm() -> None:
    """Compile all that the documented queries need, on all cores, so that no query waits for it.

    Needed once on each machine, and never where Eventide came as a wheel with compiled kernels.
    The machine code is stored beside the package, or in the folder that NUMBA_CACHE_DIR names.

    Example:
      eventide warm
    """
    from rich.progress import Progress

    from eventide.kernels.machine_code.cache import folders
    from eventide.kernels.machine_code.warming import compile_kernels, missing_kernels

    terminal = notices()
    missing = missing_kernels()
    if not missing:
        terminal.print("all kernels are compiled")
        return
    started = perf_counter()
    with Progress(console=terminal, transient=True, disable=not terminal.is_terminal) as progress:
        task = progress.add_task("compiling", total=len(missing))
        compile_kernels(missing, lambda _: progress.advance(task))
    if missing_kernels().keys() & missing.keys():
        tried = " and ".join(map(str, folders()))
        what = f"cannot store machine code in {tried}"
        text = f"{what}\nhint: set NUMBA_CACHE_DIR to a folder that can be written"
        raise Failure(text, FAILED)
    seconds = perf_counter() - started
    terminal.print(f"compiled {plural(len(missing), 'kernel')} in {seconds:.0f} s")
