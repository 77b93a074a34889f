"""Aggregates that need the values themselves: quantiles, distinct values, lists.

The partial is the list of values in order of time, without nulls where a null is no value. An
answer is computed from the values of a frame at once, so these aggregates are as exact as their
definitions.

Quantile, DistinctCount, Frequent  from the places of values in their order
TextList                           all values, as one text
ValueList                          all values as a list, nulls too
DistinctOf                         any aggregate of one value, over each different value once
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.accumulators.buckets import bucket_keys, bucket_values
from eventide.accumulators.columns import (
    decimal_halves,
    floats,
    int64s,
    list_of,
    one_spelling,
)
from eventide.accumulators.contract import Accumulator, Columns, Frames, Groups
from eventide.accumulators.json_lists import listed_as_json
from eventide.accumulators.picks import holds, take_rows
from eventide.arrays import to_arrow
from eventide.kernels.aggregates.ranked import count_ranks, most_frequent_ranks, ranks_at_share
from eventide.kernels.compiled import Floats, Int64s, frozen
from eventide.kernels.ordering import ranges

AT_ONCE = 4_000_000
"""Frames that overlap are written out for so many values at a time."""
SHORT_DECIMAL = 18
"""Decimals of so many digits are integers of 64 bits."""


@dataclass(frozen=True)
class KeptValues(Accumulator):
    """An aggregate whose partial is the list of values."""

    type: pa.DataType

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """The types of the partial columns."""
        return (list_of(self.type),)

    @abstractmethod
    def over(self, values: pa.Array, frames: Frames) -> pa.Array:
        """Return the aggregate of the values of each frame; no value is null."""

    def lift(self, *values: pa.Array) -> list[pa.Array]:
        """Return a list of one value for each row, and an empty one for a null."""
        valid = values[0].is_valid().to_numpy(zero_copy_only=False)
        lengths = valid.astype(np.int64)
        return [listed(one_spelling(values[0].drop_null()), lengths, self.types[0])]

    def by_group(self, partials: Columns, groups: Groups) -> list[pa.Array]:
        """Put the values of each group one behind another."""
        order = np.argsort(groups.of_row, kind="stable")
        values, bounds = opened_lists(partials[0])
        lengths = np.diff(bounds)[order]
        inside = values.take(to_arrow(ranges(bounds[:-1][order], lengths)))
        totals = np.bincount(groups.of_row[order], weights=lengths, minlength=groups.count)
        return [listed(inside, totals.astype(np.int64), self.types[0])]

    def by_frame(self, partials: Columns, frames: Frames) -> list[pa.Array]:
        """Put the values of each frame one behind another."""
        values, inner = self.opened(partials, frames)
        lengths = inner.right - inner.left
        inside = values.take(to_arrow(ranges(inner.left, lengths)))
        return [listed(inside, lengths, self.types[0])]

    def opened(self, partials: Columns, frames: Frames) -> tuple[pa.Array, Frames]:
        """Return all values, and the frames of values that frames of partials stand for."""
        values, bounds = opened_lists(partials[0])
        return values, Frames(frozen(bounds[frames.left]), frozen(bounds[frames.right]))

    def of_frames(self, partials: Columns, frames: Frames) -> pa.Array:
        """Return the aggregates of frames."""
        return self.over(*self.opened(partials, frames))

    def finish(self, partials: Columns) -> pa.Array:
        """Return the aggregates."""
        values, bounds = opened_lists(partials[0])
        return self.over(values, Frames(frozen(bounds[:-1]), frozen(bounds[1:])))


def listed(
    values: pa.Array, lengths: Int64s, kind: pa.DataType, *, empty_is_null: bool = False
) -> pa.Array:
    """Return values as lists of these lengths."""
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    mask = to_arrow(lengths == 0) if empty_is_null else None
    return pa.ListArray.from_arrays(to_arrow(offsets), values, type=kind, mask=mask)


def opened_lists(lists: pa.Array) -> tuple[pa.Array, Int64s]:
    """Return the values of lists, and where those of each begin, and one more."""
    bounds = lists.offsets.to_numpy().astype(np.int64)
    return lists.values.slice(bounds[0], bounds[-1] - bounds[0]), bounds - bounds[0]


def ranked(values: pa.Array) -> tuple[Int64s, pa.Array]:
    """Return the rank of each value, and the different values in order; a NaN is the largest."""
    encoded = values.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    places = np.empty(len(order), np.int64)
    places[order.to_numpy()] = np.arange(len(order))
    ranks = places[encoded.indices.to_numpy(zero_copy_only=False)]
    return frozen(ranks), encoded.dictionary.take(order)


def as_numbers(values: pa.Array) -> Floats:
    """Return numbers as doubles, decimals by one division."""
    if pa.types.is_decimal(values.type) and values.type.precision <= SHORT_DECIMAL:
        whole: Int64s = decimal_halves(values)[1]
        return whole / 10.0 ** int(values.type.scale)
    return floats(values)


Share = Literal["quantile_cont", "quantile_disc", "approx_quantile"]
_FORMS: dict[Share, int] = {"quantile_cont": 0, "quantile_disc": 1, "approx_quantile": 2}


@dataclass(frozen=True)
class Quantile(KeptValues):
    """The value at a share of the values in order: between two values, or one of them."""

    function: Share
    share: float

    def over(self, values: pa.Array, frames: Frames) -> pa.Array:
        """Return the quantile of each frame; null for one without values."""
        if self.function == "approx_quantile":
            values = to_arrow(bucket_keys(values))
        ranks, distinct = ranked(values)
        low, high = (np.empty(len(frames.left), np.int64) for _ in range(2))
        between, tree = np.empty(len(low)), np.zeros(len(distinct) + 1, np.int64)
        form = _FORMS[self.function]
        ranks_at_share(ranks, frames.left, frames.right, self.share, form, tree, low, high, between)
        if self.function == "quantile_disc":
            return take_rows(distinct, low)
        if self.function == "approx_quantile":
            return take_rows(to_arrow(bucket_values(int64s(distinct))), low)
        numbers = np.append(as_numbers(distinct), np.nan)
        one, other = numbers[low], numbers[high]
        with np.errstate(invalid="ignore", over="ignore"):
            found = np.where(low == high, one, one + (other - one) * between)
        return pa.array(found, mask=low < 0)


@dataclass(frozen=True)
class DistinctCount(KeptValues):
    """How many different values there are."""

    def over(self, values: pa.Array, frames: Frames) -> pa.Array:
        """Return the count of each frame."""
        ranks, distinct = ranked(values)
        found = np.empty(len(frames.left), np.int64)
        count_ranks(ranks, frames.left, frames.right, np.zeros(len(distinct), np.int64), found)
        return to_arrow(found)


@dataclass(frozen=True)
class Frequent(KeptValues):
    """The most frequent values, of equally frequent ones the smaller: one, or a list of some."""

    count: int | None = None

    def over(self, values: pa.Array, frames: Frames) -> pa.Array:
        """Return the value of each frame, or the list of values and counts as JSON text."""
        ranks, distinct = ranked(values)
        shape = (len(frames.left), self.count or 1)
        found, times = np.empty(shape, np.int64), np.zeros(shape, np.int64)
        counts = np.zeros(len(distinct), np.int64)
        most_frequent_ranks(ranks, frames.left, frames.right, counts, found, times)
        if self.count is None:
            return take_rows(distinct, found[:, 0])
        there = found >= 0
        chosen = distinct.take(to_arrow(found[there]))
        return listed_as_json(there.sum(axis=1), chosen, to_arrow(times[there]))


@dataclass(frozen=True)
class TextList(KeptValues):
    """All values as one text, with a separator between them; null if there is none."""

    separator: str

    def over(self, values: pa.Array, frames: Frames) -> pa.Array:
        """Return the text of each frame."""
        lengths = frames.right - frames.left
        inside = values.take(to_arrow(ranges(frames.left, lengths)))
        lists = listed(inside, lengths, pa.list_(self.type))
        joined = pc.binary_join(lists, self.separator)
        return pc.if_else(to_arrow(lengths > 0), joined, pa.scalar(None, joined.type))


@dataclass(frozen=True)
class ValueList(KeptValues):
    """All values as a list, nulls too; null if there is none. Distinct: in order of first sight."""

    distinct: bool = False

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """The types of the partial columns."""
        return (pa.list_(self.type),)

    def lift(self, *values: pa.Array) -> list[pa.Array]:
        """Return a list of one value for each row; an empty one where a condition does not hold."""
        if len(values) == 1:
            return [listed(values[0], np.ones(len(values[0]), np.int64), self.types[0])]
        value, condition = values
        chosen = holds(condition)
        lengths = chosen.astype(np.int64)
        return [listed(value.filter(to_arrow(chosen)), lengths, self.types[0])]

    def over(self, values: pa.Array, frames: Frames) -> pa.Array:
        """Return the list of each frame."""
        parts = [self.apart(values, part) for part in in_parts(frames)]
        return pa.concat_arrays(parts) if parts else pa.array([], self.types[0])

    def apart(self, values: pa.Array, frames: Frames) -> pa.Array:
        """Return the lists of frames that are written out one behind another."""
        lengths = frames.right - frames.left
        places = ranges(frames.left, lengths)
        if self.distinct:
            owner, first = first_sights(one_spelling(values), places, lengths)
            places, lengths = places[first], np.bincount(owner[first], minlength=len(lengths))
        return listed(values.take(to_arrow(places)), lengths, self.types[0], empty_is_null=True)


@dataclass(frozen=True)
class DistinctOf(KeptValues):
    """Another aggregate, over each different value of a frame once, in order of first sight."""

    inner: Accumulator = field(kw_only=True)

    def over(self, values: pa.Array, frames: Frames) -> pa.Array:
        """Return the aggregate of each frame."""
        parts = [self.apart(values, part) for part in in_parts(frames)]
        return pa.concat_arrays(parts) if parts else self.inner.finish(self.inner.lift(values[:0]))

    def apart(self, values: pa.Array, frames: Frames) -> pa.Array:
        """Return the aggregate of frames that are written out one behind another."""
        lengths = frames.right - frames.left
        places = ranges(frames.left, lengths)
        owner, first = first_sights(values, places, lengths)
        lifted = self.inner.lift(values.take(to_arrow(places[first])))
        groups = Groups(frozen(owner[first]), len(lengths))
        return self.inner.finish(self.inner.by_group(lifted, groups))


def first_sights(values: pa.Array, places: Int64s, lengths: Int64s) -> tuple[Int64s, Int64s]:
    """Return whose each of the written-out values is, and which are the first of their kind."""
    owner = np.repeat(np.arange(len(lengths)), lengths)
    encoded = values.dictionary_encode(null_encoding="encode").indices
    codes = encoded.to_numpy(zero_copy_only=False)[places]
    width = int(codes.max(initial=0)) + 1
    _, first = np.unique(owner * width + codes, return_index=True)
    first.sort()
    return owner, first


def in_parts(frames: Frames) -> Iterator[Frames]:
    """Yield consecutive frames, as many at a time as fit in memory when they are written out."""
    total = np.cumsum(frames.right - frames.left)
    first = 0
    while first < len(total):
        before = total[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(total, before + AT_ONCE, side="right")))
        yield Frames(frames.left[first:last], frames.right[first:last])
        first = last
