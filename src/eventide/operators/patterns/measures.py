"""MEASURES, computed for whole batches of matches at once.

A measure is an ordinary expression over a few leaves: a value at some row of the match, an
aggregate over some of its rows, its number. The leaves become columns, one value for each row of
the output; the expression over them is evaluated as any other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import pyarrow as pa

from eventide.accumulators import Frames
from eventide.accumulators.columns import one_spelling
from eventide.arrays import to_arrow
from eventide.kernels.aggregates.extremes import first_by_group
from eventide.kernels.compiled import Bools, Int64s, frozen
from eventide.kernels.patterns.paths import (
    count_on,
    unrolled,
)
from eventide.operators.aggregate import accumulator_of
from eventide.operators.columns import encode_column
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.patterns.leaves import reads_name
from eventide.operators.patterns.masks import RowsByKey, unused
from eventide.plan.expressions import (
    Aggregate,
    At,
    Classifier,
    Column,
    Expression,
    MatchAggregate,
    MatchNumber,
    Named,
    columns_of,
    rebuild,
    walk,
)
from eventide.plan.patterns.automaton import PatternAutomaton
from eventide.plan.render import render
from eventide.schema import INT64, STRING

UNROLLED_AT_ONCE = 4_000_000
"""Paths that share their tails can be much longer than the number of elements."""
LONG = 4
"""If paths are this many times longer than the elements, they are not written out to aggregate
them."""


@dataclass(frozen=True)
class MatchChains:
    """Matches as chains of elements; see kernels/patterns/scan.py.

    `bounds`, `node` and `next` are frozen. Without `shares`, no two matches have a common element.
    """

    key: Int64s
    start: Int64s
    number: Int64s
    timed_out: Bools
    head: Int64s
    bounds: Int64s
    row: Int64s
    node: Int64s
    next: Int64s
    shares: bool

    @property
    def count(self) -> int:
        """The number of matches."""
        return len(self.key)

    def lengths(self) -> Int64s:
        """Return how many rows each match has."""
        everything = np.ones(int(self.node.max(initial=0)) + 1, np.bool_)
        return at_heads(self.counts_on(everything), self.head, missing=0)

    def counts_on(self, chosen: Bools) -> Int64s:
        """Return for each element how many chosen elements its path has from it on."""
        counts = np.empty(len(self.row), np.int64)
        count_on(self.bounds, self.next, self.node, frozen(chosen), counts)
        return counts

    def are_long(self) -> bool:
        """Whether paths share so much that they should not be written out to aggregate them."""
        return bool(self.lengths().sum() > LONG * (len(self.row) + 1))

    def unrolled(self) -> Iterator[tuple[slice, Unrolled]]:
        """Yield the paths of as many matches at a time as fit in memory."""
        lengths = self.lengths()
        total = np.cumsum(lengths)
        first = 0
        while first < len(lengths):
            before = total[first - 1] if first else 0
            fits = int(np.searchsorted(total, before + UNROLLED_AT_ONCE, side="right"))
            last = max(first + 1, fits)
            part = slice(first, last)
            yield part, Unrolled.of(self.only(part), lengths[part])
            first = last

    def only(self, part: slice | Bools) -> MatchChains:
        """Return some of the matches, over the same elements."""
        return MatchChains(
            self.key[part],
            self.start[part],
            self.number[part],
            self.timed_out[part],
            self.head[part],
            self.bounds,
            self.row,
            self.node,
            self.next,
            self.shares,
        )


def at_heads(values: Int64s, heads: Int64s, *, missing: int) -> Int64s:
    """Return the values of heads, and a default for matches without one."""
    if not len(values):
        return np.full(len(heads), missing, np.int64)
    return np.where(heads >= 0, values[heads], missing)


@dataclass(frozen=True)
class Unrolled:
    """Paths written out: match m has places [offsets[m], offsets[m + 1]) of `row` and `node`."""

    offsets: Int64s
    row: Int64s
    node: Int64s

    @classmethod
    def of(cls, matches: MatchChains, lengths: Int64s) -> Unrolled:
        """Write the paths of matches out."""
        offsets = np.zeros(matches.count + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        elements = np.empty(int(offsets[-1]), np.int64)
        unrolled(frozen(matches.head), matches.next, frozen(offsets), elements)
        return cls(offsets, matches.row[elements], matches.node[elements])


@dataclass(frozen=True)
class Items:
    """The rows of the output: item i is for match `match[i]`, up to its place `place[i]`.

    A place of -1 stands for an empty match.
    """

    match: Int64s
    place: Int64s


@dataclass(frozen=True)
class Naming:
    """The pattern's variables and subsets, and which nodes of the automaton they stand for."""

    automaton: PatternAutomaton
    subsets: tuple[tuple[str, tuple[str, ...]], ...]
    by_name: dict[str | None, Bools] = field(default_factory=dict, compare=False)

    @cached_property
    def node_variable(self) -> Int64s:
        """The variable of each node; -1 for the start."""
        return np.array([node.variable for node in self.automaton.nodes], np.int64)

    def numbers(self, variable: str | None) -> frozenset[int]:
        """Return the numbers of the variables that a name stands for; None is all of them."""
        names = self.automaton.variables
        if variable is None:
            return frozenset(range(len(names)))
        members = dict(self.subsets).get(variable, (variable,))
        return frozenset(names.index(each) for each in members)

    def chosen(self, variable: str | None) -> Bools:
        """Return which nodes stand behind a row of a variable."""
        if variable not in self.by_name:
            numbers = sorted(self.numbers(variable))
            self.by_name[variable] = frozen(np.isin(self.node_variable, numbers))
        return self.by_name[variable]

    def labels(self, nodes: Int64s) -> pa.Array:
        """Return the names of the variables of nodes, null where a node is -1."""
        names = pa.array([*self.automaton.variables], pa.string())
        codes = np.where(nodes >= 0, self.node_variable[nodes], -1)
        return names.take(pa.array(codes, mask=codes < 0))


