"""A pattern over a snapshot, and what its index says about it before anything is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from eventide.engines.history.patterns.asked import ASKED, AskedPlan
from eventide.engines.history.patterns.candidates import FARTHEST, Periods, periods_of
from eventide.engines.history.patterns.conditions import Clause, Condition, Shape
from eventide.engines.history.patterns.estimate import PatternFacts
from eventide.engines.history.patterns.keyed import KeyedRows, KeyReader
from eventide.engines.history.patterns.pattern_map import kept_units, meets
from eventide.engines.history.patterns.replay import Intervals, intervals_of
from eventide.engines.history.patterns.slices import matcher_of
from eventide.engines.history.patterns.sparse import united
from eventide.engines.history.weights import Weights
from eventide.instants import TimeRange
from eventide.kernels.compiled import Bools
from eventide.operators.patterns.match import MatchRows
from eventide.operators.tree import OperatorTree
from eventide.plan.expressions import MatchNumber, walk
from eventide.plan.nodes import Filter, Project, Scan, match_of, scans_of
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.patterns.tree import PartitionEnd, PartitionStart, can_be_empty, walk_pattern
from eventide.plan.tree import Plan
from eventide.store.reading.hits import Hits, hits_of, reach_of, sampled_times
from eventide.store.reading.leaves import Units, units_of
from eventide.store.reading.rows import runs_of
from eventide.store.snapshot import Snapshot

PARTS = 12
"""Into how many parts time is divided to see when the events of a condition were."""
MOST_BY_PART = 10
LEAST_SAMPLE = 256
UNEVEN = 1.5
"""A smaller excess over the average is taken for chance."""


def why_replay(node: MatchRecognize) -> str | None:
    """Return why a pattern has to see all events, or None if some periods are enough."""
    parts = list(walk_pattern(node.pattern))
    expressions = [item.expression for item in (*node.defines, *node.measures)]
    numbered = any(isinstance(p, MatchNumber) for each in expressions for p in walk(each))
    reasons = {
        "rows are in an order of their own": bool(node.order) or not node.source.in_order,
        "what is below the pattern remembers rows": not is_plain(node.source),
        "a match can last any time without WITHIN": node.within_us is None,
        "^ and $ ask for the ends of the partition": any(
            isinstance(part, PartitionStart | PartitionEnd) for part in parts
        ),
        "matches are numbered": numbered,
        "rows in no match are wanted too": node.output == "with unmatched",
        "matches that ran out of time are wanted too": node.timeout_rows,
        "a match can be empty": can_be_empty(node.pattern),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def is_plain(plan: Plan) -> bool:
    """Whether a plan passes on rows of a scan one by one."""
    match plan:
        case Scan():
            return True
        case Filter(source=source) | Project(source=source):
            return is_plain(source)
    return False


@dataclass(frozen=True)
class PatternQuestion:
    """A pattern over a snapshot, with what its index says about it."""

    asked: AskedPlan
    snapshot: Snapshot
    time_range: TimeRange
    by_key: bool = False
    """Whether the rows of each key, or those that pass a filter, are looked at by themselves."""
    found: dict[Clause, Hits] = field(default_factory=dict, repr=False)

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self.asked.plan

    @property
    def node(self) -> MatchRecognize:
        """The pattern."""
        return self.asked.node

    @property
    def shape(self) -> Shape:
        """The rows that every match has."""
        return self.asked.shape

    @property
    def symbols(self) -> range:
        """The rows of the skeleton, by number."""
        return range(len(self.shape.skeleton.symbols))

    @cached_property
    def units(self) -> Units:
        """The units to read."""
        return units_of(self.snapshot)

    @property
    def numbered(self) -> bool:
        """Whether numbers count the rows of the pattern: those of events, or by key."""
        return self.by_key or (self.is_plain and self.units.in_order)

    @property
    def is_plain(self) -> bool:
        """Whether all events are rows of the pattern, and belong to one sequence."""
        return not self.node.keys and not self.shape.filtered

    @property
    def tree(self) -> OperatorTree:
        """The operators of the plan."""
        return self.asked.tree

    @property
    def matcher(self) -> MatchRows:
        """The operator that finds matches."""
        return matcher_of(self.tree)

    @property
    def looks_around(self) -> bool:
        """Whether PREV or NEXT read rows around a match."""
        return bool(self.matcher.reach_back or self.matcher.reach_ahead)

    @cached_property
    def rows(self) -> KeyedRows:
        """The rows of the pattern with their keys."""
        inside = (self.units.ts_max >= self.time_range.start_us) & (
            self.units.ts_min < self.time_range.end_us
        )
        # The row of a key before a period can be anywhere.
        scope = inside if self.looks_around else self.kept
        return KeyReader(self.node, self.units, self.time_range).read(scope)

    @property
    def within_us(self) -> int:
        """How long a match may last."""
        assert self.node.within_us is not None
        # As good as no limit, and no sum with a time overflows.
        return min(self.node.within_us, 2**61)

    @cached_property
    def kept(self) -> Bools:
        """The units that may have a part of a match."""
        return kept_units(self.units, self.shape, self.within_us, self.time_range)

    def hits(self, condition: Condition) -> Hits:
        """Return the events that meet a condition; each is looked up once."""
        clause = condition.clause
        if clause not in self.found:
            in_order = self.units.in_order
            self.found[clause] = hits_of(self.snapshot, clause, self.time_range, in_order=in_order)
        return self.found[clause]

    def named(self, condition: Condition) -> str:
        """Return a condition with the variables it is about."""
        variables = sorted(self.shape.skeleton.symbols[condition.symbol].variables)
        return f"{' or '.join(variables)}: {condition.text}"

    @property
    def regions(self) -> list[TimeRange]:
        """The times of units that the map has kept, neighbours merged."""
        begins, behind = runs_of(self.kept)
        first, last = self.units.ts_min[begins], self.units.ts_max[behind - 1]
        return [
            TimeRange(start, end + 1).intersect(self.time_range)
            for start, end in zip(first.tolist(), last.tolist(), strict=True)
        ]

    @cached_property
    def is_sparse(self) -> bool:
        """Whether only rows that meet a condition matter, and these are known by their numbers."""
        return self.asked.has_only_gaps and not self.by_key and self.units.in_order

    def covers(self, chosen: Sequence[Condition]) -> bool:
        """Whether conditions say which rows matter: there is one on every row of the skeleton."""
        return self.is_sparse and {each.symbol for each in chosen} == set(self.symbols)

    def rows_that_matter(self, chosen: Sequence[Condition]) -> Hits:
        """Return the only rows that matter, where chosen conditions say which."""
        # Several symbols may have the same conditions.
        together = {frozenset(c.clause for c in chosen if c.symbol == n): n for n in self.symbols}
        return united(
            [
                [self.hits(each) for each in chosen if each.symbol == symbol]
                for symbol in together.values()
            ]
        )

    def intervals(self, periods: Periods) -> Intervals:
        """Return the rows of periods, within what the map has kept."""
        return intervals_of(self.units, self.kept, periods, self.time_range, numbered=self.numbered)

    def periods(self, chosen: Sequence[Condition]) -> Periods:
        """Return periods that hold all matches, by some conditions or by the map alone."""
        if chosen:
            hits = {each: self.hits(each) for each in chosen}
            if self.by_key:
                in_order = self.units.in_order
                hits = {
                    each: self.rows.by_key_and_place(found, in_order=in_order)
                    for each, found in hits.items()
                }
            return periods_of(self.shape, self.within_us, hits, numbered=self.numbered)
        start_us = np.array([each.start_us for each in self.regions], np.int64)
        end_us = np.array([each.end_us - 1 for each in self.regions], np.int64)
        none = np.full(len(start_us), FARTHEST, np.int64)
        return Periods(start_us, end_us, -none, none, np.zeros_like(none))

    def facts(self, weights: Weights) -> PatternFacts:
        """Return what is known of the conditions before anything is read."""
        units, kept = self.units, self.kept
        rows = int(units.rows[kept].sum())
        conditions = self.shape.conditions
        clauses = {
            each.clause: reach_of(self.snapshot, each.clause, self.time_range)
            for each in conditions
        }
        reaches = [clauses[each.clause] for each in conditions]
        counted = [max(1, int(units.rows[each].sum())) for each in self.possible]
        shares = np.array([reach.events for reach in reaches]) / np.array(counted)
        time_us = float((units.ts_max[kept] - units.ts_min[kept] + 1).sum())
        columns = len(self.tree.scan.columns)
        begin = weights.period_start
        if self.by_key:
            begin += weights.key_row * (int(units.rows.sum()) if self.looks_around else rows)
        return PatternFacts(
            self.shape,
            self.within_us,
            self.numbered,
            rows,
            int(kept.sum()),
            # Units end with their last event; the time up to the next event belongs to none.
            time_us * (1 + int(kept.sum()) / max(1, rows)),
            columns,
            self.row_seconds(weights),
            begin,
            self.key_count() if self.by_key else 1,
            reaches,
            np.minimum(shares, 1.0),
            np.ones((1, len(conditions))),
            self.is_sparse,
        )

    @cached_property
    def possible(self) -> list[Bools]:
        """The units in which each condition can be met."""
        return [self.kept & meets(self.units, [each]) for each in self.shape.conditions]

    def looked_at_by_part(self, facts: PatternFacts) -> PatternFacts:
        """Return the facts with the distribution of each condition's events over time.

        It comes from indexes, otherwise from the units where the condition can be met. If all
        events are spread evenly, or there are too many choices to look at each part of time,
        nothing changes.
        """
        conditions, units, kept = self.shape.conditions, self.units, self.kept
        if len(conditions) > MOST_BY_PART or facts.units < PARTS:
            return facts
        reached = np.cumsum(units.rows[kept])
        cuts = np.searchsorted(reached, np.linspace(0, reached[-1], PARTS + 1)[1:-1])
        edges = units.ts_min[kept][cuts]
        found = np.ones((PARTS, len(conditions)))
        for number, condition in enumerate(conditions):
            times, counts = sampled_times(self.snapshot, condition.clause, self.time_range)
            if len(times) < LEAST_SAMPLE:
                possible = self.possible[number]
                times, counts = units.ts_min[possible], units.rows[possible].astype(np.float64)
            spread = np.bincount(np.searchsorted(edges, times, "right"), counts, PARTS)
            found[:, number] = spread * PARTS / max(spread.sum(), 1.0)
        if not (found.max(axis=0) > UNEVEN).any():
            return facts
        events = np.array([reach.events for reach in facts.reaches])
        return replace(facts, shares=np.minimum(events / max(1, facts.rows), 1.0), profiles=found)

    def row_seconds(self, weights: Weights) -> float:
        """Return how long the matcher takes for a row."""
        tested = sum(condition is not None for condition in self.matcher.local)
        each = weights.match_row if self.matcher.is_local else weights.match_search
        keyed = weights.match_key if self.node.keys else 0.0
        return each + tested * weights.match_condition + keyed

    def key_count(self) -> int:
        """Return the approximate number of keys: those in the middle unit."""
        places = np.flatnonzero(self.kept)
        if not self.node.keys or not len(places):
            return 1
        some = np.zeros(self.units.count, np.bool_)
        some[places[len(places) // 2]] = True
        rows = KeyReader(self.node, self.units, self.time_range).read(some)
        return max(1, len(rows.keys[0]))


def pattern_question(plan: Plan, snapshot: Snapshot) -> PatternQuestion | str:
    """Return what to look up for a block's pattern, or why it has to see all events."""
    node = match_of(plan)
    if node is None:
        return "it looks for no pattern"
    reason = why_replay(node)
    if reason is not None:
        return reason
    (scan,) = scans_of(plan)
    question = PatternQuestion(ASKED.find(plan, node), snapshot, scan.time_range)
    if not question.shape.conditions:
        return "no row that every match has is compared with a constant"
    return question
