"""The nodes that the steps of a pattern can be on, if all others have one as well."""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import inline_lean
from eventide.kernels.xml.arrays import Documents, PatternSteps, SearchMemory, Space

_FEW = 4
"""Nodes of so many sets are merged; of more, all nodes of the document are looked at."""
FULL = -1


@inline_lean
def gather(
    trees: Documents,
    steps: PatternSteps,
    work: SearchMemory,
    room: Space,
    step: int,
    used: int,
    document: int,
) -> int:
    """Put the nodes in the state of a step behind `used` others; return how many there are then.

    `FULL` if there is no room for them.
    """
    hits, head = room.hits, work.state_head[steps.state[step]]
    total, runs, entry = 0, 0, head
    while entry >= 0:
        total += work.set_count[work.entry_set[entry]]
        runs += 1
        entry = work.entry_next[entry]
    if used + total > len(hits):
        return FULL
    if runs > _FEW:
        work.stamp[1] += 1
        mark, entry = work.stamp[1], head
        while entry >= 0:
            work.set_mark[work.entry_set[entry]] = mark
            entry = work.entry_next[entry]
        for node in range(trees.firsts[document], trees.firsts[document + 1]):
            if work.set_mark[trees.sets[node]] == mark:
                hits[used] = node
                used += 1
        return used
    count, entry = 0, head
    while entry >= 0:
        among = work.entry_set[entry]
        more = work.set_count[among]
        left, right, place = used + count - 1, work.set_place[among] - 1, used + count + more - 1
        first = work.set_place[among] - more
        while right >= first:
            if left >= used and hits[left] > work.by_set[right]:
                hits[place] = hits[left]
                left -= 1
            else:
                hits[place] = work.by_set[right]
                right -= 1
            place -= 1
        count += more
        entry = work.entry_next[entry]
    return used + count


@inline_lean
def keep_equal(
    trees: Documents, steps: PatternSteps, room: Space, step: int, low: int, high: int
) -> int:
    """Keep the nodes whose string value is the text of a step; return where they end."""
    test = steps.test[step]
    first = steps.text_firsts[test]
    length = steps.text_firsts[test + 1] - first
    kept = low
    for place in range(low, high):
        node = room.hits[place]
        start = trees.starts[node]
        if trees.ends[node] - start != length:
            continue
        same = np.int64(0)
        while same < length and trees.text[start + same] == steps.text[first + same]:
            same += 1
        if same == length:
            room.hits[kept] = node
            kept += 1
    return kept


@inline_lean
def keep_above(
    trees: Documents,
    work: SearchMemory,
    room: Space,
    up: int,
    step: int,
    is_child: bool,
    origin: int,
) -> None:
    """Keep the nodes of a step that have one of a step below it."""
    hits, kept = room.hits, work.low[up]
    place, high = work.low[step], work.high[step]
    if is_child:
        work.stamp[1] += 1
        mark = work.stamp[1]
        for each in range(place, high):
            work.marks[trees.parent[hits[each]] - origin] = mark
        for each in range(work.low[up], work.high[up]):
            if work.marks[hits[each] - origin] == mark:
                hits[kept] = hits[each]
                kept += 1
    else:
        for each in range(work.low[up], work.high[up]):
            node = hits[each]
            while place < high and hits[place] <= node:
                place += 1
            if place < high and hits[place] < trees.end[node]:
                hits[kept] = node
                kept += 1
    work.high[up] = kept


@inline_lean
def keep_below(
    trees: Documents,
    work: SearchMemory,
    room: Space,
    up: int,
    step: int,
    is_child: bool,
    origin: int,
) -> None:
    """Keep the nodes of a step that are inside of one of the step above it."""
    hits, kept = room.hits, work.low[step]
    place, high = work.low[up], work.high[up]
    if is_child:
        work.stamp[1] += 1
        mark = work.stamp[1]
        for each in range(place, high):
            work.marks[hits[each] - origin] = mark
        for each in range(work.low[step], work.high[step]):
            if work.marks[trees.parent[hits[each]] - origin] == mark:
                hits[kept] = hits[each]
                kept += 1
    else:
        end = np.int32(0)
        for each in range(work.low[step], work.high[step]):
            node = hits[each]
            while place < high and hits[place] < node:
                end = max(end, trees.end[hits[place]])
                place += 1
            if node < end:
                hits[kept] = node
                kept += 1
    work.high[step] = kept
