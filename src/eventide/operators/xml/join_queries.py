"""The queries that join documents, by template: they come and go while documents flow.

A query is reduced to its join graph, whose edges get numbers. Its template says in which order they
are joined: so a query is a way down the trie of its template, and a row stands at the end of it.
Queries of the same row differ in their windows, and in the document from which on they count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from eventide.errors import PlanError
from eventide.kernels.compiled import Bools, Int64s
from eventide.kernels.xml.document_log import NONE
from eventide.kernels.xml.join_programs import JoinPrograms, JoinSpace
from eventide.kernels.xml.joined_rows import WITHIN
from eventide.operators.xml.asked_edges import AskedEdge, AskedEdges
from eventide.operators.xml.join_rows import JoinRow, JoinRows
from eventide.operators.xml.pair_table import Pair, PairTable
from eventide.operators.xml.tries import JoinTrie, grown
from eventide.plan.xml.document_joins import DocumentJoin
from eventide.plan.xml.graph_templates import GraphTemplate, JoinStep, StepKind, template_of
from eventide.plan.xml.join_graphs import GraphNode, join_graph

LONGEST_US = 1 << 62
"""A longer time between documents is as good as any."""
_REMEMBERED = 65_536


@dataclass(frozen=True, slots=True)
class KnownJoin:
    """A query that is there: its places in rows, and what it uses."""

    places: tuple[int, ...]
    edges: tuple[int, ...]
    pairs: tuple[Pair, ...]
    templates: tuple[GraphTemplate, ...]


class JoinQueries:
    """All queries, and the arrays that kernels join them by."""

    def __init__(self) -> None:
        self.version = 0
        """It changes with every query that is added or dropped."""
        self.edges = AskedEdges()
        self._trie = JoinTrie()
        self._pairs = PairTable()
        self._pair_uses: Counter[Pair] = Counter()
        self._free_pairs: list[int] = []
        self._rows = JoinRows()
        self._variables = np.full(16, NONE, np.int32)
        self._known: dict[int, KnownJoin] = {}
        self._templates: Counter[GraphTemplate] = Counter()

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, number: int) -> bool:
        return number in self._known

    @property
    def templates(self) -> Mapping[GraphTemplate, int]:
        """How many queries stand on each template; those without an order count on two."""
        return self._templates

    @property
    def row_count(self) -> int:
        """How many different rows there are."""
        return len(self._rows)

    def add(self, number: int, join: DocumentJoin, since: int = 0) -> None:
        """Add a query, which counts documents from the number `since` on."""
        if number in self._known:
            message = f"query {number} joins documents already"
            raise PlanError(message)
        places: list[int] = []
        edges: list[int] = []
        pairs: list[Pair] = []
        templates: list[GraphTemplate] = []
        within = min(join.within_us, LONGEST_US)
        for turned in (False,) if join.ordered else (False, True):
            row = self._way(join, turned, edges, pairs, templates)
            places.append(self._rows.ask(row, self._trie, within, since, number))
        self._known[number] = KnownJoin(tuple(places), tuple(edges), tuple(pairs), tuple(templates))
        self._templates.update(templates)
        self._variables = grown(self._variables, self.edges.count)
        self._changed()

    def drop(self, number: int) -> None:
        """Drop a query."""
        known = self._known.pop(number)
        for place in known.places:
            self._rows.leave(place, self._trie)
        for edge in known.edges:
            if not self.edges.leave(edge):
                self._variables[edge] = NONE
        for pair in known.pairs:
            self._leave_pair(pair)
        self._templates -= Counter(known.templates)
        self._changed()

    def _way(
        self,
        join: DocumentJoin,
        turned: bool,
        edges: list[int],
        pairs: list[Pair],
        templates: list[GraphTemplate],
    ) -> JoinRow:
        """Return the row of a query for one order of documents; one more query goes its way."""
        graph = join_graph(join.turned() if turned else join)
        template, places = template_of(graph)
        lefts = len(graph.left)
        nodes = (*graph.left, *(_behind(node, lefts) for node in graph.right))
        steps, way, slots = _way_of(template)
        variables: dict[int, int] = {}
        for node in {node for pair in template.equal for node in pair}:
            path = nodes[places[node]].path
            variable = self.edges.take(AskedEdge(path, len(path.steps) - 1))
            self._variables = grown(self._variables, variable + 1)
            self._variables[variable] = variables[node] = variable
            edges.append(variable)
        keys: list[int] = []
        for step in steps:
            if step.kind == StepKind.EQUAL:
                pair = variables[step.one], variables[step.other]
                pairs.append(pair)
                keys.append(self._take_pair(pair))
            else:
                edges.append(self.edges.take(_edge(step, nodes, places)))
                keys.append(edges[-1])
        end = self._trie.add(way, keys)
        templates.append(template)
        bound = {place: slots[node] for node, place in enumerate(places)}
        left = tuple(bound[place] for place in graph.selected[0])
        right = tuple(bound[lefts + place] for place in graph.selected[1])
        selected = (*right, *left) if turned else (*left, *right)
        exact = len({*selected}) == len(nodes)
        return JoinRow(end, join.ordered, turned, selected, exact)

    def _take_pair(self, pair: Pair) -> int:
        number = self._pairs.get(pair)
        if number is None:
            number = self._free_pairs.pop() if self._free_pairs else len(self._pairs)
            self._pairs.put(pair, number)
        self._pair_uses[pair] += 1
        return number

    def _leave_pair(self, pair: Pair) -> None:
        self._pair_uses[pair] -= 1
        if not self._pair_uses[pair]:
            del self._pair_uses[pair]
            number = self._pairs.get(pair)
            assert number is not None
            self._free_pairs.append(number)
            self._pairs.remove(pair)

    def _changed(self) -> None:
        self.version += 1
        for name in ("programs", "reach_us"):
            self.__dict__.pop(name, None)

    @cached_property
    def reach_us(self) -> int:
        """The longest time between two documents of any query."""
        return int(self.asking[1][:, WITHIN].max(initial=0))

    @property
    def asking(self) -> tuple[Int64s, Int64s]:
        """Where the queries of each row begin, and the queries, the longest time first."""
        return self._rows.asking

    @property
    def turned(self) -> Bools:
        """By row: whether the newer document is the one on the left."""
        return self._rows.turned

    @property
    def space(self) -> JoinSpace:
        """Room for a join by the longest way."""
        depth, nodes = self._trie.longest + 2, self._trie.widest + 1
        return JoinSpace(
            np.zeros(depth, np.int64), np.zeros(depth, np.int64), np.zeros(nodes, np.int32)
        )

    @cached_property
    def programs(self) -> JoinPrograms:
        """The arrays for kernels."""
        trie, rows = self._trie, self._rows
        return JoinPrograms(
            self._pairs.table,
            self._variables,
            trie.children.table,
            trie.steps,
            grown(trie.first_nodes, len(self._pairs) + len(self._free_pairs)),
            trie.step_of,
            trie.first_branch,
            trie.next_branch,
            trie.first_row,
            rows.following,
            rows.bounds,
            rows.selected,
            rows.exact,
        )


@lru_cache(_REMEMBERED)
def _way_of(
    template: GraphTemplate,
) -> tuple[tuple[JoinStep, ...], tuple[tuple[JoinStep, bool], ...], dict[int, int]]:
    """Return the steps of a template, the same as a way, and where its nodes are bound.

    Nodes are bound one behind the other, as steps come to them.
    """
    slots: dict[int, int] = {}
    way = []
    steps = template.steps()
    for step in steps:
        one = slots.setdefault(step.one, len(slots))
        other = slots.setdefault(step.other, len(slots))
        bound = JoinStep(step.kind, one, other, step.one_known, step.other_known)
        way.append((bound, step.one >= template.lefts))
    return steps, tuple(way), slots


def _behind(node: GraphNode, lefts: int) -> GraphNode:
    """Return a node on the right whose place is counted on from those on the left."""
    parent = node.parent + lefts if node.parent >= 0 else -1
    return GraphNode(node.path, parent, node.variable)


def _edge(step: JoinStep, nodes: tuple[GraphNode, ...], places: tuple[int, ...]) -> AskedEdge:
    above, below = (step.other, step.one) if step.kind == StepKind.UP else (step.one, step.other)
    depth = len(nodes[places[above]].path.steps) - 1
    return AskedEdge(nodes[places[below]].path, depth)
