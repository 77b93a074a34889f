"""The parser of CEL, whose tables are kept beside Python's own byte code.

To work them out from the grammar takes longer than the rest of a first query. The file begins with
a digest of all that it depends on and of its content; any other file is written anew.
"""

from __future__ import annotations

import os
import pickle
import sys
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.util import cache_from_source
from io import BytesIO
from pathlib import Path
from uuid import uuid4

import lark
from lark import Lark

GRAMMAR = Path(__file__).with_name("grammar.lark")
DIGEST_BYTES = 32


@cache
def parser() -> Lark:
    """Return the parser."""
    grammar = GRAMMAR.read_text(encoding="utf-8")
    stamp = f"{lark.__version__} {sys.version_info[:2]} {grammar}".encode()
    kept = kept_at()
    found = None if kept is None else read(kept, stamp)
    if found is None:
        found = Lark(grammar, parser="lalr", propagate_positions=True, maybe_placeholders=True)
        if kept is not None and not sys.dont_write_bytecode:
            write(kept, stamp, found)
    return found


def kept_at() -> Path | None:
    """Return the file that has the tables; None where Python keeps nothing."""
    try:
        return Path(cache_from_source(str(GRAMMAR.with_suffix(".py")))).with_suffix(".tables")
    except NotImplementedError:
        return None


def read(path: Path, stamp: bytes) -> Lark | None:
    """Return the parser in a file; None if it is not there, or another one."""
    try:
        stored = path.read_bytes()
    except OSError:
        return None
    content = stored[DIGEST_BYTES:]
    if sha256(stamp + content).digest() != stored[:DIGEST_BYTES]:
        return None
    try:
        return Lark.load(BytesIO(content))
    except (pickle.UnpicklingError, AttributeError, KeyError, TypeError, ValueError):
        return None


def write(path: Path, stamp: bytes, built: Lark) -> None:
    """Write a parser to a file at once, where that is possible."""
    content = BytesIO()
    built.save(content)
    unfinished = path.with_name(f"{path.name}.{uuid4().hex}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        digest = sha256(stamp + content.getvalue()).digest()
        unfinished.write_bytes(digest + content.getvalue())
        os.replace(unfinished, path)  # noqa: PTH105 - the same, and does not build another path
    except OSError:
        with suppress(OSError):
            unfinished.unlink()
