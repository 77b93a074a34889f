"""A slow path stage: the naive embeddings of the patterns of edges."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from eventide.operators.xml.asked_edges import LOWER, UPPER
from eventide.operators.xml.bound_nodes import BoundNodes
from eventide.operators.xml.join_queries import JoinQueries
from tests.naive.xml.document_joins import TimedDocument, bindings


def bound_nodes(
    queries: JoinQueries, documents: Sequence[TimedDocument], first: int = 0
) -> BoundNodes:
    """Return what the path stage says of documents, the first of which has a number."""
    rows: set[tuple[int, int, int, int]] = set()
    values: dict[tuple[int, int], str] = {}
    for place, document in enumerate(documents):
        for number, edge in queries.edges.edges.items():
            for found in bindings(edge.pattern, document):
                lower = found[LOWER]
                upper = lower if edge.is_variable else found[UPPER]
                rows.add((place, number, upper.number, lower.number))
                if edge.is_variable:
                    values[place, lower.number] = lower.value
    table = np.array(sorted(rows), np.int64).reshape(-1, 4)
    nodes = np.array(list(values), np.int64).reshape(-1, 2)
    return BoundNodes(
        np.array([document.ts for document in documents], np.int64),
        np.arange(first, first + len(documents)),
        table[:, 0],
        table[:, 1].astype(np.int32),
        table[:, 2].astype(np.int32),
        table[:, 3].astype(np.int32),
        nodes[:, 0],
        nodes[:, 1].astype(np.int32),
        pa.array(list(values.values()), pa.string()),
    )
