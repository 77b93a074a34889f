"""The ways to find a row pattern in stored events: by the map alone, or by conditions as well."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from eventide.engines.history.access import Cost, StopWatch
from eventide.engines.history.patterns.conditions import Condition
from eventide.engines.history.patterns.estimate import Estimates, estimates
from eventide.engines.history.patterns.keyed import MOST_ROWS, KeyedReplay
from eventide.engines.history.patterns.question import PatternQuestion, pattern_question
from eventide.engines.history.patterns.replay import PeriodReplay, ReplayOutcome
from eventide.engines.history.patterns.selection import best_choice
from eventide.engines.history.patterns.sparse import SparseReplay
from eventide.engines.history.replay import SLICE_ROWS, run_slices
from eventide.engines.history.slices import NoEntryError, halo_of, slices_within
from eventide.engines.history.weights import Weights
from eventide.plan.nodes import scans_of
from eventide.plan.tree import Plan
from eventide.store.snapshot import Snapshot
from eventide.threads import in_threads

WORTH_A_LOOK = 0.05
"""Below this many seconds, looking when events were takes longer than a better choice could save.
"""
UNKNOWN = Cost(0.0)


@dataclass(frozen=True)
class IntervalAccess:
    """Replay of the periods that some conditions leave; without conditions, that the map leaves."""

    question: PatternQuestion
    chosen: tuple[Condition, ...]
    estimate: Cost = UNKNOWN

    @property
    def name(self) -> str:
        """What kind of way it is."""
        return "intervals" if self.chosen else "map"

    def describe(self) -> str:
        """Return what it does, in a line for people."""
        units = self.question.units
        kept = f"{int(self.question.kept.sum()):,} of {units.count:,} leaves"
        if not self.chosen:
            return f"replay {kept}, which the map of the pattern leaves"
        asked = ", ".join(map(self.question.named, self.chosen))
        periods = "periods of each key" if self.question.by_key else "periods"
        if self.question.covers(self.chosen):
            periods = f"rows of these in the {periods}"
        return f"look up {asked}; replay the {periods} that remain, within {kept}"

    def run(self) -> tuple[list[pa.RecordBatch], Cost]:
        """Return the rows, and the measured cost."""
        question = self.question
        question.snapshot.check_whole(question.time_range)
        watch = StopWatch()
        if not question.covers(self.chosen):
            watch.step("map of the pattern", int(question.kept.sum()))
        if question.by_key:
            watch.step("keys of rows", question.rows.count)
        if self.chosen:
            clauses = {each.clause: each for each in self.chosen}
            found = in_threads(question.hits, clauses.values(), os.cpu_count() or 1)
            named = ", ".join(map(question.named, self.chosen))
            watch.step(f"look up {named}", sum(map(len, found)))
        periods = question.periods(self.chosen)
        watch.step("candidates", len(periods))
        if not self.chosen and halo_of(question.plan) is not None:
            done = replay_regions(question)
        elif question.covers(self.chosen):
            only = question.rows_that_matter(self.chosen)
            sparse = SparseReplay(question.tree, question.units, only)
            done = sparse.run_among(sparse.among(periods, numbered=question.numbered))
        elif question.by_key:
            done = KeyedReplay(question.tree, question.units, question.rows).run(periods)
        else:
            done = PeriodReplay(question.tree, question.units).run(question.intervals(periods))
        watch.step("read and match", sum(rows.num_rows for rows in done.results))
        entries = sum(len(question.hits(each)) for each in self.chosen)
        cost = Cost(watch.total, done.rows, done.units, entries, done.intervals, watch.steps)
        return done.results, cost


def replay_regions(question: PatternQuestion) -> ReplayOutcome:
    """Return the matches that begin in units the map has kept; long runs of them in slices."""
    regions = question.regions
    (scan,) = scans_of(question.plan)
    slices = slices_within(question.plan, scan, question.snapshot, regions, SLICE_ROWS)
    try:
        results = run_slices(question.plan, question.snapshot, slices) if slices else []
    except NoEntryError:
        return PeriodReplay(question.tree, question.units).run(
            question.intervals(question.periods(()))
        )
    kept = question.kept
    return ReplayOutcome(
        results, int(question.units.rows[kept].sum()), int(kept.sum()), len(regions)
    )


def pattern_ways(plan: Plan, snapshot: Snapshot, weights: Weights) -> list[IntervalAccess] | str:
    """Return the ways through the index: by the best conditions, and by the map."""
    question = pattern_question(plan, snapshot)
    if isinstance(question, str):
        return question
    if question.is_plain:
        return best_ways(question, weights, with_map=True)
    found = []
    if not question.looks_around:
        found = best_ways(question, weights, with_map=True)
    if snapshot.row_count <= MOST_ROWS:
        keyed = replace(question, by_key=True)
        found += [each for each in best_ways(keyed, weights, with_map=False) if each.chosen]
    if not found and snapshot.row_count > MOST_ROWS:
        return f"PREV and NEXT look around in the rows of a key, and these are over {MOST_ROWS:,}"
    return found or "looking up conditions would save nothing"


@dataclass(frozen=True, slots=True)
class ChoiceQuestion:
    """What a choice of conditions depends on, beside the events that are in no segment yet."""

    pattern: str
    version: int
    """That of the manifest: sealed segments with their indexes do not change."""
    weights: Weights
    by_key: bool
    with_map: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """Conditions to look up, by their numbers in the shape, and the expected cost."""

    conditions: tuple[int, ...]
    estimate: Cost


def best_ways(
    question: PatternQuestion, weights: Weights, *, with_map: bool
) -> list[IntervalAccess]:
    """Return the way by the best conditions, and the one by the map alone if wanted.

    A choice is kept until the stream has grown: to look at all conditions again would take longer
    than to look up the chosen ones.
    """
    snapshot = question.snapshot
    asked = ChoiceQuestion(
        question.asked.digest, snapshot.version, weights, question.by_key, with_map
    )
    found = snapshot.found(asked, lambda: best_choices(question, weights, with_map=with_map))
    conditions = question.shape.conditions
    return [
        IntervalAccess(question, tuple(conditions[n] for n in each.conditions), each.estimate)
        for each in found
    ]


def best_choices(question: PatternQuestion, weights: Weights, *, with_map: bool) -> list[Choice]:
    """Return the best conditions, and none of them if the map alone is wanted too."""
    facts = question.facts(weights)
    best = best_choice(facts, weights)
    if estimates(facts, np.array([best]), weights).seconds[0] > WORTH_A_LOOK:
        facts = question.looked_at_by_part(facts)
        best = best_choice(facts, weights) if len(facts.profiles) > 1 else best
    choices = np.array([best]) if best.any() or with_map else best[:0].reshape(0, len(best))
    if with_map and best.any():
        choices = np.array([np.zeros_like(best), best])
    found = estimates(facts, choices, weights)
    return [
        Choice(
            tuple(np.flatnonzero(row).tolist()),
            Cost(float(found.seconds[n]), *estimated(found, n)),
        )
        for n, row in enumerate(choices)
    ]


def estimated(found: Estimates, number: int) -> tuple[int, int, int, int]:
    """Return rows, units, entries and intervals of one choice."""
    columns = (found.rows, found.units, found.entries, found.intervals)
    rows, units, entries, intervals = (round(float(each[number])) for each in columns)
    return rows, units, entries, intervals
