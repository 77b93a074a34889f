"""Notes about the places between rows: from which nodes a match can be completed there.

They are made going backwards over the rows. Up to 64 nodes, a note is a word of bits. With WITHIN
it matters where a match would end, as each start row has another limit: then, and for larger
patterns, the earliest end is noted for each node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from eventide.kernels.compiled import Bools, inline, inline_lean
from eventide.kernels.patterns.tables import Masks, Steps

NEVER = np.int32(2**31 - 1)
MOST_BITS = 64
"""How many nodes a note in bits has room for."""


class KeyPlace(NamedTuple):
    """The rows of a key: [low, high).

    `begin` is the first place to note, `known` the first row that cannot be tested yet; `whole`
    says whether row `low` is the partition's first.
    """

    low: int
    high: int
    begin: int
    known: int
    whole: bool


class Notes(NamedTuple):
    """The notes of one key about the places from `begin` on, in one of two forms.

    As bits: bit n of `sure[i - begin]` says that from node n before row i a match can be completed,
    the same bit of `maybe` that a path from there is open. Otherwise `ends` (the earliest end less
    `begin`) and `opens` say the same at (i - begin) · nodes + n.
    """

    sure: Masks
    maybe: Masks
    ends: npt.NDArray[np.int32]
    opens: Bools


class Predecessors(NamedTuple):
    """Which nodes a match can come from, as bits.

    `of[t]` are the nodes with a step to t that any row may take, `first[t]` those with a step
    that only the partition's first row may take too. `of_variable[v]` are the nodes behind a row
    of v. `done` can be completed anywhere, `done_first` at the partition's start as well, and
    `done_last` at its end. `taking` are the nodes with a step that takes a row; `taking_first`
    counts those for the first row too.
    """

    of: Masks
    first: Masks
    of_variable: Masks
    done: np.uint64
    done_first: np.uint64
    done_last: np.uint64
    taking: np.uint64
    taking_first: np.uint64


@inline
def holds(mask: np.uint64, variable: int) -> bool:
    """Whether a row is a variable."""
    return bool((mask >> np.uint64(variable)) & np.uint64(1))


@inline_lean
def note_bits(
    before: Predecessors,
    masks: Masks,
    place: KeyPlace,
    ended: bool,
    noted: tuple[int, int],
    sure: Masks,
    maybe: Masks,
) -> None:
    """Fill the notes of one key as bits; `noted` as in `note_ends`."""
    low, high, begin, known, whole = place
    zero, one = np.uint64(0), np.uint64(1)
    if noted[1] > known:
        at_start = whole and known == low
        now = before.done | (before.done_first if at_start else zero)
        open_now = zero
        if ended:
            now |= before.done_last
        else:
            open_now = before.taking | (before.taking_first if at_start else zero)
            if known == high:
                open_now |= before.done_last
        sure[known - begin] = now
        maybe[known - begin] = open_now
    last_mask = zero
    allowed = zero
    top = min(noted[1], known)
    now = sure[top - begin]
    open_now = maybe[top - begin]
    for i in range(top - 1, noted[0] - 1, -1):
        if masks[i] != last_mask:
            last_mask = masks[i]
            allowed = zero
            for variable in range(len(before.of_variable)):
                if holds(last_mask, variable):
                    allowed |= before.of_variable[variable]
        at_start = whole and i == low
        targets = now & allowed
        open_targets = open_now & allowed
        now = before.done | (before.done_first if at_start else zero)
        open_now = zero
        node = 0
        both = targets | open_targets
        while both != zero:
            if both & one:
                source = before.of[node] | (before.first[node] if at_start else zero)
                if (targets >> np.uint64(node)) & one:
                    now |= source
                if (open_targets >> np.uint64(node)) & one:
                    open_now |= source
            both >>= one
            node += 1
        sure[i - begin] = now
        maybe[i - begin] = open_now


@inline_lean
def note_ends(
    steps: Steps,
    masks: Masks,
    place: KeyPlace,
    ended: bool,
    noted: tuple[int, int],
    ends: npt.NDArray[np.int32],
    opens: Bools,
) -> None:
    """Fill the notes of one key for the places [noted[0], noted[1]) of [begin, known].

    Note (i - begin) · nodes + n is about node n before row i; an end e is noted as e - begin. The
    notes from noted[1] on exist already.
    """
    low, high, begin, known, whole = place
    nodes = len(steps.first) - 1
    at = (known - begin) * nodes
    is_end = ended and known == high
    is_start = whole and known == low
    for node in range(nodes if noted[1] > known else 0):
        ends[at + node] = NEVER
        opens[at + node] = False
        for step in range(steps.first[node], steps.first[node + 1]):
            if steps.at_start[step] and not is_start:
                continue
            if steps.variable[step] >= 0:
                opens[at + node] |= not ended
            elif not steps.at_end[step] or is_end:
                ends[at + node] = np.int32(known - begin)
            elif known == high and not ended:
                opens[at + node] = True
    for i in range(min(noted[1], known) - 1, noted[0] - 1, -1):
        mask = masks[i]
        is_start = whole and i == low
        here = (i - begin) * nodes
        after = here + nodes
        for node in range(nodes):
            end = NEVER
            opened = False
            for step in range(steps.first[node], steps.first[node + 1]):
                if steps.at_start[step] and not is_start:
                    continue
                variable = steps.variable[step]
                if variable < 0:
                    if not steps.at_end[step]:
                        end = np.int32(i - begin)
                elif holds(mask, variable):
                    target = after + steps.target[step]
                    end = min(end, ends[target])
                    opened |= opens[target]
            ends[here + node] = end
            opens[here + node] = opened


@inline
def may_start(notes: Notes, place: int, nodes: int) -> bool:
    """Whether a match may start at a place, according to the notes."""
    if len(notes.sure):
        return bool((notes.sure[place] | notes.maybe[place]) & np.uint64(1))
    return bool(notes.ends[place * nodes] != NEVER or notes.opens[place * nodes])
