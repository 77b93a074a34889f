"""Rows of matches: values of their situations at the instant of detection, and RETURN over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.accumulators import Groups
from eventide.arrays import to_arrow
from eventide.kernels.compiled import Bools, Int64s, frozen
from eventide.kernels.situations.runs import NEVER
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.situations.runs import Derived
from eventide.operators.situations.search import SituationMatches
from eventide.operators.situations.values import RunValues, SymbolAggregates
from eventide.plan.expressions import (
    Aggregate,
    Column,
    Expression,
    MatchAggregate,
    Named,
    PeriodPart,
    rebuild,
    rebuild_aggregate,
    walk,
)
from eventide.plan.situations.nodes import TemporalPattern
from eventide.schema import TS

Leaf = MatchAggregate | PeriodPart
Values = Sequence[RunValues]


@dataclass(frozen=True, slots=True)
class MatchPartials:
    """Partial aggregates over matches: the change that set them off, and the columns."""

    change: Int64s
    columns: list[pa.Array]


@dataclass(frozen=True)
class MatchReporter:
    """Turns matches into rows.

    `leaves` are computed from single situations, as columns v0, v1, …; `items` are the expressions
    over them. In a summary, `summed` are aggregates over the matches of an instant, as columns s0,
    s1, …, and `items` are over those.
    """

    node: TemporalPattern
    schema: pa.Schema
    leaves: tuple[Leaf, ...]
    aggregates: tuple[SymbolAggregates, ...]
    places: tuple[tuple[int, int], ...]
    """For each leaf: its symbol, and its number among the symbol's aggregates (or -1)."""
    summed: tuple[Aggregate, ...]
    over_matches: SymbolAggregates
    items: tuple[Named, ...]

    @classmethod
    def of(cls, node: TemporalPattern, schema: pa.Schema) -> MatchReporter:
        """Return the reporter of a pattern."""
        parts = [part for item in node.returns for part in walk(item.expression)]
        leaves = tuple(
            dict.fromkeys(part for part in parts if isinstance(part, MatchAggregate | PeriodPart))
        )
        summed = tuple(dict.fromkeys(part for part in parts if isinstance(part, Aggregate)))
        symbols = {each.name: symbol for symbol, each in enumerate(node.situations)}
        wanted: list[dict[Aggregate, int]] = [{} for _ in symbols]
        places = []
        for leaf in leaves:
            assert leaf.variable is not None
            symbol, number = symbols[leaf.variable], -1
            if isinstance(leaf, MatchAggregate):
                number = wanted[symbol].setdefault(leaf.plain, len(wanted[symbol]))
            places.append((symbol, number))
        aggregates = tuple(SymbolAggregates(tuple(each)) for each in wanted)
        of_leaves, of_sums = part_names(leaves, "v"), part_names(summed, "s")
        over_matches = tuple(
            rebuild_aggregate(each, lambda part: with_columns(part, of_leaves)) for each in summed
        )
        items = tuple(
            Named(item.name, with_columns(item.expression, of_sums if summed else of_leaves))
            for item in node.returns
        )
        over = SymbolAggregates(over_matches)
        return cls(node, schema, leaves, aggregates, tuple(places), summed, over, items)

    @property
    def counted(self) -> frozenset[int]:
        """The symbols whose events are aggregated."""
        return frozenset(i for i, each in enumerate(self.aggregates) if each.aggregates)

    @property
    def sums_up(self) -> bool:
        """Whether values of single matches are aggregated."""
        return bool(self.summed) and not self.counts_only

    @property
    def counts_only(self) -> bool:
        """Whether only the number of matches is needed."""
        return bool(self.summed) and all(each.argument is None for each in self.summed)

    def report(self, found: SituationMatches, derived: Derived, values: Values) -> pa.RecordBatch:
        """Return the rows of matches as they are when they become certain."""
        changes = derived.changes
        if self.counts_only:
            numbers = [to_arrow(found.counts)] * len(self.summed)
            return self.summary(found.change, numbers, derived)
        position, ts = changes.position[found.change], changes.ts[found.change]
        columns = self.columns(found.members, position, ts, derived, values)
        key = derived.runs.key[found.members[:, 0]]
        over = ~self.is_open(found, derived)
        return self.rows(key, ts, columns, derived, over)

    def is_open(self, found: SituationMatches, derived: Derived) -> Bools:
        """Return which matches have a member that is open when they become certain."""
        position = derived.changes.position[found.change]
        ends = derived.runs.end_pos[found.members]
        return frozen(np.asarray((ends > position[:, None]).any(axis=1), np.bool_))

    def confirm(self, members: Int64s, derived: Derived, values: Values) -> pa.RecordBatch:
        """Return the rows of matches whose members are all over."""
        count = len(members)
        ts = derived.runs.end_ts[members].max(axis=1) if count else np.empty(0, np.int64)
        key = derived.runs.key[members[:, 0]]
        never = np.full(count, NEVER, np.int64)
        columns = self.columns(members, never, ts, derived, values)
        return self.rows(key, ts, columns, derived, np.ones(count, np.bool_))

    def columns(
        self, members: Int64s, position: Int64s, ts: Int64s, derived: Derived, values: Values
    ) -> pa.RecordBatch:
        """Return the leaves of matches at positions, and their times."""
        arrays, names = [moments(ts)], [TS]
        computed: dict[int, list[pa.Array]] = {}
        for number, (leaf, (symbol, place)) in enumerate(
            zip(self.leaves, self.places, strict=True)
        ):
            runs = members[:, symbol]
            is_open = derived.runs.end_pos[runs] > position
            if isinstance(leaf, PeriodPart):
                start, end = derived.runs.start_ts[runs], derived.runs.end_ts[runs]
                lasted = to_arrow(np.where(is_open, ts, end) - start)
                array = {
                    "start": moments(start),
                    "end": pa.array(end, mask=is_open).view(pa.timestamp("us")),
                    "duration": lasted.view(pa.duration("us")),
                }[leaf.part]
            else:
                if symbol not in computed:
                    computed[symbol] = values[symbol].at(runs, position, is_open)
                array = computed[symbol][place]
            arrays.append(array)
            names.append(f"v{number}")
        return pa.RecordBatch.from_arrays(arrays, names)

    def rows(
        self,
        key: Int64s,
        ts: Int64s,
        columns: pa.RecordBatch,
        derived: Derived,
        confirmed: Bools | None = None,
    ) -> pa.RecordBatch:
        """Return output rows, from the columns that the items are over."""
        rows = to_arrow(key)
        arrays = [each.take(rows) for each in derived.keys.keys]
        arrays.append(moments(ts))
        arrays += [evaluate(item.expression, columns) for item in self.items]
        if self.node.confirm:
            assert confirmed is not None
            arrays.append(to_arrow(confirmed))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def partials(self, found: SituationMatches, derived: Derived, values: Values) -> MatchPartials:
        """Return the aggregates over matches by change, to be merged with other batches."""
        changes = derived.changes
        position, ts = changes.position[found.change], changes.ts[found.change]
        columns = self.columns(found.members, position, ts, derived, values)
        distinct, group = np.unique(found.change, return_inverse=True)
        lifted = self.over_matches.lift(columns)
        groups = Groups(frozen(group), len(distinct))
        return MatchPartials(distinct, self.over_matches.by_group(lifted, groups))

    def summed_up(
        self, parts: Sequence[MatchPartials], derived: Derived
    ) -> tuple[Int64s, pa.RecordBatch]:
        """Return the changes with matches, and a row for each with aggregates over these."""
        change, group = np.unique(
            np.concatenate([part.change for part in parts]), return_inverse=True
        )
        columns = [
            pa.concat_arrays(columns)
            for columns in zip(*(part.columns for part in parts), strict=True)
        ]
        merged = self.over_matches.by_group(columns, Groups(frozen(group), len(change)))
        return change, self.summary(change, self.over_matches.finish(merged), derived)

    def summary(
        self, change: Int64s, aggregates: list[pa.Array], derived: Derived
    ) -> pa.RecordBatch:
        """Return the rows of changes with their aggregates."""
        changes = derived.changes
        ts, key = changes.ts[change], derived.runs.key[changes.run[change]]
        names = [TS, *(f"s{i}" for i in range(len(aggregates)))]
        columns = pa.RecordBatch.from_arrays([moments(ts), *aggregates], names)
        return self.rows(key, ts, columns, derived)


def moments(ts: Int64s) -> pa.Array:
    """Return times as a column."""
    return to_arrow(ts).view(pa.timestamp("us"))


def part_names(parts: Sequence[Expression], prefix: str) -> dict[Expression, str]:
    """Return the names of the columns that parts of expressions are read from."""
    return {part: f"{prefix}{number}" for number, part in enumerate(parts)}


def with_columns(expression: Expression, names: Mapping[Expression, str]) -> Expression:
    """Return an expression with some of its parts read from columns."""
    name = names.get(expression)
    if name is not None:
        return Column(name, expression.type, expression.span)
    return rebuild(expression, lambda part: with_columns(part, names))
