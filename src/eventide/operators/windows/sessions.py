"""Sessions: events of a key that follow one another with less than a gap between them.

    ts     0  2  5        20  23          gap 10
           x  x  x         x  x
          [ 0 … 15 )      [ 20 … 33 )     a session ends a gap after its last event

A key has at most one open session, because events come in order of time. The state is the partial
results of open sessions. A session is complete when the watermark reaches its end; then its key is
forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa

from eventide.accumulators import Accumulator, Groups
from eventide.accumulators.columns import int64s
from eventide.arrays import no_rows, to_arrow
from eventide.instants import END_OF_TIME_US
from eventide.kernels.compiled import Int64s, frozen
from eventide.operators.aggregate import accumulator_of, lift
from eventide.operators.checking import filled, require, require_keys, require_within
from eventide.operators.columns import concat_batches, encode_keys
from eventide.operators.dividing import Wanted, query_place
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.key_layers import KeyLayers
from eventide.operators.operator import Size
from eventide.operators.state import read_rows, write_rows
from eventide.operators.stateful import Stateful
from eventide.plan.windows.nodes import Sessions, WindowAggregate
from eventide.schema import MAX_TS_US, MIN_TS_US

BOUNDS = ("first", "last")
"""The times of the first and of the last event of a session, behind its keys."""


@dataclass(frozen=True)
class OpenSessions:
    """The open session of each key: the key, its bounds, its partial results."""

    partials: pa.RecordBatch
    gap_us: int
    width: int
    """The number of key columns."""

    @property
    def keys(self) -> tuple[pa.Array, ...]:
        """The columns of the keys."""
        return tuple(self.partials.columns[: self.width])

    @cached_property
    def due(self) -> Int64s:
        """The last instant of each session."""
        return int64s(self.partials.column("last")) + (self.gap_us - 1)

    @property
    def weight(self) -> int:
        """How many sessions are open."""
        return int(self.partials.num_rows)

    @property
    def nbytes(self) -> int:
        """How many bytes they take."""
        return int(self.partials.nbytes)

    def take(self, keys: Int64s) -> Self:
        """Return the sessions of some keys, by number."""
        return type(self)(self.partials.take(to_arrow(keys)), self.gap_us, self.width)

    def joined(self, others: Sequence[Self]) -> Self:
        """Return these sessions, then others."""
        partials = [self.partials, *(other.partials for other in others)]
        together = concat_batches(partials, self.partials.schema)
        return type(self)(together, self.gap_us, self.width)


@dataclass(frozen=True)
class AggregateSessions(Stateful[KeyLayers[OpenSessions]]):
    """One row for each session, when the watermark reaches its end; in order of ends, starts."""

    node: WindowAggregate
    output_schema: pa.Schema
    gap_us: int = field(init=False)
    accumulators: tuple[Accumulator, ...] = field(init=False)
    partial_schema: pa.Schema = field(init=False)

    def __post_init__(self) -> None:
        assert isinstance(self.node.window, Sessions)
        accumulators = tuple(accumulator_of(item.aggregate) for item in self.node.aggregates)
        fields = [pa.field(f"key{i}", key.type.arrow) for i, key in enumerate(self.node.keys)]
        fields += [pa.field(name, pa.int64()) for name in BOUNDS]
        for i, accumulator in enumerate(accumulators):
            fields += [pa.field(f"a{i}_{j}", kind) for j, kind in enumerate(accumulator.types)]
        object.__setattr__(self, "gap_us", self.node.window.gap_us)
        object.__setattr__(self, "accumulators", accumulators)
        object.__setattr__(self, "partial_schema", pa.schema(fields))

    def initial_state(self) -> KeyLayers[OpenSessions]:
        """Return the state before the first batch."""
        return KeyLayers.of(self.opened(no_rows(self.partial_schema)))

    def opened(self, partials: pa.RecordBatch) -> OpenSessions:
        """Return partial results as the state of their keys."""
        return OpenSessions(partials, self.gap_us, len(self.node.keys))

    def step(
        self, layers: KeyLayers[OpenSessions], inputs: tuple[pa.RecordBatch, ...], until_us: int
    ) -> tuple[KeyLayers[OpenSessions], pa.RecordBatch]:
        """Take events; return the sessions that end at or before `until_us`."""
        (rows,) = inputs
        columns = [evaluate(key.expression, rows) for key in self.node.keys]
        taken = layers.taken(columns, rows.num_rows, until_us)
        lifted = self.lift(rows, columns)
        sessions = self.merge(concat_batches([taken.part.partials, lifted], self.partial_schema))
        over = int64s(sessions.column("last")) + self.gap_us <= until_us
        kept = self.opened(sessions.filter(to_arrow(~over)))
        return taken.put(kept, until_us), self.finish(sessions.filter(to_arrow(over)))

    def reached(self, state: KeyLayers[OpenSessions], until_us: int) -> int:  # noqa: ARG002
        """Return the instant before which all sessions are reported: those that end now are."""
        return until_us if until_us == END_OF_TIME_US else until_us + 1

    def size(self, layers: KeyLayers[OpenSessions]) -> Size:
        """Return the size of the state."""
        return Size(layers.weight, layers.nbytes)

    def lift(self, rows: pa.RecordBatch, keys: list[pa.Array]) -> pa.RecordBatch:
        """Return each event as a session of its own."""
        ts = to_arrow(int64s(rows.column("ts")))
        arrays = [*keys, ts, ts]
        for item, accumulator in zip(self.node.aggregates, self.accumulators, strict=True):
            arrays += lift(item.aggregate, accumulator, rows)
        return pa.RecordBatch.from_arrays(arrays, schema=self.partial_schema)

    def merge(self, partials: pa.RecordBatch) -> pa.RecordBatch:
        """Merge sessions of a key with less than a gap between them; those of a key are in order.

        The sessions of a key stay in order, so the last one is the one that may be open.
        """
        width = len(self.node.keys)
        codes, _, _ = encode_keys(partials.columns[:width], partials.num_rows)
        by_key = np.argsort(codes, kind="stable")
        first, last = (int64s(partials.column(name))[by_key] for name in BOUNDS)
        begins = np.ones(len(by_key), np.bool_)
        begins[1:] = (codes[by_key][1:] != codes[by_key][:-1]) | (
            first[1:] - last[:-1] >= self.gap_us
        )
        of_row = np.empty(len(by_key), np.int64)
        of_row[by_key] = np.cumsum(begins) - 1
        starts = np.flatnonzero(begins)
        ends = np.append(starts[1:], len(by_key)) - 1
        groups = Groups(frozen(of_row), len(starts))
        picked = to_arrow(by_key[starts])
        arrays = [key.take(picked) for key in partials.columns[:width]]
        arrays += [to_arrow(first[starts]), to_arrow(last[ends[: len(starts)]])]
        for accumulator, parts in zip(self.accumulators, self.split(partials), strict=True):
            arrays += accumulator.by_group(parts, groups)
        return pa.RecordBatch.from_arrays(arrays, schema=self.partial_schema)

    def split(self, partials: pa.RecordBatch) -> list[list[pa.Array]]:
        """Return each accumulator's columns."""
        columns, split = partials.columns[len(self.node.keys) + len(BOUNDS) :], []
        for accumulator in self.accumulators:
            width = len(accumulator.types)
            split.append(columns[:width])
            columns = columns[width:]
        return split

    def finish(self, sessions: pa.RecordBatch) -> pa.RecordBatch:
        """Turn sessions that are over into result rows."""
        first, last = (int64s(sessions.column(name)) for name in BOUNDS)
        bounds = [to_arrow(first), to_arrow(last + self.gap_us)]
        arrays = sessions.columns[: len(self.node.keys)]
        arrays += [bound.view(pa.timestamp("us")) for bound in bounds]
        for accumulator, parts in zip(self.accumulators, self.split(sessions), strict=True):
            arrays.append(accumulator.finish(parts))
        rows = pa.RecordBatch.from_arrays(arrays, schema=self.output_schema)
        return rows.take(to_arrow(np.lexsort((first, last))))

    def of_keys(self, layers: KeyLayers[OpenSessions], wanted: Wanted) -> KeyLayers[OpenSessions]:
        """Return the state of the keys of some queries."""
        return layers.of_keys(query_place(self.node), wanted)

    def united(
        self, layers: KeyLayers[OpenSessions], other: KeyLayers[OpenSessions]
    ) -> KeyLayers[OpenSessions]:
        """Return the state of the keys of both."""
        return layers.united(other)

    def write(self, layers: KeyLayers[OpenSessions]) -> bytes:
        """Write the state out."""
        facts = {"watermark_us": layers.watermark_us}
        return write_rows(type(self).__name__, layers.whole.partials, facts)

    def read(self, written: bytes) -> KeyLayers[OpenSessions]:
        """Read back what `write` wrote."""
        partials, facts = read_rows(type(self).__name__, written, self.partial_schema)
        first, _ = checked_bounds(partials)
        require_keys(partials.columns[: len(self.node.keys)], len(first))
        return KeyLayers.of(self.opened(partials), facts["watermark_us"])


def checked_bounds(sessions: pa.RecordBatch) -> tuple[Int64s, Int64s]:
    """Return the bounds of sessions that were read back; refuse those that cannot be."""
    first, last = (filled(sessions.column(name), "bounds of sessions") for name in BOUNDS)
    require_within(first, MIN_TS_US, MAX_TS_US + 1, "starts of sessions")
    require_within(last, MIN_TS_US, MAX_TS_US + 1, "last events of sessions")
    require(bool((first <= last).all()), "a session that ends before it starts")
    return first, last
