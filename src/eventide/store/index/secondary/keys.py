"""The entries of an index, (value, ts, seq): how they are ordered, hashed and searched."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.accumulators.columns import decimal_halves, floats, int64s, one_spelling
from eventide.interrupts import SORTED_AT_ONCE, interruptible_if_long
from eventide.kernels.compiled import Bools, Int32s, Int64s, Numbers, frozen
from eventide.kernels.hashing import Hashes, hash_bytes, hash_words

NAMES = ("value", "ts", "seq")
"""The columns of entries; times are plain microseconds."""

ALL_VALID: Bools = frozen(np.empty(0, np.bool_))
BELOW_SIGN = np.int64(2**63 - 1)


def entries_of(values: pa.Array, ts: Int64s, seq: Int64s) -> pa.RecordBatch:
    """Return the entries of rows in any order, sorted, the nulls left out."""
    columns = [one_spelling(values), pa.array(ts), pa.array(seq)]
    entries = pa.RecordBatch.from_arrays(columns, NAMES)
    present = entries.filter(values.is_valid()) if values.null_count else entries
    return interruptible_if_long(sorted_entries, len(present), SORTED_AT_ONCE)(present)


def joined(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return sorted parts as one, sorted."""
    return parts[0] if len(parts) == 1 else sorted_entries(pa.concat_batches(parts))


def sorted_entries(entries: pa.RecordBatch) -> pa.RecordBatch:
    """Return entries in order of (value, ts, seq)."""
    keys = sort_keys(entries["value"])
    ts, seq = int64s(entries["ts"]), int64s(entries["seq"])
    # Events usually come in order of time: then a stable sort by value alone is enough.
    order = np.argsort(keys, kind="stable")
    if not ties_ascend(keys[order], ts[order], seq[order]):
        order = np.lexsort((seq, ts, keys))
    return entries.take(pa.array(order))


def ties_ascend(keys: Int64s, ts: Int64s, seq: Int64s) -> bool:
    """Whether entries with equal keys ascend by (ts, seq); keys ascend."""
    ties = np.flatnonzero(keys[1:] == keys[:-1])
    this, after = ties, ties + 1
    later = (ts[after] == ts[this]) & (seq[after] >= seq[this])
    return bool(np.all(later | (ts[after] > ts[this])))


def sort_keys(values: pa.Array) -> Int64s:
    """Return numbers that compare as the values do; no nulls, floats normalised."""
    if pa.types.is_floating(values.type):
        bits = floats(values).view(np.int64)
        # The bits of negative doubles are in descending order.
        keys: Int64s = bits ^ ((bits >> 63) & BELOW_SIGN)
        return keys
    if is_number(values.type):
        return int64s(values)
    # Only distinct values are sorted: text attributes often repeat themselves.
    encoded = values.dictionary_encode()
    ranks = np.empty(len(encoded.dictionary), np.int64)
    ranks[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(ranks))
    codes: Int32s = encoded.indices.to_numpy()
    return ranks[codes]


def is_number(arrow: pa.DataType) -> bool:
    """Whether values of a type are one machine word each."""
    return not (pa.types.is_decimal(arrow) or is_text(arrow))


def is_text(arrow: pa.DataType) -> bool:
    """Whether values of a type are strings or byte strings."""
    return bool(pa.types.is_string(arrow) or pa.types.is_binary(arrow))


def numbers(values: pa.Array) -> Numbers:
    """Return values of one machine word as they are; no nulls."""
    return floats(values) if pa.types.is_floating(values.type) else int64s(values)


def position(values: pa.Array, bound: object, *, after: bool) -> int:
    """Return how many of ascending values are below a bound; with `after`, how many up to it."""
    if is_number(values.type):
        sought: Any = bound
        return int(np.searchsorted(numbers(values), sought, side="right" if after else "left"))
    bisect: Any = bisect_right if after else bisect_left
    return int(bisect(range(len(values)), bound, key=lambda row: values[row].as_py()))


def hashes_of(values: pa.Array) -> Hashes:
    """Return a hash of each value; no nulls, floats normalised."""
    hashes = np.zeros(len(values), np.uint64)
    if is_number(values.type):
        hash_words(frozen(numbers(values).view(np.int64)), ALL_VALID, hashes)
    elif pa.types.is_decimal(values.type):
        for half in decimal_halves(values):
            hash_words(half, ALL_VALID, hashes)
    else:
        offsets, content = text_arrays(values)
        hash_bytes(frozen(offsets), frozen(content), ALL_VALID, hashes)
    return hashes


def text_arrays(
    values: pa.Array,
) -> tuple[np.ndarray[Any, np.dtype[np.int32]], np.ndarray[Any, np.dtype[np.uint8]]]:
    """Return where each string or byte string begins in the bytes, with the end, and the bytes."""
    _, ends, content = values.buffers()
    offsets = np.frombuffer(ends, np.int32)[values.offset : values.offset + len(values) + 1]
    return offsets, np.frombuffer(content or b"", np.uint8)
