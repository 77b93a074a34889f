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
    if not columns:
        zeros = frozen(np.zeros(length, np.int64))
        return Fingerprints(zeros, zeros, null)
    for column in columns:
        if column.null_count:
            null |= column.is_null().to_numpy(zero_copy_only=False)
    plain = [one_spelling(column) for column in columns]
    if len(plain) == 1 and plain[0].type.id in _WORDS:
        values = _words(plain[0])
        second = null.astype(np.int64)
        if plain[0].null_count:
            values = np.where(null, 0, values)
        return Fingerprints(frozen(values), frozen(second), null)
    words = np.empty((2, length), np.uint64)
    words[0], words[1] = 0, _SECOND_SEED
    first, second_hash = words
    for column in plain:
        _mix(column, first, second_hash)
    first_words, second_words = frozen(words.view(np.int64))
    return Fingerprints(first_words, second_words, null)


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
    valid = _ALL_VALID
    if column.null_count:
        valid = frozen(to_numpy(column.is_valid()))
    if column.type.id in _WORDS:
        hash_words_twice(frozen(_words(column)), valid, first, second)
        return
    if column.type.id not in _BYTES:
        column = as_bytes(column)
    _, offsets_buffer, data_buffer = column.buffers()
    start = column.offset
    offsets = np.frombuffer(offsets_buffer, np.int32)[start : start + len(column) + 1]
    data = _NO_BYTES if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    hash_bytes_twice(frozen(offsets), frozen(data), valid, first, second)
