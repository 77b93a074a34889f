"""Many time windows over the same rows, each as if it were alone.

    window A    [         )[         )
    window B    [     )[     )[     )       rows are reduced once, to partials of slices;
    slices      |-----|---|--|--|---|       a window is merged from slices when it ends

A slice ends where any window begins or ends, and where the rows of a query that has joined begin:
all rows of a slice are of one epoch, the largest first number of a query that is not above theirs.
A window is merged from the slices inside it whose epoch is not before its query's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from eventide.accumulators import Groups
from eventide.accumulators.columns import int64s
from eventide.arrays import no_rows, to_arrow
from eventide.errors import PlanError
from eventide.instants import END_OF_TIME_US, START_OF_TIME_US
from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.sharing.nodes import LEVELS
from eventide.kernels.sharing.slices import (
    FAR_US,
    NEVER,
    ended_windows,
    group_by_slice,
    mark_cuts,
    set_due,
)
from eventide.operators.columns import concat_batches, encode_keys
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.operator import Size
from eventide.operators.sharing.known_keys import KnownKeys
from eventide.operators.sharing.partials import Partials
from eventide.operators.sharing.slices import (
    ANYTIME,
    NewestSlice,
    SliceRows,
    Slices,
    regrouped,
    together,
)
from eventide.operators.sharing.written import read_windows, write_windows
from eventide.operators.stateful import Stateful
from eventide.plan.sharing.query_windows import QueryWindows
from eventide.plan.sharing.windows import ManyWindows
from eventide.schema import SEQ, TS

FEWEST = 256
"""So few slices are never cut anew."""
ROWS_WAIT = 16_384
"""Events wait until there are so many, or a window ends: to reduce a few costs as much."""


@dataclass(slots=True)
class ManyWindowsState:
    """Slices, what is next for the windows at each place of the table, and how far it has come."""

    slices: Slices
    known: KnownKeys
    newest: NewestSlice | None = None
    waiting: list[pa.RecordBatch] = field(default_factory=list)
    """Events behind those of the newest slice."""
    waiting_rows: int = 0
    closed_us: int = START_OF_TIME_US
    newest_seq: int = ANYTIME
    births: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    due: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    """The next end of a window at each place, never for one that is free."""
    next_due: int = NEVER
    borders: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    """The next border of each place behind the last row; any, if it is not known."""
    version: int = -1
    enough: int = 0
    """When there are so many slices, and not few, they are cut anew."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Windows that have ended: the place and the start of each, and the slices inside."""

    places: Int64s
    starts: Int64s
    left: Int64s
    right: Int64s


