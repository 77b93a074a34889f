"""All embeddings of a pattern in a document: every node is tried for every step."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from eventide.plan.xml.patterns import PatternStep, steps_of


@dataclass(frozen=True)
class Node:
    """An element or an attribute; `number` is its place in document order, attributes first."""

    number: int
    name: str
    value: str
    inside: tuple[Node, ...]

    def all_inside(self) -> Iterator[Node]:
        for node in self.inside:
            yield node
            yield from node.all_inside()


def document_of(data: bytes) -> Node:
    """Return a node above the root element of a document."""
    numbers = iter(range(1_000_000))

    def node_of(element: ET.Element) -> Node:
        number = next(numbers)
        attributes = [Node(next(numbers), f"@{k}", v, ()) for k, v in element.attrib.items()]
        inside = (*attributes, *(node_of(each) for each in element))
        return Node(number, element.tag, "".join(element.itertext()), inside)

    return Node(-1, "", "", (node_of(ET.fromstring(data)),))


def fits(step: PatternStep, node: Node) -> bool:
    """Whether a step may be on a node."""
    if step.test is not None and node.value != step.test:
        return False
    if step.name.startswith("@") != node.name.startswith("@"):
        return False
    wanted, name = step.name.removeprefix("@"), node.name.removeprefix("@")
    if wanted.startswith("{*}"):
        return wanted[3:] == name.rpartition("}")[2]
    return wanted in ("*", name)


def embeddings(step: PatternStep, above: Node) -> Iterator[tuple[Node, ...]]:
    """Yield the nodes of a step and of all below it, below a node: every way there is."""
    for node in above.inside if step.axis == "child" else above.all_inside():
        if fits(step, node):
            below = [list(embeddings(each, node)) for each in step.below]
            for chosen in product(*below):
                yield (node, *(each for part in chosen for each in part))


def tuples(root: PatternStep, data: bytes, view: Sequence[int]) -> list[tuple[Node, ...]]:
    """Return the distinct tuples of nodes of a view, in document order."""
    found = {tuple(all_[step] for step in view) for all_ in embeddings(root, document_of(data))}
    return sorted(found, key=lambda nodes: [node.number for node in nodes])


def witnesses(root: PatternStep, data: bytes) -> list[dict[str, str]]:
    """Return the string values of the variables, for each witness."""
    named = [(n, step.variable) for n, step in enumerate(steps_of(root)) if step.variable]
    found = tuples(root, data, [number for number, _ in named])
    return [
        {name: node.value for (_, name), node in zip(named, nodes, strict=True)} for nodes in found
    ]
