"""Frequent values with bounds of their counts: the most frequent ones of each pane are counted.

A pane counts all its values and keeps the most frequent. What it does not keep came at most as
often as the first that it left out. Added up over the panes of a window, that bounds how far the
count of a value can be off (Golab, chapter 6):

    pane          a    b    c    left out, at most
    1             5    2    -    1                    a: 8 to 8    c: 4 to 5
    2             3    -    4    2                    b: 2 to 4    others: at most 3
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import int64s, one_spelling
from eventide.arrays import to_arrow
from eventide.errors import UnsupportedError
from eventide.kernels.compiled import Int64s
from eventide.operators.checking import filled, require, require_within
from eventide.operators.standing.groups.counting import counted
from eventide.plan.aggregates import FREQUENT
from eventide.plan.expressions import Aggregate
from eventide.plan.render import render


class ListedValues(NamedTuple):
    """Frequent values: whose they are, and between which bounds their counts are."""

    owners: Int64s
    values: pa.Array
    lower: Int64s
    upper: Int64s

    def columns(self, functions: Sequence[str], of_owners: Sequence[pa.Array]) -> list[pa.Array]:
        """Return the columns of owners, by the function of each, with a row for each value."""
        bounds = (to_arrow(self.lower), to_arrow(self.upper))
        own = dict(zip(FREQUENT, (self.values, *bounds), strict=True))
        owners = to_arrow(self.owners)
        return [
            own[function] if function in own else column.take(owners)
            for function, column in zip(functions, of_owners, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class BoundedSketch:
    """The `kept` most frequent values of each pane, their counts, and what is left out at most.

    `wanted` is the share of all values that is to be exceeded, or how many values are listed. An
    entry without a value says how many values the pane has, and in `missed` how often one that
    it does not keep came at most.
    """

    kind: pa.DataType
    wanted: float | int
    kept: int

    @classmethod
    def of(cls, aggregate: Aggregate) -> BoundedSketch:
        """Return the sketch of an aggregate."""
        assert aggregate.argument is not None
        assert isinstance(aggregate.parameter, int | float)
        assert aggregate.kept is not None
        return cls(aggregate.argument.type.arrow, aggregate.parameter, aggregate.kept)

    @property
    def schema(self) -> pa.Schema:
        """The columns of entries."""
        words = [("pane", pa.int64()), ("value", self.kind)]
        return pa.schema([*words, ("count", pa.int64()), ("missed", pa.int64())])

    def lift(self, values: pa.Array, panes: Int64s, count: int) -> pa.RecordBatch:
        """Return the values that each pane keeps."""
        present = values.is_valid()
        owners = panes[present.to_numpy(zero_copy_only=False)]
        values = one_spelling(values.filter(present))
        found = counted(values, owners, np.ones((len(owners), 1), np.int64))
        totals, missed = np.bincount(owners, minlength=count), np.zeros(count, np.int64)
        counts = found.amounts[:, 0]
        first_out = found.ranks == self.kept
        missed[found.owners[first_out]] = counts[first_out]
        heads, kept = np.flatnonzero(totals), np.flatnonzero(found.ranks < self.kept)
        of_entry = np.concatenate([heads, found.owners[kept]])
        order = np.argsort(of_entry, kind="stable")
        listed = pa.concat_arrays(
            [pa.nulls(len(heads), self.kind), values.take(to_arrow(found.places[kept]))]
        )
        columns = [
            to_arrow(of_entry[order]),
            listed.take(to_arrow(order)),
            to_arrow(np.concatenate([totals[heads], counts[kept]])[order]),
            to_arrow(np.concatenate([missed[heads], np.zeros(len(kept), np.int64)])[order]),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def listed(self, entries: pa.RecordBatch, owners: Int64s, count: int) -> ListedValues:
        """Return the wanted values of each owner, from the entries of its panes."""
        panes, counts, missed = (int64s(entries.column(i)) for i in (0, 2, 3))
        valued = entries.column("value").is_valid()
        there = valued.to_numpy(zero_copy_only=False)
        heads = ~there
        totals, missing = np.zeros(count, np.int64), np.zeros(count, np.int64)
        np.add.at(totals, owners[heads], counts[heads])
        np.add.at(missing, owners[heads], missed[heads])
        of_pane = np.zeros(int(panes.max(initial=-1)) + 1, np.int64)
        of_pane[panes[heads]] = missed[heads]
        values = entries.column("value").filter(valued)
        # A pane that has a value in its list misses none of it.
        amounts = np.stack([counts[there], of_pane[panes[there]]], axis=1)
        found = counted(values, owners[there], amounts)
        lower, known = found.amounts.T
        if isinstance(self.wanted, int):
            wanted = found.ranks < self.wanted
        else:
            wanted = lower > share_of(self.wanted, totals)[found.owners]
        upper = lower + missing[found.owners] - known
        chosen = np.flatnonzero(wanted)
        listed = values.take(to_arrow(found.places[chosen]))
        return ListedValues(found.owners[chosen], listed, lower[chosen], upper[chosen])

    def check(self, entries: pa.RecordBatch) -> None:
        """Refuse counts that no values can have."""
        panes = filled(entries.column("pane"), "panes of sketches")
        counts = filled(entries.column("count"), "counts of values")
        missed = filled(entries.column("missed"), "counts of values that are left out")
        require_within(counts, 1, 2**62, "counts of values")
        require_within(missed, 0, 2**62, "counts of values that are left out")
        heads = entries.column("value").is_null().to_numpy(zero_copy_only=False)
        require((missed[~heads] == 0).all(), "something left out beside a value")
        alike = np.array_equal(panes[heads], np.unique(panes))
        require(alike, "panes without a count of all their values, or with several")


def require_alike(aggregates: Sequence[Aggregate]) -> None:
    """Refuse aggregates about frequent values of different kinds: they are columns of a row."""
    for each in aggregates:
        first = aggregates[0]
        if each != replace(first, function=each.function, type=each.type):
            message = f"{render(each)} beside {render(first)}"
            hint = "ask two queries: each has a row for every frequent value"
            raise UnsupportedError(message, span=each.span, hint=hint)


def share_of(share: float, totals: Int64s) -> Int64s:
    """Return a share of counts, rounded down: exact for shares of at most nine decimals."""
    exact = Fraction(str(share))
    above, below = exact.numerator, exact.denominator
    return totals // below * above + totals % below * above // below
