"""Concatenate batches, and number their keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.accumulators.columns import one_spelling
from eventide.errors import EvaluationError
from eventide.kernels.aggregates.extremes import first_by_group
from eventide.kernels.compiled import Int32s, frozen
from eventide.operators.fingerprints import list_bytes

BLOCK_BYTES = 128 << 20
"""Batches are not concatenated beyond this size: a column of text holds at most 2 GiB."""


_FEWER = "select fewer or shorter columns, or keep less in a window"


@contextmanager
def results_that_fit() -> Iterator[None]:
    """Say what is too much if the rows of one step hold more text than a column can."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowCapacityError) as error:
        if "overflow" not in str(error) and not isinstance(error, pa.ArrowCapacityError):
            raise
        message = "the rows of one step hold more than 2 GiB of text in a column"
        raise EvaluationError(message, hint=_FEWER) from error


def concat_batches(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows of all batches as one batch."""
    filled = [batch for batch in batches if batch.num_rows]
    if len(filled) == 1:
        return filled[0]
    if not filled:
        return pa.RecordBatch.from_pylist([], schema=schema)
    return pa.concat_batches(filled)


def in_blocks(
    batches: Iterable[pa.RecordBatch], size: int, most_bytes: int = BLOCK_BYTES
) -> Iterator[pa.RecordBatch]:
    """Yield the rows in few batches, of at least `size` rows or `most_bytes`, except the last."""
    waiting: list[pa.RecordBatch] = []
    rows = held = 0
    for batch in batches:
        waiting.append(batch)
        rows, held = rows + batch.num_rows, held + batch.nbytes
        if rows >= size or held >= most_bytes:
            yield concat_batches(waiting, batch.schema)
            waiting, rows, held = [], 0, 0
    if waiting:
        yield concat_batches(waiting, waiting[0].schema)


def encode_keys(columns: Sequence[pa.Array], length: int) -> tuple[Int32s, list[pa.Array], int]:
    """Number the distinct keys; return the code of each row, the key columns by code, the count.

    Null is a key like any other. Without columns, all rows share one key.
    """
    if not columns:
        return frozen(np.zeros(length, np.int32)), [], 1
    columns = [one_spelling(column) for column in columns]
    codes, count = encode_column(columns[0])
    for column in columns[1:]:
        more, width = encode_column(column)
        codes, count = encode_column(pa.array(codes.astype(np.int64) * width + more))
    first = np.full(count, -1, np.int64)
    first_by_group(codes, first)
    # The first row of each code provides the values of its key.
    return codes, [column.take(pa.array(first)) for column in columns], count


def encode_more(
    known: Sequence[pa.Array], columns: Sequence[pa.Array], length: int
) -> tuple[Int32s, list[pa.Array], int]:
    """Number keys as `encode_keys` does, the known ones (all different) first."""
    if len(columns) == 1 and len(known[0]) and columns[0].type in (pa.string(), pa.int64()):
        found = pc.index_in(columns[0], value_set=known[0])
        if not found.null_count:
            return frozen(found.to_numpy()), list(known), len(known[0])
    if not columns:
        return frozen(np.zeros(length, np.int32)), [], 1
    old = len(known[0])
    both = [pa.concat_arrays(pair) for pair in zip(known, columns, strict=True)]
    codes, keys, count = encode_keys(both, old + length)
    return frozen(codes[old:]), keys, count


def encode_column(column: pa.Array) -> tuple[Int32s, int]:
    """Number the distinct values of a column in the order in which they first occur."""
    if pa.types.is_list(column.type):
        column = list_bytes(column)
    encoded = column.dictionary_encode(null_encoding="encode")
    return frozen(encoded.indices.to_numpy(zero_copy_only=False)), len(encoded.dictionary)
