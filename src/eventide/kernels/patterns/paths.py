"""Where in a match a row of some variables stands: over paths that share tails, or row by row.

A path is a chain of elements (row, node, next); see scan.py. `chosen[node]` says whether an element
that leads to a node counts. Elements of later matches run into those of earlier ones, never the
other way, and within the elements of one match `next` ascends. So the matches are processed in
order, and the elements of each backwards: then the next element is always known.
"""

from __future__ import annotations

from eventide.kernels.compiled import Bools, Int64s, kernel, lean_kernel


@kernel
def count_on(bounds: Int64s, following: Int64s, node: Int64s, chosen: Bools, out: Int64s) -> None:
    """out[e] = the chosen elements of the path from e on."""
    for match in range(len(bounds) - 1):
        for element in range(bounds[match + 1] - 1, bounds[match] - 1, -1):
            after = following[element]
            later = out[after] if after >= 0 else 0
            out[element] = later + (1 if chosen[node[element]] else 0)


@kernel
def last_on(
    bounds: Int64s,
    following: Int64s,
    node: Int64s,
    chosen: Bools,
    counts: Int64s,
    offset: int,
    out: Int64s,
) -> None:
    """out[e] = the chosen element of the path from e on with `offset` others behind it, or -1."""
    for match in range(len(bounds) - 1):
        for element in range(bounds[match + 1] - 1, bounds[match] - 1, -1):
            after = following[element]
            later = counts[after] if after >= 0 else 0
            if later > offset:
                out[element] = out[after]
            elif later == offset and chosen[node[element]]:
                out[element] = element
            else:
                out[element] = -1


@kernel
def first_on(bounds: Int64s, following: Int64s, node: Int64s, chosen: Bools, out: Int64s) -> None:
    """out[e] = the first chosen element of the path from e on, or -1."""
    for match in range(len(bounds) - 1):
        for element in range(bounds[match + 1] - 1, bounds[match] - 1, -1):
            after = following[element]
            if chosen[node[element]]:
                out[element] = element
            else:
                out[element] = out[after] if after >= 0 else -1


@kernel
def further_on(heads: Int64s, following: Int64s, firsts: Int64s, offset: int, out: Int64s) -> None:
    """out[m] = the chosen element with `offset` chosen ones before it in the path of m, or -1."""
    for match in range(len(heads)):
        found = heads[match]
        if found >= 0:
            found = firsts[found]
        for _ in range(offset):
            if found < 0:
                break
            found = following[found]
            if found >= 0:
                found = firsts[found]
        out[match] = found


@lean_kernel
def in_runs(
    bounds: Int64s,
    row: Int64s,
    node: Int64s,
    chosen: Bools,
    is_first: Bools,
    offset: Int64s,
    rows: Int64s,
    nodes: Int64s,
) -> None:
    """rows[q, m], nodes[q, m] = the element that question q asks for in match m, or -1.

    No path shares a tail. `chosen[q]`, `is_first[q]` and `offset[q]` are the question: see
    `first_on`, `last_on`.
    """
    for question in range(len(offset)):
        for match in range(len(bounds) - 1):
            low, high = bounds[match], bounds[match + 1]
            left = offset[question]
            rows[question, match] = nodes[question, match] = -1
            for number in range(high - low):
                element = low + number if is_first[question] else high - 1 - number
                if chosen[question, node[element]]:
                    if left == 0:
                        rows[question, match] = row[element]
                        nodes[question, match] = node[element]
                        break
                    left -= 1


@kernel
def unrolled(heads: Int64s, following: Int64s, offsets: Int64s, out: Int64s) -> None:
    """Write the elements of every path one after another; path m goes to [offsets[m], …)."""
    for match in range(len(heads)):
        element = heads[match]
        place = offsets[match]
        while element >= 0:
            out[place] = element
            place += 1
            element = following[element]


@kernel
def running(
    offsets: Int64s, node: Int64s, chosen: Bools, is_first: bool, offset: int, out: Int64s
) -> None:
    """out[p] = the place of the first or last chosen element up to p in p's match, or -1.

    `offset` further inside. Match m has the places [offsets[m], offsets[m + 1]) of `node`.
    """
    places = out.copy()
    for match in range(len(offsets) - 1):
        count = 0
        begin = offsets[match]
        for place in range(begin, offsets[match + 1]):
            if chosen[node[place]]:
                places[begin + count] = place
                count += 1
            if count <= offset:
                out[place] = -1
            elif is_first:
                out[place] = places[begin + offset]
            else:
                out[place] = places[begin + count - 1 - offset]


@kernel
def place_of_row(
    offsets: Int64s, rows: Int64s, match_of: Int64s, until: Int64s, wanted: Int64s, out: Int64s
) -> None:
    """out[i] = the place of row wanted[i] in match match_of[i], before place until[i], or -1."""
    for i in range(len(wanted)):
        low = offsets[match_of[i]]
        high = until[i]
        while low < high:
            middle = (low + high) // 2
            if rows[middle] < wanted[i]:
                low = middle + 1
            else:
                high = middle
        found = low < until[i] and rows[low] == wanted[i]
        out[i] = low if found else -1
