"""Keys as two words, which tables in kernels look up in place of values of any type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import one_spelling
from eventide.accumulators.kept import opened_lists
from eventide.arrays import NUMBERS, to_arrow, to_numpy
from eventide.kernels.compiled import Bools, Int64s, frozen
from eventide.kernels.fingerprints import hash_bytes_twice, hash_words_twice
from eventide.kernels.hashing import Hashes

_SECOND_SEED = np.uint64(0xD6E8FEB86659FD93)
_ALL_VALID = frozen(np.zeros(0, np.bool_))
_NO_BYTES = np.zeros(0, np.uint8)
# By number: types of Arrow are slow to look up.
_BYTES = frozenset(kind.id for kind in (pa.string(), pa.binary()))
_TIMES = (pa.date32(), pa.date64(), pa.time32("s"), pa.time64("us"))
_INSTANTS = (pa.timestamp("us"), pa.duration("us"))
_NUMBERS = (pa.bool_(), pa.float16(), *NUMBERS)
_WORDS = frozenset(kind.id for kind in (*_NUMBERS, *_TIMES, *_INSTANTS))


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """Two words for each row, equal if all key values are equal; nulls are equal.

    For one column of numbers, booleans or times the words are the value itself. Otherwise they
    are two hashes: among a billion different keys, two have the same 128 bits with a chance of
    one in 10^20.
    """

    first: Int64s
    second: Int64s
    null: Bools
    """Whether any of the key values is null."""

    def __len__(self) -> int:
        return len(self.first)


def fingerprints(columns: Sequence[pa.Array], length: int) -> Fingerprints:
    """Return the fingerprints of rows by their key columns; without columns all are equal."""
    null = np.zeros(length, np.bool_)
    for column in columns:
        if column.null_count:
            null |= nulls_of(column)
    return Fingerprints(*key_words(columns, length), null)


def key_words(columns: Sequence[pa.Array], length: int) -> tuple[Int64s, Int64s]:
    """Return the two words of fingerprints."""
    if not columns:
        zeros = frozen(np.zeros(length, np.int64))
        return zeros, zeros
    if len(columns) == 1 and columns[0].type.id in _WORDS:
        column = one_spelling(columns[0])
        values, null = _words(column), np.zeros(length, np.bool_)
        if column.null_count:
            null = nulls_of(column)
            values = np.where(null, 0, values)
        return frozen(values), frozen(null.astype(np.int64))
    words = np.empty((2, length), np.uint64)
    first, second = words
    first[:], second[:] = 0, _SECOND_SEED
    for column in columns:
        _mix(column, first, second)
    found = words.view(np.int64)
    found.setflags(write=False)
    return found[0], found[1]


def nulls_of(column: pa.Array) -> Bools:
    """Return which values are null."""
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False))


def _words(column: pa.Array) -> Int64s:
    """Return values of up to 64 bits as words; the word of a null is arbitrary."""
    kind = column.type
    if pa.types.is_temporal(kind):
        column = column.view(pa.int64()) if kind.bit_width == 64 else column.view(pa.int32())
    if pa.types.is_floating(kind):
        filled = column.cast(pa.float64()).fill_null(0.0)
        return np.asarray(filled.to_numpy(zero_copy_only=False)).view(np.int64)
    if column.null_count:
        column = column.fill_null(False if pa.types.is_boolean(kind) else 0)
    return np.asarray(column.to_numpy(zero_copy_only=False)).astype(np.int64)


def list_bytes(lists: pa.Array) -> pa.Array:
    """Return bytes for each list, equal for equal ones: the fingerprints of its values."""
    values, bounds = opened_lists(lists)
    each = fingerprints([values], len(values))
    data = np.column_stack((each.first, each.second)).tobytes()
    offsets = (16 * bounds).astype(np.int32)
    valid = to_arrow(lists.is_valid().to_numpy(zero_copy_only=False)).buffers()[1]
    buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(lists), buffers)


def as_bytes(column: pa.Array) -> pa.Array:
    """Return texts or bytes that are equal if the values of a column are."""
    if pa.types.is_decimal(column.type):
        return column.cast(pa.string())
    return list_bytes(column) if pa.types.is_list(column.type) else column.cast(pa.binary())


def _mix(column: pa.Array, first: Hashes, second: Hashes) -> None:
    """Mix a column into the hashes of its rows."""
    if not len(column):
        return
    valid = _ALL_VALID
    if column.null_count:
        valid = frozen(to_numpy(column.is_valid()))
    kind = column.type.id
    if kind in _WORDS:
        hash_words_twice(frozen(_words(one_spelling(column))), valid, first, second)
        return
    if kind not in _BYTES:
        column = as_bytes(column)
    _, offsets_buffer, data_buffer = column.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32, len(column) + 1, 4 * column.offset)
    data = _NO_BYTES if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    hash_bytes_twice(frozen(offsets), frozen(data), valid, first, second)
