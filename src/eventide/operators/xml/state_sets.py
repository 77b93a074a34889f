"""The sets of states that nodes of documents are in, found as they come and remembered.

Nodes of the same path, such as the titles of a feed's items, have the same set: so most take one
look into a table, however many paths there are.
"""

from __future__ import annotations

import numpy as np

from eventide.documents.nodes import Nodes
from eventide.errors import EvaluationError
from eventide.kernels.compiled import Int32s, Int64s, frozen
from eventide.kernels.growing import longer, wider
from eventide.kernels.xml.arrays import SetStates
from eventide.kernels.xml.walk import UNKNOWN, walk
from eventide.operators.xml.trie import PathTrie

MOST_STATES = 1 << 24
"""States in all sets of a batch; documents that need more are made to."""
ENOUGH_STATES = 1 << 20
"""With more, sets are forgotten before the next batch."""
MOST_CELLS = 1 << 22
"""Cells of the table with which it is forgotten, too."""
_START = 0


class StateSets:
    """Sets of states by number, and the set of what is inside of a node of a set.

    The set of a node has the states that it is in, its hits. Besides, a node has the open states:
    those above it, and its own, that have something anywhere inside.
    """

    def __init__(self, trie: PathTrie) -> None:
        self.trie = trie
        self.sources: dict[str, dict[int, int]] = {}
        """By name, what is anywhere inside of each state."""
        for state, inside in enumerate(trie.inside):
            for name, target in inside.items():
                self.sources.setdefault(name, {})[state] = target
        self.sets: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
        self.known: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
        self.kinds: dict[tuple[str, ...], int] = {}
        self.kind_names: list[tuple[str, ...]] = []
        self.kind_of: dict[str, int] = {}
        self.table: Int32s = np.full((16, 16), UNKNOWN, np.int32)
        self.firsts: Int64s = np.zeros(16, np.int64)
        self.states: Int32s = np.zeros(64, np.int32)
        self.size = 0
        self.number((), (0,) if trie.inside[0] else ())

    @property
    def is_large(self) -> bool:
        """Whether it is time to forget all sets."""
        return self.size > ENOUGH_STATES or self.table.size > MOST_CELLS

    def of(self, nodes: Nodes) -> Int32s:
        """Return the number of each node's set."""
        kinds = np.array([self.kind(name) for name in nodes.names] or [0], np.int32)[nodes.name]
        sets = np.empty(len(nodes), np.int32)
        kinds, parent, node = frozen(kinds), frozen(nodes.parent), 0
        while (node := walk(kinds, parent, frozen(self.table), sets, node)) < len(nodes):
            above = int(parent[node])
            among, kind = int(sets[above]) if above >= 0 else _START, int(kinds[node])
            self.table[among, kind] = self.inside(among, kind)
        return sets

    def arrays(self) -> SetStates:
        """Return the states of all sets whose nodes are looked at."""
        return SetStates(frozen(self.firsts[: len(self.sets) + 1]), frozen(self.states))

    def kind(self, name: str) -> int:
        """Return the number of a node's name: those that fit the same steps have the same."""
        found = self.kind_of.get(name)
        if found is None:
            fitting = self.trie.fitting(name)
            found = self.kinds.setdefault(fitting, len(self.kinds))
            if found == len(self.kind_names):
                self.kind_names.append(fitting)
                self._widen(found + 1)
            if len(self.kind_of) < ENOUGH_STATES:
                self.kind_of[name] = found
        return found

    def _widen(self, kinds: int) -> None:
        before = self.table.shape[1]
        self.table = wider(self.table, kinds)
        self.table[:, before:] = UNKNOWN

    def inside(self, among: int, kind: int) -> int:
        """Return the set of a node of a kind inside of one with a set."""
        hits, opened = self.sets[among]
        found: set[int] = set()
        for name in self.kind_names[kind]:
            child = self.trie.child
            found.update(
                child[s][name] for s in (hits or self._document(among)) if name in child[s]
            )
            sources = self.sources.get(name, {})
            if len(sources) < len(opened):
                still = frozenset(opened)
                found.update(target for state, target in sources.items() if state in still)
            else:
                found.update(sources[state] for state in opened if state in sources)
        more = (state for state in found if self.trie.inside[state])
        below = tuple(sorted({*opened, *more}))
        return self.number(tuple(sorted(found)), below)

    def _document(self, among: int) -> tuple[int, ...]:
        return (0,) if among == _START else ()

    def number(self, hits: tuple[int, ...], opened: tuple[int, ...]) -> int:
        """Return the number of a set, a new one if it has not occurred."""
        key = (hits, opened)
        found = self.known.get(key)
        # The document is in no state, as a node inside may be, but it is not such a node.
        if found is not None and found != _START:
            return found
        self.size += len(hits) + len(opened) + 1
        if self.size > MOST_STATES:
            message = "names of nodes are inside each other in more ways than are followed"
            raise EvaluationError(message, hint="leave out such documents, or some // of the query")
        number = len(self.sets)
        self.known[key] = number
        self.sets.append(key)
        before = len(self.table)
        self.table = longer(self.table, number + 1)
        self.table[before:] = UNKNOWN
        self.firsts = longer(self.firsts, number + 2)
        first = int(self.firsts[number])
        searched = [state for state in hits if state in self.trie.searched]
        self.states = longer(self.states, first + len(searched))
        self.states[first : first + len(searched)] = searched
        self.firsts[number + 1] = first + len(searched)
        return number
