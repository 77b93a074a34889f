"""The summary of one attribute, by type: its parts, made from rows and merged from entries.

Every type has a count of the values that are not null, and the smallest and largest of them,
null where there is none. Numbers also have the sums that the accumulators of queries work with:
`sum` and `squares` as pairs of doubles, and for integers and decimals `whole`, the exact sum in
128 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide.accumulators.columns import floats, int64s, validity
from eventide.accumulators.picks import take_rows
from eventide.kernels.aggregates.merges import (
    count_by_run,
    merge_counts,
    merge_extremes,
    merge_moments,
    merge_wholes,
    merge_wide_extremes,
)
from eventide.kernels.aggregates.proofs import find_least, merge_least
from eventide.kernels.aggregates.summaries import (
    summarise_decimals,
    summarise_floats,
    summarise_integers,
    summarise_keys,
)
from eventide.kernels.aggregates.texts import best_texts
from eventide.kernels.compiled import Floats, Int64s, Numbers, frozen
from eventide.schema import DataType

Word = TypeVar("Word", np.int64, np.float64)
Parts = tuple[tuple[str, pa.DataType], ...]

WHOLE: Parts = (("whole.high", pa.int64()), ("whole.low", pa.int64()))
MOMENTS: Parts = (
    ("sum.high", pa.float64()),
    ("sum.low", pa.float64()),
    ("squares.high", pa.float64()),
    ("squares.low", pa.float64()),
)

LEAST = "least"


class AttributeSummary(Protocol):
    """How an attribute is summarised."""

    @property
    def parts(self) -> Parts:
        """The names and types of the partial columns."""
        ...

    def summarise(self, values: pa.Array, bounds: Int64s) -> list[pa.Array]:
        """Return the parts of each run of values."""
        ...

    def merge(self, parts: Sequence[pa.Array], bounds: Int64s) -> list[pa.Array]:
        """Return the parts of each run of entries."""
        ...


def summary_of(argument: DataType, *, least: bool = False) -> AttributeSummary:
    """Return how an attribute of this type is summarised, floats with their least if asked for."""
    match argument.kind:
        case "float64":
            return FloatSummary(least)
        case "int64":
            return IntegerSummary()
        case "decimal":
            return DecimalSummary(argument.arrow)
        case "string" | "binary":
            return TextSummary(argument.arrow)
    return KeySummary(argument.arrow)


@dataclass(frozen=True, slots=True)
class FloatSummary:
    """Floats. A NaN is larger than every number; there is one zero and one NaN.

    A question may ask for the least as well, the smallest absolute value that is not zero. It is
    not stored: of entries it is known if all values have the same sign, else zero, which is less.
    """

    least: bool = False

    @property
    def parts(self) -> Parts:
        """The names and types of the partial columns."""
        own: Parts = ((LEAST, pa.float64()),) if self.least else ()
        return (*ordered_parts(pa.float64()), *MOMENTS, *own)

    def summarise(self, values: pa.Array, bounds: Int64s) -> list[pa.Array]:
        """Return the parts of each run of values."""
        (counts,), extremes = integer_rows(1, bounds), float_rows(2, bounds)
        moments, raw, valid = float_rows(4, bounds), raw_floats(values), validity(values)
        summarise_floats(raw, valid, bounds, counts, extremes, moments)
        found = self.columns(counts, extremes, moments)
        if self.least:
            (least,) = float_rows(1, bounds)
            find_least(raw, valid, bounds[:-1], bounds[1:], extremes, least)
            found.append(built(pa.float64(), len(least), None, least))
        return found

    def merge(self, parts: Sequence[pa.Array], bounds: Int64s) -> list[pa.Array]:
        """Return the parts of each run of entries."""
        (counts,), extremes = integer_rows(1, bounds), float_rows(2, bounds)
        smallest, largest = raw_floats(parts[1]), raw_floats(parts[2])
        merge_extremes(raw_integers(parts[0]), smallest, largest, bounds, counts, extremes)
        found = self.columns(counts, extremes, merged_moments(parts[3:7], bounds))
        if self.least:
            (least,) = float_rows(1, bounds)
            merge_least(raw_integers(parts[0]), raw_floats(parts[7]), bounds, least)
            found.append(built(pa.float64(), len(least), None, least))
        return found

    def least_of(self, parts: Sequence[pa.Array]) -> pa.Array:
        """Return the least of stored entries, as far as count and extremes tell it."""
        counts, smallest, largest = int64s(parts[0]), floats(parts[1]), floats(parts[2])
        known = np.where(smallest > 0.0, smallest, np.where(largest < 0.0, -largest, 0.0))
        empty = (counts == 0) | ((smallest == 0.0) & (largest == 0.0))
        return pa.array(np.where(empty, np.inf, known))

    def columns(self, counts: Int64s, extremes: Floats, moments: Floats) -> list[pa.Array]:
        """Return the parts that are stored, as Arrow columns."""
        return [*ordered_columns(counts, extremes, pa.float64()), *plain_columns(moments)]


@dataclass(frozen=True, slots=True)
class IntegerSummary:
    """Integers: an exact sum, and beside it the sums of them as doubles, for deviations."""

    @property
    def parts(self) -> Parts:
        """The names and types of the partial columns."""
        return (*ordered_parts(pa.int64()), *WHOLE, *MOMENTS)

    def summarise(self, values: pa.Array, bounds: Int64s) -> list[pa.Array]:
        """Return the parts of each run of values."""
        (counts,), extremes = integer_rows(1, bounds), integer_rows(2, bounds)
        wholes, moments = integer_rows(2, bounds), float_rows(4, bounds)
        raw, valid = raw_integers(values), validity(values)
        summarise_integers(raw, valid, bounds, counts, extremes, wholes, moments)
        sums = [*plain_columns(wholes), *plain_columns(moments)]
        return [*ordered_columns(counts, extremes, pa.int64()), *sums]

    def merge(self, parts: Sequence[pa.Array], bounds: Int64s) -> list[pa.Array]:
        """Return the parts of each run of entries."""
        (counts,), extremes = integer_rows(1, bounds), integer_rows(2, bounds)
        old_counts, smallest, largest = (raw_integers(part) for part in parts[:3])
        merge_extremes(old_counts, smallest, largest, bounds, counts, extremes)
        return [*ordered_columns(counts, extremes, pa.int64()), *merged_sums(parts[3:], bounds)]


@dataclass(frozen=True, slots=True)
class DecimalSummary:
    """Decimals: integers of 128 bits, and beside them their sums as doubles."""

    type: pa.DataType

    @property
    def parts(self) -> Parts:
        """The names and types of the partial columns."""
        return (*ordered_parts(self.type), *WHOLE, *MOMENTS)

    def summarise(self, values: pa.Array, bounds: Int64s) -> list[pa.Array]:
        """Return the parts of each run of values."""
        (counts,), extremes = integer_rows(1, bounds), integer_rows(4, bounds)
        wholes, moments = integer_rows(2, bounds), float_rows(4, bounds)
        valid = validity(values)
        summarise_decimals(raw_integers(values, 2), valid, bounds, counts, extremes, wholes)
        rounded = float_rows(2, bounds)  # extremes too, but not exact
        summarise_floats(floats(values), valid, bounds, counts, rounded, moments)
        sums = [*plain_columns(wholes), *plain_columns(moments)]
        return [*self.ordered_columns(counts, extremes), *sums]

    def merge(self, parts: Sequence[pa.Array], bounds: Int64s) -> list[pa.Array]:
        """Return the parts of each run of entries."""
        (counts,), extremes = integer_rows(1, bounds), integer_rows(4, bounds)
        smallest, largest = raw_integers(parts[1], 2), raw_integers(parts[2], 2)
        merge_wide_extremes(raw_integers(parts[0]), smallest, largest, bounds, counts, extremes)
        return [*self.ordered_columns(counts, extremes), *merged_sums(parts[3:], bounds)]

    def ordered_columns(self, counts: Int64s, extremes: Int64s) -> list[pa.Array]:
        """Return the count and the extremes, the halves of each side by side."""
        words = (np.ascontiguousarray(rows.T).ravel() for rows in (extremes[:2], extremes[2:]))
        bits = bits_of_any(counts)
        ends = [built(self.type, len(counts), bits, halves) for halves in words]
        return [built(pa.int64(), len(counts), None, counts), *ends]


@dataclass(frozen=True, slots=True)
class KeySummary:
    """Booleans and times: only their order matters."""

    type: pa.DataType

    @property
    def parts(self) -> Parts:
        """The names and types of the partial columns."""
        return ordered_parts(self.type)

    def summarise(self, values: pa.Array, bounds: Int64s) -> list[pa.Array]:
        """Return the parts of each run of values."""
        (counts,), extremes = integer_rows(1, bounds), integer_rows(2, bounds)
        summarise_keys(int64s(values), validity(values), bounds, counts, extremes)
        return self.columns(counts, extremes)

    def merge(self, parts: Sequence[pa.Array], bounds: Int64s) -> list[pa.Array]:
        """Return the parts of each run of entries."""
        (counts,), extremes = integer_rows(1, bounds), integer_rows(2, bounds)
        old_counts, smallest, largest = (int64s(part) for part in parts)
        merge_extremes(old_counts, smallest, largest, bounds, counts, extremes)
        return self.columns(counts, extremes)

    def columns(self, counts: Int64s, extremes: Int64s) -> list[pa.Array]:
        """Return the parts as Arrow columns."""
        if not pa.types.is_boolean(self.type):
            return ordered_columns(counts, extremes, self.type)
        ends = [pa.array(row > 0, mask=counts == 0) for row in extremes]
        return [built(pa.int64(), len(counts), None, counts), *ends]


@dataclass(frozen=True, slots=True)
class TextSummary:
    """Strings and bytes. Extremes are kept in full: a prefix would not be an extreme."""

    type: pa.DataType

    @property
    def parts(self) -> Parts:
        """The names and types of the partial columns."""
        return ordered_parts(self.type)

    def summarise(self, values: pa.Array, bounds: Int64s) -> list[pa.Array]:
        """Return the parts of each run of values."""
        (counts,) = integer_rows(1, bounds)
        count_by_run(validity(values), bounds, counts)
        return self.columns(counts, values, values, bounds)

    def merge(self, parts: Sequence[pa.Array], bounds: Int64s) -> list[pa.Array]:
        """Return the parts of each run of entries."""
        (counts,) = integer_rows(1, bounds)
        merge_counts(raw_integers(parts[0]), bounds, counts)
        return self.columns(counts, parts[1], parts[2], bounds)

    def columns(
        self, counts: Int64s, smallest: pa.Array, largest: pa.Array, bounds: Int64s
    ) -> list[pa.Array]:
        """Return the parts as Arrow columns."""
        ends = [best_by_run(smallest, bounds, 1), best_by_run(largest, bounds, -1)]
        return [built(pa.int64(), len(counts), None, counts), *ends]


def best_by_run(texts: pa.Array, bounds: Int64s, sign: int) -> pa.Array:
    """Return each run's smallest (sign 1) or largest (-1) text."""
    rows = np.full(len(bounds) - 1, -1, np.int64)
    if len(texts):
        _, offsets, data = texts.buffers()
        places = np.frombuffer(offsets, np.int32, len(texts) + 1, 4 * texts.offset)
        letters = np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8)
        best_texts(frozen(places), frozen(letters), validity(texts), bounds, sign, rows)
    return take_rows(texts, rows)


