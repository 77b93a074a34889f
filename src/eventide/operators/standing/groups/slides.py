"""GROUP BY of a sliding query: partial results of panes in place of tuples.

With SLIDE, tuples come and go only at refreshes. All tuples of a group that go at the same refresh
are a pane, and only a partial result of it is kept (kernels/panes/panes.py): memory is proportional
to the panes in use, never more than the number of tuples.

    tuples      a├────────────────┤              RANGE 30 SLIDE 10, SUM
                b├────────────────┤              until 40: a + b, until 50: c + d
                      c├────────────────┤        at 40 the sum of a and b is subtracted as one
                      d├────────────────┤
    refresh     10    20    30    40    50
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import one_spelling
from eventide.errors import StateLimitError, UnsupportedError
from eventide.kernels.compiled import Int32s, Int64s, frozen
from eventide.kernels.groups.tables import OUT_AT, OUT_GROUP, OUT_HEAD, OUT_ID, OUT_SIGN
from eventide.kernels.growing import wider
from eventide.kernels.panes.entries import Arrived
from eventide.kernels.panes.panes import (
    DONE,
    EMITTED_ROWS,
    EMPTIED,
    INSTANT,
    NO_QUEUE,
    NO_ROOM,
    PROGRESS,
    Unfolded,
    fold_slides,
)
from eventide.kernels.panes.ring import NEVER as NO_INSTANT
from eventide.kernels.slabs import with_room
from eventide.operators.changes import NEVER, Changes
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.fingerprints import fingerprints
from eventide.operators.operator import Size
from eventide.operators.standing.answer.refresh import MOST_ROWS
from eventide.operators.standing.array_state import read_arrays, write_arrays
from eventide.operators.standing.groups.rows import finished
from eventide.operators.standing.groups.slide_plan import SlidePlan
from eventide.operators.standing.groups.slide_state import SlideState
from eventide.operators.standing.row_log import RowLog
from eventide.operators.state import join_parts, parts_of, read_rows, write_rows
from eventide.operators.stateful import Stateful
from eventide.plan.aggregates import BY_PANE
from eventide.plan.render import render
from eventide.plan.standing.edges import Edge, UpdatePattern
from eventide.plan.standing.nodes import GroupAggregate

FEWEST_ROWS = 64
"""There is always room for this many rows."""


@dataclass(frozen=True)
class AggregateSlides(Stateful[SlideState]):
    """Maintains the rows of groups from panes; instants are multiples of `slide_us`.

    No tuple goes before it expires: its expiry, known when it comes, decides its pane.
    """

    node: GroupAggregate
    edge: Edge
    slide_us: int

    def __post_init__(self) -> None:
        for item in self.node.aggregates:
            if item.aggregate.function not in BY_PANE or item.aggregate.distinct:
                message = f"{render(item.aggregate)} beside a decayed aggregate"
                hint = "ask two queries: the one needs all values, the other none of them"
                raise UnsupportedError(message, span=item.aggregate.span, hint=hint)
        _ = self.plan  # an aggregate that cannot be maintained is an error now
        if self.edge.pattern == UpdatePattern.STRICT:
            message = "a decayed aggregate cannot take back a tuple that goes before its time"
            hint = "take it over windows of time: RANGE, TUMBLE or SINCE"
            raise UnsupportedError(message, span=self.node.span, hint=hint)

    @cached_property
    def plan(self) -> SlidePlan:
        """What is kept and read for each group."""
        return SlidePlan.of(self.node.aggregates, in_order=self.edge.in_order)

    @cached_property
    def key_schema(self) -> pa.Schema:
        """The columns of the keys."""
        return pa.schema([(key.name, key.type.arrow) for key in self.node.keys])

    @cached_property
    def output_schema(self) -> pa.Schema:
        """The columns of the output."""
        return pa.schema([(name, kind.arrow) for name, kind in self.node.row.items()])

    def initial_state(self) -> SlideState:
        """Return the state before the first instant."""
        return SlideState.empty(self.plan, self.key_schema, self.slide_us)

    def step(
        self, state: SlideState, inputs: tuple[Changes, ...], until_us: int
    ) -> tuple[SlideState, Changes]:
        """Take changes; return the rows that go and come."""
        changes = inputs[0]
        if (changes.sign < 0).any():
            # Announced ends are known already: panes expire by themselves.
            changes = changes.take(np.flatnonzero(changes.sign > 0))
        keys = [one_spelling(evaluate(key.expression, changes.rows)) for key in self.node.keys]
        prints = fingerprints(keys, len(changes))
        named = pa.RecordBatch.from_arrays(keys, schema=self.key_schema)
        of_row, new = state.timed(prints, named)
        state.widen(changes, self.slide_us)
        arrived = self._arrived(changes, of_row)
        done = self._progress(state, len(changes))
        out = self._folded(state, arrived, done, until_us)
        emitted = self._changes(state, out[:, : done.facts[EMITTED_ROWS]])
        state.forget(np.concatenate([new, done.emptied[: done.facts[EMPTIED]]]))
        return state.trimmed(len(changes), self.plan), emitted

    def _arrived(self, changes: Changes, of_row: Int32s) -> Arrived:
        columns = self.plan.columns
        values = np.empty((len(columns), len(changes)), np.int64)
        valid = np.empty((len(columns), len(changes)), np.bool_)
        for i, column in enumerate(columns):
            values[i], valid[i], _ = column.words(changes.rows)
        return Arrived(
            frozen(changes.at), frozen(changes.exp), frozen(of_row), frozen(values), frozen(valid)
        )

    def _progress(self, state: SlideState, arrivals: int) -> Unfolded:
        facts, groups = np.zeros(PROGRESS, np.int64), len(state.groups.about)
        facts[INSTANT] = NO_INSTANT
        touched, emptied = np.empty(groups, np.int64), np.empty(groups + arrivals, np.int64)
        return Unfolded(facts, touched, emptied, np.zeros(self.plan.width, np.int64))

    def _folded(self, state: SlideState, arrived: Arrived, done: Unfolded, until_us: int) -> Int64s:
        """Take arrivals; return words of the rows that come and go, by column."""
        rows = FEWEST_ROWS + 2 * len(arrived.at)
        out = np.empty((OUT_HEAD + self.plan.width, rows), np.int64)
        groups, times, ring = state.groups, state.times, state.ring
        while True:
            ended = fold_slides(
                arrived, self.plan.kept, groups, times, state.slabs, ring, state.queue, out, done,
                self.slide_us, until_us,
            )  # fmt: skip
            if ended == DONE:
                return out
            if ended == NO_ROOM:
                state.slabs = with_room(state.slabs)
                continue
            if ended == NO_QUEUE:
                state.lengthen(self.plan.entry_words)
                continue
            if out.shape[1] > MOST_ROWS:
                message = f"a step would change more than {MOST_ROWS:,} rows"
                hint = "values that fade change with every refresh: take a longer SLIDE"
                raise StateLimitError(message, span=self.node.span, hint=hint)
            out = wider(out, out.shape[1] + 2 * len(groups.about))

    def _changes(self, state: SlideState, emitted: Int64s) -> Changes:
        arrays: list[pa.Array] = []
        if self.node.keys:
            arrays += state.keys.take(state.numbers[emitted[OUT_GROUP]]).columns
        words = emitted[OUT_HEAD:]
        for place, reader in enumerate(self.plan.readers):
            arrays.append(finished(reader, place, words, None))
        rows = pa.RecordBatch.from_arrays(arrays, schema=self.output_schema)
        never = np.full(emitted.shape[1], NEVER, np.int64)
        signs = emitted[OUT_SIGN].astype(np.int8)
        return Changes(rows, emitted[OUT_AT], never, signs, emitted[OUT_ID])

    def write(self, state: SlideState) -> bytes:
        """Write the state out, without spare room."""
        name = type(self).__name__
        state = state.compacted(self.plan)
        keys = state.keys
        rows = keys.take(np.arange(keys.start, keys.end))
        arrays = write_arrays(name, state.written())
        return join_parts([arrays, write_rows(f"{name}, keys", rows, {})])

    def read(self, written: bytes) -> SlideState:
        """Read back what `write` wrote."""
        name = type(self).__name__
        first, second = parts_of(name, written, 2)
        rows, _ = read_rows(f"{name}, keys", second, self.key_schema)
        keys = RowLog.empty(self.key_schema).append(rows)
        return self.initial_state().read(read_arrays(name, first), self.plan, keys, self.slide_us)

    def size(self, state: SlideState) -> Size:
        """Return the size of the state: partial results, and bytes."""
        return Size(state.entries(self.plan), state.nbytes)
