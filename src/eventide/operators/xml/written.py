"""The written form of the documents of a window; views are made again when they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.kernels.compiled import Int64s
from eventide.kernels.xml.document_log import (
    FIRST_DOCUMENT,
    FIRST_ROW,
    FIRST_VALUE,
    NEXT_DOCUMENT,
    NEXT_ROW,
    NEXT_VALUE,
    DocumentLog,
)
from eventide.kernels.xml.join_documents import NewDocuments
from eventide.operators.checking import (
    filled,
    require,
    require_ascending,
    require_ascending_in_runs,
    require_within,
)
from eventide.operators.state import join_parts, parts_of, read_rows, write_rows
from eventide.operators.xml.asked_edges import AskedEdges
from eventide.schema import MAX_TS_US, MIN_TS_US

_INT64, _INT32 = pa.int64(), pa.int32()
_DOCUMENTS = pa.schema([(name, _INT64) for name in ("time", "id", "rows", "values")])
_ROWS = pa.schema([(name, _INT32) for name in ("edge", "upper", "lower")])
_VALUES = pa.schema([("node", _INT32), ("first", _INT64), ("second", _INT64)])
_EDGES = pa.schema([("edge", _INT32), ("path", pa.string())])
_MOST_NODES = 2**31 - 1
Array = npt.NDArray[Any]


def write_log(name: str, log: DocumentLog, edges: AskedEdges) -> bytes:
    """Write the documents of a log; edges by their paths, for they may get other numbers."""
    facts = log.facts
    places = np.arange(facts[FIRST_DOCUMENT], facts[NEXT_DOCUMENT]) & (len(log.times) - 1)
    of_rows = np.arange(facts[FIRST_ROW], facts[NEXT_ROW]) & (len(log.edges) - 1)
    of_values = np.arange(facts[FIRST_VALUE], facts[NEXT_VALUE]) & (len(log.before) - 1)
    words = log.text_words[log.value_texts[of_values]]
    named = edges.edges
    texts = [pa.array(list(named), _INT32), pa.array(map(str, named.values()), pa.string())]
    tables = (
        _batch(
            _DOCUMENTS,
            log.times[places],
            log.ids[places],
            (log.row_ends - log.row_starts)[places],
            (log.value_ends - log.value_starts)[places],
        ),
        _batch(_ROWS, log.edges[of_rows], log.uppers[of_rows], log.lowers[of_rows]),
        _batch(_VALUES, log.value_nodes[of_values], words[:, 0], words[:, 1]),
        pa.RecordBatch.from_arrays(texts, schema=_EDGES),
    )
    return join_parts([write_rows(name, table, {}) for table in tables])


def read_log(name: str, written: bytes, edges: AskedEdges) -> NewDocuments:
    """Read the documents of a log; rows of edges that nobody asks for any more are left out."""
    parts = parts_of(name, written, 4)
    schemas = (_DOCUMENTS, _ROWS, _VALUES, _EDGES)
    documents, rows, values, named = (
        read_rows(name, part, schema)[0] for part, schema in zip(parts, schemas, strict=True)
    )
    times, ids, row_counts, value_counts = _columns(documents)
    edge, upper, lower = _columns(rows)
    node, first, second = _columns(values)
    require_ascending(times, "times of documents")
    require_within(times, MIN_TS_US, MAX_TS_US + 1, "times of documents")
    require_ascending(ids, "numbers of documents")
    row_starts = _starts(row_counts, len(edge), "rows")
    value_starts = _starts(value_counts, len(node), "values")
    for nodes in (upper, lower, node):
        require_within(nodes, 0, _MOST_NODES, "nodes")
    require_ascending_in_runs(lower, row_starts[:-1][row_counts > 0], "nodes of a document")
    numbers = {str(each): number for number, each in edges.edges.items()}
    old = filled(named.column("edge"), "edges")
    require(named.column("path").null_count == 0, "a path that is null")
    most = int(max(edge.max(initial=-1), old.max(initial=-1))) + 1
    require_within(old, 0, most, "edges")
    require_within(edge, 0, most, "edges")
    require(len({*old.tolist()}) == len(old), "an edge with two paths")
    new_number = np.full(most, -1, np.int32)
    new_number[old] = [numbers.get(path, -1) for path in named.column("path").to_pylist()]
    edge = new_number[edge]
    kept = edge >= 0
    before = np.concatenate([[0], np.cumsum(kept)])
    return NewDocuments(
        times,
        ids,
        before[row_starts],
        edge[kept],
        upper[kept],
        lower[kept],
        value_starts,
        node,
        first,
        second,
    )


def _batch(schema: pa.Schema, *columns: Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([to_arrow(column) for column in columns], schema=schema)


def _columns(rows: pa.RecordBatch) -> Sequence[Array]:
    return [filled(column, "numbers").copy() for column in rows.columns]


def _starts(counts: Int64s, length: int, what: str) -> Int64s:
    require_within(counts, 0, length + 1, f"counts of {what}")
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    require(int(starts[-1]) == length, f"{what} of {starts[-1]} documents, not {length}")
    return starts