def merged_sums(parts: Sequence[pa.Array], bounds: Int64s) -> list[pa.Array]:
    """Return the exact sums and the sums as doubles of each run of entries."""
    wholes = integer_rows(2, bounds)
    merge_wholes(raw_integers(parts[0]), raw_integers(parts[1]), bounds, wholes)
    return [*plain_columns(wholes), *plain_columns(merged_moments(parts[2:], bounds))]


def merged_moments(parts: Sequence[pa.Array], bounds: Int64s) -> Floats:
    """Return the pairs of sums and of squares of each run of entries."""
    moments = float_rows(4, bounds)
    high, low, square_high, square_low = (raw_floats(part) for part in parts)
    merge_moments((high, low), (square_high, square_low), bounds, moments)
    return moments


def ordered_parts(kind: pa.DataType) -> Parts:
    """Return the parts that every type has."""
    return (("count", pa.int64()), ("min", kind), ("max", kind))


def ordered_columns(counts: Int64s, extremes: Numbers, kind: pa.DataType) -> list[pa.Array]:
    """Return the count and the extremes, null where there is no value."""
    bits = bits_of_any(counts)
    ends = [built(kind, len(counts), bits, row) for row in extremes]
    return [built(pa.int64(), len(counts), None, counts), *ends]


def plain_columns(rows: Numbers) -> list[pa.Array]:
    """Return rows of numbers as columns without nulls."""
    kind = pa.int64() if rows.dtype == np.int64 else pa.float64()
    return [built(kind, len(row), None, row) for row in rows]


