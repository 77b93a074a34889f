"""Many constant texts looked for in a text at once: each is found by one of its parts.

A part is 1, 2, 4 or 8 octets, read as a number. Of the parts of its text a pattern takes one that
few others have, so adding and removing patterns costs little, and nothing is ever built again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Int32s, Int64s, inline_lean, lean_kernel
from eventide.kernels.hashing import Bytes
from eventide.kernels.key_table import KeyTable, find, put, remove
from eventide.kernels.sharing.conditions.programs import Octets

AT_START, AT_END = 1, 2
"""Where a pattern has to be, as bits of its anchors."""
WIDTHS = 4
"""Parts have 1, 2, 4 and 8 octets."""
_MOST_STEPS = 16


class Patterns(NamedTuple):
    """Patterns by number: their octets, anchors, and which part they are found by.

    `parts` has the first pattern of a part, `following` the next one, -1 for none. `counts[c, w]`
    is how many patterns of column c have parts of width w.
    """

    parts: KeyTable
    following: Int32s
    octets: Octets
    starts: Int64s
    lengths: Int32s
    anchors: Octets
    offsets: Int32s
    counts: Int64s


@inline_lean
def part_at(octets: Bytes, at: int, width: int) -> np.int64:
    """Return 2^width octets as a number."""
    word = np.uint64(0)
    for i in range(1 << width):
        word |= np.uint64(octets[at + i]) << np.uint64(8 * i)
    return np.int64(word)


@inline_lean
def width_for(length: int) -> int:
    """Return the width of the parts of a pattern."""
    if length >= 8:
        return 3
    if length >= 4:
        return 2
    return 1 if length >= 2 else 0


@lean_kernel
def add_pattern(patterns: Patterns, pattern: int, column: int) -> None:
    """Put a pattern of a column, which is not empty, under its rarest part."""
    start, length = patterns.starts[pattern], patterns.lengths[pattern]
    width = width_for(length)
    best, best_steps = 0, _MOST_STEPS + 1
    for offset in range(length - (1 << width) + 1):
        word = part_at(patterns.octets, start + offset, width)
        at = find(patterns.parts, word, np.int64(column * WIDTHS + width))
        steps = 0
        while at >= 0 and steps < _MOST_STEPS:
            at = np.int64(patterns.following[at])
            steps += 1
        if steps < best_steps:
            best, best_steps = offset, steps
    word = part_at(patterns.octets, start + best, width)
    second = np.int64(column * WIDTHS + width)
    patterns.offsets[pattern] = best
    patterns.following[pattern] = find(patterns.parts, word, second)
    put(patterns.parts, word, second, np.int64(pattern))
    patterns.counts[column, width] += 1


@lean_kernel
def remove_pattern(patterns: Patterns, pattern: int, column: int) -> None:
    """Take a pattern of a column away."""
    width = width_for(patterns.lengths[pattern])
    word = part_at(patterns.octets, patterns.starts[pattern] + patterns.offsets[pattern], width)
    second = np.int64(column * WIDTHS + width)
    after = np.int64(patterns.following[pattern])
    at = find(patterns.parts, word, second)
    if at == pattern:
        if after < 0:
            remove(patterns.parts, word, second)
        else:
            put(patterns.parts, word, second, after)
    else:
        while patterns.following[at] != pattern:
            at = np.int64(patterns.following[at])
        patterns.following[at] = after
    patterns.counts[column, width] -= 1


@inline_lean
def is_at(patterns: Patterns, pattern: int, data: Bytes, start: int, first: int, end: int) -> bool:
    """Whether a pattern is at a place of the text data[first:end], and may be there."""
    length = patterns.lengths[pattern]
    anchors = patterns.anchors[pattern]
    if start < first or start + length > end:
        return False
    if (anchors & AT_START and start != first) or (anchors & AT_END and start + length != end):
        return False
    origin = patterns.starts[pattern]
    same = 0
    while same < length and data[start + same] == patterns.octets[origin + same]:
        same += 1
    return bool(same == length)


@lean_kernel
def find_patterns(
    patterns: Patterns,
    column: int,
    offsets: Int32s,
    data: Bytes,
    first: int,
    seen: Int32s,
    values: Int64s,
    found: Int64s,
    reached: Int64s,
) -> int:
    """Write which patterns of a column are in which texts, from the first one on.

    Returns how many there are. `reached[0]` becomes the text for which there was no room: one text
    has as many patterns as there are at most. `seen` has no number of a text.
    """
    count = 0
    for value in range(first, len(offsets) - 1):
        if count + len(seen) > len(values):
            reached[0] = value
            return count
        start, end = offsets[value], offsets[value + 1]
        for width in range(WIDTHS):
            if patterns.counts[column, width] == 0:
                continue
            second = np.int64(column * WIDTHS + width)
            size = 1 << width
            word = np.uint64(0)
            for at in range(start, end):
                # The newest octet comes in on top.
                word = (word >> np.uint64(8)) | (np.uint64(data[at]) << np.uint64(8 * size - 8))
                place = at - size + 1
                if place < start:
                    continue
                pattern = find(patterns.parts, np.int64(word), second)
                while pattern >= 0:
                    there = place - int(patterns.offsets[pattern])
                    if seen[pattern] != value and is_at(
                        patterns, int(pattern), data, there, start, end
                    ):
                        seen[pattern] = value
                        values[count], found[count] = value, pattern
                        count += 1
                    pattern = np.int64(patterns.following[pattern])
    reached[0] = len(offsets) - 1
    return count
