"""Sessions that take late events as long as they are open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide.accumulators import Groups
from eventide.accumulators.columns import int64s
from eventide.arrays import no_rows, to_arrow
from eventide.instants import END_OF_TIME_US
from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.ordering import ranges
from eventide.operators.checking import (
    filled,
    require,
    require_ascending_in_runs,
    require_keys,
)
from eventide.operators.columns import concat_batches, encode_keys
from eventide.operators.dividing import Wanted, query_place
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.key_layers import KeyLayers
from eventide.operators.operator import Size
from eventide.operators.state import join_parts, parts_of, read_rows, write_rows
from eventide.operators.stateful import Stateful
from eventide.operators.windows.late import Bools, needs_order
from eventide.operators.windows.sessions import BOUNDS, AggregateSessions, checked_bounds
from eventide.plan.windows.nodes import WindowAggregate


@dataclass(frozen=True)
class LateSessions:
    """The open session of each key, and its partials in order of time: one, or one an event."""

    sessions: pa.RecordBatch
    """The keys and bounds."""
    partials: pa.RecordBatch
    """Without keys: the bounds of what each covers, and the columns of accumulators."""
    offsets: Int64s
    """The partials of session i are those from offsets[i] to before offsets[i + 1]."""
    gap_us: int

    @property
    def keys(self) -> tuple[pa.Array, ...]:
        """The columns of the keys."""
        return tuple(self.sessions.columns[: -len(BOUNDS)])

    @cached_property
    def due(self) -> Int64s:
        """The last instant of each session."""
        return int64s(self.sessions.column("last")) + (self.gap_us - 1)

    @property
    def weight(self) -> int:
        """How many sessions and partials there are."""
        return int(self.sessions.num_rows + self.partials.num_rows)

    @property
    def nbytes(self) -> int:
        """How many bytes they take."""
        return int(self.sessions.nbytes + self.partials.nbytes)

    def take(self, keys: Int64s) -> Self:
        """Return the sessions of some keys, by number."""
        counts = self.offsets[1:][keys] - self.offsets[keys]
        places = ranges(self.offsets[keys], counts)
        return type(self)(
            self.sessions.take(to_arrow(keys)),
            self.partials.take(to_arrow(places)),
            offsets_of(counts),
            self.gap_us,
        )

    def joined(self, others: Sequence[Self]) -> Self:
        """Return these sessions, then others."""
        parts = [self, *others]
        return type(self)(
            concat_batches([each.sessions for each in parts], self.sessions.schema),
            concat_batches([each.partials for each in parts], self.partials.schema),
            offsets_of(np.concatenate([np.diff(each.offsets) for each in parts])),
            self.gap_us,
        )

    @property
    def of_partial(self) -> Int64s:
        """The session of each partial."""
        return np.repeat(np.arange(self.sessions.num_rows), np.diff(self.offsets))


def offsets_of(counts: Int64s) -> Int64s:
    """Return where each of some lists begins, and where the last one ends, from their lengths."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


@dataclass(frozen=True)
class Clusters:
    """Rows by session: events of a key with less than a gap between them."""

    order: Int64s
    """The rows in order of sessions, those of a session in order of time."""
    of_row: Int64s
    """The session of each row, in that order."""
    starts: Int64s
    """Where each session begins, in that order."""
    first: Int64s
    last: Int64s
    """The bounds of each session."""

    @classmethod
    def of(cls, codes: npt.NDArray[Any], first: Int64s, last: Int64s, gap_us: int) -> Self:
        """Return the sessions of rows, each of which covers a period of a key."""
        order = np.lexsort((first, codes))
        codes, first, last = codes[order].astype(np.int64), first[order], last[order]
        # A row may end behind those that follow it: what counts is the last instant so far, of
        # its key. Ranks in place of instants leave room for the key in one number.
        instants, rank = np.unique(last, return_inverse=True)
        by_key = codes * len(instants)
        so_far = instants[np.maximum.accumulate(rank + by_key) - by_key]
        begins = np.ones(len(order), np.bool_)
        begins[1:] = (codes[1:] != codes[:-1]) | (first[1:] - so_far[:-1] >= gap_us)
        starts = np.flatnonzero(begins)
        ends = np.append(starts[1:], len(order)) - 1
        return cls(order, np.cumsum(begins) - 1, starts, first[starts], so_far[ends[: len(starts)]])


