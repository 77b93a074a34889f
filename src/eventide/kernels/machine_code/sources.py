"""The sources that the code of a kernel is made from, as a digest."""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256
from pathlib import Path

KERNELS = Path(__file__).parent.parent
PACKAGE = "eventide.kernels"
_IMPORTS = re.compile(r"^\s*(?:from|import) (eventide\.kernels[\w.]*)", re.MULTILINE)


def sources_digest(module: str) -> bytes:
    """Return a digest of a module of kernels and of all it imports from kernels.

    A kernel contains the code of the functions it calls, so a change of these is a change of it.

    Raises:
        OSError: A source cannot be read, as in an archive.
    """
    digest = sha256()
    for path in sorted(_reachable(module)):
        digest.update(_source(path)[0])
    return digest.digest()


@cache
def _reachable(module: str) -> frozenset[Path]:
    """Return the files of a module and of all that it imports."""
    found: set[Path] = set()
    left = _files(module)
    while left:
        path = left.pop()
        if path not in found:
            found.add(path)
            for imported in _source(path)[1]:
                left += _files(imported)
    return frozenset(found)


def _files(module: str) -> list[Path]:
    """Return the file of a module, or all files of a package. This package makes no code."""
    if module == PACKAGE or module.startswith(__package__):
        return []
    place = KERNELS.joinpath(*module.removeprefix(PACKAGE + ".").split("."))
    return sorted(place.glob("*.py")) if place.is_dir() else [place.with_suffix(".py")]


@cache
def _source(path: Path) -> tuple[bytes, tuple[str, ...]]:
    """Return a digest of a file, with its name, and the modules of kernels that it imports."""
    text = path.read_bytes()
    name = path.relative_to(KERNELS).as_posix().encode()
    digest = sha256(name + b"\n" + text).digest()
    return digest, tuple(_IMPORTS.findall(text.decode()))
