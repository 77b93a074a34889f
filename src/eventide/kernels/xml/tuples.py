"""The tuples of nodes that a view wants of the embeddings of a pattern in a document."""

from __future__ import annotations

from eventide.kernels.compiled import Int32s, inline_lean
from eventide.kernels.xml.arrays import (
    DONE,
    NO_FOUND,
    NO_PAIRS,
    Documents,
    NodeTuples,
    PatternSteps,
    PatternViews,
    SearchMemory,
    Space,
)


@inline_lean
def _place_of(hits: Int32s, low: int, high: int, node: int) -> int:
    """Return where a node is, or would be, among hits[low:high]."""
    while low < high:
        middle = (low + high) // 2
        if hits[middle] < node:
            low = middle + 1
        else:
            high = middle
    return low


@inline_lean
def _above(
    trees: Documents,
    steps: PatternSteps,
    work: SearchMemory,
    room: Space,
    base: int,
    step: int,
    top: int,
    node: int,
) -> int:
    """Put into `chain` the nodes of a step above that a node can be below; return how many.

    All steps between have nodes between. What is above a node is a chain, deepest first.
    """
    chain, hits = work.chain, room.hits
    chain[0], count = node, 1
    while step != top:
        up, kept = steps.above[base + step], 0
        low, high = work.low[up], work.high[up]
        if steps.is_child[base + step]:
            for each in range(count):
                above = trees.parent[chain[each]]
                place = _place_of(hits, low, high, above)
                if place < high and hits[place] == above:
                    chain[kept] = above
                    kept += 1
        else:
            above = trees.parent[chain[0]] if count else -1
            while above >= 0:
                place = _place_of(hits, low, high, above)
                if place < high and hits[place] == above:
                    chain[kept] = above
                    kept += 1
                above = trees.parent[above]
        count, step = kept, up
    return count


@inline_lean
def _pair(
    trees: Documents,
    steps: PatternSteps,
    work: SearchMemory,
    room: Space,
    base: int,
    step: int,
    top: int,
) -> bool:
    """List the nodes of a step below each node of a step above; whether there was room.

    They are places from the first of the step on. `lists` says where lists and pairs end.
    """
    used, firsts = work.lists[0], work.lists[1]
    first, low = used, work.low[top]
    size = work.high[top] - low
    if firsts + size + 1 > len(room.below_firsts):
        return False
    for place in range(firsts, firsts + size + 1):
        room.below_firsts[place] = 0
    for each in range(work.low[step], work.high[step]):
        count = _above(trees, steps, work, room, base, step, top, room.hits[each])
        if used + count > len(room.pair_node):
            return False
        for link in range(count):
            place = _place_of(room.hits, low, work.high[top], work.chain[link]) - low
            room.pair_place[used] = place
            room.pair_node[used] = each - work.low[step]
            room.below_firsts[firsts + place] += 1
            used += 1
    total = first
    for place in range(firsts, firsts + size + 1):
        count = room.below_firsts[place]
        room.below_firsts[place] = total
        total += count
    for each in range(first, used):
        place = firsts + room.pair_place[each]
        room.below[room.below_firsts[place]] = room.pair_node[each]
        room.below_firsts[place] += 1
    for place in range(firsts + size, firsts, -1):
        room.below_firsts[place] = room.below_firsts[place - 1]
    room.below_firsts[firsts] = first
    work.lists[0], work.lists[1] = used, firsts + size + 1
    return True


@inline_lean
def _list_below(
    trees: Documents,
    steps: PatternSteps,
    views: PatternViews,
    work: SearchMemory,
    room: Space,
    base: int,
    view: int,
) -> bool:
    """List the nodes of each step of a view below the one above; whether there was room."""
    first = views.kept_firsts[view]
    work.lists[0] = work.lists[1] = 0
    for each in range(first + 1, views.kept_firsts[view + 1]):
        work.lists[2 + each - first] = work.lists[1]
        top = views.kept[first + views.up[each]]
        if not _pair(trees, steps, work, room, base, views.kept[each], top):
            return False
    return True


@inline_lean
def _take_nodes(
    work: SearchMemory, room: Space, found: NodeTuples, step: int, used: int
) -> tuple[int, int, int]:
    """Append all nodes of a step, where nothing else is wanted."""
    low, high = work.low[step], work.high[step]
    if used + high - low > len(found.nodes):
        return NO_FOUND, 0, used
    for place in range(low, high):
        found.nodes[used] = room.hits[place]
        used += 1
    return DONE, high - low, used


@inline_lean
def _take_rows(
    views: PatternViews, work: SearchMemory, room: Space, found: NodeTuples, view: int, used: int
) -> tuple[int, int, int]:
    """Append one tuple after the other: each node of a step has some of the steps below it."""
    first, last = views.kept_firsts[view], views.kept_firsts[view + 1] - 1
    width = 0
    for each in range(first, last + 1):
        width += 1 if views.wanted[each] else 0
    root = views.kept[first]
    count, depth = 0, 0
    work.cursor[0] = 0
    while True:
        # The next node of the step at this depth, or back to the one before.
        ends = work.high[root] - work.low[root]
        if depth:
            place = work.lists[2 + depth] + work.chosen[views.up[first + depth]]
            ends = room.below_firsts[place + 1]
        cursor = work.cursor[depth]
        if cursor == ends:
            if depth == 0:
                return DONE, count, used
            depth -= 1
            continue
        work.cursor[depth] = cursor + 1
        work.chosen[depth] = room.below[cursor] if depth else cursor
        if first + depth < last:
            depth += 1
            place = work.lists[2 + depth] + work.chosen[views.up[first + depth]]
            work.cursor[depth] = room.below_firsts[place]
            continue
        if used + width > len(found.nodes):
            return NO_FOUND, count, used
        for each in range(first, last + 1):
            if views.wanted[each]:
                step = views.kept[each]
                found.nodes[used] = room.hits[work.low[step] + work.chosen[each - first]]
                used += 1
        count += 1


@inline_lean
def take_tuples(
    trees: Documents,
    steps: PatternSteps,
    views: PatternViews,
    work: SearchMemory,
    room: Space,
    found: NodeTuples,
    place: tuple[int, int],
    used: int,
) -> tuple[int, int, int]:
    """Append the tuples of a view, in document order; return why it ended, count, nodes used.

    `place` is the first step of the pattern, and the view.
    """
    base, view = place
    first = views.kept_firsts[view]
    kept = views.kept_firsts[view + 1] - first
    if kept == 0:
        return DONE, 1, used
    if kept == 1:
        return _take_nodes(work, room, found, views.kept[first], used)
    if not _list_below(trees, steps, views, work, room, base, view):
        return NO_PAIRS, 0, used
    return _take_rows(views, work, room, found, view, used)
