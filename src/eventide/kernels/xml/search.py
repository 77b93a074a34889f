"""All patterns over all documents of a batch."""

from __future__ import annotations

from eventide.kernels.compiled import Int64s, inline_lean, lean_kernel
from eventide.kernels.xml.arrays import (
    DONE,
    NO_FOUND,
    NO_HITS,
    Documents,
    NodeTuples,
    PatternSteps,
    PatternViews,
    SearchMemory,
    SetStates,
    Space,
)
from eventide.kernels.xml.steps import FULL, gather, keep_above, keep_below, keep_equal
from eventide.kernels.xml.tuples import take_tuples

NONE = -1


@inline_lean
def _note_sets(trees: Documents, work: SearchMemory, document: int) -> int:
    """Put the nodes of a document by set; return how many sets there are."""
    stamp, present = work.stamp[0], 0
    first, end = trees.firsts[document], trees.firsts[document + 1]
    for node in range(first, end):
        among = trees.sets[node]
        if work.set_seen[among] != stamp:
            work.set_seen[among] = stamp
            work.set_count[among] = 0
            work.present[present] = among
            present += 1
        work.set_count[among] += 1
    place = 0
    for each in range(present):
        among = work.present[each]
        work.set_place[among] = place
        place += work.set_count[among]
    for node in range(first, end):
        among = trees.sets[node]
        work.by_set[work.set_place[among]] = node
        work.set_place[among] += 1
    return present


@inline_lean
def _note_states(states: SetStates, work: SearchMemory, present: int) -> int:
    """List the sets that have each state; return how many states there are."""
    stamp, entries, count = work.stamp[0], 0, 0
    for each in range(present):
        among = work.present[each]
        for place in range(states.firsts[among], states.firsts[among + 1]):
            state = states.states[place]
            if work.state_seen[state] != stamp:
                work.state_seen[state] = stamp
                work.state_head[state] = NONE
                work.hit_states[count] = state
                count += 1
            work.entry_set[entries] = among
            work.entry_next[entries] = work.state_head[state]
            work.state_head[state] = entries
            entries += 1
    return count


@inline_lean
def _all_leaves(steps: PatternSteps, work: SearchMemory, pattern: int) -> bool:
    """Whether a node is in each state of the steps with nothing below."""
    for place in range(steps.leaf_firsts[pattern], steps.leaf_firsts[pattern + 1]):
        if work.state_seen[steps.leaves[place]] != work.stamp[0]:
            return False
    return True


@inline_lean
def _embed(
    trees: Documents,
    steps: PatternSteps,
    work: SearchMemory,
    room: Space,
    document: int,
    pattern: int,
) -> tuple[int, bool]:
    """Find the nodes of each step that are in an embedding; whether there was room, and any."""
    base, end = steps.firsts[pattern], steps.firsts[pattern + 1]
    origin, used = trees.firsts[document], 0
    for step in range(end - base - 1 if steps.plain[pattern] else 0, end - base):
        work.low[step] = used
        high = gather(trees, steps, work, room, base + step, used, document)
        if high == FULL:
            return NO_HITS, False
        if steps.test[base + step] >= 0:
            high = keep_equal(trees, steps, room, base + step, used, high)
        if high == used:
            return DONE, False
        used = work.high[step] = high
    if steps.plain[pattern]:
        return DONE, True
    for step in range(end - base - 1, 0, -1):
        up = steps.above[base + step]
        keep_above(trees, work, room, up, step, steps.is_child[base + step], origin)
        if work.high[up] == work.low[up]:
            return DONE, False
    for step in range(1, end - base):
        up = steps.above[base + step]
        keep_below(trees, work, room, up, step, steps.is_child[base + step], origin)
    return DONE, True


@lean_kernel
def search(
    trees: Documents,
    states: SetStates,
    steps: PatternSteps,
    views: PatternViews,
    work: SearchMemory,
    room: Space,
    found: NodeTuples,
    at: Int64s,
) -> int:
    """Search documents from at[0] on; at[1] entries and at[2] nodes are found so far.

    If there is no room for what a document has, it is not searched, and at[3] is the pattern.
    """
    for document in range(at[0], len(trees.firsts) - 1):
        at[0] = document
        if trees.firsts[document] == trees.firsts[document + 1]:
            continue
        work.stamp[0] += 1
        entries, used = at[1], at[2]
        hit = _note_states(states, work, _note_sets(trees, work, document))
        for each in range(hit):
            state = work.hit_states[each]
            for place in range(steps.tried_firsts[state], steps.tried_firsts[state + 1]):
                pattern = steps.tried[place]
                if not _all_leaves(steps, work, pattern):
                    continue
                at[3] = pattern
                why, any_node = _embed(trees, steps, work, room, document, pattern)
                if why != DONE:
                    return why
                if not any_node:
                    continue
                for view in range(views.firsts[pattern], views.firsts[pattern + 1]):
                    if entries == len(found.number):
                        return NO_FOUND
                    where = (steps.firsts[pattern], view)
                    why, count, used = take_tuples(
                        trees, steps, views, work, room, found, where, used
                    )
                    if why != DONE:
                        return why
                    found.document[entries] = document
                    found.number[entries] = view
                    found.counts[entries] = count
                    entries += 1
        at[1], at[2] = entries, used
    at[0] = len(trees.firsts) - 1
    return DONE
