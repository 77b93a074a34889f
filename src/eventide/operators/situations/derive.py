"""Situations as rows: the periods in which conditions hold, each when it is over."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.kernels.compiled import Int64s
from eventide.kernels.situations.runs import NEVER
from eventide.operators.dividing import Wanted, query_place
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.key_layers import KeyLayers
from eventide.operators.operator import Size
from eventide.operators.situations.keys import KeyedSituations
from eventide.operators.situations.runs import Derivation, RunState
from eventide.operators.situations.share import Share, in_shares, merged_rows
from eventide.operators.situations.state import (
    check_parts,
    read_parts,
    read_runs,
    write_parts,
    write_runs,
)
from eventide.operators.situations.values import Parts, RunValues, SymbolAggregates, merged_parts
from eventide.operators.state import join_parts, parts_of
from eventide.operators.stateful import Stateful
from eventide.plan.situations.nodes import Situations


@dataclass(frozen=True)
class SituationState:
    """Open situations by key, with partial aggregates for each symbol, and the next position."""

    keys: KeyLayers[KeyedSituations]
    position: int = 0


@dataclass(frozen=True, slots=True)
class FollowedKeys:
    """The state of some keys after a step, the numbers that these had in it, and results.

    Results of all keys are in order of `rank`; they have the numbers of keys and names.
    """

    held: KeyedSituations
    kept: Int64s
    rows: pa.RecordBatch
    rank: Int64s
    position: int


@dataclass(frozen=True)
class DeriveSituations(Stateful[SituationState]):
    """One row for each situation: its key, name, period and aggregates.

    Large batches of many keys are shared among `threads`.
    """

    reads_blocks = True

    node: Situations
    output_schema: pa.Schema
    threads: int = field(default=1, compare=False)
    derivation: Derivation = field(init=False)
    aggregates: SymbolAggregates = field(init=False)

    def __post_init__(self) -> None:
        node = self.node
        counted = frozenset(range(len(node.situations))) if node.aggregates else frozenset[int]()
        derivation = Derivation(node.keys, node.situations, node.gap_us, late=True, counted=counted)
        aggregates = SymbolAggregates(tuple(item.aggregate for item in node.aggregates))
        object.__setattr__(self, "derivation", derivation)
        object.__setattr__(self, "aggregates", aggregates)

    def initial_state(self) -> SituationState:
        """Return the state before the first batch."""
        nothing = (Parts.none(self.aggregates),) * len(self.node.situations)
        begun = self.derivation.initial_state()
        return SituationState(KeyLayers.of(self.keyed(begun, nothing)))

    def keyed(self, state: RunState, parts: tuple[Parts, ...]) -> KeyedSituations:
        """Return the state by key, and when keys are due; here no matches are counted."""
        none = np.zeros(len(state.keys), np.int64)
        pending = np.empty((0, len(self.node.situations)), np.int64)
        return KeyedSituations(
            state.keys, state.runs, parts, none, pending, self.node.gap_us, within_us=None
        )

    def step(
        self, state: SituationState, inputs: tuple[pa.RecordBatch, ...], until_us: int
    ) -> tuple[SituationState, pa.RecordBatch]:
        """Take events; return the situations that they end."""
        (events,) = inputs
        columns = [evaluate(key.expression, events) for key in self.node.keys]
        taken = state.keys.taken(columns, events.num_rows, until_us)
        position, spare = state.position, taken.is_whole
        done, keys = in_shares(
            lambda share: self.follow(share, events, position, until_us, spare=spare),
            taken,
            self.derivation,
            events,
            self.threads,
        )
        held = [each.held for each in done]
        after = held[0] if len(held) == 1 else held[0].joined(held[1:])
        kept = done[0].kept if len(done) == 1 else None
        names = pa.array([each.name for each in self.node.situations], pa.string())
        rows, ranks = [each.rows for each in done], [each.rank for each in done]
        results = merged_rows(rows, ranks, self.output_schema, self.threads, [*keys, names])
        layers = taken.put(after, until_us, kept)
        return SituationState(layers, done[0].position), results

    def follow(
        self,
        share: Share,
        events: pa.RecordBatch,
        position: int,
        until_us: int,
        *,
        spare: bool,
    ) -> FollowedKeys:
        """Return the situations of some keys that their events end, and the state after these."""
        derived = self.derivation.step(share, position, until_us)
        runs = derived.runs
        values = [
            RunValues.of(self.aggregates, derived, symbol, carried, events)
            for symbol, carried in enumerate(share.held.parts)
        ]
        ended = np.flatnonzero(runs.visible != NEVER)
        # By symbol, as the aggregates are, and in order of their starts.
        by_symbol = [ended[runs.symbol[ended] == symbol] for symbol in range(len(values))]
        by_symbol = [each[np.argsort(runs.start_pos[each], kind="stable")] for each in by_symbol]
        ended = np.concatenate(by_symbol)
        arrays = [to_arrow(share.first_key + runs.key[ended])] * len(self.node.keys)
        arrays.append(to_arrow(runs.symbol[ended]))
        arrays += [
            to_arrow(times).view(pa.timestamp("us"))
            for times in (runs.start_ts[ended], runs.end_ts[ended])
        ]
        if self.node.aggregates:
            finished = [each.at_end(own) for each, own in zip(values, by_symbol, strict=True)]
            arrays += [pa.concat_arrays(parts) for parts in zip(*finished, strict=True)]
        results = pa.RecordBatch.from_arrays(arrays, [f"c{n}" for n in range(len(arrays))])
        kept = np.flatnonzero(runs.end_pos == NEVER)
        parts = merged_parts(values, runs.symbol, kept)
        unused = np.zeros(len(derived.keys), np.bool_)
        spare = spare and share.is_whole
        after, keys = self.derivation.remember(derived, kept, unused, spare=spare)
        rank = runs.symbol[ended] * derived.position + runs.start_pos[ended]
        return FollowedKeys(self.keyed(after, parts), keys, results, rank, derived.position)

    def size(self, state: SituationState) -> Size:
        """Return the size of the state."""
        return Size(state.keys.weight, state.keys.nbytes)

    def of_keys(self, state: SituationState, wanted: Wanted) -> SituationState:
        """Return the situations for some queries."""
        return replace(state, keys=state.keys.of_keys(query_place(self.node), wanted))

    def united(self, state: SituationState, other: SituationState) -> SituationState:
        """Return the situations of both.

        Positions are compared within a key, and those to come are behind all that were given.
        """
        keys = state.keys.united(other.keys)
        return SituationState(keys, max(state.position, other.position))

    def write(self, state: SituationState) -> bytes:
        """Write the state out."""
        known = state.keys.whole
        runs = RunState(known.known, known.runs, state.position)
        parts = map(write_parts, known.parts)
        return join_parts([write_runs(runs, self.derivation), *parts])

    def read(self, written: bytes) -> SituationState:
        """Read back what `write` wrote."""
        runs, *parts = parts_of("situations", written, 1 + len(self.node.situations))
        loaded = tuple(read_parts(each, self.aggregates.schema) for each in parts)
        held = read_runs(runs, self.derivation)
        check_parts(loaded, held)
        return SituationState(KeyLayers.of(self.keyed(held, loaded)), held.position)
