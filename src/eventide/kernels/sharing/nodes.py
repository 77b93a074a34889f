"""A tree over slices: a node stands for a block of slices, and has a row for each key in it.

    level 2   [               0               ][ ...
    level 1   [   0   ][   1   ][   2   ][   3   ][ ...
    level 0   0 1 2 3  4 5 6 7  8 9 …                     the slices themselves

The slices from 3 to 8 are 3, the block of 4 to 7, and 8: a window of n slices consists of some
log n nodes. The rows of a node stand side by side. Blocks are of slices that get no more rows; the
newest blocks may not be there yet.

A row is of a *cell*, which is a key in a synopsis. Those of a synopsis stand together in a node, so
that windows that read few of many synopses find their rows by halving.
"""

from __future__ import annotations

from typing import NamedTuple

from eventide.kernels.compiled import Int32s, Int64s, inline, lean_kernel

BRANCHES = 4
LEVELS = 10


class SliceRuns(NamedTuple):
    """The slices [left, right), of which those count that hold events from `since` on.

    Each run reads the synopses of a place: see `Covers`.
    """

    left: Int64s
    right: Int64s
    since: Int64s
    places: Int64s


class Covers(NamedTuple):
    """The synopses of each place, from `offsets[place]` on; none if all rows are read.

    Cells have synopses, and keys by which what several synopses have is put together.
    """

    synopses: Int64s
    offsets: Int64s
    synopsis_of: Int32s
    key_of: Int32s


class SliceTree(NamedTuple):
    """Where the rows of each node begin and end; how many nodes each level has; cells and epochs.

    Each row has a cell, and each slice an epoch.
    """

    begins: Int64s
    ends: Int64s
    blocks: Int64s
    cells: Int32s
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


@inline
def first_of(tree: SliceTree, covers: Covers, begin: int, end: int, synopsis: int) -> int:
    """Return the first of some rows of a node whose synopsis is not before one."""
    low, high = begin, end
    while low < high:
        middle = (low + high) // 2
        if covers.synopsis_of[tree.cells[middle]] < synopsis:
            low = middle + 1
        else:
            high = middle
    return low


@lean_kernel
def count_rows(
    runs: SliceRuns, tree: SliceTree, covers: Covers, top: int, clean: int, counts: Int64s
) -> None:
    """Write how many rows each run of slices has in its nodes, in the synopses that it reads.

    All slices are of epochs from `clean` on.
    """
    for i in range(len(counts)):
        at, right, since = runs.left[i], runs.right[i], runs.since[i]
        first, last = covers.offsets[runs.places[i]], covers.offsets[runs.places[i] + 1]
        count = 0
        while at < right:
            end = end_of_run(tree.epochs, at, right, since, since <= clean)
            while at < end:
                level, width = level_at(at, end, top, tree.blocks)
                node = at // width
                begin, stop = tree.begins[level, node], tree.ends[level, node]
                if first == last:
                    count += stop - begin
                for each in range(first, last):
                    synopsis = covers.synopses[each]
                    begin = first_of(tree, covers, begin, stop, synopsis)
                    behind = first_of(tree, covers, begin, stop, synopsis + 1)
                    count += behind - begin
                    begin = behind
                at += width
            at = end if end == right else end + 1
        counts[i] = count


@lean_kernel
def list_rows(
    runs: SliceRuns,
    tree: SliceTree,
    covers: Covers,
    limits: tuple[int, int, int],
    seen: Int64s,
    rows: Int64s,
    groups: Int64s,
    run_of: Int64s,
    cell_of: Int32s,
) -> int:
    """List the rows of each run, in order of time, with a group for each run and key.

    Return how many groups there are: g has the key of the cell `cell_of[g]`, in run `run_of[g]`.
    Where all rows are read, groups are of cells. `limits` are the highest level, the epoch from
    which on all slices are, and a number above all in `seen`, to which this call adds a number for
    each group.
    """
    top, clean, stamp = limits
    groups_found = place = 0
    for i in range(len(runs.left)):
        at, right, since = runs.left[i], runs.right[i], runs.since[i]
        begin_cover, end_cover = covers.offsets[runs.places[i]], covers.offsets[runs.places[i] + 1]
        reads_all = begin_cover == end_cover
        first = groups_found + stamp
        while at < right:
            end = end_of_run(tree.epochs, at, right, since, since <= clean)
            while at < end:
                level, width = level_at(at, end, top, tree.blocks)
                node = at // width
                begin, stop = tree.begins[level, node], tree.ends[level, node]
                for each in range(begin_cover, end_cover + reads_all):
                    behind = stop
                    if not reads_all:
                        synopsis = covers.synopses[each]
                        begin = first_of(tree, covers, begin, stop, synopsis)
                        behind = first_of(tree, covers, begin, stop, synopsis + 1)
                    for row in range(begin, behind):
                        cell = tree.cells[row]
                        key = cell if reads_all else covers.key_of[cell]
                        if seen[key] < first:
                            seen[key] = groups_found + stamp
                            run_of[groups_found] = i
                            cell_of[groups_found] = cell
                            groups_found += 1
                        rows[place] = row
                        groups[place] = seen[key] - stamp
                        place += 1
                    begin = behind
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
