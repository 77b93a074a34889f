"""What the search for embeddings reads and writes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from eventide.kernels.compiled import Bools, Int32s, Int64s

Bytes = npt.NDArray[np.uint8]

DONE, NO_HITS, NO_PAIRS, NO_FOUND = range(4)
"""Why a search has ended: all is done, or there is no room for nodes of steps, for pairs of nodes,
for what was found."""


class Documents(NamedTuple):
    """The nodes of some documents, as documents/nodes.py has them, and the set of each."""

    firsts: Int64s
    parent: Int32s
    end: Int32s
    sets: Int32s
    starts: Int64s
    ends: Int64s
    text: Bytes


class SetStates(NamedTuple):
    """The states in each set: those of set s are states[firsts[s] : firsts[s + 1]]."""

    firsts: Int64s
    states: Int32s


class PatternSteps(NamedTuple):
    """The steps of all patterns, one pattern behind the other, each step before those below it."""

    firsts: Int32s
    """The first step of each pattern."""
    above: Int32s
    """The step above each, counted from the first of its pattern; -1 for a root."""
    is_child: Bools
    state: Int32s
    test: Int32s
    """Which text the string value has to be; -1 for any."""
    text_firsts: Int64s
    text: Bytes
    leaf_firsts: Int32s
    leaves: Int32s
    """The states of each pattern's steps with nothing below."""
    tried_firsts: Int32s
    tried: Int32s
    """The patterns that are tried where a node is in a state."""
    plain: Bools
    """Of which patterns only nodes of the last step are wanted, whatever is in its state."""


class PatternViews(NamedTuple):
    """Which tuples of nodes are wanted of the embeddings of each pattern."""

    firsts: Int32s
    """The first view of each pattern."""
    kept_firsts: Int32s
    kept: Int32s
    """The steps of each view that are looked at, counted from the first of the pattern."""
    up: Int32s
    """Which of the view's steps is the next above each; -1 for its first."""
    wanted: Bools


class SearchMemory(NamedTuple):
    """Memory of the search. What is about a document is marked with its stamp."""

    stamp: Int64s
    """The stamp of the document that is searched, and the newest of `marks`."""
    set_seen: Int64s
    set_count: Int32s
    set_place: Int32s
    set_mark: Int64s
    present: Int32s
    """The sets of the document's nodes."""
    by_set: Int32s
    """The document's nodes, by set; those of a set end at its `set_place`."""
    state_seen: Int64s
    state_head: Int32s
    entry_set: Int32s
    entry_next: Int32s
    """Lists of the sets that have a state."""
    hit_states: Int32s
    marks: Int64s
    chain: Int32s
    low: Int64s
    high: Int64s
    """Where the nodes of each step of a pattern are among `hits`."""
    lists: Int64s
    cursor: Int64s
    chosen: Int64s


class Space(NamedTuple):
    """Memory that has to grow with what documents have."""

    hits: Int32s
    pair_place: Int32s
    pair_node: Int32s
    below: Int32s
    below_firsts: Int64s
    """The places of nodes of a step below each node of the step above it in a view."""


class NodeTuples(NamedTuple):
    """Tuples of nodes: those of a document and a view are one behind the other."""

    document: Int32s
    number: Int32s
    """The view of each."""
    counts: Int64s
    nodes: Int32s
