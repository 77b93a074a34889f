"""Join two tables by the relation of their periods: partners are looked up, not tried.

The right rows are sorted by (key, start, end), by (key, end, start), or both. In one of these
orders the partners of a left row stand together, or are the rows of a range that reach far enough.
So the work is that of sorting, a few searches for each left row, and the pairs of the output.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.accumulators.columns import int64s
from eventide.arrays import to_arrow
from eventide.kernels.compiled import Bools, Int32s, Int64s, frozen
from eventide.kernels.joins.periods import (
    any_above,
    count_above,
    fill_above,
    fill_between,
    search_pairs,
    tree_of,
)
from eventide.operators.columns import BLOCK_BYTES, encode_keys
from eventide.plan.situations import allen
from eventide.plan.situations.nodes import PeriodJoin
from eventide.plan.situations.parts import RowPeriod

MOST_PAIRS = 1 << 20
"""This many pairs are emitted at a time, or as many as one left row has."""
MOST_TEXT = (1 << 31) - 1
"""This many bytes of text fit into an Arrow column whose type is not a large one."""

_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max

Side = Literal["start", "end"]
Value = Literal["start", "end", "least", "most"]
"""A bound of the left period, or a time before or behind all others."""
Place = tuple[Value, Value, bool]
"""The place of (major, minor) in an order; with True, behind equal ones."""


@dataclass(frozen=True, slots=True)
class PartnerSearch:
    """Where the right rows with some relations to a left one stand.

    In the order of one bound and then the other, they are those between two places: all of these,
    or those whose other bound is greater (1) or less (-1) than a bound of the left row.
    """

    relations: int
    by: Side
    low: Place
    high: Place
    beyond: tuple[int, Side] | None = None


_FIRST: Place = ("least", "least", False)
_LAST: Place = ("most", "most", True)
_FROM_START: Place = ("start", "least", False)
_PAST_START: Place = ("start", "most", True)
_FROM_END: Place = ("end", "least", False)
_PAST_END: Place = ("end", "most", True)

SEARCHES = (
    PartnerSearch(sum(allen.GROUPS), "start", _FIRST, _FROM_END, (1, "start")),
    PartnerSearch(allen.GROUPS[0], "start", _PAST_START, _FROM_END),
    PartnerSearch(allen.GROUPS[1], "start", _FROM_START, _PAST_START),
    PartnerSearch(allen.GROUPS[2], "start", _FIRST, _FROM_START, (1, "start")),
    PartnerSearch(allen.BEFORE, "start", _PAST_END, _LAST),
    PartnerSearch(allen.AFTER, "end", _FIRST, _FROM_START),
    PartnerSearch(allen.MEETS, "start", _FROM_END, _PAST_END),
    PartnerSearch(allen.MET_BY, "end", _FROM_START, _PAST_START),
    PartnerSearch(allen.OVERLAPS, "start", _PAST_START, _FROM_END, (1, "end")),
    PartnerSearch(allen.OVERLAPPED_BY, "end", _PAST_START, _FROM_END, (-1, "start")),
    PartnerSearch(allen.STARTS, "start", ("start", "end", True), _PAST_START),
    PartnerSearch(allen.STARTED_BY, "start", _FROM_START, ("start", "end", False)),
    PartnerSearch(allen.DURING, "start", _FIRST, _FROM_START, (1, "end")),
    PartnerSearch(allen.CONTAINS, "start", _PAST_START, _FROM_END, (-1, "end")),
    PartnerSearch(allen.FINISHES, "end", _FROM_END, ("end", "start", False)),
    PartnerSearch(allen.FINISHED_BY, "end", ("end", "start", True), _PAST_END),
    PartnerSearch(allen.EQUALS, "start", ("start", "end", False), ("start", "end", True)),
)
"""Searches for several relations come first. Two periods have one relation, so no pair comes twice.
"""


def searches_for(mask: int) -> list[PartnerSearch]:
    """Return searches that together find exactly the relations of a mask."""
    chosen = []
    for search in SEARCHES:
        if search.relations & ~mask == 0:
            chosen.append(search)
            mask &= ~search.relations
    return chosen


@dataclass(frozen=True)
class PeriodRows:
    """The rows of one side that can have a partner, in order of key and start."""

    rows: Int64s
    keys: Int32s
    start: Int64s
    end: Int64s

    @classmethod
    def of(cls, keys: Int32s, start: Int64s, end: Int64s, fit: Bools) -> PeriodRows:
        """Return the rows that have a key and a period; the arrays are those of all rows."""
        rows = np.flatnonzero(fit)
        rows = rows[np.lexsort((end[rows], start[rows], keys[rows]))]
        return cls(rows, frozen(keys[rows]), frozen(start[rows]), frozen(end[rows]))

    def only(self, fit: Bools) -> PeriodRows:
        """Return some of the rows."""
        return PeriodRows(
            self.rows[fit], frozen(self.keys[fit]), frozen(self.start[fit]), frozen(self.end[fit])
        )

    def value(self, name: Value) -> Int64s:
        """Return a bound of each row, or the same time for all."""
        match name:
            case "start":
                return self.start
            case "end":
                return self.end
            case _:
                return frozen(np.full(len(self.rows), _LEAST if name == "least" else _MOST))

    def taken(self, order: Int64s) -> PeriodRows:
        """Return the rows in another order of each key."""
        return PeriodRows(
            self.rows[order], self.keys, frozen(self.start[order]), frozen(self.end[order])
        )


@dataclass(frozen=True)
class Ordered:
    """Periods in the order of one bound and then the other; key k has `offsets[k : k + 2]`."""

    periods: PeriodRows
    by: Side
    offsets: Int64s

    @property
    def major(self) -> Int64s:
        """The bound they are ordered by."""
        return self.periods.value(self.by)

    @property
    def minor(self) -> Int64s:
        """The other bound."""
        return self.periods.value("end" if self.by == "start" else "start")

    @cached_property
    def greater(self) -> Int64s:
        """The tree that finds minor bounds above a limit."""
        return frozen(tree_of(self.minor))

    @cached_property
    def less(self) -> Int64s:
        """The tree that finds minor bounds below a limit; all its bits are inverted."""
        return frozen(tree_of(frozen(~self.minor)))

    def places(self, wanted: PeriodRows, place: Place) -> Int64s:
        """Return the place of each of the wanted periods."""
        major, minor, after = place
        found = np.empty(len(wanted.rows), np.int64)
        search_pairs(
            self.major,
            self.minor,
            self.offsets,
            wanted.keys,
            wanted.value(major),
            wanted.value(minor),
            after,
            found,
        )
        return frozen(found)


class Partners:
    """The rows of the right side, in which the partners of left rows are looked up."""

    def __init__(self, right: PeriodRows, keys: int) -> None:
        offsets = frozen(np.searchsorted(right.keys, np.arange(keys + 1)).astype(np.int64))
        self.by_start = Ordered(right, "start", offsets)

    @cached_property
    def by_end(self) -> Ordered:
        """The right rows in order of their ends."""
        right = self.by_start.periods
        order = np.lexsort((right.start, right.end, right.keys))
        return Ordered(right.taken(order), "end", self.by_start.offsets)

    def looked_up(self, left: PeriodRows, search: PartnerSearch) -> Range:
        """Return where the partners of each left row stand."""
        order = self.by_start if search.by == "start" else self.by_end
        low, high = order.places(left, search.low), order.places(left, search.high)
        if search.beyond is None:
            return Range(left, order, low, high)
        sign, limit = search.beyond
        limits = left.value(limit)
        if sign > 0:
            return Range(left, order, low, high, (order.greater, limits))
        return Range(left, order, low, high, (order.less, frozen(~limits)))


@dataclass(frozen=True, slots=True)
class Range:
    """Where the partners of left rows stand in an order of the right ones: from low to high.

    With `beyond`, a tree and limits, they are the rows of the range above the limit.
    """

    left: PeriodRows
    order: Ordered
    low: Int64s
    high: Int64s
    beyond: tuple[Int64s, Int64s] | None = None

    def pairs(self) -> Iterator[tuple[Int64s, Int64s]]:
        """Yield numbers of left rows and of their partners, some at a time."""
        low, high = self.low, self.high
        counts = np.maximum(high - low, 0)
        if self.beyond is not None:
            tree, limits = self.beyond
            counts = np.empty(len(low), np.int64)
            count_above(tree, low, high, limits, counts)
        for first, last in ranges_of(counts, MOST_PAIRS):
            ones, others = np.empty((2, int(counts[first:last].sum())), np.int64)
            if self.beyond is None:
                fill_between(low[first:last], high[first:last], ones, others)
            else:
                tree, limits = self.beyond
                fill_above(
                    tree, low[first:last], high[first:last], limits[first:last], ones, others
                )
            yield self.left.rows[ones + first], self.order.periods.rows[others]

    def matched(self) -> Int64s:
        """Return the numbers of the left rows that have a partner, without making pairs."""
        found = self.low < self.high
        if self.beyond is not None:
            any_above(self.beyond[0], self.low, self.high, self.beyond[1], found)
        return self.left.rows[found]


def ranges_of(counts: Int64s, most: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows that have about `most` pairs or fewer together, or are one row.

    >>> list(ranges_of(np.array([3, 0, 2, 9, 1]), 5))
    [(0, 3), (3, 4), (4, 5)]
    """
    until = np.cumsum(counts)
    first, done = 0, 0
    while first < len(counts) and done < until[-1]:
        last = max(first + 1, int(np.searchsorted(until, done + most, side="right")))
        if until[last - 1] > done:
            yield first, last
        first, done = last, int(until[last - 1])


