"""Rows of joined documents → what a query writes: texts of nodes, or documents put together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from xml.sax.saxutils import escape

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.arrays import to_arrow
from eventide.documents.nodes import Nodes
from eventide.documents.read import read_documents
from eventide.documents.write import written
from eventide.kernels.compiled import Int64s
from eventide.operators.xml.bound_nodes import JoinedDocuments
from eventide.operators.xml.stage import string_values
from eventide.plan.xml.document_joins import DocumentJoin
from eventide.plan.xml.document_queries import DocumentQuery, OutputDocument, OutputNode
from eventide.schema import DOCUMENT

_IN_QUOTES = {'"': "&quot;", "'": "&apos;"}


def written_rows(
    query: DocumentQuery, found: JoinedDocuments, documents: Mapping[int, bytes]
) -> dict[str, pa.Array]:
    """Return the columns that a join writes for its rows; documents are found by their numbers.

    A document that is put together is the column `document`.
    """
    assert isinstance(query.source, DocumentJoin)
    nodes = _RowNodes(query.source, found, documents)
    if not isinstance(query.output, OutputDocument):
        return {column.name: nodes.texts(column.node) for column in query.output}
    pieces = [
        pa.scalar(piece) if isinstance(piece, str) else nodes.pieces(piece)
        for piece in query.output.pieces
    ]
    if not any(isinstance(piece, pa.Array) for piece in pieces):
        pieces.append(pa.array([""] * len(found), pa.string()))
    joined = pc.binary_join_element_wise(*pieces, pa.scalar(""))
    return {DOCUMENT: joined.cast(pa.binary())}


@dataclass(frozen=True)
class _RowNodes:
    """The nodes of rows, in documents that are read once however many rows they are in."""

    join: DocumentJoin
    found: JoinedDocuments
    documents: Mapping[int, bytes]

    @cached_property
    def numbers(self) -> Int64s:
        """The numbers of all documents, ascending."""
        return np.unique(np.concatenate([self.found.lefts, self.found.rights]))

    @cached_property
    def tree(self) -> Nodes:
        """All documents, in that order."""
        return read_documents([self.documents[number] for number in self.numbers.tolist()])

    def of(self, node: OutputNode) -> Int64s:
        """Return where a node stands in the documents, by row."""
        left, right = self.join.selected
        names, first = (left, 0) if node.side == 0 else (right, len(left))
        numbers = self.found.lefts if node.side == 0 else self.found.rights
        inside = self.found.nodes[:, first + names.index(node.variable)]
        starts = self.tree.firsts[np.searchsorted(self.numbers, numbers)]
        return np.asarray(starts + inside, np.int64)

    def texts(self, node: OutputNode) -> pa.Array:
        """Return string values."""
        return string_values(self.tree, self.of(node).astype(np.int32))

    def pieces(self, node: OutputNode) -> pa.Array:
        """Return XML: elements as they are written, or texts that can stand anywhere."""
        places, which = np.unique(self.of(node), return_inverse=True)
        texts = [self._piece(place, as_text=node.as_text) for place in places.tolist()]
        return pa.array(texts, pa.string()).take(to_arrow(which.astype(np.int64)))

    def _piece(self, place: int, *, as_text: bool) -> str:
        if as_text or self.tree.name_of(place).startswith("@"):
            return escape(self.tree.value_of(place), _IN_QUOTES)
        return written(self.tree, place)
