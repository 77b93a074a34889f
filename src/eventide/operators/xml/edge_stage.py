"""The path stage of joins: documents → the nodes of all edges that queries ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.kernels.compiled import Bools, Int32s, Int64s
from eventide.operators.xml.asked import AskedPattern
from eventide.operators.xml.asked_edges import AskedEdge
from eventide.operators.xml.bound_nodes import BoundNodes
from eventide.operators.xml.stage import FoundTuples, PathStage, string_values
from eventide.plan.xml.join_graphs import PathKey
from eventide.plan.xml.patterns import steps_of


@dataclass(frozen=True, slots=True)
class StreamDocuments:
    """Documents of a stream, and the place of each among those of a batch."""

    stream: str
    documents: Sequence[bytes | None]
    places: Int64s


@dataclass(frozen=True, slots=True)
class _Found:
    """Rows of some documents: the place of each document, the edge, both nodes; and values."""

    rows: Int64s
    documents: Int64s
    nodes: Int32s
    values: pa.Array


class EdgeStage:
    """Finds the nodes of edges. Paths of one stream share one automaton."""

    def __init__(self, edges: Mapping[int, AskedEdge]) -> None:
        paths: dict[str, dict[PathKey, list[int]]] = {}
        for number, edge in edges.items():
            paths.setdefault(edge.path.stream, {}).setdefault(edge.path, []).append(number)
        self._by_stream = {stream: _of_stream(each, edges) for stream, each in paths.items()}

    def find(self, times: Int64s, ids: Int64s, parts: Sequence[StreamDocuments]) -> BoundNodes:
        """Return the nodes of a batch of documents, which are given stream by stream."""
        found = [
            each
            for part in parts
            if part.stream in self._by_stream
            for each in self._by_stream[part.stream].find(part)
        ]
        none = [np.zeros((0, 4), np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
        rows = np.concatenate([*none[0], *(each.rows for each in found)])
        values = [each.values for each in found] or [pa.array([], pa.string())]
        return BoundNodes(
            times,
            ids,
            rows[:, 0],
            rows[:, 1].astype(np.int32),
            rows[:, 2].astype(np.int32),
            rows[:, 3].astype(np.int32),
            np.concatenate([*none[1], *(each.documents for each in found)]),
            np.concatenate([*none[2], *(each.nodes for each in found)]),
            pa.concat_arrays(values),
        )


@dataclass(frozen=True, slots=True)
class _PathsOfStream:
    """The stage of a stream, and of each of its views the edge and whether that is a variable."""

    stage: PathStage
    edges: Int64s
    variables: Bools

    def find(self, part: StreamDocuments) -> list[_Found]:
        return [self._rows(found, part.places) for found in self.stage.find(part.documents)]

    def _rows(self, found: FoundTuples, places: Int64s) -> _Found:
        tree, counts = found.tree, found.count
        width = found.widths[found.view]
        firsts = np.repeat(np.cumsum(counts * width) - counts * width, counts)
        nth = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        of_row = np.repeat(np.arange(len(counts)), counts)
        at = firsts + nth * width[of_row]
        upper, lower = found.nodes[at], found.nodes[at + width[of_row] - 1]
        document, view = found.document[of_row], found.view[of_row]
        start = tree.firsts[document]
        rows = np.column_stack([places[document], self.edges[view], upper - start, lower - start])
        nodes = np.unique(lower[self.variables[view]])
        homes = np.searchsorted(tree.firsts, nodes, "right") - 1
        inside = (nodes - tree.firsts[homes]).astype(np.int32)
        return _Found(rows, places[homes], inside, string_values(tree, nodes))


def _of_stream(
    paths: Mapping[PathKey, Sequence[int]], edges: Mapping[int, AskedEdge]
) -> _PathsOfStream:
    asked, order = [], []
    for path, numbers in paths.items():
        steps = _step_numbers(path)
        views = []
        for number in numbers:
            edge = edges[number]
            last = steps[-1]
            views.append((last,) if edge.is_variable else (steps[edge.upper], last))
            order.append(number)
        asked.append(AskedPattern(path.pattern({}).root, tuple(views)))
    variables = np.array([edges[number].is_variable for number in order], np.bool_)
    return _PathsOfStream(PathStage(asked), np.array(order, np.int64), variables)


def _step_numbers(path: PathKey) -> list[int]:
    """Return the number of each step of a path in its pattern, behind the conditions above it."""
    numbers = [0]
    for step in path.steps:
        numbers.append(numbers[-1] + sum(1 for _ in steps_of(step)))
    return numbers[:-1]