def join_periods(
    node: PeriodJoin, left: pa.Table, right: pa.Table, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a join of two tables, in no particular order."""
    columns = {**columns_of(left, schema), **columns_of(right, schema)}
    lengths = {name: lengths_of(column) for name, column in columns.items()}

    def bytes_of(own: Int64s, partner: Int64s | None) -> Int64s:
        # Texts too short to have their lengths looked up count as the longest of them.
        sizes = np.full(len(own), max(1, BLOCK_BYTES // MOST_PAIRS))
        for name, long in lengths.items():
            if long is not None and name in left.schema.names:
                sizes += long[own]
            elif long is not None and partner is not None:
                sizes += long[partner]
        return sizes

    def rows(own: Int64s, partner: Int64s | None) -> Iterator[pa.RecordBatch]:
        ones = to_arrow(own)
        others = pa.nulls(len(own), pa.int64()) if partner is None else to_arrow(partner)
        for first, last in ranges_of(bytes_of(own, partner), BLOCK_BYTES):
            sides = ones.slice(first, last - first), others.slice(first, last - first)
            taken = [
                columns[field.name]
                .take(sides[0] if field.name in left.schema.names else sides[1])
                .cast(field.type)
                for field in schema
            ]
            yield pa.RecordBatch.from_arrays(taken, schema=schema)

    lonely = np.ones(left.num_rows, np.bool_)
    for found in looked_up(node, left, right):
        if node.kind in ("semi", "anti"):
            lonely[found.matched()] = False
            continue
        for ones, others in found.pairs():
            lonely[ones] = False
            yield from rows(ones, others)
    if node.kind != "inner":
        alone = np.flatnonzero(~lonely if node.kind == "semi" else lonely)
        if len(alone):
            yield from rows(alone, None)


def looked_up(node: PeriodJoin, left: pa.Table, right: pa.Table) -> Iterator[Range]:
    """Yield where the partners of left rows stand, for one search after another."""
    keys, count = numbered_keys(node, left, right)
    names, others = ([each[side] for each in node.keys] for side in (0, 1))
    one = periods_of(left, node.first, names, keys[: left.num_rows], node.open_ends)
    other = periods_of(right, node.second, others, keys[left.num_rows :], node.open_ends)
    partners = Partners(other, count)
    goes_on = one.end == _MOST
    masks = ((~goes_on, node.mask), (goes_on, allen.mask_of_open(node.mask)))
    for fit, mask in masks if node.open_ends else ((goes_on | True, node.mask),):
        some = one if fit.all() else one.only(fit)
        if len(some.rows) and len(other.rows):
            for search in searches_for(mask):
                yield partners.looked_up(some, search)


def numbered_keys(node: PeriodJoin, left: pa.Table, right: pa.Table) -> tuple[Int32s, int]:
    """Return the keys of all left rows, then all right rows, as numbers, and how many there are."""
    columns = [
        whole(pa.chunked_array([*one.chunks, *other.chunks], one.type))
        for one, other in ((left.column(one), right.column(other)) for one, other in node.keys)
    ]
    keys, _, count = encode_keys(columns, left.num_rows + right.num_rows)
    return keys, count


def periods_of(
    table: pa.Table, period: RowPeriod, names: list[str], keys: Int32s, open_ends: bool
) -> PeriodRows:
    """Return the rows of a table whose period is not empty and whose keys are not null.

    With `open_ends`, a null end is replaced by the end of time.
    """
    bounds = [whole(table.column(name)) for name in (period.start, period.end)]
    start, end = map(int64s, bounds)
    if open_ends and bounds[1].null_count:
        end = frozen(np.where(bounds[1].is_valid().to_numpy(zero_copy_only=False), end, _MOST))
        bounds.pop()
    fit = start < end
    for column in (*bounds, *(table.column(name) for name in names)):
        if column.null_count:
            fit &= column.is_valid().to_numpy(zero_copy_only=False)
    return PeriodRows.of(keys, start, end, fit)


def columns_of(table: pa.Table, schema: pa.Schema) -> Mapping[str, pa.Array]:
    """Return the output columns of a table, each in one chunk."""
    return {name: whole(table.column(name)) for name in schema.names if name in table.schema.names}


def whole(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, of a large type if it holds more than 2 GB of text."""
    if column.num_chunks == 1:
        return column.chunk(0)
    if column.nbytes > MOST_TEXT and pa.types.is_string(column.type):
        column = column.cast(pa.large_string())
    return column.combine_chunks()


def lengths_of(column: pa.Array) -> Int64s | None:
    """Return how long the texts of a column are, None if any million of them fit together."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return None
    lengths = pc.fill_null(pc.binary_length(column), 0)
    longest = pc.max(lengths).as_py() or 0
    if longest * MOST_PAIRS < BLOCK_BYTES:
        return None
    return frozen(lengths.to_numpy(zero_copy_only=False).astype(np.int64))
