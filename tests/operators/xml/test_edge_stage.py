from __future__ import annotations

import random

import numpy as np
import pytest

from eventide.operators.xml.bound_nodes import BoundNodes
from eventide.operators.xml.edge_stage import EdgeStage, StreamDocuments
from eventide.operators.xml.join_queries import JoinQueries
from tests.operators.xml.slow_paths import bound_nodes
from tests.operators.xml.test_join_documents import random_documents, random_join


def rows_of(nodes: BoundNodes) -> list[tuple[int, ...]]:
    columns = (nodes.row_documents, nodes.edges, nodes.uppers, nodes.lowers)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def values_of(nodes: BoundNodes) -> list[tuple[int, int, str]]:
    columns = (nodes.value_documents.tolist(), nodes.nodes.tolist(), nodes.values.to_pylist())
    return sorted(zip(*columns, strict=True))


@pytest.mark.parametrize("seed", range(12))
def test_the_stage_agrees_with_trying_all_embeddings_of_each_edge(seed: int) -> None:
    rng = random.Random(seed)
    queries = JoinQueries()
    for number in range(10):
        queries.add(number, random_join(rng))
    documents = random_documents(rng, 8)
    expected = bound_nodes(queries, documents)
    parts = []
    for stream in "ST":
        places = [place for place, each in enumerate(documents) if each.stream == stream]
        texts = [documents[place].text.encode() for place in places]
        parts.append(StreamDocuments(stream, texts, np.array(places, np.int64)))
    found = EdgeStage(queries.edges.edges).find(expected.times, expected.ids, parts)
    assert rows_of(found) == rows_of(expected)
    assert values_of(found) == values_of(expected)
