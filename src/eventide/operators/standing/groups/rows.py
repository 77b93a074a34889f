"""The rows of groups, from the words that kernels wrote."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pyarrow as pa

from eventide.accumulators.buckets import bucket_values
from eventide.accumulators.columns import decimal_column
from eventide.accumulators.json_lists import listed_as_json
from eventide.accumulators.moments import Spread, spread
from eventide.accumulators.sums import IntegerSum, too_large
from eventide.arrays import to_arrow
from eventide.kernels.compiled import Bools, Int64s
from eventide.kernels.groups import reading
from eventide.operators.standing.groups.plan import Reader
from eventide.operators.standing.groups.texts import Texts
from eventide.operators.standing.words import as_values
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
            return _deviations(reader.aggregate.function, own)
        case reading.BUCKET_QUANTILE:
            return pa.array(bucket_values(own[0]), mask=None if valid is None else ~valid)
        case _:
            return to_arrow(own[0])


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


def _deviations(function: str, words: Int64s) -> pa.Array:
    sums = words[1:].view(np.float64)
    known: Spread = next(each for each in get_args(Spread) if each == function)
    return spread(known, words[0], (sums[0], sums[1]), (sums[2], sums[3]))


def ranking(words: Int64s, kind: pa.DataType, texts: Texts | None) -> pa.Array:
    """Return lists of values and counts as JSON text, from their lengths and contents."""
    lengths, values, counts = words[0], words[1::2].T, words[2::2].T
    listed = np.arange(values.shape[1]) < lengths[:, None]
    found = values[listed]
    named = texts.named(found) if texts is not None else as_values(found, kind)
    return listed_as_json(lengths, named, to_arrow(counts[listed]))
