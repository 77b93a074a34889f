"""Generated joins of documents, and the bound nodes of generated documents.

As the source has it: the leaves of a document have different values, and documents have equal
values leaf by leaf. A query compares k leaves on the left with k on the right, k by Zipf's law.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa

from eventide.operators.xml.bound_nodes import BoundNodes
from eventide.operators.xml.join_queries import JoinQueries
from eventide.plan.xml.document_joins import DocumentJoin
from eventide.plan.xml.patterns import PatternStep, TreePattern

STREAM = "feed"
FOREVER_US = 1 << 60


@lru_cache(100_000)
def flat_pattern(leaves: tuple[int, ...]) -> TreePattern:
    """Return an item with some of its leaves as variables, named by their place."""
    below = tuple(PatternStep("child", f"leaf{leaf}", f"v{leaf}") for leaf in leaves)
    return TreePattern(STREAM, PatternStep("descendant", "item", "root", below=below))


@lru_cache(100_000)
def nested_pattern(leaves: tuple[int, ...], fan: int) -> TreePattern:
    """Return an item with parts, and leaves in these."""
    parts = []
    for part in sorted({leaf // fan for leaf in leaves}):
        below = tuple(
            PatternStep("child", f"leaf{leaf}", f"v{leaf}")
            for leaf in leaves
            if leaf // fan == part
        )
        parts.append(PatternStep("child", f"part{part}", f"p{part}", below=below))
    return TreePattern(STREAM, PatternStep("descendant", "item", "root", below=tuple(parts)))


def flat_queries(
    count: int, leaves: int, *, most: int | None = None, skew: float = 0.8, seed: int = 1
) -> list[DocumentJoin]:
    """Return joins of documents with one level of leaves."""
    return _queries(count, leaves, most or leaves, skew, seed, fan=0)


def nested_queries(
    count: int, fan: int = 4, *, most: int = 4, skew: float = 0.8, seed: int = 1
) -> list[DocumentJoin]:
    """Return joins of documents with two levels below the root, each of `fan` nodes."""
    return _queries(count, fan * fan, most, skew, seed, fan=fan)


def _queries(
    count: int, leaves: int, most: int, skew: float, seed: int, fan: int
) -> list[DocumentJoin]:
    rng = random.Random(seed)
    sizes = range(1, most + 1)
    weights = [size**-skew for size in sizes]
    found = []
    for size in rng.choices(sizes, weights, k=count):
        sides = rng.sample(range(leaves), size), rng.sample(range(leaves), size)
        left, right = (
            nested_pattern(tuple(sorted(side)), fan) if fan else flat_pattern(tuple(sorted(side)))
            for side in sides
        )
        equal = tuple((f"v{one}", f"v{other}") for one, other in zip(*sides, strict=True))
        found.append(DocumentJoin(left, right, equal, FOREVER_US, selected=(("root",), ("root",))))
    return found


def with_queries(joins: Sequence[DocumentJoin]) -> JoinQueries:
    """Return joins as the queries of an operator."""
    queries = JoinQueries()
    for number, join in enumerate(joins):
        queries.add(number, join)
    return queries


def bound(
    queries: JoinQueries, values: Sequence[Sequence[str]], times: Sequence[int], fan: int = 0
) -> BoundNodes:
    """Return the nodes of documents with these values in their leaves, without the path stage.

    The item is node 0; a part and a leaf have the numbers of their places.
    """
    leaves = len(values[0])
    parts = leaves // fan if fan else 0
    node_of = {"item": 0}
    node_of |= {f"part{part}": 1 + part for part in range(parts)}
    node_of |= {f"leaf{leaf}": 1 + parts + leaf for leaf in range(leaves)}
    edges = [
        (number, node_of[edge.path.steps[edge.upper].name], node_of[edge.path.steps[-1].name])
        for number, edge in queries.edges.edges.items()
    ]
    table = np.array(edges, np.int64).reshape(-1, 3)
    variables = sorted({lower for _, upper, lower in edges if upper == lower})
    count = len(values)
    texts = [row[node - 1 - parts] for row in values for node in variables]
    return BoundNodes(
        np.array(times, np.int64),
        np.arange(count),
        np.repeat(np.arange(count), len(edges)),
        np.tile(table[:, 0], count).astype(np.int32),
        np.tile(table[:, 1], count).astype(np.int32),
        np.tile(table[:, 2], count).astype(np.int32),
        np.repeat(np.arange(count), len(variables)),
        np.tile(np.array(variables, np.int32), count),
        pa.array(texts, pa.string()),
    )