@dataclass(frozen=True)
class AggregateLateSessions(Stateful[KeyLayers[LateSessions]]):
    """One row for each session, when the watermark reaches its end; in order of ends, starts.

    A late event is taken if the session that it belongs to is open: its own, from its time on for a
    gap, or one that it joins or makes longer at the front. A key still has at most one open
    session: of two with a gap between them, the watermark has passed the end of the first.
    """

    in_order: AggregateSessions
    """The same without late events: how single sessions are lifted, merged and finished."""

    @property
    def node(self) -> WindowAggregate:
        """The node of the plan."""
        return self.in_order.node

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of the output."""
        return self.in_order.output_schema

    @property
    def partial_schema(self) -> pa.Schema:
        """The columns of partials, with keys and bounds."""
        return self.in_order.partial_schema

    @property
    def gap_us(self) -> int:
        """How long a key is silent between two sessions."""
        return self.in_order.gap_us

    @cached_property
    def keeps_events(self) -> bool:
        """Whether the partials of single events are kept."""
        return needs_order(self.node.aggregates)

    @cached_property
    def session_schema(self) -> pa.Schema:
        """The keys and bounds of sessions."""
        return pa.schema(list(self.partial_schema)[: len(self.node.keys) + len(BOUNDS)])

    @cached_property
    def part_schema(self) -> pa.Schema:
        """The columns of partials, without keys."""
        return pa.schema(list(self.partial_schema)[len(self.node.keys) :])

    def initial_state(self) -> KeyLayers[LateSessions]:
        """Return the state before the first batch."""
        sessions = no_rows(self.session_schema)
        partials = no_rows(self.part_schema)
        return KeyLayers.of(LateSessions(sessions, partials, np.zeros(1, np.int64), self.gap_us))

    def is_open(self, ts: Int64s, watermark_us: int) -> Bools:
        """Return whether the session of an event alone is open."""
        return ts > watermark_us - self.gap_us

    def joins(
        self, layers: KeyLayers[LateSessions], rows: pa.RecordBatch, watermark_us: int
    ) -> Bools:
        """Return whether events belong to a session that is open, among all others."""
        columns = [evaluate(key.expression, rows) for key in self.node.keys]
        known = layers.taken(columns, rows.num_rows, layers.watermark_us).part.sessions
        arrays = [*columns, *([to_arrow(int64s(rows.column("ts")))] * len(BOUNDS))]
        new = pa.RecordBatch.from_arrays(arrays, schema=self.session_schema)
        clusters = self.clusters(concat_batches([known, new], self.session_schema))
        found = np.empty(len(clusters.order), np.bool_)
        found[clusters.order] = self.is_open(clusters.last, watermark_us)[clusters.of_row]
        return found[known.num_rows :]

    def clusters(self, rows: pa.RecordBatch) -> Clusters:
        """Return the sessions of rows with keys and bounds."""
        codes, _, _ = encode_keys(rows.columns[: len(self.node.keys)], rows.num_rows)
        first, last = (int64s(rows.column(name)) for name in BOUNDS)
        return Clusters.of(codes, first, last, self.gap_us)

    def step(
        self, layers: KeyLayers[LateSessions], inputs: tuple[pa.RecordBatch, ...], until_us: int
    ) -> tuple[KeyLayers[LateSessions], pa.RecordBatch]:
        """Take events; return the sessions that end at or before `until_us`."""
        (rows,) = inputs
        columns = [evaluate(key.expression, rows) for key in self.node.keys]
        taken = layers.taken(columns, rows.num_rows, until_us)
        partials = concat_batches(
            [self.with_keys(taken.part), self.in_order.lift(rows, columns)], self.partial_schema
        )
        clusters = self.clusters(partials)
        partials = partials.take(to_arrow(clusters.order))
        is_open = clusters.last + self.gap_us > until_us
        # What was over before this step has been reported, or was too late to be taken.
        is_over = ~is_open & (clusters.last + self.gap_us > layers.watermark_us)
        over = self.merged(partials, clusters, is_over)
        return taken.put(self.kept(partials, clusters, is_open), until_us), self.in_order.finish(
            over
        )

    def with_keys(self, part: LateSessions) -> pa.RecordBatch:
        """Return the partials of sessions with their keys."""
        rows = to_arrow(part.of_partial)
        arrays = [*(key.take(rows) for key in part.keys), *part.partials.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.partial_schema)

    def merged(self, partials: pa.RecordBatch, clusters: Clusters, wanted: Bools) -> pa.RecordBatch:
        """Return one partial for each of some sessions, from those in order."""
        rows = wanted[clusters.of_row]
        numbers = np.cumsum(wanted) - 1
        groups = Groups(frozen(numbers[clusters.of_row[rows]]), int(wanted.sum()))
        starts = to_arrow(clusters.starts[wanted])
        arrays = [key.take(starts) for key in partials.columns[: len(self.node.keys)]]
        arrays += [to_arrow(clusters.first[wanted]), to_arrow(clusters.last[wanted])]
        chosen = partials.filter(to_arrow(rows))
        accumulators, split = self.in_order.accumulators, self.in_order.split(chosen)
        for accumulator, parts in zip(accumulators, split, strict=True):
            arrays += accumulator.by_group(parts, groups)
        return pa.RecordBatch.from_arrays(arrays, schema=self.partial_schema)

    def kept(self, partials: pa.RecordBatch, clusters: Clusters, wanted: Bools) -> LateSessions:
        """Return some sessions as the state of their keys."""
        keys = len(self.node.keys)
        if not self.keeps_events:
            merged = self.merged(partials, clusters, wanted)
            arrays = merged.columns
            counts = np.ones(merged.num_rows, np.int64)
        else:
            rows = wanted[clusters.of_row]
            starts = to_arrow(clusters.starts[wanted])
            arrays = [key.take(starts) for key in partials.columns[:keys]]
            arrays += [to_arrow(clusters.first[wanted]), to_arrow(clusters.last[wanted])]
            counts = np.bincount(clusters.of_row, minlength=len(wanted))[wanted]
            merged = partials.filter(to_arrow(rows))
        return LateSessions(
            pa.RecordBatch.from_arrays(arrays[: keys + len(BOUNDS)], schema=self.session_schema),
            pa.RecordBatch.from_arrays(merged.columns[keys:], schema=self.part_schema),
            offsets_of(counts),
            self.gap_us,
        )

    def reached(self, state: KeyLayers[LateSessions], until_us: int) -> int:  # noqa: ARG002
        """Return the instant before which all sessions are reported: those that end now are."""
        return until_us if until_us == END_OF_TIME_US else until_us + 1

    def size(self, layers: KeyLayers[LateSessions]) -> Size:
        """Return the size of the state."""
        return Size(layers.weight, layers.nbytes)

    def of_keys(self, layers: KeyLayers[LateSessions], wanted: Wanted) -> KeyLayers[LateSessions]:
        """Return the state of the keys of some queries."""
        return layers.of_keys(query_place(self.node), wanted)

    def united(
        self, layers: KeyLayers[LateSessions], other: KeyLayers[LateSessions]
    ) -> KeyLayers[LateSessions]:
        """Return the state of the keys of both."""
        return layers.united(other)

    def write(self, layers: KeyLayers[LateSessions]) -> bytes:
        """Write the state out."""
        whole, name = layers.whole, type(self).__name__
        counts = to_arrow(np.diff(whole.offsets))
        sessions = whole.sessions.append_column("count", counts)
        facts = {"watermark_us": layers.watermark_us}
        return join_parts([write_rows(name, sessions, facts), write_rows(name, whole.partials, {})])

    def read(self, written: bytes) -> KeyLayers[LateSessions]:
        """Read back what `write` wrote."""
        name = type(self).__name__
        heads, parts = parts_of(name, written, 2)
        counted = self.session_schema.append(pa.field("count", pa.int64()))
        sessions, facts = read_rows(name, heads, counted)
        partials, _ = read_rows(name, parts, self.part_schema)
        first, last = checked_bounds(sessions)
        require_keys(sessions.columns[: len(self.node.keys)], len(first))
        counts = filled(sessions.column("count"), "partials of sessions")
        require(bool((counts > 0).all()), "a session without events")
        require(int(counts.sum()) == partials.num_rows, "partials of no session")
        begins, ends = checked_bounds(partials)
        offsets = offsets_of(counts)
        if len(counts):
            require(bool((begins[offsets[:-1]] == first).all()), "a session of other events")
            latest = np.maximum.reduceat(ends, offsets[:-1])
            require(bool((latest == last).all()), "a session of other events")
            require_ascending_in_runs(begins, offsets[:-1], "events of a session")
        known = sessions.select(self.session_schema.names)
        return KeyLayers.of(
            LateSessions(known, partials, offsets, self.gap_us), facts["watermark_us"]
        )
