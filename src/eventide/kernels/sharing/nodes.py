"""A tree over slices: a node stands for a block of slices, and has a row for each key in it.

    level 2   [               0               ][ ...
    level 1   [   0   ][   1   ][   2   ][   3   ][ ...
    level 0   0 1 2 3  4 5 6 7  8 9 …                     the slices themselves

The slices from 3 to 8 are 3, the block of 4 to 7, and 8: a window of n slices consists of some
log n nodes. The rows of a node stand side by side. Blocks are of slices that get no more rows; the
newest blocks may not be there yet.
"""

from __future__ import annotations

from typing import NamedTuple

from eventide.kernels.compiled import Int32s, Int64s, inline, lean_kernel

BRANCHES = 4
LEVELS = 10


class SliceRuns(NamedTuple):
    """The slices [left, right), of which those count that hold events from `since` on."""

    left: Int64s
    right: Int64s
    since: Int64s


class SliceTree(NamedTuple):
    """Where the rows of each node begin and end; how many nodes each level has; keys and epochs.

    Each row has a key, and each slice an epoch.
    """

    begins: Int64s
    ends: Int64s
    blocks: Int64s
    keys: Int32s
    epochs: Int64s


@inline
def level_at(at: int, right: int, top: int, blocks: Int64s) -> tuple[int, int]:
    """Return the level of the largest block of [at, right) that begins there, and its width."""
    level, width = 0, 1
    while level < top:
        wider = width * BRANCHES
        if at % wider or at + wider > right or at // wider >= blocks[level + 1]:
            break
        level, width = level + 1, wider
    return level, width


@inline
def end_of_run(epochs: Int64s, at: int, right: int, since: int, clean: bool) -> int:
    """Return where the slices that count, from one of them on, are interrupted."""
    if clean:
        return right
    end = at
    while end < right and epochs[end] >= since:
        end += 1
    return end


@lean_kernel
def count_rows(runs: SliceRuns, tree: SliceTree, top: int, clean: int, counts: Int64s) -> None:
    """Write how many rows the nodes have of which each run of slices consists.

    All slices are of epochs from `clean` on.
    """
    for i in range(len(counts)):
        at, right, since = runs.left[i], runs.right[i], runs.since[i]
        count = 0
        while at < right:
            end = end_of_run(tree.epochs, at, right, since, since <= clean)
            while at < end:
                level, width = level_at(at, end, top, tree.blocks)
                node = at // width
                count += tree.ends[level, node] - tree.begins[level, node]
                at += width
            at = end if end == right else end + 1
        counts[i] = count


@lean_kernel
def list_rows(
    runs: SliceRuns,
    tree: SliceTree,
    limits: tuple[int, int, int],
    seen: Int64s,
    rows: Int64s,
    groups: Int64s,
    run_of: Int64s,
    key_of: Int32s,
) -> int:
    """List the rows of each run, in order of time, with a group for each run and key.

    Return how many groups there are: g is key `key_of[g]` of run `run_of[g]`. `limits` are the
    highest level, the epoch from which on all slices are, and a number above all in `seen`, to
    which this call adds a number for each group.
    """
    top, clean, stamp = limits
    groups_found = place = 0
    for i in range(len(runs.left)):
        at, right, since = runs.left[i], runs.right[i], runs.since[i]
        first = groups_found + stamp
        while at < right:
            end = end_of_run(tree.epochs, at, right, since, since <= clean)
            while at < end:
                level, width = level_at(at, end, top, tree.blocks)
                node = at // width
                for row in range(tree.begins[level, node], tree.ends[level, node]):
                    key = tree.keys[row]
                    if seen[key] < first:
                        seen[key] = groups_found + stamp
                        run_of[groups_found] = i
                        key_of[groups_found] = key
                        groups_found += 1
                    rows[place] = row
                    groups[place] = seen[key] - stamp
                    place += 1
                at += width
            at = end if end == right else end + 1
    return groups_found


@lean_kernel
def used_keys(keys: Int32s, numbers: Int32s, used: Int32s) -> int:
    """Number the keys of rows in order of first occurrence; return how many there are.

    `numbers` starts at -1, and `used` lists the keys.
    """
    count = 0
    for key in keys:
        if numbers[key] < 0:
            numbers[key] = count
            used[count] = key
            count += 1
    return count
