"""Joins over a stream of feed items: channels, some texts that come again, and links that do not.

As in the source items have five leaves, queries compare random ones of them, and no item is ever
dropped. So most rows are of items of one channel.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.xml.generated import STREAM, bound, flat_queries, with_queries
from eventide.operators.xml.edge_stage import EdgeStage, StreamDocuments
from eventide.operators.xml.join_documents import VIEW_ENTRIES, JoinDocuments

ITEMS = 225_000
CHANNELS = 418
BATCH = 1_000
PATH_ITEMS = 20_000
LEAVES = 5


@dataclass(frozen=True, slots=True)
class FeedTimes:
    """What the items of a feed cost."""

    queries: int
    items: int
    view_entries: int
    join_s: float
    rows: int
    distinct: int
    """Different rows of queries."""

    @property
    def items_s(self) -> float:
        """Items a second through the join."""
        return self.items / self.join_s

    def cells(self) -> tuple[str, ...]:
        """Return its row of the table."""
        return (
            f"{self.queries:,}",
            f"{self.distinct:,}",
            f"{self.view_entries:,}",
            f"{self.items:,}",
            f"{self.rows / self.items:.0f}",
            f"{self.join_s:.2f}",
            f"{self.items_s:,.0f}",
        )


def feed_values(items: int) -> list[list[str]]:
    """Return the values of the leaves of items."""
    rng = random.Random(5)
    return [
        [
            f"http://feeds/{item}",
            f"channel {rng.randrange(CHANNELS)}",
            f"title {rng.randrange(3 * items)}",
            f"{item // 3}",
            f"text {rng.randrange(4 * items)}",
        ]
        for item in range(items)
    ]


def timed_feed(
    values: Sequence[Sequence[str]], count: int, view_entries: int = VIEW_ENTRIES
) -> FeedTimes:
    """Join all items with all before them."""
    queries = with_queries(flat_queries(count, LEAVES))
    operator = JoinDocuments(queries, view_entries)
    state = operator.initial_state()
    operator.found(operator.initial_state(), bound(queries, values[:10], range(10)))
    spent, rows = 0.0, 0
    for start in range(0, len(values), BATCH):
        batch = values[start : start + BATCH]
        nodes = bound(queries, batch, range(start, start + len(batch)))
        began = time.process_time()
        rows += len(operator.found(state, nodes))
        spent += time.process_time() - began
    return FeedTimes(count, len(values), view_entries, spent, rows, queries.row_count)


def path_s(values: Sequence[Sequence[str]], count: int) -> float:
    """Return the seconds in which the path stage reads an item and finds the nodes of all edges."""
    queries = with_queries(flat_queries(count, LEAVES))
    stage = EdgeStage(queries.edges.edges)
    documents = [item_text(leaves) for leaves in values[:PATH_ITEMS]]
    places = np.arange(BATCH)
    spent = 0.0
    for start in range(0, len(documents), BATCH):
        batch = documents[start : start + BATCH]
        part = StreamDocuments(STREAM, batch, places[: len(batch)])
        began = time.process_time()
        stage.find(places[: len(batch)], places[: len(batch)], [part])
        spent += time.process_time() - began
    return spent / len(documents)


def item_text(leaves: Sequence[str]) -> bytes:
    """Return an item as XML."""
    inside = "".join(f"<leaf{leaf}>{value}</leaf{leaf}>" for leaf, value in enumerate(leaves))
    return f"<item>{inside}</item>".encode()
