"""Divide states by key, and unite them: how queries that run as one plan part and meet.

    rows for query   1  2  1  3                 key of the state: ("$query", car)

    state  [ 1·a  1·b  2·a  3·c ]  ── of_keys ──  [ 1·a  1·b ]  [ 2·a  3·c ]
                                  ──  united  ──

One column of a key has the number of the query that a row is for. Rows of different queries never
meet, so the part of a state that a query needs is that of its keys, and parts that stand at the
same instant go on as one. Facts that are not by key are no part of an answer: they say when to tidy
up, or in which order to search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import int64s
from eventide.arrays import to_arrow
from eventide.errors import UnsupportedError
from eventide.kernels.compiled import Bools
from eventide.operators.columns import concat_batches
from eventide.plan.expressions import Column
from eventide.plan.tree import Keys, Plan
from eventide.schema import QUERY_NUMBER, TS

Wanted = Callable[[pa.Array], Bools]
"""Which of some numbers of queries are wanted."""


def has_query(name: str) -> bool:
    """Whether a column has numbers of queries; behind a name that is taken stands a prime.

    >>> [name for name in ("$query", "$query''", "query") if has_query(name)]
    ['$query', "$query''"]
    """
    return name.rstrip("'") == QUERY_NUMBER


def query_place(node: Plan) -> int:
    """Return which of the keys of a node is the number of the query."""
    lists: Sequence[Keys] = (node.state_keys or (), *node.compared)
    for keys in lists:
        for place, key in enumerate(keys):
            if isinstance(key, Column) and has_query(key.name):
                return place
    raise undivided(type(node).__name__, f"its keys have no {QUERY_NUMBER}")


def rows_of(rows: pa.RecordBatch, wanted: Wanted) -> pa.RecordBatch:
    """Return the rows for some queries."""
    for name in rows.schema.names:
        if has_query(name):
            return rows_where(rows, rows.column(name), wanted)
    raise undivided(", ".join(rows.schema.names), f"no column is {QUERY_NUMBER}")


def rows_where(rows: pa.RecordBatch, numbers: pa.Array, wanted: Wanted) -> pa.RecordBatch:
    """Return the rows with wanted numbers."""
    return rows.filter(to_arrow(wanted(numbers)))


def merged_by(rows: pa.RecordBatch, other: pa.RecordBatch, name: str = TS) -> pa.RecordBatch:
    """Return the rows of both in order of a column, by which each is in order."""
    together = concat_batches([rows, other], rows.schema)
    return together.take(to_arrow(np.argsort(int64s(together.column(name)), kind="stable")))


def undivided(what: str, why: str) -> UnsupportedError:
    """Return the error for a state that cannot be divided, or united."""
    return UnsupportedError(f"the state of {what} cannot be divided by query: {why}")
