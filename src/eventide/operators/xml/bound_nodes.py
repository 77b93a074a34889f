"""What the path stage says of a batch of documents, and what their joins give."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa

from eventide.kernels.compiled import Int32s, Int64s
from eventide.kernels.xml.join_documents import NewDocuments
from eventide.operators.fingerprints import fingerprints


@dataclass(frozen=True, slots=True)
class BoundNodes:
    """The nodes of documents that stand at the ends of edges, and the texts of variables.

    Documents are in order of time. Rows and values may be in any order; none is there twice.
    """

    times: Int64s
    ids: Int64s
    """By document: its number in the order in which all came."""
    row_documents: Int64s
    """The place in the batch of each row's document."""
    edges: Int32s
    uppers: Int32s
    lowers: Int32s
    value_documents: Int64s
    nodes: Int32s
    """The nodes of variables, each once."""
    values: pa.StringArray
    """Their string values."""

    def __len__(self) -> int:
        return len(self.times)

    def in_order(self) -> NewDocuments:
        """Return rows by document and lower node, and values by document, as kernels want them."""
        by_row = np.lexsort((self.edges, self.lowers, self.row_documents))
        by_value = np.argsort(self.value_documents, kind="stable")
        places = np.arange(len(self) + 1)
        words = fingerprints([self.values], len(self.values))
        return NewDocuments(
            np.ascontiguousarray(self.times),
            np.ascontiguousarray(self.ids),
            np.searchsorted(self.row_documents[by_row], places),
            self.edges[by_row],
            self.uppers[by_row],
            self.lowers[by_row],
            np.searchsorted(self.value_documents[by_value], places),
            self.nodes[by_value],
            words.first[by_value],
            words.second[by_value],
        )


@dataclass(frozen=True, slots=True)
class JoinedDocuments:
    """One row for each query, pair of documents, and tuple of nodes that it selects."""

    queries: Int64s
    lefts: Int64s
    """The number of the document that fits the left pattern."""
    rights: Int64s
    left_times: Int64s
    right_times: Int64s
    nodes: Int64s
    """The nodes that are selected, and -1 behind them."""

    def __len__(self) -> int:
        return len(self.queries)

    def taken(self, places: Int64s) -> JoinedDocuments:
        """Return the rows at some places."""
        columns = (getattr(self, each.name)[places] for each in fields(self))
        return JoinedDocuments(*columns)
