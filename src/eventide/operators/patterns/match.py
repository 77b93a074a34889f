"""Row pattern recognition: rows in, matches out, undecided rows kept.

A start row is decided when its preferred match is certain, or certain not to exist: until then, the
next rows may change what a greedy pattern prefers. Everything before the first undecided start row
of a key is done; from there on (and as far back as PREV reads) the key's rows are the state.
Results do not depend on how rows are divided into batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial

import numpy as np
import pyarrow as pa

from eventide.arrays import no_rows
from eventide.instants import ALL_TIME, END_OF_TIME_US, START_OF_TIME_US, TimeRange
from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.ordering import ranges
from eventide.kernels.patterns.code import Tables
from eventide.kernels.patterns.ground import Automaton
from eventide.kernels.patterns.notes import Predecessors
from eventide.kernels.patterns.remainder import DUE, FACTS, RestRules
from eventide.kernels.patterns.scan import scan
from eventide.kernels.patterns.search import search, searchable
from eventide.kernels.patterns.tables import (
    CONTIGUOUS,
    NEXT_ROW,
    NO_ANSWER,
    PAST_LAST,
    PAUSED,
    SKIP_TILL_ANY,
    SKIP_TILL_NEXT,
    TO_FIRST,
    TO_LAST,
    Partitions,
    Rows,
    Rules,
    Steps,
)
from eventide.operators.columns import concat_batches
from eventide.operators.dividing import Wanted, query_place
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.key_layers import KeyLayers
from eventide.operators.key_parts import KeyColumns, key_parts, row_parts
from eventide.operators.operator import Size
from eventide.operators.patterns.arranged import RowOrder, StepWork
from eventide.operators.patterns.conditions import Conditions, compile_conditions
from eventide.operators.patterns.found import (
    check_outcome,
    predecessors_of,
    scanned_matches,
    searched_matches,
)
from eventide.operators.patterns.masks import (
    LocalCondition,
    Masks,
    RowsByKey,
    marks_of,
    masks_of,
)
from eventide.operators.patterns.measures import MatchChains, Measure, Naming
from eventide.operators.patterns.remainder import NO_TIMES, due_times, remainder
from eventide.operators.patterns.report import Report
from eventide.operators.patterns.row_tests import RowTests
from eventide.operators.patterns.state import Excerpts, MatchState, joined, part_of
from eventide.operators.patterns.written_state import WrittenForm, read_state, write_state
from eventide.operators.stateful import Stateful
from eventide.plan.expressions import At, MatchNumber, columns_of, walk
from eventide.plan.patterns.automaton import PatternAutomaton
from eventide.plan.patterns.looking_back import looks_back
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.threads import in_threads

MOST_ELEMENTS = 4_000_000
"""How many matched rows are held before their results are computed."""

_NO_NUMBERS, _NO_MARKS = frozen(np.empty(0, np.int64)), frozen(np.empty(0, np.bool_))
NOTHING_LEFT = Partitions(
    frozen(np.zeros(1, np.int64)), _NO_NUMBERS, _NO_NUMBERS, _NO_MARKS, _NO_NUMBERS, _NO_NUMBERS
)
"""Where no key stands: all are done."""

LONGEST_US = 2**61
"""As good as no limit, and no sum with a time overflows."""

STRATEGIES = {
    "contiguous": CONTIGUOUS,
    "skip_till_next": SKIP_TILL_NEXT,
    "skip_till_any": SKIP_TILL_ANY,
}
SKIPS = {
    "past last row": PAST_LAST,
    "next row": NEXT_ROW,
    "first": TO_FIRST,
    "last": TO_LAST,
}


StepPart = tuple[MatchState, Int64s, list[pa.RecordBatch]]
"""The state of some keys after a step, the numbers that they had in it, and results."""


Run = tuple[MatchChains, Partitions, int, int]
"""Matches, where each key stands after them, and how the matcher ended, at which start row."""


@dataclass(frozen=True)
class MatchRows(Stateful[KeyLayers[MatchState]]):
    """Finds the matches of a pattern in the rows of each key.

    Only matches that start in `owned` are reported, and only rows there as unmatched. Large
    batches of many keys are shared among `threads`.
    """

    reads_blocks = True

    node: MatchRecognize
    output_schema: pa.Schema
    owned: TimeRange = ALL_TIME
    threads: int = field(default=1, compare=False)

    def __getstate__(self) -> dict[str, object]:
        """Pickle without computed arrays: they would arrive writable, as another type."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def conditions(self) -> Conditions:
        """The pattern as an automaton, and the conditions of its variables."""
        return compile_conditions(self.node)

    @property
    def automaton(self) -> PatternAutomaton:
        """The pattern as an automaton."""
        return self.conditions.automaton

    @cached_property
    def local(self) -> tuple[LocalCondition | None, ...]:
        """The conditions on single rows."""
        return tuple(
            None if each is None else LocalCondition.of(each) for each in self.conditions.local
        )

    @cached_property
    def row_tests(self) -> RowTests | None:
        """The conditions on single rows, if they only compare numbers."""
        return RowTests.of(self.local, self.source_schema)

    @cached_property
    def report(self) -> Report:
        """The output for matches."""
        naming = Naming(self.automaton, self.node.subsets)
        measures = tuple(map(Measure.of, self.node.measures))
        return Report(self.node, self.output_schema, self.owned, naming, measures)

    @property
    def steps(self) -> Steps:
        """The automaton as arrays."""
        return self.conditions.steps

    @cached_property
    def searched_steps(self) -> Automaton:
        """The automaton as arrays for the search."""
        return searchable(self.steps)

    @cached_property
    def before(self) -> Predecessors:
        """The predecessors of nodes, as bits."""
        return predecessors_of(self.automaton)

    @cached_property
    def no_results(self) -> pa.RecordBatch:
        """Results without a row."""
        return no_rows(self.output_schema)

    @cached_property
    def source_schema(self) -> pa.Schema:
        """The columns of the rows."""
        return pa.schema([(name, kind.arrow) for name, kind in self.node.source.row.items()])

    @property
    def naming(self) -> Naming:
        """The variables and subsets of the pattern."""
        return self.report.naming

    @cached_property
    def is_local(self) -> bool:
        """Whether all conditions read single rows, so that two passes find the matches."""
        plain = self.node.strategy == "contiguous" and not self.node.timeout_rows
        return plain and self.conditions.is_local

    @cached_property
    def row_order(self) -> RowOrder:
        """How the rows of a step are put in order."""
        marks, schema = self.shows_unmatched, self.source_schema
        return RowOrder(schema, self.reach_ahead, self.is_timeless, marks, self.threads)

    @cached_property
    def is_timeless(self) -> bool:
        """Whether it does not matter when rows are."""
        return self.is_local and self.node.within_us is None

    @property
    def shows_unmatched(self) -> bool:
        """Whether the output has rows in no match, so that matched rows have to be marked."""
        return self.report.shows_unmatched

    @property
    def why_search(self) -> str:
        """Why two passes are not enough."""
        if self.node.strategy != "contiguous":
            return f"{self.node.strategy} may leave rows out"
        if self.node.timeout_rows:
            return "matches that ran out of time are wanted too"
        return "conditions read the match"

    @cached_property
    def reach_back(self) -> int:
        """How many rows before a match are read."""
        return max(self.conditions.reach_back, *(-shift for shift in self.shifts()), 0)

    @cached_property
    def keeps_back(self) -> int:
        """How many rows before a start row a match from there may read.

        PREV at a row that always has that many rows of the match before it reads no further.
        """
        return looks_back(self.node, self.automaton)

    @cached_property
    def reach_ahead(self) -> int:
        """How many rows behind a row are read."""
        return max(self.conditions.reach_ahead, *self.shifts(), 0)

    @cached_property
    def remembers_keys(self) -> bool:
        """Whether keys have to be kept even without rows."""
        numbered = any(
            isinstance(part, MatchNumber)
            for item in (*self.node.measures, *self.node.defines)
            for part in walk(item.expression)
        )
        return numbered or bool(self.steps.at_start.any())

    def shifts(self) -> list[int]:
        """Return how far the measures read from a row of the match, in rows of the partition."""
        parts = (part for item in self.node.measures for part in walk(item.expression))
        return [0, *(part.shift for part in parts if isinstance(part, At))]

    def initial_state(self) -> KeyLayers[MatchState]:
        """Return the state before the first batch."""
        rows = no_rows(self.source_schema)
        keys = tuple(pa.nulls(0, key.type.arrow) for key in self.node.keys)
        nothing = np.empty((FACTS, 0), np.int64)
        return KeyLayers.of(MatchState(rows, keys, nothing, np.empty(0, np.bool_)))

    def step(
        self, state: KeyLayers[MatchState], inputs: tuple[pa.RecordBatch, ...], until_us: int
    ) -> tuple[KeyLayers[MatchState], pa.RecordBatch]:
        """Take rows; return the matches that are certain now."""
        (rows,) = inputs
        keys = [evaluate(key.expression, rows) for key in self.node.keys]
        taken = state.taken(keys, rows.num_rows, until_us)
        # No start row of other keys has run out of time since they were looked at.
        rules = self.rules(state.watermark_us, until_us)
        work = self.row_order.arranged(taken, rows, rules.ended)
        cut = key_parts(work.by_key.offsets, self.threads)
        if len(cut) == 1:
            after, stayed, results = self.step_part(work, rules)
            return taken.put(after, until_us, stayed), self.one_batch(results)
        done = in_threads(
            lambda part: self.step_part(part, rules), self.parts(work, cut), self.threads
        )
        after = joined([after for after, _, _ in done], self.source_schema)
        found_rows = self.one_batch([batch for _, _, found in done for batch in found])
        return taken.put(after, until_us), found_rows

    def one_batch(self, results: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """Return all results as one batch."""
        return concat_batches(results, self.output_schema) if results else self.no_results

    def reached(self, state: KeyLayers[MatchState], until_us: int) -> int:
        """Return the instant before which no match will end that is still to be reported.

        A match that is not decided begins at the first start row to decide or later. Of one row for
        each match, the time is that of its last row; otherwise each row has its own.
        """
        if until_us == END_OF_TIME_US:
            return until_us
        fewest = 1 if self.node.all_rows else max(1, self.automaton.shortest)
        return state.least(lambda held: held.times_at(fewest - 1, until_us), until_us)

    def size(self, state: KeyLayers[MatchState]) -> Size:
        """Return the size of the state."""
        return Size(state.weight, state.nbytes)

    def rows_in(self, excerpts: Excerpts) -> Iterator[pa.RecordBatch]:
        """Yield the results of excerpts that have nothing to do with one another."""
        offsets = excerpts.offsets
        count = len(offsets) - 1
        order = np.arange(excerpts.rows.num_rows)
        by_key = RowsByKey(excerpts.rows, order, offsets, in_key_order=True)
        nothing, never = np.zeros(count, np.int64), np.zeros(count, np.bool_)
        parts = Partitions(
            frozen(offsets),
            frozen(excerpts.begin),
            frozen(offsets[1:]),
            frozen(never),
            frozen(offsets[:-1]),
            frozen(nothing),
        )
        hidden = ranges(excerpts.end, offsets[1:] - excerpts.end)
        rules = self.rules(START_OF_TIME_US, END_OF_TIME_US)
        matched, keys = np.empty(0, np.bool_), KeyColumns(excerpts.keys)
        for found, moved in self.find(by_key, parts, rules, hidden):
            if found.count:
                decided = (parts.begin, moved.begin)
                yield self.report.rows_from(by_key, keys, found, matched, decided)
            parts = moved

    def parts(self, work: StepWork, cut: Sequence[tuple[int, int]]) -> Iterator[StepWork]:
        """Yield ranges of keys with their rows."""
        by_key = work.by_key
        if not by_key.in_key_order:
            by_key = replace(by_key, marks=self.marks(by_key.rows))
        for first, last in cut:
            state = part_of(work.state, by_key.offsets, first, last)
            yield StepWork(by_key.part(first, last), state, work.keys.part(first, last))

    def marks(self, rows: pa.RecordBatch) -> Masks:
        """Return which conditions on nothing but the row hold, computed in threads."""
        bounds = row_parts(rows.num_rows, self.threads)
        parts = [rows.slice(first, last - first) for first, last in bounds]
        return np.concatenate(in_threads(partial(marks_of, self.local), parts))

    def step_part(self, work: StepWork, rules: Rules) -> StepPart:
        """Find the matches of some keys, and the state that has to be kept of them."""
        by_key, state, parts = work.by_key, work.state, work.parts
        if parts is None:
            parts = self.row_order.partitions(by_key, state, rules.ended)
        matched = state.matched.copy()
        results = []
        for found, moved in self.find(by_key, parts, rules):
            if found.count or self.shows_unmatched:
                decided = (parts.begin, moved.begin)
                results.append(self.report.rows_from(by_key, work.keys, found, matched, decided))
            parts = moved
        if rules.ended:
            # No row will follow.
            parts = NOTHING_LEFT
        keeping = self.keeping(rules.watermark_us)._replace(idle=work.idle)
        after, stayed = remainder(by_key, work.keys, parts, matched, keeping)
        return after, stayed, [batch for batch in results if batch.num_rows]

    @cached_property
    def fixed_rules(self) -> Rules:
        """How matches are looked for, apart from the time."""
        within = self.node.within_us
        skip = self.node.skip
        chosen = self.naming.numbers(skip.variable) if skip.variable else frozenset[int]()
        return Rules(
            strategy=STRATEGIES[self.node.strategy],
            within_us=-1 if within is None else min(within, LONGEST_US),
            skip_to=SKIPS[skip.to],
            skip_set=sum(1 << number for number in chosen),
            timeouts=self.node.timeout_rows,
        )

    def rules(self, last_watermark_us: int, watermark_us: int) -> Rules:
        """Return how matches are looked for in this step."""
        return self.fixed_rules._replace(
            watermark_us=watermark_us,
            last_watermark_us=last_watermark_us,
            ended=watermark_us == END_OF_TIME_US,
        )

    def find(
        self, by_key: RowsByKey, parts: Partitions, rules: Rules, hidden: Int64s | None = None
    ) -> Iterator[tuple[MatchChains, Partitions]]:
        """Yield matches, and where each key stands after them. No match has a hidden row."""
        masks = self.masks_of(by_key)
        if hidden is not None:
            masks[hidden] = 0
        times = NO_TIMES if self.is_timeless else by_key.times
        rows = Rows(frozen(times), frozen(masks))
        tables = None if self.is_local else self.tables(by_key)
        status = PAUSED
        while status == PAUSED:
            if tables is None:
                matches, parts, status, where = self.scanned(rows, parts, rules)
            else:
                matches, parts, status, where = self.searched(tables, rows, parts, rules)
            check_outcome(self.node, status, where, by_key)
            yield matches, parts

    def masks_of(self, by_key: RowsByKey) -> Masks:
        """Return, for each row in key order, which conditions on single rows hold."""
        tests = None if by_key.marks is not None else self.row_tests
        masks = None if tests is None else tests.masks_of(by_key)
        return masks_of(self.local, by_key) if masks is None else masks

    def tables(self, by_key: RowsByKey) -> Tables:
        """Return the values that conditions read at rows of a match."""
        names = sorted(frozenset[str]().union(*map(columns_of, self.conditions.values)))
        return self.conditions.tables(by_key.select(names))

    def scanned(self, rows: Rows, parts: Partitions, rules: Rules) -> Run:
        """Find matches in two passes: all conditions read single rows."""
        key_range = (0, len(parts.begin))
        found = scan(self.steps, self.before, rows, parts, rules, key_range, MOST_ELEMENTS)
        moved = parts._replace(begin=frozen(found.undecided), numbers=frozen(found.numbers))
        matches = scanned_matches(found, shares=rules.skip_to == NEXT_ROW)
        return matches, moved, found.status, found.where

    def searched(self, tables: Tables, rows: Rows, parts: Partitions, rules: Rules) -> Run:
        """Search for matches: conditions read the match, or rows may be skipped."""
        found = search(self.searched_steps, self.conditions.code, tables, rows, parts, rules)
        if found.status == NO_ANSWER:
            raise self.conditions.no_answer(found.instruction)
        moved = parts._replace(begin=frozen(found.next), numbers=frozen(found.numbers))
        return searched_matches(found), moved, found.status, found.where

    def keeping(self, watermark_us: int) -> RestRules:
        """Return how much is kept of a key."""
        within = self.node.within_us
        within = -1 if within is None else min(within, LONGEST_US)
        watermark_us = max(watermark_us, -LONGEST_US)
        return RestRules(self.keeps_back, self.remembers_keys, within, watermark_us)

    @cached_property
    def written_form(self) -> WrittenForm:
        """What a written state has."""
        marks, ahead = self.shows_unmatched, self.reach_ahead
        return WrittenForm(self.node, self.source_schema, marks, ahead, self.remembers_keys)

    def of_keys(self, layers: KeyLayers[MatchState], wanted: Wanted) -> KeyLayers[MatchState]:
        """Return the state of the keys of some queries."""
        return layers.of_keys(query_place(self.node), wanted)

    def united(
        self, layers: KeyLayers[MatchState], other: KeyLayers[MatchState]
    ) -> KeyLayers[MatchState]:
        """Return the state of the keys of both."""
        return layers.united(other)

    def write(self, layers: KeyLayers[MatchState]) -> bytes:
        """Write the state out."""
        return write_state(self.written_form, layers)

    def read(self, written: bytes) -> KeyLayers[MatchState]:
        """Read back what `write` wrote."""
        held = read_state(self.written_form, written)
        rows, kept = held.rows, held.kept
        offsets = np.concatenate([[0], np.cumsum(kept)])
        by_key = RowsByKey(rows, np.arange(rows.num_rows), offsets, in_key_order=True)
        matched = held.matched if self.shows_unmatched else held.matched[:0]
        ended = held.watermark_us == END_OF_TIME_US
        parts = self.row_order.partitions(by_key, held, ended)
        held.facts[DUE] = due_times(by_key, parts, self.keeping(held.watermark_us))
        return KeyLayers.of(replace(held, matched=matched), held.watermark_us)
