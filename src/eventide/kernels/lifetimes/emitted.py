"""The output of a kernel of a standing query: tuples that come and go, written into its room.

A kernel that runs out of room stops, returns that, and goes on where it was when called again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from eventide.kernels.compiled import Int64s, frozen, inline
from eventide.kernels.hashing import GOLDEN, mixed

Int8s = npt.NDArray[np.int8]

SMALLEST = 64
FILLED = 0


class Emitted(NamedTuple):
    """Room for changes; `rows` are numbers of rows, and `facts` has how much is filled."""

    at: Int64s
    exp: Int64s
    sign: Int8s
    id: Int64s
    rows: Int64s
    facts: Int64s


class Arriving(NamedTuple):
    """Changes as a kernel reads them: the two words of their keys, and numbers of their rows."""

    at: Int64s
    exp: Int64s
    sign: Int8s
    id: Int64s
    first: Int64s
    second: Int64s
    rows: Int64s


def arriving(
    at: Int64s, exp: Int64s, sign: Int8s, id_: Int64s, words: tuple[Int64s, Int64s], rows: Int64s
) -> Arriving:
    """Return changes for a kernel to read."""
    numbers = [at, exp, id_, *words, rows]
    ats, exps, ids, first, second, numbered = (
        frozen(array.astype(np.int64, copy=False)) for array in numbers
    )
    return Arriving(
        ats, exps, frozen(sign.astype(np.int8, copy=False)), ids, first, second, numbered
    )


def empty_room(length: int) -> Emitted:
    """Return room for this many changes."""
    return Emitted(
        np.empty(length, np.int64),
        np.empty(length, np.int64),
        np.empty(length, np.int8),
        np.empty(length, np.int64),
        np.empty(length, np.int64),
        np.zeros(1, np.int64),
    )


def all_emitted(run: Callable[[Emitted], bool], expected: int) -> Emitted:
    """Call a kernel until it is done, with more room each time; return all its output."""
    parts: list[list[npt.NDArray[Any]]] = []
    length = max(SMALLEST, expected)
    done = False
    while not done:
        room = empty_room(length)
        done = run(room)
        filled = int(room.facts[FILLED])
        parts.append([*(column[:filled] for column in room[:-1]), room.facts])
        length *= 2
    columns = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
    return Emitted(*columns)


@inline
def is_full(emitted: Emitted) -> bool:
    """Whether there is no room left."""
    return bool(emitted.facts[FILLED] >= len(emitted.at))


@inline
def emit(
    emitted: Emitted, at: np.int64, exp: np.int64, sign: int, id_: np.int64, row: np.int64
) -> None:
    """Write a change; there has to be room."""
    place = emitted.facts[FILLED]
    emitted.at[place] = at
    emitted.exp[place] = exp
    emitted.sign[place] = sign
    emitted.id[place] = id_
    emitted.rows[place] = row
    emitted.facts[FILLED] = place + 1


@inline
def id_of(one: np.int64, other: np.int64) -> np.int64:
    """Return an id made of two words."""
    return np.int64(mixed(np.uint64(one) * GOLDEN + mixed(np.uint64(other) + GOLDEN)))
