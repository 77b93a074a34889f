"""Documents → tuples of nodes, by one automaton and one kernel for all patterns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from eventide.documents.read import MOST_LEVELS
from eventide.errors import EvaluationError
from eventide.kernels.compiled import Int32s, Int64s, frozen
from eventide.kernels.xml.arrays import (
    DONE,
    NO_FOUND,
    NO_HITS,
    Documents,
    NodeTuples,
    SearchMemory,
    SetStates,
    Space,
)
from eventide.kernels.xml.search import search
from eventide.kernels.xml.values import copy_values
from eventide.operators.xml.asked import AskedPattern
from eventide.operators.xml.read_once import nodes_of
from eventide.operators.xml.state_sets import StateSets
from eventide.operators.xml.tables import AskedTables, tables_of

if TYPE_CHECKING:
    from eventide.documents.nodes import Nodes

ENOUGH_NODES = 1 << 20
"""Once so many nodes are found, those of earlier documents are handed over."""
LEAST_ROOM = 4096
MOST_NODES = 1 << 24
"""More nodes in the witnesses of a document are refused: a pattern can have very many."""
MOST_VALUE_BYTES = (1 << 31) - 1
"""What a column of texts can hold."""


@dataclass(frozen=True, slots=True)
class FoundTuples:
    """The tuples of nodes of all views, of some documents.

    Entry i has `count[i]` tuples of the view `view[i]` in the document `document[i]`; the nodes of
    all entries are one behind the other. They are numbers of `tree`, whose documents are as they
    were given.
    """

    tree: Nodes
    widths: Int64s
    document: Int32s
    view: Int32s
    count: Int64s
    nodes: Int32s

    def of_view(self, view: int) -> tuple[Int32s, Int32s]:
        """Return the document of each tuple of a view, and the tuples as rows of nodes.

        They are in order of their documents, then of their nodes.
        """
        width = int(self.widths[view])
        if len(self.widths) == 1:
            documents = np.repeat(self.document, self.count)
            return documents, self.nodes.reshape(len(documents), width)
        entries = np.flatnonzero(self.view == view)
        counts = self.count[entries]
        documents = np.repeat(self.document[entries], counts)
        starts = self._starts[entries]
        within = np.arange(int(counts.sum()) * width) - np.repeat(
            np.cumsum(counts * width) - counts * width, counts * width
        )
        nodes = self.nodes[np.repeat(starts, counts * width) + within]
        return documents, nodes.reshape(len(documents), width)

    @property
    def _starts(self) -> Int64s:
        sizes = self.count * self.widths[self.view]
        return np.asarray(np.cumsum(sizes) - sizes, np.int64)


class PathStage:
    """Finds what many patterns ask for. It remembers nothing but how to find it quickly."""

    def __init__(self, asked: Sequence[AskedPattern]) -> None:
        self.tables: AskedTables = tables_of(asked)
        self.lock = Lock()
        self.sets = StateSets(self.tables.trie)

    def find(self, documents: Sequence[bytes | None]) -> Iterator[FoundTuples]:
        """Yield what is found, a part of the documents after the other."""
        yield from self.find_in(nodes_of(documents))

    def find_in(self, tree: Nodes) -> Iterator[FoundTuples]:
        """Yield what is found in documents that are read already."""
        with self.lock:  # threads share what has been learned
            if self.sets.is_large:
                self.sets = StateSets(self.tables.trie)
            sets, states = self.sets.of(tree), self.sets.arrays()
        yield from _Search(self.tables, tree, sets, states).parts()


class _Search:
    """One batch of documents."""

    def __init__(self, tables: AskedTables, tree: Nodes, sets: Int32s, states: SetStates) -> None:
        self.tables, self.tree, self.states = tables, tree, states
        text = np.frombuffer(tree.text or b"\0", np.uint8)
        self.trees = Documents(
            frozen(tree.firsts),
            frozen(tree.parent),
            frozen(tree.end),
            frozen(sets),
            frozen(tree.text_starts),
            frozen(tree.text_ends),
            frozen(text),
        )
        largest = int(np.diff(tree.firsts).max(initial=0))
        self.work = _work(len(states.firsts), states, tables, largest)
        self.room = _room(LEAST_ROOM, LEAST_ROOM)
        self.found = _tuples(LEAST_ROOM, LEAST_ROOM)

    def parts(self) -> Iterator[FoundTuples]:
        """Yield what is found; a part ends where there are enough nodes."""
        at = np.zeros(4, np.int64)
        tables = self.tables
        while True:
            steps, views, found = tables.steps, tables.views, self.found
            began = int(at[0])
            why = search(self.trees, self.states, steps, views, self.work, self.room, found, at)
            if why not in (DONE, NO_FOUND):
                self._grow_room(why)
            elif why == NO_FOUND and not (at[0] > began and len(found.nodes) >= ENOUGH_NODES):
                self._grow_found(at)
            else:
                yield self._part(at)
                at[1] = at[2] = 0
            if why == DONE:
                return

    def _part(self, at: Int64s) -> FoundTuples:
        entries, used = int(at[1]), int(at[2])
        found = self.found
        part = FoundTuples(
            self.tree,
            self.tables.widths,
            found.document[:entries].copy(),
            found.number[:entries].copy(),
            found.counts[:entries].copy(),
            found.nodes[:used].copy(),
        )
        return distinct(part, self.tables.repeats) if any(self.tables.repeats) else part

    def _grow_room(self, why: int) -> None:
        hits, pairs = len(self.room.hits), len(self.room.pair_node)
        self.room = _room(4 * hits, pairs) if why == NO_HITS else _room(hits, 4 * pairs)
        if max(hits, pairs) > MOST_NODES:
            raise _too_many()

    def _grow_found(self, at: Int64s) -> None:
        """Make room, and keep what was found before."""
        if len(self.found.nodes) > MOST_NODES:
            raise _too_many()
        larger = _tuples(2 * len(self.found.number), 4 * len(self.found.nodes))
        entries, used = int(at[1]), int(at[2])
        larger.document[:entries] = self.found.document[:entries]
        larger.number[:entries] = self.found.number[:entries]
        larger.counts[:entries] = self.found.counts[:entries]
        larger.nodes[:used] = self.found.nodes[:used]
        self.found = larger


def distinct(part: FoundTuples, repeats: Sequence[bool]) -> FoundTuples:
    """Return tuples without those of views that repeat which are there already."""
    if not len(part.view):
        return part
    documents, views, counts, nodes = [], [], [], []
    for view in np.unique(part.view).tolist():
        document, rows = part.of_view(view)
        if repeats[view]:
            both = np.unique(np.column_stack([document, rows]), axis=0)
            document, rows = both[:, 0], both[:, 1:]
        found, count = np.unique(document, return_counts=True)
        documents.append(found.astype(np.int32))
        views.append(np.full(len(found), view, np.int32))
        counts.append(count.astype(np.int64))
        nodes.append(rows.reshape(-1))
    return FoundTuples(
        part.tree,
        part.widths,
        np.concatenate(documents),
        np.concatenate(views),
        np.concatenate(counts),
        np.concatenate(nodes),
    )


def _too_many() -> EvaluationError:
    message = "a document has too many witnesses of a pattern to keep them"
    return EvaluationError(message, hint="bind fewer variables, or use names in place of *")


def _work(sets: int, states: SetStates, tables: AskedTables, largest: int) -> SearchMemory:
    entries, steps = len(states.states), max(1, tables.most_steps)
    return SearchMemory(
        np.zeros(2, np.int64),
        np.zeros(sets, np.int64),
        np.zeros(sets, np.int32),
        np.zeros(sets, np.int32),
        np.zeros(sets, np.int64),
        np.zeros(sets, np.int32),
        np.zeros(largest, np.int32),
        np.zeros(len(tables.trie), np.int64),
        np.zeros(len(tables.trie), np.int32),
        np.zeros(entries, np.int32),
        np.zeros(entries, np.int32),
        np.zeros(len(tables.trie), np.int32),
        np.zeros(largest, np.int64),
        np.zeros(MOST_LEVELS + 2, np.int32),
        np.zeros(steps, np.int64),
        np.zeros(steps, np.int64),
        np.zeros(steps + 2, np.int64),
        np.zeros(steps, np.int64),
        np.zeros(steps, np.int64),
    )


def _room(hits: int, pairs: int) -> Space:
    return Space(
        np.zeros(hits, np.int32),
        np.zeros(pairs, np.int32),
        np.zeros(pairs, np.int32),
        np.zeros(pairs, np.int32),
        np.zeros(hits + pairs, np.int64),
    )


def _tuples(entries: int, nodes: int) -> NodeTuples:
    return NodeTuples(
        np.zeros(entries, np.int32),
        np.zeros(entries, np.int32),
        np.zeros(entries, np.int64),
        np.zeros(nodes, np.int32),
    )


def string_values(tree: Nodes, nodes: Int32s) -> pa.Array:
    """Return the string values of nodes, as XPath defines them."""
    starts = tree.text_starts[nodes]
    offsets = np.zeros(len(nodes) + 1, np.int64)
    np.cumsum(tree.text_ends[nodes] - starts, out=offsets[1:])
    size = int(offsets[-1])
    if size > MOST_VALUE_BYTES:
        message = f"string values of {size:,} bytes in all"
        hint = "bind steps further inside: an element's value has the texts of all inside of it"
        raise EvaluationError(message, hint=hint)
    values = np.empty(size, np.uint8)
    text = frozen(np.frombuffer(tree.text or b"\0", np.uint8))
    copy_values(text, frozen(starts), frozen(offsets), values)
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(values)]
    return pa.Array.from_buffers(pa.string(), len(nodes), buffers)
