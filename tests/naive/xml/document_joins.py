"""Joins of documents by equal values, by trying all embeddings of both patterns in all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eventide.plan.xml.document_joins import DocumentJoin
from eventide.plan.xml.patterns import TreePattern, steps_of
from tests.naive.xml.embeddings import Node, document_of, embeddings

JoinedRow = tuple[int, int, int, tuple[int, ...]]
"""A query, the documents for its left and its right pattern, and the selected nodes."""


@dataclass(frozen=True)
class TimedDocument:
    """A document of a stream."""

    stream: str
    ts: int
    text: str


def bindings(pattern: TreePattern, document: TimedDocument) -> list[dict[str, Node]]:
    """Return where the variables of a pattern stand, for each embedding."""
    if document.stream != pattern.stream:
        return []
    names = [step.variable for step in steps_of(pattern.root)]
    found = embeddings(pattern.root, document_of(document.text.encode()))
    return [
        {name: node for name, node in zip(names, nodes, strict=True) if name is not None}
        for nodes in found
    ]


def joined(queries: Sequence[DocumentJoin], documents: Sequence[TimedDocument]) -> set[JoinedRow]:
    """Return one row for each query, pair of documents, and tuple of selected nodes."""
    rows: set[JoinedRow] = set()
    found: dict[tuple[TreePattern, int], list[dict[str, Node]]] = {}

    def witnesses(pattern: TreePattern, place: int) -> list[dict[str, Node]]:
        key = pattern, place
        if key not in found:
            found[key] = bindings(pattern, documents[place])
        return found[key]

    for number, query in enumerate(queries):
        for one in range(len(documents)):
            for other in range(len(documents)):
                if one != other and in_time(query, documents[one].ts, documents[other].ts):
                    for left in witnesses(query.left, one):
                        for right in witnesses(query.right, other):
                            if all(left[a].value == right[b].value for a, b in query.equal):
                                nodes = (
                                    *(left[name].number for name in query.selected[0]),
                                    *(right[name].number for name in query.selected[1]),
                                )
                                rows.add((number, one, other, nodes))
    return rows


def in_time(query: DocumentJoin, left: int, right: int) -> bool:
    """Whether two documents are near enough, and in the order that is asked for."""
    if query.ordered:
        return 0 < right - left <= query.within_us
    return abs(right - left) <= query.within_us
