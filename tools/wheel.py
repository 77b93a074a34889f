"""`make wheel`: a wheel with compiled kernels for each level of CPU, checked in a fresh folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from numba.core.registry import cpu_target

from eventide.kernels.machine_code.shipped import levels
from eventide.kernels.machine_code.signatures import parse_signature
from eventide.kernels.machine_code.warming import listed_kernels, named_kernel
from tools.hatch_hook import VARIABLE

ROOT = Path(__file__).parent.parent
BUILT = ROOT / "build" / "kernels"
"""What was compiled for a level stays here for the next wheel, as long as sources are the same."""
HINT = "hint: `make test signatures` notes them"
DOCUMENTED = ("tests/test_docs.py", "tests/test_examples.py", "tests/test_demo.py")


def main() -> None:
    """Compile, build and check a wheel, and say where it is."""
    if not levels():
        sys.exit("no level of CPU is known for this machine: see kernels/machine_code/shipped.py")
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for level in levels():
            say(f"compiling for {level}")
            compile_for(level)
            take(level, folder / "shipped" / level)
        wheel = build(folder / "shipped")
        say(f"checking that nothing documented is compiled from {wheel.name}")
        compiled = compiled_from(wheel, folder)
    if compiled:
        names = "\n".join(f"  {name}" for name in compiled)
        wheel.unlink()
        sys.exit(f"documented queries need kernels that are not in the wheel:\n{names}\n{HINT}")
    say(f"built {wheel.relative_to(ROOT)}, {wheel.stat().st_size / 1e6:.1f} MB")


def say(text: str) -> None:
    """Say how far it is."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - a script


def compile_for(level: str) -> None:
    """Compile all listed kernels for a level of CPU, whatever the CPU of this machine is."""
    variables = {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": ""}
    folder = {"NUMBA_CACHE_DIR": str(BUILT / level)}
    run("-c", "from eventide.cli import main; main()", "warm", **variables, **folder)


def take(level: str, target: Path) -> None:
    """Copy the code of all listed kernels."""
    target.mkdir(parents=True)
    for name in file_names(level):
        shutil.copy(BUILT / level / "eventide" / name, target)


def file_names(level: str) -> Iterator[str]:
    """Yield the names of the files that the listed kernels have for a level of CPU."""
    triple = cpu_target.target_context.codegen().magic_tuple()[0]
    for name, texts in listed_kernels().items():
        for text in texts:
            yield named_kernel(name)._cache.file_name(parse_signature(text), (triple, level, ""))


def build(shipped: Path) -> Path:
    """Build the wheel with a folder of machine code."""
    target = ROOT / "dist"
    for old in target.glob("*.whl"):
        old.unlink()
    run("-m", "hatchling", "build", "-t", "wheel", "-d", str(target), **{VARIABLE: str(shipped)})
    (wheel,) = target.glob("*.whl")
    return wheel


def compiled_from(wheel: Path, scratch: Path) -> list[str]:
    """Return the kernels that documented queries compile if they run from a wheel."""
    fresh, cache = scratch / "fresh", scratch / "cache"
    install = ("install", "--quiet", "--no-deps", "--no-index", "--target", str(fresh))
    run("-m", "pip", *install, str(wheel))
    variables = {"PYTHONPATH": str(fresh), "NUMBA_CACHE_DIR": str(cache)}
    where = f"import eventide, sys; sys.exit(not eventide.__file__.startswith({str(fresh)!r}))"
    run("-c", where, **variables)
    run("-m", "pytest", "-n", "0", "-m", "not spark", *DOCUMENTED, **variables)
    return sorted(path.name.partition(".py3")[0] for path in cache.rglob("*.code"))


def run(*arguments: str, **variables: str) -> None:
    """Run Python in the project's folder; the output is shown, and a failure ends the build."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}, check=False)
    if done.returncode:
        sys.exit(f"failed: {' '.join(command)}")


if __name__ == "__main__":
    main()
