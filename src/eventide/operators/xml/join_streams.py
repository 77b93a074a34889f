"""One join over streams of documents, as an operator on a tree: rows in, rows out.

It reads one stream or two. A row is at the time of the newer document, and began at that of the
older one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.kernels.compiled import Int64s
from eventide.kernels.xml.document_log import FIRST_DOCUMENT, NEXT_DOCUMENT
from eventide.operators.checking import filled, require, require_ascending
from eventide.operators.operator import Size
from eventide.operators.state import join_parts, parts_of, read_rows, write_rows
from eventide.operators.stateful import Stateful
from eventide.operators.xml.edge_stage import EdgeStage, StreamDocuments
from eventide.operators.xml.join_documents import DocumentJoinState, JoinDocuments
from eventide.operators.xml.join_queries import JoinQueries
from eventide.operators.xml.written_nodes import written_rows
from eventide.plan.xml.document_joins import DocumentJoin
from eventide.plan.xml.document_queries import DocumentQuery
from eventide.schema import DOCUMENT, START_TS, TS

_KEPT = pa.schema([("id", pa.int64()), (DOCUMENT, pa.binary())])


@dataclass(slots=True)
class JoinStreamsState:
    """The documents of the window, for rows are written of them, and their nodes."""

    nodes: DocumentJoinState
    documents: dict[int, bytes] = field(default_factory=dict)
    next_id: int = 0


@dataclass(frozen=True)
class JoinStreams(Stateful[JoinStreamsState]):
    """All pairs of documents that a query joins, and what it writes of them."""

    query: DocumentQuery
    output_schema: pa.Schema

    @property
    def join(self) -> DocumentJoin:
        """The two patterns, and what is equal."""
        assert isinstance(self.query.source, DocumentJoin)
        return self.query.source

    @cached_property
    def streams(self) -> tuple[str, ...]:
        """The streams that are read, in the order of the inputs."""
        return tuple(dict.fromkeys([self.join.left.stream, self.join.right.stream]))

    @cached_property
    def joined(self) -> JoinDocuments:
        """The join of nodes, with one query."""
        queries = JoinQueries()
        queries.add(0, self.join)
        return JoinDocuments(queries)

    @cached_property
    def stage(self) -> EdgeStage:
        """The paths of both patterns."""
        return EdgeStage(self.joined.queries.edges.edges)

    def initial_state(self) -> JoinStreamsState:
        """Return the state before the first document."""
        return JoinStreamsState(self.joined.initial_state())

    def step(
        self,
        state: JoinStreamsState,
        inputs: tuple[pa.RecordBatch, ...],
        until_us: int,  # noqa: ARG002 - the contract of an operator
    ) -> tuple[JoinStreamsState, pa.RecordBatch]:
        """Return the rows that documents complete."""
        times, order = _merged(inputs)
        ids = np.arange(state.next_id, state.next_id + len(times))
        state.next_id += len(times)
        place_of = np.empty(len(times), np.int64)
        place_of[order] = np.arange(len(times))
        texts = [b""] * len(times)
        parts, first = [], 0
        for stream, rows in zip(self.streams, inputs, strict=True):
            documents = rows.column(DOCUMENT).to_pylist()
            places = place_of[first : first + len(documents)]
            first += len(documents)
            parts.append(StreamDocuments(stream, documents, places))
            for place, document in zip(places.tolist(), documents, strict=True):
                texts[place] = document or b""
        state.documents |= zip(ids.tolist(), texts, strict=True)
        nodes = self.stage.find(times, ids, parts)
        state.nodes, found = self.joined.step(state.nodes, nodes)
        by_time = np.argsort(np.maximum(found.left_times, found.right_times), kind="stable")
        found = found.taken(by_time)
        early = np.minimum(found.left_times, found.right_times)
        late = np.maximum(found.left_times, found.right_times)
        columns = {TS: to_arrow(late), START_TS: to_arrow(early)}
        if len(found):
            columns |= written_rows(self.query, found, state.documents)
        _drop_gone(state)
        return state, self._rows(columns, len(found))

    def _rows(self, columns: dict[str, pa.Array], count: int) -> pa.RecordBatch:
        if not count:
            return pa.RecordBatch.from_pylist([], self.output_schema)
        cast = [columns[each.name].cast(each.type) for each in self.output_schema]
        return pa.RecordBatch.from_arrays(cast, schema=self.output_schema)

    def write(self, state: JoinStreamsState) -> bytes:
        """Write the documents of the window and their nodes."""
        kept = [
            pa.array(state.documents.keys(), pa.int64()),
            pa.array(state.documents.values(), pa.binary()),
        ]
        rows = pa.RecordBatch.from_arrays(kept, schema=_KEPT)
        name = type(self).__name__
        nodes = self.joined.write(state.nodes)
        return join_parts([nodes, write_rows(name, rows, {"next_id": state.next_id})])

    def read(self, written: bytes) -> JoinStreamsState:
        """Read what was written; every document with nodes has to be there."""
        name = type(self).__name__
        nodes, kept = parts_of(name, written, 2)
        rows, facts = read_rows(name, kept, _KEPT)
        ids = filled(rows.column(0), "numbers of documents")
        require_ascending(ids, "numbers of documents")
        require(rows.column(1).null_count == 0, "a document that is null")
        state = self.joined.read(nodes)
        there = _ids_of(state)
        require(np.array_equal(ids, there), "nodes of other documents than there are")
        require(len(ids) == 0 or int(ids[-1]) < facts["next_id"], "a document of the future")
        documents = dict(zip(ids.tolist(), rows.column(1).to_pylist(), strict=True))
        return JoinStreamsState(state, documents, facts["next_id"])

    def size(self, state: JoinStreamsState) -> Size:
        """Return how many documents and values there are, and the bytes of all."""
        nodes = self.joined.size(state.nodes)
        return Size(nodes.tuples, nodes.bytes + sum(map(len, state.documents.values())))


def _merged(inputs: tuple[pa.RecordBatch, ...]) -> tuple[Int64s, Int64s]:
    """Return the times of the rows of all inputs, ascending, and which row each is."""
    times = [filled(rows.column(TS), "times of documents") for rows in inputs]
    together = np.concatenate(times)
    order = np.argsort(together, kind="stable")
    return together[order], order


def _ids_of(state: DocumentJoinState) -> Int64s:
    log = state.log
    places = np.arange(log.facts[FIRST_DOCUMENT], log.facts[NEXT_DOCUMENT])
    return np.asarray(log.ids[places & (len(log.ids) - 1)])


def _drop_gone(state: JoinStreamsState) -> None:
    """Forget documents that the join has forgotten; they came in order."""
    ids = _ids_of(state.nodes)
    first = int(ids[0]) if len(ids) else state.next_id
    for number in list(state.documents):
        if number >= first:
            break
        del state.documents[number]
