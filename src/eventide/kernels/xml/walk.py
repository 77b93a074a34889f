"""The set of states that each node of a document is in."""

from __future__ import annotations

from eventide.kernels.compiled import Int32s, lean_kernel

UNKNOWN = -1


@lean_kernel
def walk(kinds: Int32s, parent: Int32s, table: Int32s, sets: Int32s, first: int) -> int:
    """Fill `sets` from a node on; return the first node whose set is not in the table yet.

    `table[s, k]` is the set of a node of the kind `k` inside of one with the set `s`; 0 is the set
    of the document itself. Parents stand in front of what is inside of them.
    """
    for node in range(first, len(kinds)):
        above = parent[node]
        found = table[sets[above] if above >= 0 else 0, kinds[node]]
        if found == UNKNOWN:
            return node
        sets[node] = found
    return len(kinds)
