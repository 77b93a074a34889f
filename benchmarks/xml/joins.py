"""Joins of generated documents: all queries at once, and each query by itself.

The rival evaluates each query alone with the same kernel, its own trie and its own documents. A
sample of the queries is timed, and counted as many times as there are queries. Times are those of
the processor. What documents cost that have no value in common is taken off both sides, as in the
source: that is to load them, and the rival would not load them once for each query.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.guard import MismatchError
from benchmarks.xml.generated import bound, flat_queries, nested_queries, with_queries
from eventide.operators.xml.bound_nodes import BoundNodes
from eventide.operators.xml.join_documents import JoinDocuments
from eventide.operators.xml.join_queries import JoinQueries
from eventide.plan.xml.document_joins import DocumentJoin

PAIRS, ROUNDS, SAMPLE = 200, 5, 200


@dataclass(frozen=True, slots=True)
class Schema:
    """Documents of a kind: a root with leaves, or with parts of leaves between them."""

    name: str
    leaves: int
    fan: int = 0

    def queries(self, count: int, most: int, skew: float) -> list[DocumentJoin]:
        """Return random queries with up to `most` equal values."""
        if self.fan:
            return nested_queries(count, self.fan, most=most, skew=skew)
        return flat_queries(count, self.leaves, most=most, skew=skew)


@dataclass(frozen=True, slots=True)
class JoinTimes:
    """What two documents with equal values cost, in seconds."""

    schema: Schema
    queries: int
    most: int
    skew: float
    templates: int
    rows: float
    """Rows of two documents, before they are given to the queries that share them."""
    shared_s: float
    shared_loading_s: float
    alone_s: float
    alone_loading_s: float

    @property
    def ratio(self) -> float:
        """How much longer queries by themselves take, without loading."""
        ours, theirs = self.joining_s
        return theirs / ours

    @property
    def whole_ratio(self) -> float:
        """The same, with loading."""
        return self.alone_s / self.shared_s

    @property
    def joining_s(self) -> tuple[float, float]:
        """The seconds of all queries at once, and of each by itself, without loading."""
        return (
            max(self.shared_s - self.shared_loading_s, 1e-9),
            max(self.alone_s - self.alone_loading_s, 1e-9),
        )

    def cells(self) -> tuple[str, ...]:
        """Return its row of the table."""
        return (
            f"{self.schema.name}, {self.schema.leaves} leaves",
            f"{self.queries:,}",
            f"{self.most}",
            f"{self.skew:g}",
            f"{self.templates}",
            f"{self.rows:.0f}",
            *(f"{seconds * 1e6:,.1f}" for seconds in (self.shared_s, self.joining_s[0])),
            *(f"{seconds * 1e6:,.0f}" for seconds in (self.alone_s, self.joining_s[1])),
            f"{self.ratio:,.0f}",
        )


def timed_joins(
    schema: Schema, count: int, *, most: int | None = None, skew: float = 0.8
) -> JoinTimes:
    """Time random queries."""
    most = most or schema.leaves
    joins = schema.queries(count, most, skew)
    queries = with_queries(joins)
    shared, rows = best_s(schema, queries, equal=True)
    loading, _ = best_s(schema, queries, equal=False)
    sample = random.Random(2).sample(joins, min(count, SAMPLE))
    alone = alone_loading = 0.0
    for join in sample:
        single = with_queries([join])
        alone += best_s(schema, single, equal=True)[0]
        alone_loading += best_s(schema, single, equal=False)[0]
    scale = count / len(sample) / PAIRS
    return JoinTimes(
        schema,
        count,
        most,
        skew,
        len(queries.templates),
        rows / PAIRS,
        shared / PAIRS,
        loading / PAIRS,
        alone * scale,
        alone_loading * scale,
    )


def best_s(schema: Schema, queries: JoinQueries, *, equal: bool) -> tuple[float, int]:
    """Return the least seconds of many pairs of documents, and how many rows they have.

    The documents of a pair have equal values in all leaves, or no two documents have any.
    """
    operator = JoinDocuments(queries)
    nodes = pairs_of_documents(schema, queries, equal=equal)
    best, rows = np.inf, 0
    for _ in range(ROUNDS):
        state = operator.initial_state()
        new = nodes.in_order()
        began = time.process_time()
        rows = len(operator.found_in_order(state, new))
        best = min(best, time.process_time() - began)
    return best, rows


def pairs_of_documents(schema: Schema, queries: JoinQueries, *, equal: bool) -> BoundNodes:
    """Return the nodes of documents, each two of which may have equal values."""
    documents = [place // 2 if equal else place for place in range(2 * PAIRS)]
    values = [[f"{each}:{leaf}" for leaf in range(schema.leaves)] for each in documents]
    return bound(queries, values, range(2 * PAIRS), schema.fan)


def check_joins(schema: Schema, count: int = 60) -> None:
    """Compare the rows of queries that are joined together with those of each by itself."""
    joins = schema.queries(count, min(4, schema.leaves), 0.8)
    together = rows_of_queries(schema, joins)
    for number, join in enumerate(joins):
        if rows_of_queries(schema, [join])[0] != together[number]:
            message = f"{schema.name}: query {number} has other rows by itself"
            raise MismatchError(message)


def rows_of_queries(schema: Schema, joins: Sequence[DocumentJoin]) -> list[int]:
    """Return how many rows each query has."""
    operator = JoinDocuments(with_queries(joins))
    nodes = pairs_of_documents(schema, operator.queries, equal=True)
    _, found = operator.step(operator.initial_state(), nodes)
    counts: list[int] = np.bincount(found.queries, minlength=len(joins)).tolist()
    return counts
