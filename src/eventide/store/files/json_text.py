"""JSON in our files, read with care: anybody may have written it."""

from __future__ import annotations

import json
from math import isinf
from typing import Any


def read_json(content: bytes) -> Any:  # noqa: ANN401 - whatever the text says
    """Return the value of a text; ValueError if it is not JSON, or JSON that we never write.

    >>> read_json(b'{"rows": 1e400}')
    Traceback (most recent call last):
        ...
    ValueError: 1e400 is no number that is stored
    """
    try:
        return json.loads(content, parse_float=finite)
    except RecursionError:
        message = "it is nested too deeply"
        raise ValueError(message) from None


def finite(text: str) -> float:
    """Return a number that a double can hold."""
    number = float(text)
    if isinf(number):
        message = f"{text} is no number that is stored"
        raise ValueError(message)
    return number


def whole(value: object) -> int:
    """Return a whole number of 64 bits, refusing anything else."""
    if type(value) is not int or not -(2**63) <= value < 2**63:
        message = f"{str(value)[:40]!r} is not a whole number"
        raise TypeError(message)
    return value
