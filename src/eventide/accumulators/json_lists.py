"""Lists of values and counts as JSON text: [["a", 3], ["b", 1]]."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.arrays import to_arrow
from eventide.kernels.compiled import Int64s


def listed_as_json(lengths: Int64s, values: pa.Array, counts: pa.Array) -> pa.Array:
    """Return lists of pairs as JSON text, given how many of the pairs belong to each."""
    amounts = counts.cast(pa.string())
    pairs = pc.binary_join_element_wise("[", as_json(values), ", ", amounts, "]", "")
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    joined = pc.binary_join(pa.ListArray.from_arrays(to_arrow(offsets), pairs), ", ")
    return pc.binary_join_element_wise("[", joined, "]", "")


def as_json(values: pa.Array) -> pa.Array:
    """Return values as JSON: numbers as they are, times and other words in quotes."""
    kind = values.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return values.cast(pa.string())
    if pa.types.is_floating(kind):
        plain = values.cast(pa.string())
        return pc.if_else(pc.is_finite(values), plain, _quoted(plain))
    if pa.types.is_binary(kind):
        values = pa.array([value.hex() for value in values.to_pylist()], pa.string())
    return _quoted(values.cast(pa.string()))


def _quoted(texts: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(texts, r'[\x00-\x1f"\\]')).as_py():
        distinct = texts.dictionary_encode()
        spelled = [json.dumps(text, ensure_ascii=False) for text in distinct.dictionary.to_pylist()]
        return pa.array(spelled, pa.string()).take(distinct.indices)
    return pc.binary_join_element_wise('"', texts, '"', "")
