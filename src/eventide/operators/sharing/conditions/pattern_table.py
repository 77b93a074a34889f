"""What tests of texts look for, and the texts that have it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.growing import longer
from eventide.kernels.key_table import empty_table, roomy
from eventide.kernels.sharing.conditions.patterns import (
    WIDTHS,
    Patterns,
    add_pattern,
    find_patterns,
    remove_pattern,
)
from eventide.operators.sharing.conditions.looked_for import LookedFor

_FOLDS = (("\u017f", "s"), ("\u212a", "k"))
"""The characters beside A to Z that are letters of a to z in lower case."""
_MOST_FOUND = 1 << 16
_LEAST_WASTE = 1 << 16


class PatternTable:
    """Patterns by number; those of a place look at its texts as they are, or folded."""

    def __init__(self) -> None:
        self._columns: dict[int, int] = {}
        self._filled, self._wasted = 0, 0
        self._patterns = Patterns(
            empty_table(),
            np.zeros(16, np.int32),
            np.zeros(64, np.uint8),
            np.zeros(16, np.int64),
            np.zeros(16, np.int32),
            np.zeros(16, np.uint8),
            np.zeros(16, np.int32),
            np.zeros((2, WIDTHS), np.int64),
        )

    @property
    def nbytes(self) -> int:
        """How much memory the patterns take."""
        held = self._patterns
        return sum(each.nbytes for each in (*held.parts, *held[1:]) if hasattr(each, "nbytes"))

    def add(self, number: int, place: int, wanted: LookedFor) -> None:
        """Look for a part in the texts of a place."""
        octets = np.frombuffer(wanted.part.encode(), np.uint8)
        column = 2 * place + wanted.folded
        self._make_room(number, column, len(octets))
        held = self._patterns
        held.octets[self._filled : self._filled + len(octets)] = octets
        held.starts[number], held.lengths[number] = self._filled, len(octets)
        held.anchors[number] = wanted.anchors
        self._filled += len(octets)
        self._columns[number] = column
        add_pattern(held, number, column)

    def remove(self, number: int) -> None:
        """Do not look for a part any more."""
        remove_pattern(self._patterns, number, self._columns.pop(number))
        self._wasted += int(self._patterns.lengths[number])
        if self._wasted > _LEAST_WASTE and 2 * self._wasted > self._filled:
            self._close_gaps()

    def found(self, place: int, values: pa.Array) -> tuple[Int64s, Int64s]:
        """Return pairs of a value and a number: the parts that texts without nulls have."""
        parts = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
        counts = self._patterns.counts
        if 2 * place < len(counts) and counts[2 * place].any():
            parts += self._found_in(2 * place, values)
        if 2 * place + 1 < len(counts) and counts[2 * place + 1].any():
            parts += self._found_in(2 * place + 1, folded_texts(values))
        where, which = zip(*parts, strict=True)
        return np.concatenate(where), np.concatenate(which)

    def _found_in(self, column: int, values: pa.Array) -> list[tuple[Int64s, Int64s]]:
        _, ends, data = values.buffers()
        offsets = np.frombuffer(ends, np.int32)[values.offset : values.offset + len(values) + 1]
        octets = np.frombuffer(data or b"", np.uint8)
        known = max(self._columns) + 1
        seen = np.full(known, -1, np.int32)
        where, which = (np.empty(known + _MOST_FOUND, np.int64) for _ in range(2))
        first, reached = 0, np.zeros(1, np.int64)
        parts = []
        while first < len(values):
            count = find_patterns(
                self._patterns,
                column,
                frozen(offsets),
                frozen(octets),
                first,
                seen,
                where,
                which,
                reached,
            )
            first = int(reached[0])
            parts.append((where[:count].copy(), which[:count].copy()))
        return parts

    def _make_room(self, number: int, column: int, octets: int) -> None:
        held, size = self._patterns, number + 1
        counts = held.counts
        if column >= len(counts):
            counts = longer(counts, column + 1)
        self._patterns = Patterns(
            roomy(held.parts, 1),
            longer(held.following, size),
            longer(held.octets, self._filled + octets),
            longer(held.starts, size),
            longer(held.lengths, size),
            longer(held.anchors, size),
            longer(held.offsets, size),
            counts,
        )

    def _close_gaps(self) -> None:
        """Move the octets of patterns together."""
        held = self._patterns
        octets, filled = np.zeros_like(held.octets), 0
        for number in self._columns:
            start, length = int(held.starts[number]), int(held.lengths[number])
            octets[filled : filled + length] = held.octets[start : start + length]
            held.starts[number] = filled
            filled += length
        held.octets[:] = octets
        self._filled, self._wasted = filled, 0


def folded_texts(values: pa.Array) -> pa.Array:
    """Return texts with all letters that are the same as one of a to z, but for case, as these."""
    folded = pc.ascii_lower(values)
    for character, letter in _FOLDS:
        folded = pc.replace_substring(folded, character, letter)
    return folded
