"""Patterns with keys, or over filtered rows: periods in the rows of each key.

The numbers of events do not say which rows of one key are neighbours. So the key columns, and those
of conditions below the pattern, are read for all units that count; that gives each row its place
among the rows of its key. With these places as numbers, candidates are found as usual, for all keys
at once. Then only the rows of their periods are read in full.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa

from eventide.engines.history.patterns.candidates import FARTHEST, KEY_SHIFT, Periods, places_of
from eventide.engines.history.patterns.conditions import scan_columns
from eventide.engines.history.patterns.replay import ReplayOutcome, below, matched, merged
from eventide.engines.history.patterns.slices import matcher_of
from eventide.instants import TimeRange
from eventide.kernels.compiled import Bools, Int32s, Int64s, frozen
from eventide.kernels.grouping import number_events, order_by_key
from eventide.kernels.keys import search_keys
from eventide.kernels.ordering import ranges, sort_pairs
from eventide.operators.columns import encode_more
from eventide.operators.expressions.evaluate import evaluate, evaluate_predicate
from eventide.operators.key_parts import SMALLEST_PART
from eventide.operators.patterns.match import MatchRows
from eventide.operators.patterns.state import Excerpts
from eventide.operators.tree import OperatorTree
from eventide.plan.expressions import Expression, columns_of, substituted
from eventide.plan.nodes import Filter, Project
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.tree import Plan
from eventide.schema import SEQ, TS
from eventide.store.order import int64_view
from eventide.store.reading.hits import Hits
from eventide.store.reading.leaves import Units
from eventide.store.reading.rows import NumberedRows
from eventide.threads import in_threads

UNITS_READ = 64
"""How many units are read at a time."""
MOST_ROWS = 100_000_000
"""With more rows, what is known of each would not fit into memory: some 32 bytes."""


@dataclass(frozen=True)
class KeyedRows:
    """The rows of a pattern in order: key, time and place of each, and where it is stored.

    `stored` numbers rows by units, from the first row of the first unit on.
    """

    keys: tuple[pa.Array, ...]
    codes: Int32s
    ts: Int64s
    seq: Int64s
    stored: Int64s
    places: Int64s

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.codes)

    @cached_property
    def by_key(self) -> tuple[Int64s, Int64s]:
        """The rows key by key, and where each key begins."""
        order = np.empty(self.count, np.int64)
        offsets = np.zeros(key_count(self.keys) + 1, np.int64)
        order_by_key(self.codes, offsets, order)
        return order, offsets

    def by_key_and_place(self, hits: Hits, *, in_order: bool) -> Hits:
        """Return the events that are rows of the pattern, numbered by key and place."""
        rows = self.rows_of(hits, in_order=in_order)
        rows = rows[rows >= 0]
        numbers = (self.codes[rows].astype(np.int64) << KEY_SHIFT) + self.places[rows]
        sorted_numbers, times = np.empty_like(numbers), np.empty_like(numbers)
        sort_pairs(frozen(numbers), frozen(self.ts[rows]), sorted_numbers, times)
        return Hits(times, sorted_numbers)

    def rows_of(self, hits: Hits, *, in_order: bool) -> Int64s:
        """Return the rows that some events are; -1 for those that are none."""
        if in_order:
            return places_of(hits.seq, self.seq)
        found = np.full(len(hits), -1, np.int64)
        places = np.searchsorted(self.ts, hits.ts)
        waiting = np.flatnonzero(places < self.count)
        # Events of one instant stand side by side, in the order of their numbers.
        while len(waiting):
            rows = places[waiting]
            same = self.seq[rows] == hits.seq[waiting]
            found[waiting[same]] = rows[same]
            places[waiting] += 1
            waiting = waiting[~same]
            waiting = waiting[places[waiting] < self.count]
            waiting = waiting[self.ts[places[waiting]] == hits.ts[waiting]]
        return found


@dataclass(frozen=True)
class KeyReader:
    """Reads the columns that decide the rows of a pattern and their keys."""

    node: MatchRecognize
    units: Units
    time_range: TimeRange

    @cached_property
    def keys(self) -> tuple[Expression, ...]:
        """The keys, over columns of the scan."""
        below = scan_columns(self.node.source)
        return tuple(substituted(key.expression, below) for key in self.node.keys)

    @cached_property
    def filters(self) -> tuple[Expression, ...]:
        """The conditions on rows of the pattern, over columns of the scan."""
        return tuple(filters_of(self.node.source))

    @cached_property
    def names(self) -> list[str]:
        """The columns to read."""
        used = frozenset[str]().union(*map(columns_of, (*self.keys, *self.filters)))
        return sorted({TS, SEQ, *used})

    def read(self, scope: Bools) -> KeyedRows:
        """Return the rows of the units in a scope."""
        known: list[pa.Array] = [pa.nulls(0, key.type.arrow) for key in self.keys]
        places = np.flatnonzero(scope)
        parts: list[tuple[Int32s, Int64s, Int64s, Int64s]] = []
        for start in range(0, len(places), UNITS_READ):
            rows, stored = self.rows_of(places[start : start + UNITS_READ])
            fresh = [evaluate(key, rows) for key in self.keys]
            codes, known, _ = encode_more(known, fresh, rows.num_rows)
            parts.append((codes, int64_view(rows.column(TS)), int64_view(rows.column(SEQ)), stored))
        integers = [np.empty(0, np.int64) for _ in range(3)]
        codes = np.concatenate([np.empty(0, np.int32), *(part[0] for part in parts)])
        ts, seq, stored = (
            np.concatenate([integers[n], *(part[n + 1] for part in parts)]) for n in range(3)
        )
        numbers, seen = np.empty(len(codes), np.int64), np.zeros(key_count(known), np.int64)
        number_events(frozen(codes), seen, numbers)
        return KeyedRows(tuple(known), frozen(codes), ts, seq, stored, numbers)

    def rows_of(self, units: Int64s) -> tuple[pa.RecordBatch, Int64s]:
        """Return the rows of some units that are rows of the pattern, and where they are stored."""
        rows = pa.concat_batches(self.units.read(units, self.names))
        begins = np.cumsum(self.units.rows) - self.units.rows
        stored = ranges(begins[units], self.units.rows[units])
        ts = int64_view(rows.column(TS))
        passed = (ts >= self.time_range.start_us) & (ts < self.time_range.end_us)
        for condition in self.filters:
            found = evaluate_predicate(condition, rows)
            passed &= np.asarray(found.to_numpy(zero_copy_only=False))
        if passed.all():
            return rows, stored
        return rows.filter(pa.array(passed)), stored[passed]


def key_count(keys: Sequence[pa.Array]) -> int:
    """Return how many keys there are; without key columns, one."""
    return len(keys[0]) if keys else 1


def filters_of(plan: Plan) -> Iterator[Expression]:
    """Yield the conditions below a pattern, over columns of the scan."""
    match plan:
        case Filter(source=source, condition=condition):
            yield from filters_of(source)
            yield substituted(condition, scan_columns(source))
        case Project(source=source):
            yield from filters_of(source)


@dataclass(frozen=True)
class KeyedReplay:
    """Reads the periods of keys and finds the matches there."""

    tree: OperatorTree
    units: Units
    rows: KeyedRows

    @cached_property
    def matcher(self) -> MatchRows:
        """The operator that finds matches."""
        return matcher_of(self.tree)

    def run(self, periods: Periods) -> ReplayOutcome:
        """Return the rows of all matches, computed in threads."""
        start, end = self.intervals(periods)
        if not len(start):
            return ReplayOutcome([])
        order, offsets = self.rows.by_key
        key = np.searchsorted(offsets, start, "right") - 1
        low = np.maximum(start - self.matcher.reach_back, offsets[key])
        high = np.minimum(end + self.matcher.reach_ahead, offsets[key + 1])
        wanted = self.rows.stored[order[ranges(low, high - low)]]
        stored = NumberedRows(self.units)
        rows = stored.take(wanted, self.tree.input_schema)
        units = len(np.unique(np.searchsorted(stored.ends, wanted, "right")))
        bounds = np.concatenate([[0], np.cumsum(high - low)])
        keys = tuple(each.take(pa.array(key)) for each in self.rows.keys)
        begin, finish = bounds[:-1] + (start - low), bounds[:-1] + (end - low)
        whole = Excerpts(below(self.tree, rows), keys, bounds, begin, finish)
        done = in_threads(
            lambda part: matched(self.tree, self.matcher, part),
            parts_of(whole),
            os.cpu_count() or 1,
        )
        return ReplayOutcome([b for part in done for b in part], len(wanted), units, len(start))

    def intervals(self, periods: Periods) -> tuple[Int64s, Int64s]:
        """Return the intervals [start, end) of rows by key in which matches can lie."""
        order, offsets = self.rows.by_key
        # A block that would begin before its key does has a number of no key.
        periods = periods.only(periods.key < len(offsets) - 1)
        ts = self.rows.ts[order]
        ends = []
        for wanted, after in ((periods.start_us, False), (periods.end_us, True)):
            found = np.empty(len(wanted), np.int64)
            search_keys(ts, offsets, frozen(periods.key), frozen(wanted), after, found)
            ends.append(found)
        base = offsets[periods.key] - (periods.key << KEY_SHIFT)
        first, last = offsets[periods.key], offsets[periods.key + 1]
        known = periods.first > -FARTHEST
        start = np.where(known, np.maximum(ends[0], periods.first + base), ends[0])
        known = periods.last < FARTHEST
        end = np.where(known, np.minimum(ends[1], periods.last + base + 1), ends[1])
        return merged(np.clip(start, first, last), np.clip(end, first, last))


def parts_of(excerpts: Excerpts) -> Iterator[Excerpts]:
    """Yield excerpts, some at a time, so that threads can share them."""
    count = len(excerpts.offsets) - 1
    parts = max(1, min(2 * (os.cpu_count() or 1), excerpts.rows.num_rows // SMALLEST_PART))
    wanted = np.linspace(0, excerpts.rows.num_rows, parts + 1)[1:-1]
    cuts = np.unique([0, *np.searchsorted(excerpts.offsets, wanted), count])
    for first, last in pairwise(cuts.tolist()):
        low, high = int(excerpts.offsets[first]), int(excerpts.offsets[last])
        yield Excerpts(
            excerpts.rows.slice(low, high - low),
            tuple(key.slice(first, last - first) for key in excerpts.keys),
            excerpts.offsets[first : last + 1] - low,
            excerpts.begin[first:last] - low,
            excerpts.end[first:last] - low,
        )