@dataclass(frozen=True)
class AggregateManyWindows(Stateful[ManyWindowsState]):
    """For each query one row for each window and key with an event, when the window has ended."""

    node: ManyWindows
    output_schema: pa.Schema
    partials: Partials = field(init=False)
    key_schema: pa.Schema = field(init=False)

    def __post_init__(self) -> None:
        partials = Partials.of(item.aggregate for item in self.node.aggregates)
        keys = [(f"key{i}", key.type.arrow) for i, key in enumerate(self.node.keys)]
        object.__setattr__(self, "partials", partials)
        object.__setattr__(self, "key_schema", pa.schema(keys))

    @property
    def table(self) -> QueryWindows:
        """The windows of queries."""
        return self.node.table

    def initial_state(self) -> ManyWindowsState:
        """Return the state before the first batch."""
        return ManyWindowsState(Slices.empty(self.partials), KnownKeys(self.key_schema))

    def reached(self, state: ManyWindowsState, until_us: int) -> int:  # noqa: ARG002 - as windows do
        """Return the instant before which all windows are reported: those that end now are."""
        return until_us if until_us == END_OF_TIME_US else until_us + 1

    def size(self, state: ManyWindowsState) -> Size:
        """Return the size of the state."""
        newest = 0 if state.newest is None else state.newest.rows
        waiting = sum(batch.nbytes for batch in state.waiting)
        log, keys = state.slices.log, state.slices.keys.nbytes + state.known.nbytes
        return Size(state.waiting_rows + log.end + newest, waiting + log.nbytes + keys)

    def step(
        self, state: ManyWindowsState, inputs: tuple[pa.RecordBatch, ...], until_us: int
    ) -> tuple[ManyWindowsState, pa.RecordBatch]:
        """Take events; return the windows that end at or before `until_us`."""
        (rows,) = inputs
        if state.version != self.table.version:
            self.follow_table(state)
        if rows.num_rows:
            state.newest_seq = max(state.newest_seq, int(int64s(rows.column(SEQ)).max()))
            if len(self.table):
                state.waiting.append(rows)
                state.waiting_rows += rows.num_rows
        state.closed_us = max(state.closed_us, until_us)
        closed_us = near(state.closed_us)
        ends = state.next_due <= closed_us
        if ends or state.waiting_rows >= ROWS_WAIT:
            self.take(state)
        if not ends:
            return state, no_rows(self.output_schema)
        self.complete(state, closed_us)
        results = list(self.close(state, closed_us))
        if state.slices.count >= max(FEWEST, state.enough):
            self.cut_anew(state)
        return state, concat_batches(results, self.output_schema)

    def follow_table(self, state: ManyWindowsState) -> None:
        """Take over what has changed in the table: whose windows have joined, and left."""
        table = self.table
        more = len(table.births) - len(state.births)
        nothing, never = np.zeros(more, np.int64), np.full(more, NEVER)
        births = np.append(state.births, nothing)
        state.due, state.borders = np.append(state.due, never), np.append(state.borders, never)
        joined = (table.births != births) & (table.births > 0)
        since = int(table.sinces[joined].min(initial=NEVER))
        if since <= state.newest_seq:
            message = f"a query counts events from {since} on, and {state.newest_seq} has gone by"
            raise PlanError(message)
        left = (births > 0) & (table.births == 0)
        state.due[left] = state.borders[left] = NEVER
        # The next row is of another epoch, so a slice begins there in any case.
        state.borders[joined] = START_OF_TIME_US
        set_due(table.sizes, table.slides, near(state.closed_us), joined, state.due)
        state.next_due = int(state.due.min())
        state.births, state.version = table.births.copy(), table.version
        if not len(table):
            state.waiting, state.waiting_rows = [], 0
            state.slices, state.newest = Slices.empty(self.partials), None
            state.known = KnownKeys(self.key_schema)
        elif ((births > 0) & (table.births != births)).any():
            state.enough = 0

    def take(self, state: ManyWindowsState) -> None:
        """Reduce the events that wait to partials of slices."""
        if not state.waiting:
            return
        rows = concat_batches(state.waiting, state.waiting[0].schema)
        state.waiting, state.waiting_rows = [], 0
        slices, continues = self.lift(state, rows)
        count = len(slices.times)
        if continues and state.newest is not None:
            state.newest.add(slices.part(0, 1), state.known.count)
            slices = slices.part(1, count)
            count -= 1
        if not count:
            return
        if state.newest is not None:
            state.slices.append(state.newest.whole(state.known.count))
        state.slices.append(slices.part(0, count - 1))
        state.newest = NewestSlice(self.partials, slices.part(count - 1, count))

    def lift(self, state: ManyWindowsState, rows: pa.RecordBatch) -> tuple[SliceRows, bool]:
        """Return the slices of events, and whether the first one goes on with the newest."""
        length = rows.num_rows
        ts, seq, epochs = int64s(rows.column(TS)), int64s(rows.column(SEQ)), None
        cuts = np.zeros(length, np.bool_)
        first_border = int(state.borders.min())
        if first_border <= int(ts[-1]):
            mark_cuts(ts, self.table.sizes, self.table.slides, state.borders, cuts)
        starts = self.table.starts
        if int(seq.min()) < starts[-1]:
            epochs = epochs_of(seq, starts)
            cuts[1:] |= epochs[1:] != epochs[:-1]
        codes, distinct, count = encode_keys(
            [evaluate(key.expression, rows) for key in self.node.keys], length
        )
        groups, slice_of, key_of, first_row = (np.empty(length, np.int64) for _ in range(4))
        seen = np.full(count, -1, np.int64)
        slices, found = group_by_slice(cuts, codes, seen, groups, slice_of, key_of, first_row)
        partials = self.partials.lifted(rows, Groups(frozen(groups), found))
        keys = state.known.numbers(distinct, count)[key_of[:found]]
        first = first_row[:slices]
        epoch = np.full(slices, starts[-1]) if epochs is None else epochs[first]
        bounds = np.searchsorted(slice_of[:found], np.arange(slices + 1))
        newest = state.newest
        continues = newest is not None and not cuts[0] and newest.epoch == int(epoch[0])
        return SliceRows(ts[first], epoch, bounds, keys, partials), continues

    def complete(self, state: ManyWindowsState, closed_us: int) -> None:
        """Move the newest slice to the others if no later row can belong to it."""
        if state.newest is not None and int(state.borders.min()) <= closed_us:
            state.slices.append(state.newest.whole(state.known.count))
            state.newest = None

    def close(self, state: ManyWindowsState, closed_us: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of windows that have ended."""
        ended = self.ended(state, closed_us)
        if not len(ended.places):
            return
        slices, known = state.slices, state.known
        slices.grow(known.count)
        since = self.table.sinces[ended.places]
        done = 0
        for runs in slices.parts(ended.left, ended.right, since=since):
            partials, run_of, keys = slices.merged(runs, LEVELS - 1, known.count)
            windows = run_of + done
            yield self.rows(
                ended.places[windows], ended.starts[windows], known.values(keys), partials
            )
            done += len(runs.left)

    def ended(self, state: ManyWindowsState, closed_us: int) -> Ended:
        """Return the windows that have ended, and move on what is due."""
        table, slices = self.table, state.slices
        inputs = (slices.times[: slices.count], table.sizes, table.slides, state.due, closed_us)
        none = np.empty(0, np.int64)
        found = ended_windows(*inputs, (none, none, none, none))
        # One more, for with none the kernel only counts.
        places, starts, left, right = (np.empty(found + 1, np.int64) for _ in range(4))
        ended_windows(*inputs, (places, starts, left, right))
        state.next_due = int(state.due.min())
        return Ended(places[:found], starts[:found], left[:found], right[:found])

    def rows(
        self, places: Int64s, starts: Int64s, keys: list[pa.Array], partials: pa.RecordBatch
    ) -> pa.RecordBatch:
        """Return the rows of windows, one for each query that has such windows."""
        numbers, offsets = self.table.members
        ends = starts + self.table.sizes[places]
        columns = [*keys, *self.partials.answers(partials)]
        first, counts = offsets[places], offsets[places + 1] - offsets[places]
        queries = numbers[first]
        if len(counts) and counts.max() > 1:
            which = np.repeat(np.arange(len(places)), counts)
            inside = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
            queries, starts, ends = numbers[first[which] + inside], starts[which], ends[which]
            columns = [column.take(to_arrow(which)) for column in columns]
        bounds = [to_arrow(each).view(pa.timestamp("us")) for each in (starts, ends)]
        arrays = [to_arrow(queries), *bounds, *columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.output_schema)

    def cut_anew(self, state: ManyWindowsState) -> None:
        """Put slices together that no window of a query needs apart; forget those before all."""
        slices, table = state.slices, self.table
        # Windows that are not closed begin there or later.
        begins = np.where(state.due == NEVER, NEVER, state.due - table.sizes)
        first = int(np.searchsorted(slices.times[: slices.count], begins.min()))
        times = slices.times[first : slices.count]
        cuts = np.zeros(len(times), np.bool_)
        if len(times):
            mark_cuts(frozen(times), table.sizes, table.slides, begins, cuts)
        epochs = epochs_of(slices.epochs[first : slices.count], table.starts)
        cuts[1:] |= epochs[1:] != epochs[:-1]
        needed = int(cuts.sum()) + 1
        if 2 * needed > slices.count:
            state.enough = 2 * slices.count
            return
        state.enough = 2 * needed
        kept = slices.from_slice(first)
        state.slices = Slices.empty(self.partials)
        if len(times):
            kept = SliceRows(kept.times, epochs, kept.starts, kept.keys, kept.partials)
            state.slices.append(regrouped(kept, self.partials, cuts, state.known.count))
        self.forget_keys(state)

    def forget_keys(self, state: ManyWindowsState) -> None:
        """Number only the keys that slices have."""
        newest = [] if state.newest is None else state.newest.batches
        parts = [state.slices.keys[: state.slices.log.end], *(batch.keys for batch in newest)]
        used, numbers = np.unique(np.concatenate(parts), return_inverse=True)
        if 2 * len(used) >= state.known.count:
            return
        state.known.keep(used.astype(np.int64))
        shifts = np.cumsum([0, *map(len, parts)])
        for part, begin, end in zip(parts, shifts[:-1], shifts[1:], strict=True):
            part[:] = numbers[begin:end]

    def write(self, state: ManyWindowsState) -> bytes:
        """Write the state out."""
        self.take(state)
        slices = state.slices.all_rows()
        if state.newest is not None:
            newest = state.newest.whole(state.known.count)
            slices = together([slices, newest], self.partials.schema)
        keys = state.known.values(slices.keys)
        facts = {"closed_us": state.closed_us, "newest_seq": state.newest_seq}
        return write_windows(type(self).__name__, slices, keys, self.table.rows, facts)

    def read(self, written: bytes) -> ManyWindowsState:
        """Read back what `write` wrote; the table has to have the same rows as then."""
        schemas = self.key_schema, self.partials.schema
        name = type(self).__name__
        slices, keys, facts = read_windows(name, written, schemas, self.table.rows)
        state = self.initial_state()
        codes, distinct, count = encode_keys(keys, len(slices.keys))
        slices.keys[:] = state.known.numbers(distinct, count)[codes]
        if len(slices.times):
            state.slices.append(slices)
        state.closed_us = facts["closed_us"]
        self.follow_table(state)
        state.newest_seq = facts["newest_seq"]
        return state


def near(instant_us: int) -> int:
    """Return an instant to which the size of a window can be added."""
    return min(max(instant_us, -FAR_US), FAR_US)


def epochs_of(numbers: Int64s, starts: Int64s) -> Int64s:
    """Return the largest start that is not above each number; of those before all, no epoch.

    >>> epochs_of(np.array([3, 12, 10]), np.array([10, 20])).tolist()
    [-9223372036854775808, 10, 10]
    """
    found: Int64s = np.append(starts, ANYTIME)[np.searchsorted(starts, numbers, "right") - 1]
    return found