def bits_of_any(counts: Int64s) -> pa.Buffer | None:
    """Return the validity of runs by whether they have a value; None if all have."""
    return None if counts.all() else pa.array(counts > 0).buffers()[1]


def built(kind: pa.DataType, length: int, bits: pa.Buffer | None, data: Numbers) -> pa.Array:
    """Return an array as a column, without a copy."""
    return pa.Array.from_buffers(kind, length, [bits, pa.py_buffer(data)])


def integer_rows(rows: int, bounds: Int64s) -> Int64s:
    """Return room for integers of each run."""
    return np.empty((rows, len(bounds) - 1), np.int64)


def float_rows(rows: int, bounds: Int64s) -> Floats:
    """Return room for floats of each run."""
    return np.empty((rows, len(bounds) - 1))


def raw_integers(column: pa.Array, width: int = 1) -> Int64s:
    """Return the words of a column as they lie in memory, `width` a value; any where null."""
    return raw_words(column, np.int64, width)


def raw_floats(column: pa.Array) -> Floats:
    """Return the floats of a column as they lie in memory; any where null."""
    return raw_words(column, np.float64, 1)


def raw_words(column: pa.Array, kind: type[Word], width: int) -> npt.NDArray[Word]:
    """Return the words of a column, read-only as kernels take them."""
    length = len(column)
    data = column.buffers()[1]
    if data is None or length == 0:
        words = np.zeros(width * length, kind)
    else:
        words = np.frombuffer(data, kind, width * length, 8 * width * column.offset)
    # Not `frozen`: an entry has dozens of columns, and these arrays need neither copy nor view.
    words.flags.writeable = False
    return words
