"""MEASURES with ALL ROWS PER MATCH: each row has those of its match up to this row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.patterns.paths import place_of_row, running
from eventide.operators.patterns.measures import Items, Measures, Target, Unrolled, nodes_at
from eventide.plan.expressions import At, MatchAggregate


@dataclass(frozen=True)
class AllRows(Measures):
    """The items are the rows of matches; each sees its match up to itself."""

    paths: Unrolled
    items: Items

    @property
    def count(self) -> int:
        """How many items there are."""
        return len(self.items.match)

    @property
    def match_of(self) -> Int64s:
        """The match of each item."""
        return self.items.match

    def until(self, *, final: bool) -> Int64s:
        """Return the place before which each item's match ends for it."""
        if final:
            return self.paths.offsets[1:][self.items.match]
        return np.where(
            self.items.place >= 0, self.items.place + 1, self.paths.offsets[self.items.match]
        )

    def found(self, leaf: At) -> Target:
        """Find the row that a leaf reads before PREV and NEXT."""
        chosen = self.naming.chosen(leaf.variable)
        on = np.empty(len(self.paths.row), np.int64)
        running(
            frozen(self.paths.offsets),
            frozen(self.paths.node),
            frozen(chosen),
            leaf.edge == "first",
            leaf.offset,
            on,
        )
        last = self.until(final=leaf.final) - 1
        there = (self.items.place >= 0) & (last >= 0)
        places = np.where(there, on[last], -1) if len(on) else np.full(self.count, -1, np.int64)
        rows = np.where(places >= 0, self.paths.row[places], -1) if len(on) else places
        return rows, nodes_at(self.paths, places)

    def label_nodes(self, rows: Int64s) -> Int64s:
        """Return the nodes of rows that PREV or NEXT leads to, -1 outside of the match.

        The row is looked up in the whole match, even if the leaf is a running one.
        """
        places = np.empty(self.count, np.int64)
        place_of_row(
            frozen(self.paths.offsets),
            frozen(self.paths.row),
            frozen(self.items.match),
            frozen(self.until(final=True)),
            frozen(rows),
            places,
        )
        return nodes_at(self.paths, places)

    def aggregate(self, leaf: MatchAggregate) -> pa.Array:
        """Return the values of an aggregate."""
        left = self.paths.offsets[self.items.match]
        right = self.until(final=leaf.final)
        match_of = np.repeat(np.arange(self.matches.count), np.diff(self.paths.offsets))
        return self.aggregated(leaf, self.paths, left, right, match_of)
