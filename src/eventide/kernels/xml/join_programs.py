"""The queries of all templates, as arrays: what is joined, step by step.

    node 0 ─ author = author ─▶ node 1 ─ item//author ─▶ node 2 ─ … ─▶ node 8: rows 4, 9

All queries are a trie. A branch is a node with one of the steps that go on from it, and leads to
other nodes by what the step finds: a pair of variables with equal values, or an edge. At the end of
a way are rows: the queries that go it, apart by what they select.
"""

from __future__ import annotations

from typing import NamedTuple

from eventide.kernels.compiled import Bools, Int32s, Int64s
from eventide.kernels.key_table import KeyTable

KIND, ONE, OTHER, ONE_KNOWN, OTHER_KNOWN, ON_RIGHT = range(6)
EQUAL, UP, DOWN = range(3)


class JoinPrograms(NamedTuple):
    """The tries of all templates, and their rows."""

    pairs: KeyTable
    """The number of each pair of variables that some query compares."""
    variables: Int32s
    """By edge: itself if it is a variable, a node whose values are compared; otherwise -1."""
    children: KeyTable
    """The node below a branch, by the pair or the edge that leads to it."""
    steps: Int64s
    """By step: its kind, its two nodes and which are known, and on which side it is."""
    first_nodes: Int32s
    """By pair: the node that the first step of all ways leads to, -1 if there is none."""
    step_of: Int32s
    """By branch: its step."""
    first_branch: Int32s
    """By node: the first branch, -1 if there is none."""
    next_branch: Int32s
    first_row: Int32s
    """By node: the first row at it, -1 if there is none."""
    next_row: Int32s
    row_bounds: Int64s
    """By row: the shortest and the longest time between the documents."""
    selected: Int32s
    """By row: the nodes that it selects, and -1 behind them."""
    exact: Bools
    """By row: whether each match is another row, for all nodes are selected."""


class EqualNodes(NamedTuple):
    """Nodes of an earlier and of the newest document with equal values, linked by document."""

    pairs: Int32s
    lefts: Int32s
    rights: Int32s
    following: Int64s
    heads: Int64s
    """By the place of the earlier document in the log: its first, -1 if there is none."""
    touched: Int64s
    """The earlier documents that have any."""


class JoinSpace(NamedTuple):
    """Where a join stands: by depth the branch and the place in what it finds; what is bound."""

    branches: Int64s
    places: Int64s
    bound: Int32s