Values = TypeVar("Values", Int64s, Bools)

Target = tuple[Int64s, Int64s]
"""For each item a row and the node behind it, -1 where there is none."""


Place = tuple[str | None, str, int, bool]
"""The place that a leaf reads before PREV and NEXT."""


def place_of(leaf: At) -> Place:
    """Return the place that a leaf reads."""
    return leaf.variable, leaf.edge, leaf.offset, leaf.final


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure split into leaves: `plain` is an expression over columns, one for each leaf."""

    name: str
    plain: Expression
    leaves: tuple[tuple[str, Expression], ...]

    @classmethod
    def of(cls, item: Named) -> Measure:
        """Split a measure."""
        found: dict[Expression, str] = {}
        plain = over_leaves(item.expression, found)
        return cls(item.name, plain, tuple((name, leaf) for leaf, name in found.items()))


@dataclass(frozen=True)
class Measures(ABC):
    """The values of leaves for matches; subclasses know which rows the output has."""

    naming: Naming
    by_key: RowsByKey
    matches: MatchChains
    targets: dict[Place, Target] = field(default_factory=dict, init=False, compare=False)

    def columns(self, measures: Sequence[Measure]) -> dict[str, pa.Array]:
        """Return the values of measures for every item."""
        return {measure.name: self.column(measure) for measure in measures}

    def column(self, measure: Measure) -> pa.Array:
        """Return the value of a measure for every item."""
        arrays = [self.leaf(leaf) for _, leaf in measure.leaves]
        if isinstance(measure.plain, Column):
            return arrays[0]
        # A measure of constants alone needs rows to be evaluated over.
        arrays.append(pa.nulls(self.count))
        names = [*(name for name, _ in measure.leaves), ""]
        return evaluate(measure.plain, pa.RecordBatch.from_arrays(arrays, names))

    @property
    @abstractmethod
    def count(self) -> int:
        """How many items there are."""

    def leaf(self, leaf: Expression) -> pa.Array:
        """Return the values of a leaf."""
        match leaf:
            case MatchNumber():
                numbers = self.of_items(self.matches.number)
                return pa.array(numbers, pa.int64(), mask=numbers == 0)
            case At():
                return self.value_at(leaf)
        assert isinstance(leaf, MatchAggregate)
        return self.aggregate(leaf)

    @property
    @abstractmethod
    def match_of(self) -> Int64s:
        """The match of each item."""

    def of_items(self, values: Values) -> Values:
        """Return the value of the match of each item."""
        return values[self.match_of]

    def target(self, leaf: At) -> Target:
        """Return the place that a leaf reads before PREV and NEXT; leaves may share it."""
        place = place_of(leaf)
        if place not in self.targets:
            self.targets[place] = self.started() if leaf.edge == "start" else self.found(leaf)
        return self.targets[place]

    def started(self) -> Target:
        """Return the row at which the match of each item begins; no node stands behind it."""
        rows = self.of_items(self.matches.start)
        return rows, np.full(len(rows), -1, np.int64)

    @abstractmethod
    def found(self, leaf: At) -> Target:
        """Find the place that a leaf reads before PREV and NEXT."""

    @abstractmethod
    def label_nodes(self, rows: Int64s) -> Int64s:
        """Return the nodes of rows that PREV or NEXT leads to, -1 outside of the match."""

    @abstractmethod
    def aggregate(self, leaf: MatchAggregate) -> pa.Array:
        """Return the values of an aggregate."""

    def value_at(self, leaf: At) -> pa.Array:
        """Return the values of an expression at the rows that a leaf reads."""
        rows, nodes = self.target(leaf)
        if leaf.shift:
            key = self.of_items(self.matches.key)
            low, high = self.by_key.offsets[key], self.by_key.offsets[key + 1]
            moved = rows + leaf.shift
            rows = np.where((rows >= 0) & (moved >= low) & (moved < high), moved, -1)
        if isinstance(leaf.argument, Column):
            return self.by_key.value_at(rows, leaf.argument.name)
        if leaf.shift and reads_name(leaf.argument):
            nodes = self.label_nodes(rows)
        values = self.evaluated(leaf.argument, rows, nodes)
        if not len(rows) or rows.min() >= 0:
            return values
        # COALESCE(x, 0) at a row that does not exist is null, not 0.
        return values.take(pa.array(np.arange(len(rows)), mask=rows < 0))

    def values_of(
        self, leaf: MatchAggregate, rows: Int64s, nodes: Int64s, numbers: Int64s | None = None
    ) -> tuple[Aggregate, list[pa.Array]]:
        """Return an aggregate as one of SQL's, and its arguments at some rows of matches.

        DISTINCT is left out of it.
        """
        plain = replace(leaf.plain, distinct=False)
        if leaf.argument is None:
            return plain, [to_arrow(rows)]
        return plain, [self.evaluated(part, rows, nodes, numbers) for part in plain.parts]

    def evaluated(
        self, argument: Expression, rows: Int64s, nodes: Int64s, numbers: Int64s | None = None
    ) -> pa.Array:
        """Return the values of an expression at rows of matches, behind which there are nodes.

        `numbers` are those of the matches, if the expression reads them.
        """
        batch = self.by_key.at(rows, sorted(columns_of(argument)))
        if reads_name(argument):
            label = unused("CLASSIFIER()", batch.schema.names)
            batch = batch.append_column(label, self.naming.labels(nodes))
            argument = with_labels(argument, label)
        if reads_number(argument):
            assert numbers is not None
            name = unused("MATCH_NUMBER()", batch.schema.names)
            batch = batch.append_column(name, pa.array(numbers, pa.int64(), mask=numbers == 0))
            argument = with_numbers(argument, name)
        return evaluate(argument, batch)

    def aggregated(
        self, leaf: MatchAggregate, paths: Unrolled, left: Int64s, right: Int64s, match_of: Int64s
    ) -> pa.Array:
        """Return an aggregate over the places [left, right) of paths, for each pair.

        `match_of` is the match of each place.
        """
        counted = self.naming.chosen(leaf.variable)[paths.node]
        places = np.flatnonzero(counted)
        numbers = self.matches.number[match_of[places]]
        plain, values = self.values_of(leaf, paths.row[places], paths.node[places], numbers)
        if leaf.distinct:
            codes, width = encode_column(one_spelling(values[0]))
            pairs = match_of[places] * max(1, width) + codes
            groups, distinct = encode_column(to_arrow(pairs))
            first = np.full(distinct, -1, np.int64)
            first_by_group(groups, first)
            first.sort()
            values = [each.take(to_arrow(first)) for each in values]
            counted = np.zeros(len(counted), np.bool_)
            counted[places[first]] = True
        before = np.zeros(len(counted) + 1, np.int64)
        np.cumsum(counted, out=before[1:])
        accumulator = accumulator_of(plain)
        frames = Frames(frozen(before[left]), frozen(before[right]))
        return accumulator.of_frames(accumulator.lift(*values), frames)


def nodes_at(paths: Unrolled, places: Int64s) -> Int64s:
    """Return the nodes at places, -1 where a place is."""
    if not len(paths.node):
        return np.full(len(places), -1, np.int64)
    return np.where(places >= 0, paths.node[places], -1)


def over_leaves(expression: Expression, leaves: dict[Expression, str]) -> Expression:
    """Return the expression with every leaf replaced by a column; `leaves` collects them."""
    match expression:
        case At() | MatchAggregate() | MatchNumber():
            # An error shows the text as written; two leaves may look alike without being the
            # same.
            name = leaves.setdefault(expression, unused(render(expression), leaves.values()))
            kind = INT64 if isinstance(expression, MatchNumber) else expression.type
            return Column(name, kind, expression.span)
    return rebuild(expression, lambda part: over_leaves(part, leaves))


def reads_number(expression: Expression) -> bool:
    """Whether an expression reads the number of the match."""
    return any(isinstance(part, MatchNumber) for part in walk(expression))


def with_numbers(expression: Expression, name: str) -> Expression:
    """Return the expression with MATCH_NUMBER() as a column."""
    if isinstance(expression, MatchNumber):
        return Column(name, INT64, expression.span)
    return rebuild(expression, lambda part: with_numbers(part, name))


def with_labels(expression: Expression, label: str) -> Expression:
    """Return the expression with CLASSIFIER() as a column."""
    if isinstance(expression, Classifier):
        return Column(label, STRING, expression.span)
    return rebuild(expression, lambda part: with_labels(part, label))
