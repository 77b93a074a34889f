"""Sizes as text, such as "1 GB"."""

from __future__ import annotations

import re

from eventide.errors import SchemaError

Bytes = int | str
"""A number of bytes in a call: a whole number, or text such as "500 MB" or "2 GiB"."""

UNIT_BYTES = {
    "": 1,
    "b": 1,
    **{f"{letter}b": 1000 ** (power + 1) for power, letter in enumerate("kmgt")},
    **{f"{letter}ib": 1024 ** (power + 1) for power, letter in enumerate("kmgt")},
}
_SIZE = re.compile(r"\s*(\d{1,18}(?:\.\d{1,18})?)\s*([a-zA-Z]*)\s*")


def size_bytes(size: Bytes, option: str) -> int:
    """Return a size in bytes; `option` is what the error is about.

    >>> size_bytes("1.5 GB", "max_state_bytes"), size_bytes("2 KiB", "max_state_bytes")
    (1500000000, 2048)
    """
    found = None
    if isinstance(size, int) and not isinstance(size, bool):
        found = size
    elif isinstance(size, str) and (match := _SIZE.fullmatch(size)):
        unit = UNIT_BYTES.get(match[2].lower())
        found = None if unit is None else int(float(match[1]) * unit)
    if found is None or found < 1:
        message = f"{option} is {size!r:.80}"
        raise SchemaError(message, hint=f'write a number of bytes, or {option}="1 GB"')
    return found
