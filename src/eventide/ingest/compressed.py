"""Text files that may be compressed; the suffix says so, in upper or lower case."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

UNREADABLE = (OSError, EOFError, zlib.error)
"""The errors of reading a file that is cut short, damaged, or not compressed as its name says."""


def is_gzip(path: Path) -> bool:
    """Whether a file says that it is compressed.

    >>> is_gzip(Path("CARS.CSV.GZ"))
    True
    """
    return path.suffix.lower() == ".gz"


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for Python to read, without its compression."""
    return cast("BinaryIO", gzip.open(path)) if is_gzip(path) else path.open("rb")


def open_stream(path: Path) -> pa.NativeFile:
    """Open a file for Arrow to read, without its compression."""
    return pa.input_stream(str(path), compression="gzip" if is_gzip(path) else None)
