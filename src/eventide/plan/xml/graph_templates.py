"""Templates: join graphs that differ only in their paths have one, and are joined together.

    0      3        the left side is 0, 1, 2 and the right side 3, 4, 5;
    ├─ 1 = ├─ 4     1 and 4 have equal values, and so have 2 and 5
    └─ 2 = └─ 5

Nodes are numbered so that equal graphs get equal numbers, whatever order their texts have: by what
is around them, refined until nothing more differs. Of nodes that are alike even then the first one
in the graph goes first: one that looks the same from both of them is the same template.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from eventide.plan.xml.join_graphs import GraphNode, JoinGraph

Parents = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]
_REMEMBERED = 65_536


class StepKind(IntEnum):
    """What a step of a join takes next."""

    EQUAL = 0
    """Two nodes with equal values, one on each side."""
    UP = 1
    """The node above one that is known."""
    DOWN = 2
    """A node below one that is known."""


@dataclass(frozen=True, slots=True)
class JoinStep:
    """A step of a join: two nodes, and which of them are known before it."""

    kind: StepKind
    one: int
    """With equal values the node on the left, otherwise the one that is known."""
    other: int
    one_known: bool
    other_known: bool


@dataclass(frozen=True, slots=True)
class GraphTemplate:
    """A join graph without its paths; nodes on the left are numbered before those on the right."""

    lefts: int
    parents: Parents
    equal: Pairs

    def __str__(self) -> str:
        equal = ", ".join(f"{one}={other}" for one, other in self.equal)
        return f"{self._tree(0, self.lefts)} {self._tree(self.lefts, len(self.parents))} {equal}"

    def _tree(self, start: int, stop: int) -> str:
        def text(node: int) -> str:
            below = [each for each in range(start, stop) if self.parents[each] == node]
            return f"{node}({' '.join(map(text, below))})" if below else str(node)

        return " ".join(text(node) for node in range(start, stop) if self.parents[node] < 0)

    def steps(self) -> tuple[JoinStep, ...]:
        """Return the steps of its join: from equal values up to where paths part, and so on.

        What is only selected comes last, from above.
        """
        known: set[int] = set()
        joined: set[int] = set()
        steps: list[JoinStep] = []
        for left, right in self.equal:
            steps.append(JoinStep(StepKind.EQUAL, left, right, left in known, right in known))
            known |= {left, right}
            for node in (left, right):
                self._climb(node, known, joined, steps)
        for node in _downwards(self.parents):
            above = self.parents[node]
            if above >= 0 and node not in joined:
                steps.append(JoinStep(StepKind.DOWN, above, node, True, False))
        return tuple(steps)

    def _climb(self, node: int, known: set[int], joined: set[int], steps: list[JoinStep]) -> None:
        while node not in joined and (above := self.parents[node]) >= 0:
            steps.append(JoinStep(StepKind.UP, node, above, True, above in known))
            joined.add(node)
            known.add(above)
            node = above


def template_of(graph: JoinGraph) -> tuple[GraphTemplate, tuple[int, ...]]:
    """Return the template of a graph, and the place in the graph of each of its nodes.

    Places on the right are counted on from those on the left.
    """
    lefts = len(graph.left)
    parents = (*_parents(graph.left, 0), *_parents(graph.right, lefts))
    equal = tuple((one, lefts + other) for one, other in graph.equal)
    return numbered(lefts, parents, equal)


def _parents(nodes: tuple[GraphNode, ...], first: int) -> Parents:
    return tuple(node.parent + first if node.parent >= 0 else -1 for node in nodes)


@lru_cache(_REMEMBERED)
def numbered(lefts: int, parents: Parents, equal: Pairs) -> tuple[GraphTemplate, tuple[int, ...]]:
    """Number the nodes of a graph anew; see `template_of`."""
    colours = _refined([int(node >= lefts) for node in range(len(parents))], parents, equal)
    while (doubtful := _first_alike(colours)) is not None:
        colours = [2 * colour + 1 for colour in colours]
        colours[doubtful] -= 1
        colours = _refined(colours, parents, equal)
    places = sorted(range(len(parents)), key=colours.__getitem__)
    new_parents = tuple(colours[parents[old]] if parents[old] >= 0 else -1 for old in places)
    new_equal = tuple(sorted((colours[one], colours[other]) for one, other in equal))
    return GraphTemplate(lefts, new_parents, new_equal), tuple(places)


def _refined(colours: list[int], parents: Parents, equal: Pairs) -> list[int]:
    """Tell nodes apart by the colours around them until that tells no more of them apart."""
    below: list[list[int]] = [[] for _ in parents]
    for node, above in enumerate(parents):
        if above >= 0:
            below[above].append(node)
    beside: list[list[int]] = [[] for _ in parents]
    for one, other in equal:
        beside[one].append(other)
        beside[other].append(one)
    while True:
        around = [
            (
                colours[node],
                colours[parents[node]] if parents[node] >= 0 else -1,
                tuple(sorted(colours[each] for each in below[node])),
                tuple(sorted(colours[each] for each in beside[node])),
            )
            for node in range(len(parents))
        ]
        ranks = {each: rank for rank, each in enumerate(sorted({*around}))}
        finer = [ranks[each] for each in around]
        if len(ranks) == len({*colours}):
            return finer
        colours = finer


def _first_alike(colours: list[int]) -> int | None:
    """Return the first node with the smallest colour that several have."""
    several = [colour for colour in colours if colours.count(colour) > 1]
    return colours.index(min(several)) if several else None


def _downwards(parents: Parents) -> list[int]:
    """Return all nodes, each behind the one above it."""

    def depth(node: int) -> int:
        return depth(parents[node]) + 1 if parents[node] >= 0 else 0

    return sorted(range(len(parents)), key=depth)
