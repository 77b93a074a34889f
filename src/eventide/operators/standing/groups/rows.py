"""The rows of groups, from the words that kernels wrote."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.accumulators.columns import decimal_column
from eventide.accumulators.sums import IntegerSum, too_large
from eventide.kernels.aggregates.sums import sample_variance
from eventide.kernels.compiled import Bools, Int64s
from eventide.kernels.groups import reading
from eventide.operators.standing.groups.plan import Reader
from eventide.operators.standing.groups.texts import Texts
from eventide.operators.standing.words import as_values, bucket_values
from eventide.plan.render import render

DOUBLES = (
    reading.DOUBLE_SUM,
    reading.INTEGER_MEAN,
    reading.DOUBLE_MEAN,
    reading.INTEGER_QUANTILE,
    reading.DOUBLE_QUANTILE,
)
LISTS = (reading.FREQUENT, reading.FREQUENT_TEXT)
EXTREMES = (reading.SMALLEST, reading.LARGEST, reading.LEAST_LIVING, reading.GREATEST_LIVING)


def finished(reader: Reader, place: int, words: Int64s, texts: Texts | None) -> pa.Array:
    """Return an aggregate's column from words by column; it is the aggregate number `place`."""
    own = words[reader.word : reader.word + reader.width]
    nulls = (words[0] >> place) & 1
    valid = nulls == 0 if nulls.any() else None
    if reader.kind in DOUBLES:
        return pa.array(own[0].view(np.float64), mask=None if valid is None else ~valid)
    if reader.kind in LISTS:
        return ranking(own, reader.argument.arrow, texts if reader.kind != LISTS[0] else None)
    if reader.kind in EXTREMES:
        return as_values(own[0], reader.argument.arrow, valid)
    match reader.kind:
        case reading.INTEGER_SUM:
            return _sums(reader, own, valid)
        case reading.DEVIATION:
            return _deviations(own)
        case reading.BUCKET_QUANTILE:
            return pa.array(bucket_values(own[0]), mask=None if valid is None else ~valid)
        case _:
            return pa.array(own[0])


def _sums(reader: Reader, words: Int64s, valid: Bools | None) -> pa.Array:
    aggregate, scale = reader.aggregate, reader.argument.scale
    decimal = reader.argument.kind == "decimal"
    total = IntegerSum(render(aggregate), aggregate.span, scale if decimal else None)
    if decimal:
        present = np.ones(words.shape[1], np.bool_) if valid is None else valid
        return total.checked_decimals(decimal_column(words[0], words[1], present, scale))
    if np.any(words[0] != words[1] >> 63):
        raise too_large(total, "int64")
    return pa.array(words[1], mask=None if valid is None else ~valid)


def _deviations(words: Int64s) -> pa.Array:
    sums = words[1:].view(np.float64)
    variance = np.empty(words.shape[1])
    sample_variance(words[0], (sums[0], sums[1]), (sums[2], sums[3]), variance)
    with np.errstate(invalid="ignore"):
        return pa.array(np.sqrt(variance), mask=words[0] < 2)


def ranking(words: Int64s, kind: pa.DataType, texts: Texts | None) -> pa.Array:
    """Return lists of values and counts as JSON text, from their lengths and contents."""
    lengths, values, counts = words[0], words[1::2].T, words[2::2].T
    listed = np.arange(values.shape[1]) < lengths[:, None]
    found = values[listed]
    named = texts.named(found) if texts is not None else as_values(found, kind)
    return listed_as_json(lengths, named, pa.array(counts[listed]))


def listed_as_json(lengths: Int64s, values: pa.Array, counts: pa.Array) -> pa.Array:
    """Return lists of pairs as JSON text, given how many of the pairs belong to each."""
    amounts = counts.cast(pa.string())
    pairs = pc.binary_join_element_wise("[", as_json(values), ", ", amounts, "]", "")
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), pairs), ", ")
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
