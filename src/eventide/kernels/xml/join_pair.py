"""The join of two documents, for all queries at once: down the tries, as far as nodes fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from eventide.kernels.compiled import Int64s, call_lean
from eventide.kernels.key_table import find
from eventide.kernels.xml.document_log import NONE, DocumentLog, first_row_of
from eventide.kernels.xml.join_programs import (
    DOWN,
    EQUAL,
    KIND,
    ON_RIGHT,
    ONE,
    ONE_KNOWN,
    OTHER,
    OTHER_KNOWN,
    EqualNodes,
    JoinPrograms,
    JoinSpace,
)

FRESH = -2
ROW, LEFT_DOCUMENT, RIGHT_DOCUMENT, NODES = range(4)


@call_lean
def join_pair(
    programs: JoinPrograms,
    log: DocumentLog,
    equal: EqualNodes,
    space: JoinSpace,
    documents: tuple[Any, ...],
    found: Int64s,
    count: int,
) -> int:
    """Write the rows of an earlier and a newer document; return their count, -1 without room."""
    mask = len(log.times) - 1
    elapsed = log.times[documents[1] & mask] - log.times[documents[0] & mask]
    head = equal.heads[documents[0] & mask]
    at = head
    while at >= 0:
        node = programs.first_nodes[equal.pairs[at]]
        if node >= 0:
            # The first step of all ways has been taken: it led to this node.
            space.bound[0] = equal.lefts[at]
            space.bound[1] = equal.rights[at]
            of_pair = (documents[0], documents[1], elapsed, head)
            count = descend(programs, log, equal, space, int(node), of_pair, found, count)
            if count < 0:
                return NONE
        at = equal.following[at]
    return count


@call_lean
def descend(
    programs: JoinPrograms,
    log: DocumentLog,
    equal: EqualNodes,
    space: JoinSpace,
    node: int,
    of_pair: tuple[Any, ...],
    found: Int64s,
    count: int,
) -> int:
    """Take all ways down from a node of the trie."""
    one, other, elapsed, head = of_pair
    depth = 0
    while depth >= 0:
        if node >= 0:
            # A node that was just come to.
            if programs.first_row[node] >= 0:
                count = write_rows(programs, space, node, (one, other, elapsed), found, count)
                if count < 0:
                    return NONE
            space.branches[depth] = programs.first_branch[node]
            space.places[depth] = FRESH
        branch = space.branches[depth]
        if branch < 0:
            depth -= 1
            node = NONE
            continue
        step = programs.steps[programs.step_of[branch]]
        if step[KIND] == EQUAL:
            node = next_equal(programs, equal, space, step, depth, head)
        else:
            document = other if step[ON_RIGHT] else one
            node = next_node(programs, log, space, step, depth, document)
        if node >= 0:
            depth += 1
        else:
            space.branches[depth] = programs.next_branch[branch]
            space.places[depth] = FRESH
    return count


@call_lean
def next_equal(
    programs: JoinPrograms,
    equal: EqualNodes,
    space: JoinSpace,
    step: Int64s,
    depth: int,
    head: int,
) -> int:
    """Bind the next two nodes with equal values; return the node of the trie, -1 without any."""
    branch, bound = space.branches[depth], space.bound
    at = space.places[depth]
    at = head if at == FRESH else equal.following[at]
    below = np.int64(NONE)
    while at >= 0:
        fits = not step[ONE_KNOWN] or bound[step[ONE]] == equal.lefts[at]
        fits = fits and (not step[OTHER_KNOWN] or bound[step[OTHER]] == equal.rights[at])
        if fits:
            below = find(programs.children, branch, np.int64(equal.pairs[at]))
            if below >= 0:
                bound[step[ONE]] = equal.lefts[at]
                bound[step[OTHER]] = equal.rights[at]
                break
        at = equal.following[at]
    space.places[depth] = at
    return int(below)


@call_lean
def next_node(
    programs: JoinPrograms,
    log: DocumentLog,
    space: JoinSpace,
    step: Int64s,
    depth: int,
    document: int,
) -> int:
    """Bind the next node above or below a known one; return the node of the trie, or -1."""
    branch, bound = space.branches[depth], space.bound
    known = bound[step[ONE]]
    down = step[KIND] == DOWN
    mask = len(log.edges) - 1
    place = document & (len(log.times) - 1)
    row = space.places[depth]
    if row != FRESH:
        row += 1
    elif down:
        row = log.row_starts[place]
    else:
        row = first_row_of(log, document, known)
    end = log.row_ends[place]
    below = np.int64(NONE)
    while row < end:
        at = row & mask
        if not down and log.lowers[at] != known:
            row = end
            break
        fits = log.uppers[at] == known if down else True
        target = log.lowers[at] if down else log.uppers[at]
        if fits and (not step[OTHER_KNOWN] or bound[step[OTHER]] == target):
            below = find(programs.children, branch, np.int64(log.edges[at]))
            if below >= 0:
                bound[step[OTHER]] = target
                break
        row += 1
    space.places[depth] = row
    return int(below)


@call_lean
def write_rows(
    programs: JoinPrograms,
    space: JoinSpace,
    node: int,
    of_pair: tuple[Any, ...],
    found: Int64s,
    count: int,
) -> int:
    """Write what the rows at a node of a trie select; return the new count, -1 without room."""
    row = programs.first_row[node]
    while row >= 0:
        shortest, longest = programs.row_bounds[row, 0], programs.row_bounds[row, 1]
        if shortest <= of_pair[2] <= longest:
            if count == len(found):
                return NONE
            found[count, ROW] = row
            found[count, LEFT_DOCUMENT] = of_pair[0]
            found[count, RIGHT_DOCUMENT] = of_pair[1]
            for place in range(programs.selected.shape[1]):
                slot = programs.selected[row, place]
                found[count, NODES + place] = space.bound[slot] if slot >= 0 else NONE
            count += 1
        row = programs.next_row[row]
    return count
