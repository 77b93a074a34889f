"""Matches of temporal patterns: situations of a key whose periods lie as the pattern asks.

    events ─ share.py: by key ─ runs.py: changes ─ search.py: matches ─ report.py: rows

The state is the situations that matches may still need (those in the window and the open ones, with
their aggregates), statistics, and matches that wait to be confirmed. The order in which situations
are joined does not change the matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from eventide.arrays import no_rows
from eventide.instants import ALL_TIME, TimeRange
from eventide.kernels.compiled import Bools, Int64s
from eventide.kernels.situations.runs import NEVER, mark_needed
from eventide.operators.checking import require, require_within
from eventide.operators.columns import concat_batches
from eventide.operators.dividing import Wanted, query_place
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.key_layers import KeyLayers
from eventide.operators.operator import Size
from eventide.operators.situations.keys import KeyedSituations
from eventide.operators.situations.plan import PatternTables, Statistics, fixed_orders
from eventide.operators.situations.report import MatchPartials, MatchReporter
from eventide.operators.situations.runs import (
    LONGEST_US,
    Derivation,
    Derived,
    KeyStates,
    Runs,
    RunState,
)
from eventide.operators.situations.search import MatchSearch
from eventide.operators.situations.share import Share, in_shares, merged_rows
from eventide.operators.situations.state import (
    check_parts,
    read_floats,
    read_int64s,
    read_parts,
    read_runs,
    write_numbers,
    write_parts,
    write_runs,
)
from eventide.operators.situations.values import Parts, RunValues, merged_parts
from eventide.operators.state import join_parts, parts_of
from eventide.operators.stateful import Stateful
from eventide.plan.situations.nodes import TemporalPattern

MOST_EVENTS = 8192
"""This many events of open situations, and some more for each, wait before they are merged."""


@dataclass(frozen=True)
class PatternState:
    """The state of keys and their situations, the next position, and statistics.

    `least` is how many runs and keys were left when unneeded ones were last dropped, and
    `dropped_at` the position at that time.
    """

    keys: KeyLayers[KeyedSituations]
    statistics: Statistics
    position: int = 0
    least: int = 0
    dropped_at: int = 0

    def runs_of(self, part: KeyedSituations) -> RunState:
        """Return some keys and their runs, as the derivation of situations takes them."""
        return RunState(part.known, part.runs, self.position, self.least, self.dropped_at)


@dataclass(frozen=True, slots=True)
class FoundInShare:
    """The state of some keys after a step, the numbers that these had in it, and results.

    These are the matches that became certain and those confirmed, each with their positions.
    `dropped` says that what is not needed any more was dropped.
    """

    held: KeyedSituations
    kept: Int64s
    found: tuple[pa.RecordBatch, Int64s]
    confirmed: tuple[pa.RecordBatch, Int64s]
    statistics: Statistics
    position: int
    dropped: bool


@dataclass(frozen=True)
class MatchSituations(Stateful[PatternState]):
    """The rows of a temporal pattern; only of matches detected in `owned`.

    Large batches of many keys are shared among `threads`.
    `order` fixes the order of joining and `adaptive` lets it follow the data: for experiments, for
    neither changes an answer.
    """

    reads_blocks = True

    node: TemporalPattern
    output_schema: pa.Schema
    owned: TimeRange = ALL_TIME
    order: tuple[int, ...] | None = None
    adaptive: bool = True
    threads: int = field(default=1, compare=False)
    derivation: Derivation = field(init=False)
    reporter: MatchReporter = field(init=False)
    tables: PatternTables = field(init=False)
    search: MatchSearch = field(init=False)

    def __post_init__(self) -> None:
        node = self.node
        reporter = MatchReporter.of(node, self.output_schema)
        late = node.detection == "final"
        derivation = Derivation(node.keys, node.situations, node.gap_us, late, reporter.counted)
        object.__setattr__(self, "reporter", reporter)
        object.__setattr__(self, "derivation", derivation)
        object.__setattr__(self, "tables", PatternTables.of(node))
        adaptive = self.adaptive and self.order is None
        search = MatchSearch(node, self.tables, self.owned, reporter.counts_only, adaptive)
        object.__setattr__(self, "search", search)

    @property
    def symbols(self) -> int:
        """How many situations a match has."""
        return len(self.node.situations)

    def initial_state(self) -> PatternState:
        """Return the state before the first batch."""
        statistics = Statistics.initial(self.tables, self.symbols)
        if self.order is not None:
            statistics.orders[:] = fixed_orders(self.order)
        begun = self.derivation.initial_state()
        parts = tuple(map(Parts.none, self.reporter.aggregates))
        reported = np.zeros(0 if self.node.keys else 1, np.int64)
        pending = np.empty((0, self.symbols), np.int64)
        return PatternState(
            KeyLayers.of(self.keyed(begun.keys, begun.runs, parts, reported, pending)), statistics
        )

    def keyed(
        self,
        known: KeyStates,
        runs: Runs,
        parts: tuple[Parts, ...],
        reported: Int64s,
        pending: Int64s,
    ) -> KeyedSituations:
        """Return the state by key, and when keys are due."""
        gap_us, within_us = self.node.gap_us, self.node.within_us
        return KeyedSituations(known, runs, parts, reported, pending, gap_us, within_us)

    def step(
        self, state: PatternState, inputs: tuple[pa.RecordBatch, ...], until_us: int
    ) -> tuple[PatternState, pa.RecordBatch]:
        """Take events; return the matches that become certain with them."""
        (rows,) = inputs
        columns = [evaluate(key.expression, rows) for key in self.node.keys]
        taken = state.keys.taken(columns, rows.num_rows, until_us)
        done, _ = in_shares(
            lambda share: self.found_in(share, rows, state, until_us, spare=taken.is_whole),
            taken,
            self.derivation,
            rows,
            self.threads,
        )
        schema = self.output_schema
        results = [
            merged_rows([rows for rows, _ in part], [at for _, at in part], schema, self.threads)
            for part in ([each.found for each in done], [each.confirmed for each in done])
        ]
        held = [each.held for each in done]
        after = held[0] if len(held) == 1 else held[0].joined(held[1:])
        kept = done[0].kept if len(done) == 1 else None
        # What one share has learnt serves all: no order of joining changes the matches.
        first, size = done[0], len(after.runs) + len(after.reported)
        is_due = first.dropped or len(done) > 1
        least, dropped_at = (size, first.position) if is_due else (state.least, state.dropped_at)
        layers = taken.put(after, until_us, kept)
        return (
            PatternState(layers, first.statistics, first.position, least, dropped_at),
            concat_batches(results, self.output_schema),
        )

    def found_in(
        self,
        share: Share,
        rows: pa.RecordBatch,
        state: PatternState,
        until_us: int,
        *,
        spare: bool,
    ) -> FoundInShare:
        """Return the matches of some keys that become certain, and the state after these."""
        held, position = share.held, state.position
        derived = self.derivation.step(share, position, until_us)
        values = [
            RunValues.of(aggregates, derived, symbol, carried, rows)
            for symbol, (aggregates, carried) in enumerate(
                zip(self.reporter.aggregates, held.parts, strict=True)
            )
        ]
        reported = np.zeros(len(derived.keys), np.int64)
        reported[: len(held.reported)] = held.reported
        statistics = state.statistics.copy()
        results: list[pa.RecordBatch] = []
        places: list[Int64s] = [np.empty(0, np.int64)]
        pending = held.pending
        sums: list[MatchPartials] = []
        for found in self.search.matches(derived, reported, statistics):
            if self.reporter.sums_up:
                sums.append(self.reporter.partials(found, derived, values))
                continue
            results.append(self.reporter.report(found, derived, values))
            places.append(derived.changes.position[found.change])
            if self.node.confirm:
                unsettled = found.members[self.reporter.is_open(found, derived)]
                pending = np.concatenate([pending, unsettled])
        if sums:
            change, rows = self.reporter.summed_up(sums, derived)
            results.append(rows)
            places.append(derived.changes.position[change])
        confirmed, ends = no_rows(self.output_schema), np.empty(0, np.int64)
        if len(pending):
            ends = derived.runs.end_pos[pending].max(axis=1)
            settled = np.flatnonzero(ends != NEVER)
            settled = settled[np.argsort(ends[settled], kind="stable")]
            confirmed = self.reporter.confirm(pending[settled], derived, values)
            pending, ends = pending[ends == NEVER], ends[settled]
        parts = tuple(each.parts for each in values)
        known = self.keyed(derived.keys, derived.runs, parts, reported, pending)
        many = any(len(each.run) > MOST_EVENTS + 4 * len(derived.runs) for each in parts)
        kept = np.arange(len(reported))
        spare = spare and share.is_whole
        before = RunState(held.known, held.runs, position, state.least, state.dropped_at)
        dropped = not spare or many or self.derivation.is_due(before, derived)
        if dropped:
            known, kept = self.compacted(known, derived, values, until_us, spare=spare)
        found_rows = concat_batches(results, self.output_schema)
        return FoundInShare(
            known,
            kept,
            (found_rows, np.concatenate(places)),
            (confirmed, ends),
            statistics,
            derived.position,
            dropped,
        )

    def size(self, state: PatternState) -> Size:
        """Return the size of the state."""
        return Size(state.keys.weight, state.keys.nbytes)

    def compacted(
        self,
        known: KeyedSituations,
        derived: Derived,
        values: list[RunValues],
        watermark_us: int,
        *,
        spare: bool,
    ) -> tuple[KeyedSituations, Int64s]:
        """Return the state without what no later event can need, with its parts merged.

        And the keys that are left, by number. What has nothing to be left out stays as it is.
        """
        needed = np.zeros(len(derived.runs), np.bool_)
        needed[known.pending.ravel()] = True
        used = (known.reported > 0) | (derived.keys.held != 0)
        unneeded = self.mark(derived, watermark_us, needed, used)
        if not unneeded and not any(each.are_many for each in values):
            return known, np.arange(len(known.known))
        kept = np.flatnonzero(needed)
        left, keys = self.derivation.remember(derived, kept, known.reported > 0, spare=spare)
        place = np.full(len(derived.runs), -1, np.int64)
        place[kept] = np.arange(len(kept))
        parts = merged_parts(values, derived.runs.symbol, kept)
        reported, pending = known.reported[keys], place[known.pending]
        return self.keyed(left.keys, left.runs, parts, reported, pending), keys

    def mark(self, derived: Derived, watermark_us: int, needed: Bools, used: Bools) -> int:
        """Mark the runs that later events may need, and keys with some; return how many are left.

        These are the open runs and those in the window of any later event. The members of matches
        that wait to be confirmed are marked already.
        """
        runs, within_us = derived.runs, min(self.node.within_us, LONGEST_US)
        columns = (runs.key, runs.start_ts, runs.end_pos, runs.visible)
        last_ts = derived.keys.last_ts
        return mark_needed(columns, last_ts, watermark_us, within_us, needed, used)

    def of_keys(self, state: PatternState, wanted: Wanted) -> PatternState:
        """Return the situations for some queries, and the statistics of all.

        How many were left at the last tidying is not known of these: they are due for the next.
        """
        keys = state.keys.of_keys(query_place(self.node), wanted)
        return replace(state, keys=keys, least=0)

    def united(self, state: PatternState, other: PatternState) -> PatternState:
        """Return the situations of both, with the statistics of one.

        These only guide the order of joining, which changes no match. Positions are compared
        within a key, and those to come are behind all that were given.
        """
        return PatternState(
            state.keys.united(other.keys),
            state.statistics,
            max(state.position, other.position),
            state.least + other.least,
            min(state.dropped_at, other.dropped_at),
        )

    def write(self, state: PatternState) -> bytes:
        """Write the state out."""
        statistics, known = state.statistics, state.keys.whole
        whole = (known.reported, known.pending.ravel(), statistics.counts, statistics.orders)
        moving = statistics.moving[:4]
        return join_parts(
            [
                write_runs(state.runs_of(known), self.derivation),
                *map(write_numbers, whole),
                *map(write_numbers, moving),
                *map(write_parts, known.parts),
            ]
        )

    def read(self, written: bytes) -> PatternState:
        """Read back what `write` wrote."""
        runs, *parts = parts_of("the pattern", written, 9 + self.symbols)
        reported, pending, counts, orders = map(read_int64s, parts[:4])
        sizes, shares, planned_sizes, planned_shares = map(read_floats, parts[4:8])
        carried = zip(parts[8:], self.reporter.aggregates, strict=True)
        held = read_runs(runs, self.derivation)
        loaded = tuple(read_parts(part, each.schema) for part, each in carried)
        members = pending.reshape(-1, self.symbols)
        statistics = Statistics(sizes, shares, planned_sizes, planned_shares, counts, orders)
        self.check_read(held, loaded, reported, members, statistics)
        known = self.keyed(held.keys, held.runs, loaded, reported, members)
        layers = KeyLayers.of(known)
        return PatternState(layers, statistics, held.position, held.least, held.dropped_at)

    def check_read(
        self,
        held: RunState,
        parts: Sequence[Parts],
        reported: Int64s,
        pending: Int64s,
        found: Statistics,
    ) -> None:
        """Refuse a state with wrong members of matches or wrong orders of joining."""
        check_parts(parts, held)
        runs, symbols = held.runs, self.symbols
        require(len(reported) <= len(held.keys), "matches of keys that are none")
        require_within(reported, 0, 2**62, "matches of keys")
        require_within(pending.ravel(), 0, len(runs), "members of matches")
        require((runs.symbol[pending] == np.arange(symbols)).all(), "a member of another symbol")
        same = runs.key[pending] == runs.key[pending[:, :1]]
        require(same.all(), "a match with members of several keys")
        wanted = Statistics.initial(self.tables, symbols)
        for one, other in zip(
            (*found.moving, found.orders), (*wanted.moving, wanted.orders), strict=True
        ):
            require(len(one) == len(other), "statistics of another pattern")
        for number in found.moving[:4]:
            require(np.isfinite(number).all(), "statistics that are no numbers")
        require_within(found.counts, 0, 2**62, "counts of positions")
        orders = found.orders.reshape(symbols, symbols)
        require((np.sort(orders) == np.arange(symbols)).all(), "an order of other situations")
        require((orders[:, 0] == np.arange(symbols)).all(), "an order that begins elsewhere")
