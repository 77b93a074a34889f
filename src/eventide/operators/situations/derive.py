"""Situations as rows: the periods in which conditions hold, each when it is over."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from eventide.kernels.situations.runs import NEVER
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.key_layers import KeyLayers
from eventide.operators.operator import Size
from eventide.operators.situations.keys import KeyedSituations
from eventide.operators.situations.runs import Derivation, RunState
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


@dataclass(frozen=True)
class DeriveSituations(Stateful[SituationState]):
    """One row for each situation: its key, name, period and aggregates."""

    reads_blocks = True

    node: Situations
    output_schema: pa.Schema
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
        none = np.zeros(len(state.keys.held), np.int64)
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
        before = RunState(taken.part.known, taken.part.runs, state.position)
        derived = self.derivation.step(before, events, taken.numbered(), until_us)
        runs = derived.runs
        values = [
            RunValues.of(self.aggregates, derived, symbol, carried, events)
            for symbol, carried in enumerate(taken.part.parts)
        ]
        ended = np.flatnonzero(runs.visible != NEVER)
        # By symbol, as the aggregates are.
        ended = ended[np.argsort(runs.symbol[ended], kind="stable")]
        rows = pa.array(runs.key[ended])
        names = pa.array([each.name for each in self.node.situations], pa.string())
        arrays = [key.take(rows) for key in derived.keys.keys]
        arrays.append(names.take(pa.array(runs.symbol[ended])))
        arrays += [
            pa.array(times).view(pa.timestamp("us"))
            for times in (runs.start_ts[ended], runs.end_ts[ended])
        ]
        if self.node.aggregates:
            finished = [
                each.at_end(ended[runs.symbol[ended] == symbol])
                for symbol, each in enumerate(values)
            ]
            arrays += [pa.concat_arrays(parts) for parts in zip(*finished, strict=True)]
        results = pa.RecordBatch.from_arrays(arrays, schema=self.output_schema)
        kept = np.flatnonzero(runs.end_pos == NEVER)
        parts = merged_parts(values, runs.symbol, kept)
        unused = np.zeros(len(derived.keys.held), np.bool_)
        after, keys = self.derivation.remember(derived, kept, unused, spare=taken.is_whole)
        layers = taken.put(self.keyed(after, parts), until_us, keys)
        return SituationState(layers, derived.position), results

    def size(self, state: SituationState) -> Size:
        """Return the size of the state."""
        return Size(state.keys.weight, state.keys.nbytes)

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
