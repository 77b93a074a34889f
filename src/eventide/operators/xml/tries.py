"""The trie of all queries: a way down for each different query, and rows at its end.

    node 0 ─ step 0, author = author ─▶ node 1 ─ step 1, item//author ─▶ node 2 ─ … ─▶ node 8

A way is the steps of a template with the edges of a query. A branch is a node with one of the steps
that go on from it. Nodes of templates are numbered in the order in which steps bind them, so that
templates that begin alike share the beginning of their ways.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eventide.kernels.compiled import Int32s, Int64s
from eventide.kernels.growing import longer
from eventide.kernels.xml.document_log import NONE
from eventide.operators.xml.pair_table import PairTable
from eventide.plan.xml.graph_templates import JoinStep

_FEWEST = 16
STEP_WIDTH = 6
ROOT = 0
Way = Sequence[tuple[JoinStep, bool]]
"""Steps, and whether each is on the right."""


def grown(array: Int32s, length: int) -> Int32s:
    """Return an array with at least so many numbers, -1 where nothing was."""
    before = len(array)
    array = longer(array, length)
    array[before:] = NONE
    return array


class JoinTrie:
    """Nodes and branches by number; a number that is free is used again."""

    def __init__(self) -> None:
        self.children = PairTable()
        """The node below a branch, by the number of a pair or an edge."""
        self.step_of, self.first_branch, self.next_branch, self.first_row = (
            np.full(_FEWEST, NONE, np.int32) for _ in range(4)
        )
        self.first_nodes = np.full(_FEWEST, NONE, np.int32)
        """By pair: the node that the first step leads to."""
        self.longest = self.widest = 0
        """The most steps and nodes of any way."""
        self._step_numbers: dict[tuple[JoinStep, bool], int] = {}
        self._steps: list[tuple[int, ...]] = []
        self._branches: dict[tuple[int, int], int] = {}
        self._above: list[tuple[int, int]] = [(NONE, NONE)] * _FEWEST
        """By node: the branch above and the number that leads to it; by branch: node and step."""
        self._uses = [0] * _FEWEST
        self._free = list(range(1, _FEWEST))[::-1]

    @property
    def steps(self) -> Int64s:
        """The different steps, as rows."""
        return np.array(self._steps, np.int64).reshape(-1, STEP_WIDTH)

    def add(self, way: Way, keys: Sequence[int]) -> int:
        """Return the node at the end of a way; one more query goes it."""
        self.longest = max(self.longest, len(way))
        self.widest = max(self.widest, *(max(step.one, step.other) + 1 for step, _ in way))
        node = ROOT
        for each, key in zip(way, keys, strict=True):
            branch = self._branch(node, self._step(each))
            below = self.children.get((branch, key))
            if below is None:
                below = self._new()
                self._above[below] = branch, key
                self.children.put((branch, key), below)
                if node == ROOT:
                    self.first_nodes = grown(self.first_nodes, key + 1)
                    self.first_nodes[key] = below
            node = below
            self._uses[branch] += 1
            self._uses[node] += 1
        return node

    def leave(self, node: int) -> None:
        """Note that one query less goes a way; what nobody goes is taken out."""
        while node != ROOT:
            branch, key = self._above[node]
            above, step = self._above[branch]
            self._uses[node] -= 1
            self._uses[branch] -= 1
            if not self._uses[node]:
                self.children.remove((branch, key))
                self._free.append(node)
                if above == ROOT:
                    self.first_nodes[key] = NONE
            if not self._uses[branch]:
                del self._branches[above, step]
                unlink(self.first_branch, above, self.next_branch, branch)
                self._free.append(branch)
            node = above

    def _step(self, each: tuple[JoinStep, bool]) -> int:
        number = self._step_numbers.get(each)
        if number is None:
            number = self._step_numbers[each] = len(self._steps)
            step, on_right = each
            known = int(step.one_known), int(step.other_known)
            self._steps.append((int(step.kind), step.one, step.other, *known, int(on_right)))
        return number

    def _branch(self, node: int, step: int) -> int:
        branch = self._branches.get((node, step))
        if branch is None:
            branch = self._branches[node, step] = self._new()
            self._above[branch] = node, step
            self.step_of[branch] = step
            self.next_branch[branch] = self.first_branch[node]
            self.first_branch[node] = branch
        return branch

    def _new(self) -> int:
        if not self._free:
            count = len(self._uses)
            self._free = list(range(count, 2 * count))[::-1]
            self._uses += [0] * count
            self._above += [(NONE, NONE)] * count
            for name in ("step_of", "first_branch", "next_branch", "first_row"):
                setattr(self, name, grown(getattr(self, name), 2 * count))
        return self._free.pop()


def unlink(first: Int32s, owner: int, following: Int32s, number: int) -> None:
    """Take a number out of the list of its owner."""
    before = int(first[owner])
    if before == number:
        first[owner] = following[number]
        return
    while int(following[before]) != number:
        before = int(following[before])
    following[before] = following[number]
