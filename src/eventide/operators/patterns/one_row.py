"""MEASURES with ONE ROW PER MATCH: each sees all rows of its match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.accumulators import Frames, Groups
from eventide.arrays import to_arrow
from eventide.kernels.compiled import Bools, Int64s, frozen
from eventide.kernels.patterns.paths import first_on, further_on, in_runs, last_on, place_of_row
from eventide.operators.aggregate import accumulator_of
from eventide.operators.patterns.measures import (
    Measure,
    Measures,
    Naming,
    Place,
    Target,
    Values,
    at_heads,
    nodes_at,
    place_of,
    reads_number,
)
from eventide.plan.expressions import At, MatchAggregate


@dataclass(frozen=True)
class AskedPlaces:
    """The places that measures read, as the kernel takes them that looks for all at once."""

    places: tuple[Place, ...]
    chosen: Bools
    first: Bools
    offset: Int64s

    @classmethod
    def of(cls, measures: Sequence[Measure], naming: Naming) -> AskedPlaces:
        """Return the places of all leaves but those at the start row."""
        leaves = [leaf for each in measures for _, leaf in each.leaves]
        found = {
            place_of(leaf): leaf for leaf in leaves if isinstance(leaf, At) and leaf.edge != "start"
        }
        asked = found.values()
        return cls(
            tuple(found),
            frozen(np.array([naming.chosen(leaf.variable) for leaf in asked], np.bool_)),
            frozen(np.array([leaf.edge == "first" for leaf in asked], np.bool_)),
            frozen(np.array([leaf.offset for leaf in asked], np.int64)),
        )


@dataclass(frozen=True)
class OneRow(Measures):
    """One item for each match, which sees all of it."""

    asked: AskedPlaces | None = None
    """What its measures read, if that is known."""

    @property
    def count(self) -> int:
        """How many items there are."""
        return self.matches.count

    @property
    def match_of(self) -> Int64s:
        """The match of each item."""
        return np.arange(self.matches.count)

    def of_items(self, values: Values) -> Values:
        """Return the value of the match of each item."""
        return values

    def columns(self, measures: Sequence[Measure]) -> dict[str, pa.Array]:
        """Return the values of measures for every item."""
        if self.asked is not None and self.asked.places:
            self.look_for(self.asked)
        return super().columns(measures)

    def look_for(self, asked: AskedPlaces) -> None:
        """Find several places at once, if no path runs into another."""
        matches = self.matches
        # Paths that share tails, or of which some matches are left out, are not runs.
        if matches.shares or len(matches.bounds) != matches.count + 1:
            return
        rows, nodes = np.empty((2, len(asked.places), matches.count), np.int64)
        questions = (asked.chosen, asked.first, asked.offset)
        in_runs(matches.bounds, frozen(matches.row), matches.node, *questions, rows, nodes)
        for number, place in enumerate(asked.places):
            self.targets[place] = rows[number], nodes[number]

    def rows_and_nodes(self, elements: Int64s) -> Target:
        """Return the rows and nodes of elements, -1 where there is none."""
        matches = self.matches
        if not len(matches.row):
            return elements, elements
        rows, nodes = matches.row[elements], matches.node[elements]
        missing = elements < 0
        if not missing.any():
            return rows, nodes
        return np.where(missing, -1, rows), np.where(missing, -1, nodes)

    def found(self, leaf: At) -> Target:
        """Find the place that a leaf reads before PREV and NEXT."""
        matches = self.matches
        chosen = self.naming.chosen(leaf.variable)
        bounds, following, node = matches.bounds, matches.next, matches.node
        on = np.empty(len(matches.row), np.int64)
        if leaf.edge == "first" and leaf.variable is None and not leaf.offset:
            elements = matches.head
        elif leaf.edge == "first":
            first_on(bounds, following, node, chosen, on)
            elements = np.empty(matches.count, np.int64)
            further_on(frozen(matches.head), following, frozen(on), leaf.offset, elements)
        else:
            counts = frozen(matches.counts_on(chosen))
            last_on(bounds, following, node, chosen, counts, leaf.offset, on)
            elements = at_heads(on, matches.head, missing=-1)
        return self.rows_and_nodes(elements)

    def label_nodes(self, rows: Int64s) -> Int64s:
        """Return the nodes of rows that PREV or NEXT leads to, -1 outside of the match."""
        nodes = []
        for part, paths in self.matches.unrolled():
            found = np.empty(part.stop - part.start, np.int64)
            match_of = np.arange(len(found))
            until = frozen(paths.offsets[1:])
            place_of_row(
                frozen(paths.offsets),
                frozen(paths.row),
                frozen(match_of),
                until,
                frozen(rows[part]),
                found,
            )
            nodes.append(nodes_at(paths, found))
        return np.concatenate(nodes) if nodes else np.empty(0, np.int64)

    def aggregate(self, leaf: MatchAggregate) -> pa.Array:
        """Return the values of an aggregate."""
        if leaf.argument is None:
            counts = self.matches.counts_on(self.naming.chosen(leaf.variable))
            return to_arrow(at_heads(counts, self.matches.head, missing=0))
        # What a shared row adds has to be the same for every match.
        alike = not leaf.distinct and not any(map(reads_number, leaf.plain.parts))
        if alike and self.matches.are_long():
            return self.aggregate_shared(leaf)
        parts = []
        for part, paths in self.matches.unrolled():
            match_of = np.repeat(np.arange(part.start, part.stop), np.diff(paths.offsets))
            left, right = paths.offsets[:-1], paths.offsets[1:]
            parts.append(self.aggregated(leaf, paths, left, right, match_of))
        return pa.concat_arrays(parts) if parts else pa.nulls(0, leaf.type.arrow)

    def aggregate_shared(self, leaf: MatchAggregate) -> pa.Array:
        """Return the values of an aggregate over paths that share their tails.

        The elements made for one match lie together. A path is the tail of such a run, from some
        element on, then the tail of the run it leads into, and so on: usually two runs.
        """
        matches = self.matches
        counted = self.naming.chosen(leaf.variable)[matches.node]
        plain, values = self.values_of(leaf, matches.row[counted], matches.node[counted])
        accumulator = accumulator_of(plain)
        lifted = accumulator.lift(*values)
        before = np.zeros(len(counted) + 1, np.int64)
        np.cumsum(counted, out=before[1:])
        place, going = matches.head, np.arange(matches.count)
        parts: list[list[pa.Array]] = []
        match_of = []
        while len(going):
            end = matches.bounds[np.searchsorted(matches.bounds, place, side="right")]
            there = place >= 0
            left, right = np.where(there, before[place], 0), np.where(there, before[end], 0)
            order = np.argsort(left, kind="stable")
            back = np.empty_like(order)
            back[order] = np.arange(len(order))
            frames = Frames(frozen(left[order]), frozen(right[order]))
            merged = accumulator.by_frame(lifted, frames)
            parts.append([column.take(to_arrow(back)) for column in merged])
            match_of.append(going)
            place = np.where(there, matches.next[end - 1], -1)
            going, place = going[place >= 0], place[place >= 0]
        groups = np.concatenate(match_of)
        in_order = np.argsort(groups, kind="stable")
        columns = [
            pa.concat_arrays(column).take(to_arrow(in_order)) for column in zip(*parts, strict=True)
        ]
        together = Groups(frozen(groups[in_order]), matches.count)
        return accumulator.finish(accumulator.by_group(columns, together))
