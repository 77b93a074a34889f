"""Situations as rows: the periods for which conditions hold, each when it is over."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from eventide.batch import Batch
from eventide.kernels.situations import NEVER
from eventide.operators.situation_runs import Derivation, RunState
from eventide.operators.situation_state import (
    read_parts,
    read_runs,
    write_parts,
    write_runs,
)
from eventide.operators.situation_values import Parts, RunValues, SymbolAggregates, merged_parts
from eventide.operators.state import join_parts, parts_of
from eventide.operators.stateful import Stateful
from eventide.plan.nodes import Situations


@dataclass(frozen=True)
class SituationState:
    """Open situations, and parts of the aggregates of each symbol's."""

    runs: RunState
    parts: tuple[Parts, ...]


@dataclass(frozen=True)
class DeriveSituations(Stateful[SituationState]):
    """One row for each situation: its key, name, period and aggregates."""

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
        return SituationState(self.derivation.initial_state(), nothing)

    def step(self, state: SituationState, batch: Batch) -> tuple[SituationState, Batch]:
        """Take a batch in; return the situations that it ends."""
        derived = self.derivation.step(state.runs, batch.rows, batch.watermark_us)
        runs = derived.runs
        values = [
            RunValues.of(self.aggregates, derived, symbol, carried, batch.rows)
            for symbol, carried in enumerate(state.parts)
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
        after, _ = self.derivation.remember(derived, kept, unused)
        return SituationState(after, parts), Batch(results, batch.watermark_us)

    def write(self, state: SituationState) -> bytes:
        """Write the state out."""
        parts = map(write_parts, state.parts)
        return join_parts([write_runs(state.runs, self.derivation), *parts])

    def read(self, written: bytes) -> SituationState:
        """Read back what `write` wrote."""
        runs, *parts = parts_of("situations", written, 1 + len(self.node.situations))
        loaded = tuple(read_parts(each, self.aggregates.schema) for each in parts)
        return SituationState(read_runs(runs, self.derivation), loaded)
