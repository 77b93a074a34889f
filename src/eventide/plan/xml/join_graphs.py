"""What a join has to look at: the join graph, reduced to its minor.

    item->x ── author->a ─ ─ = ─ ─ author->b ── item->y        structural edges ──, equal values ─ =
       └─ title

The path stage looks at each document alone. To join two of them, a side needs only the nodes whose
values are compared or whose nodes are selected, and those in which their paths part: what is not on
such a path goes (`title`), what is above all of them goes, and so does what has one node below.

What went was still asked for. So a node is known by its whole path from the root, with all that
went and hung on that path: `item[.//title]//author` is another node than `item//author`, and all
queries that ask for the same path share its nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from eventide.plan.xml.document_joins import DocumentJoin
from eventide.plan.xml.patterns import PatternStep, TreePattern


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node of one side: its path, and its place among the nodes of the side."""

    path: PathKey
    parent: int
    """The place of the node above; -1 at the root of the side."""
    variable: str | None


@dataclass(frozen=True, slots=True)
class PathKey:
    """A path from the root of the documents of a stream; what hangs on each step are conditions."""

    stream: str
    steps: tuple[PatternStep, ...]

    def __str__(self) -> str:
        return f"{self.stream}{''.join(map(str, self.steps))}"

    def pattern(self, marks: dict[int, str]) -> TreePattern:
        """Return the path as a pattern, with variables at some of its steps."""
        below: tuple[PatternStep, ...] = ()
        for place in reversed(range(len(self.steps))):
            step = self.steps[place]
            step = replace(step, variable=marks.get(place), below=(*step.below, *below))
            below = (step,)
        return TreePattern(self.stream, below[0])


@dataclass(frozen=True, slots=True)
class JoinGraph:
    """The nodes of both sides, each behind the one above it, and which have equal values."""

    left: tuple[GraphNode, ...]
    right: tuple[GraphNode, ...]
    equal: tuple[tuple[int, int], ...]
    """Places of a node on the left and of one on the right, ascending."""
    selected: tuple[tuple[int, ...], tuple[int, ...]]


def join_graph(join: DocumentJoin) -> JoinGraph:
    """Return the reduced graph of a join."""
    lefts, rights = ({*side} for side in zip(*join.equal, strict=True))
    left = reduced(join.left, {*lefts, *join.selected[0]})
    right = reduced(join.right, {*rights, *join.selected[1]})
    on_left, on_right = _places(left), _places(right)
    equal = sorted({(on_left[one], on_right[other]) for one, other in join.equal})
    selected = (
        tuple(on_left[name] for name in join.selected[0]),
        tuple(on_right[name] for name in join.selected[1]),
    )
    return JoinGraph(left, right, tuple(equal), selected)


def reduced(pattern: TreePattern, needed: set[str]) -> tuple[GraphNode, ...]:
    """Return the nodes of a pattern that are needed, or in which paths to such nodes part."""
    nodes: list[GraphNode] = []

    def visit(branch: PatternStep, above: tuple[PatternStep, ...], parent: int) -> None:
        inner = [each for each in branch.below if _leads_to(each, needed)]
        rest = [each for each in branch.below if not _leads_to(each, needed)]
        path = (*above, replace(_condition(branch), below=_conditions(rest)))
        if branch.variable in needed or len(inner) > 1:
            nodes.append(GraphNode(PathKey(pattern.stream, path), parent, branch.variable))
            parent = len(nodes) - 1
        # Equal graphs come out equal, however their texts are ordered.
        for each in sorted(inner, key=_text):
            visit(each, path, parent)

    visit(pattern.root, (), -1)
    return tuple(nodes)


def _places(nodes: tuple[GraphNode, ...]) -> dict[str, int]:
    return {node.variable: place for place, node in enumerate(nodes) if node.variable is not None}


def _leads_to(branch: PatternStep, needed: set[str]) -> bool:
    return branch.variable in needed or any(_leads_to(each, needed) for each in branch.below)


def _condition(branch: PatternStep) -> PatternStep:
    """Return a branch without variables, in one order: what it asks for."""
    return PatternStep(branch.axis, branch.name, None, branch.test, _conditions(branch.below))


def _text(branch: PatternStep) -> str:
    return str(_condition(branch))


def _conditions(branches: Iterable[PatternStep]) -> tuple[PatternStep, ...]:
    return tuple(sorted({_condition(each) for each in branches}, key=str))
