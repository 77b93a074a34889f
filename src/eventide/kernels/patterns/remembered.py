"""States of a search that are known to fail.

Backtracking could visit the same place again and again: after a few failures in one search, states
that failed are remembered. A state is the row, the node and what conditions further on can still
read of the match, so that two paths that no condition can tell apart are searched once.
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Int64s, call_lean, inline_lean
from eventide.kernels.patterns.code import (
    BASE,
    FAILED,
    FRAME_FROM,
    FRAME_NODE,
    HITS,
    KEEPING,
    KEY,
    REMEMBERED,
    USED,
    Code,
    Place,
    Tables,
    Work,
)
from eventide.kernels.patterns.registers import write_key

PATIENCE = 64
"""Failures in one search before any are remembered: most searches never get there."""


@inline_lean
def _hash(info: Int64s, length: int) -> int:
    mixed = np.uint64(length)
    for each in range(length):
        mixed = (mixed ^ np.uint64(info[KEY + each])) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return int(np.int64(mixed >> np.uint64(32)))


@call_lean
def slot_of(work: Work, length: int) -> int:
    """Return the slot of the key, or minus one minus the free slot where it would go.

    A slot holds where its key starts in `words`, counted on beyond every clearing: a start that is
    not above info[BASE] has been forgotten.
    """
    slots, words, base = work.slots, work.words, work.info[BASE]
    size = len(slots) - 1
    slot = _hash(work.info, length) & size
    while slots[slot] > base:
        at = slots[slot] - base - 1
        if words[at] == length:
            same = True
            for each in range(length):
                if words[at + 1 + each] != work.info[KEY + each]:
                    same = False
                    break
            if same:
                return slot
        slot = (slot + 1) & size
    return -1 - slot


@call_lean
def remember(work: Work, length: int, entries: int) -> int:
    """Remember the key in `work.info` if there is room; return the number of states remembered."""
    used = work.info[USED]
    if entries >= len(work.slots) // 2 or used + length + 1 > len(work.words):
        return entries
    slot = slot_of(work, length)
    if slot >= 0:
        return entries
    work.slots[-1 - slot] = work.info[BASE] + used + 1
    work.words[used] = length
    for each in range(length):
        work.words[used + 1 + each] = work.info[KEY + each]
    work.info[USED] = used + length + 1
    return entries + 1


@call_lean
def forget(work: Work) -> None:
    """Forget all states."""
    work.info[BASE] += work.info[USED]
    work.info[USED] = 0
    work.info[KEEPING] = 0


@call_lean
def _key_of(code: Code, tables: Tables, work: Work, place: Place, depth: int) -> int:
    """Write the state of a frame with one node; return its length, 0 if it cannot be remembered."""
    node = work.frames[depth, FRAME_NODE]
    work.info[KEY] = work.frames[depth, FRAME_FROM]
    work.info[KEY + 1] = node
    return write_key(code, tables, work, place, depth, node, int(np.int64(2)))


@inline_lean
def failed_before(code: Code, tables: Tables, work: Work, place: Place, depth: int) -> bool:
    """Whether the state of a frame is known to fail."""
    if work.info[KEEPING] == 0 or not code.by_node[work.frames[depth, FRAME_NODE], REMEMBERED]:
        return False
    length = _key_of(code, tables, work, place, depth)
    if length == 0 or slot_of(work, length) < 0:
        return False
    work.info[HITS] += 1
    return True


@inline_lean
def record_failure(code: Code, tables: Tables, work: Work, place: Place, depth: int) -> None:
    """Count a failure, and remember the state once there have been many."""
    work.info[FAILED] += 1
    if work.info[FAILED] < PATIENCE or depth == 0:
        return
    if code.by_node[work.frames[depth, FRAME_NODE], REMEMBERED]:
        length = _key_of(code, tables, work, place, depth)
        if length > 0:
            work.info[KEEPING] = remember(work, length, work.info[KEEPING])
