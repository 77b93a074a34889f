"""Many time windows over the same rows, each as if it were alone.

    window A    [         )[         )
    window B    [     )[     )[     )       rows are reduced once, to partials of slices;
    slices      |-----|---|--|--|---|       a window is merged from slices when it ends

A slice ends where any window begins or ends, and where the rows of a query that has joined begin:
all rows of a slice are of one epoch, the largest first number of a query that is not above theirs.
A window is merged from the slices inside it whose epoch is not before its query's.

Queries with conditions count the events in their synopses: the partials of a slice are by synopsis
and key, and a window is merged from those of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import int64s
from eventide.arrays import no_rows, to_arrow
from eventide.errors import PlanError
from eventide.instants import END_OF_TIME_US, START_OF_TIME_US
from eventide.kernels.compiled import Bools, Int64s, frozen
from eventide.kernels.sharing.nodes import Covers, SliceRuns
from eventide.kernels.sharing.slices import (
    FAR_US,
    NEVER,
    WindowTimes,
    ended_windows,
    mark_cuts,
    set_due,
)
from eventide.operators.columns import concat_batches, encode_keys
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.operator import Size
from eventide.operators.sharing.known_keys import KnownCells
from eventide.operators.sharing.partials import Partials
from eventide.operators.sharing.slices import (
    ANYTIME,
    NewestSlice,
    SliceRows,
    Slices,
    grouped,
    regrouped,
    together,
)
from eventide.operators.sharing.synopses import CountedEvents, SynopsisIndex
from eventide.operators.sharing.turns import AT_ONCE, RefreshTurn, joint_runs, left_out
from eventide.operators.sharing.written import read_windows, write_windows
from eventide.operators.stateful import Stateful
from eventide.plan.sharing.query_windows import QueryWindows
from eventide.plan.sharing.windows import ManyWindows
from eventide.plan.tree import OverKeys
from eventide.plan.windows.nodes import Window
from eventide.schema import SEQ, TS

FEWEST = 256
"""So few slices are never cut anew."""
NO_TIMES = WindowTimes(*(np.zeros(0, np.int64) for _ in range(3)))
ROWS_WAIT = 16_384
"""Events wait until there are so many, or a window ends: to reduce a few costs as much."""


@dataclass(slots=True)
class ManyWindowsState:
    """Slices, what is next for the windows at each place of the table, and how far it has come."""

    slices: Slices
    known: KnownCells
    index: SynopsisIndex
    newest: NewestSlice | None = None
    waiting: list[CountedEvents] = field(default_factory=list)
    """Events behind those of the newest slice."""
    waiting_rows: int = 0
    closed_us: int = START_OF_TIME_US
    newest_us: int = START_OF_TIME_US
    """The newest event that was seen."""
    newest_seq: int = ANYTIME
    births: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    due: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    """The next end of a window at each place, never for one that is free."""
    next_due: int = NEVER
    times: WindowTimes = NO_TIMES
    """Those of the windows at each place that are reported."""
    turn: RefreshTurn = AT_ONCE
    """What of what is due is computed in a step: who takes steps may say so before each."""
    stretch: int = 1
    """By which factor periods are stretched in `times`."""
    begun_us: int = NEVER
    """The first event that was seen."""
    left_out: int = 0
    """How many refreshes stretched periods have left out since somebody set it to 0."""
    windows: tuple[Window, ...] = ()
    """The different windows."""
    kinds: WindowTimes = NO_TIMES
    """Their times."""
    borders: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    """The next border of each of them behind the last row; any, if it is not known."""
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
        known, row = KnownCells(self.key_schema), self.node.source.row
        return ManyWindowsState(Slices.empty(self.partials), known, SynopsisIndex(row))

    @cached_property
    def needed(self) -> list[str]:
        """The columns of events that are kept until they are reduced."""
        (names,) = OverKeys.needed(self.node, frozenset())
        return [name for name in self.node.source.row if name in names | {SEQ}]

    def reached(self, state: ManyWindowsState, until_us: int) -> int:
        """Return the instant before which all windows are reported.

        A window that ends now is; a refresh now is not, for events at this instant count as well.
        """
        if self.node.refreshes:
            reached_us = state.newest_us + 1 if until_us == END_OF_TIME_US else until_us
            return min(reached_us, state.next_due - 1)
        return until_us if until_us == END_OF_TIME_US else until_us + 1

    def size(self, state: ManyWindowsState) -> Size:
        """Return the size of the state."""
        newest = 0 if state.newest is None else state.newest.rows
        waiting = sum(batch.nbytes for batch in state.waiting)
        log, cells = state.slices.log, state.slices.cells.nbytes + state.known.nbytes
        held = waiting + log.nbytes + cells + state.index.nbytes
        return Size(state.waiting_rows + log.end + newest, held)

    def step(
        self, state: ManyWindowsState, inputs: tuple[pa.RecordBatch, ...], until_us: int
    ) -> tuple[ManyWindowsState, pa.RecordBatch]:
        """Take events; return the windows that end at or before `until_us`."""
        (rows,) = inputs
        if state.stretch != state.turn.stretch and self.node.refreshes:
            state.stretch, state.version = state.turn.stretch, -1
        if state.version != self.table.version:
            self.follow_table(state)
        if rows.num_rows:
            state.newest_seq = max(state.newest_seq, int(int64s(rows.column(SEQ)).max()))
            state.begun_us = min(state.begun_us, int(int64s(rows.column(TS))[0]))
            state.newest_us = max(state.newest_us, int(int64s(rows.column(TS))[-1]))
            if len(self.table):
                self.wait(state, rows)
        if self.node.refreshes and until_us == END_OF_TIME_US:
            # What is not over when the events end has no answer.
            until_us = state.newest_us + 1
        state.closed_us = max(state.closed_us, until_us)
        closed_us = near(state.closed_us)
        ends = state.next_due <= closed_us
        if ends or state.waiting_rows >= ROWS_WAIT:
            self.take(state)
        if not ends:
            return state, no_rows(self.output_schema)
        self.complete(state, closed_us)
        results = [
            part
            for places in self.turns(state, closed_us)
            for part in self.close(state, places, closed_us)
        ]
        if state.slices.count >= max(FEWEST, state.enough):
            self.cut_anew(state)
        return state, concat_batches(results, self.output_schema)

    def times_of(self, sizes: Int64s, slides: Int64s) -> WindowTimes:
        """Return when windows begin: a refresh at e has the events of [e + 1 - size, e + 1)."""
        phases = (1 - sizes) % np.maximum(slides, 1) if self.node.refreshes else 0 * slides
        return WindowTimes(sizes, slides, phases)

    def reported_times(self, state: ManyWindowsState) -> WindowTimes:
        """Return the times of the windows at each place that are reported."""
        return self.times_of(self.table.sizes, self.table.slides * state.stretch)

    def turns(self, state: ManyWindowsState, closed_us: int) -> Iterator[Int64s]:
        """Yield the places whose windows have ended and are to be reported together."""
        due = np.flatnonzero(state.due <= closed_us)
        periods = self.table.slides[due] * state.stretch
        yield from (due[run] for run in joint_runs(state.due[due] - 1 + periods, state.turn))

    def wait(self, state: ManyWindowsState, rows: pa.RecordBatch) -> None:
        """Let the events that some query counts wait, with the synopses that they are in."""
        counted = state.index.counted(rows, self.needed)
        if counted.rows.num_rows:
            state.waiting.append(counted)
            state.waiting_rows += counted.length

    def follow_table(self, state: ManyWindowsState) -> None:
        """Take over what has changed in the table: whose windows have joined, and left."""
        table = self.table
        more = len(table.births) - len(state.births)
        births = np.append(state.births, np.zeros(more, np.int64))
        state.due = np.append(state.due, np.full(more, NEVER))
        joined = (table.births != births) & (table.births > 0)
        since = int(table.sinces[joined].min(initial=NEVER))
        if since <= state.newest_seq:
            message = f"a query counts events from {since} on, and {state.newest_seq} has gone by"
            raise PlanError(message)
        state.due[(births > 0) & (table.births == 0)] = NEVER
        # The next row is of another epoch, so a slice begins there in any case.
        borders = dict(zip(state.windows, state.borders.tolist(), strict=True))
        state.windows = table.windows
        state.kinds = self.times_of(
            np.array([window.size_us for window in state.windows], np.int64),
            np.array([window.slide_us for window in state.windows], np.int64),
        )
        state.borders = np.array(
            [borders.get(window, START_OF_TIME_US) for window in state.windows], np.int64
        )
        state.times = self.reported_times(state)
        set_due(state.times, near(state.closed_us), joined, state.due)
        state.next_due = int(state.due.min())
        state.births, state.version = table.births.copy(), table.version
        state.index.follow(table.synopses.conditions)
        if not len(table):
            state.waiting, state.waiting_rows = [], 0
            state.slices, state.newest = Slices.empty(self.partials), None
            state.known = KnownCells(self.key_schema)
        elif ((births > 0) & (table.births != births)).any():
            state.enough = 0

    def take(self, state: ManyWindowsState) -> None:
        """Reduce the events that wait to partials of slices."""
        if not state.waiting:
            return
        counted = CountedEvents.together(state.waiting)
        # If a value overflows, they wait on: the next step fails as well, and nobody misses them.
        slices, continues = self.lift(state, counted)
        state.waiting, state.waiting_rows = [], 0
        count = len(slices.times)
        if continues and state.newest is not None:
            state.newest.add(slices.part(0, 1), state.known)
            slices = slices.part(1, count)
            count -= 1
        if not count:
            return
        if state.newest is not None:
            state.slices.append(state.newest.whole(state.known))
        state.slices.append(slices.part(0, count - 1))
        state.newest = NewestSlice(self.partials, slices.part(count - 1, count))

    def lift(self, state: ManyWindowsState, counted: CountedEvents) -> tuple[SliceRows, bool]:
        """Return the slices of events, and whether the first one goes on with the newest."""
        rows = counted.rows
        length = rows.num_rows
        ts, seq, epochs = int64s(rows.column(TS)), int64s(rows.column(SEQ)), None
        cuts = np.zeros(length, np.bool_)
        first_border = int(state.borders.min(initial=NEVER))
        if first_border <= int(ts[-1]):
            mark_cuts(ts, state.kinds, state.borders, cuts)
        starts = self.table.starts
        if int(seq.min()) < starts[-1]:
            epochs = epochs_of(seq, starts)
            cuts[1:] |= epochs[1:] != epochs[:-1]
        codes, distinct, count = encode_keys(
            [evaluate(key.expression, rows) for key in self.node.keys], length
        )
        cells = counted.cells(codes, count)
        found = grouped(counted.cuts(cuts), cells.codes, cells.count, cells.synopsis_of)
        partials = self.partials.lifted(rows, found.groups, counted.events)
        synopses, of_key = cells.synopses_and_keys(found.code_of)
        numbers = state.known.numbers(synopses, of_key, distinct)
        first = counted.event_of(found.first_row)
        epoch = np.full(len(first), starts[-1]) if epochs is None else epochs[first]
        newest = state.newest
        continues = newest is not None and not cuts[0] and newest.epoch == int(epoch[0])
        return SliceRows(ts[first], epoch, found.starts, numbers, partials), continues

    def complete(self, state: ManyWindowsState, closed_us: int) -> None:
        """Move the newest slice to the others if no later row can belong to it."""
        if state.newest is not None and int(state.borders.min(initial=NEVER)) <= closed_us:
            state.slices.append(state.newest.whole(state.known))
            state.newest = None

    def close(
        self, state: ManyWindowsState, places: Int64s, closed_us: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the windows of some places that have ended."""
        ended = self.ended(state, places, closed_us)
        if not len(ended.places):
            return
        slices, known = state.slices, state.known
        slices.grow(known)
        since = self.table.sinces[ended.places]
        synopses, offsets = self.table.covers
        if known.cells is None and self.table.synopses.conditions.keys() <= {known.only}:
            offsets = np.zeros_like(offsets)  # All rows are theirs.
        covers = Covers(synopses, offsets, known.synopsis_of, known.key_of)
        done = 0
        for runs in slices.parts(SliceRuns(ended.left, ended.right, since, ended.places), covers):
            partials, run_of, cells = slices.merged(runs, covers)
            windows = run_of + done
            yield self.rows(
                state, ended.places[windows], ended.starts[windows], known.values(cells), partials
            )
            done += len(runs.left)

    def ended(self, state: ManyWindowsState, chosen: Int64s, closed_us: int) -> Ended:
        """Return the windows of some places that have ended, and move on what is due."""
        slices, due = state.slices, np.full(len(state.due), NEVER)
        before = due[chosen] = state.due[chosen]
        inputs = (slices.times[: slices.count], state.times, due, closed_us)
        none = np.empty(0, np.int64)
        found = ended_windows(*inputs, (none, none, none, none))
        # One more, for with none the kernel only counts.
        places, starts, left, right = (np.empty(found + 1, np.int64) for _ in range(4))
        ended_windows(*inputs, (places, starts, left, right))
        state.due[chosen] = due[chosen]
        state.next_due = int(state.due.min())
        if state.stretch > 1:
            _, offsets = self.table.members
            counts = left_out(
                before - 1,
                due[chosen] - 1,
                self.table.slides[chosen],
                state.stretch,
                min(state.begun_us, closed_us - 1),
            )
            state.left_out += int((counts * np.diff(offsets)[chosen]).sum())
        return Ended(places[:found], starts[:found], left[:found], right[:found])

    def rows(
        self,
        state: ManyWindowsState,
        places: Int64s,
        starts: Int64s,
        keys: list[pa.Array],
        partials: pa.RecordBatch,
    ) -> pa.RecordBatch:
        """Return the rows of windows, one for each query that has such windows."""
        numbers, offsets = self.table.members
        ends = starts + self.table.sizes[places]
        if self.node.refreshes:
            slides = state.times.slides[places]
            starts, ends = ends - 1, ((ends - 1) // slides + 1) * slides
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
        """Put slices together that no window of a query needs apart; forget those before all.

        Synopses that no query reads are forgotten as well.
        """
        slices = state.slices
        # Windows that are not reported begin there or later.
        ends = np.full(len(state.windows), NEVER)
        reported_us = min(near(state.closed_us), state.next_due - 1)
        set_due(state.kinds, reported_us, np.ones(len(ends), np.bool_), ends)
        begins = ends - state.kinds.sizes
        first = int(np.searchsorted(slices.times[: slices.count], begins.min()))
        times, epochs = (each[first : slices.count] for each in (slices.times, slices.epochs))
        needed = int(self.cuts_needed(state, times, epochs, begins).sum()) + 1
        if 2 * needed > slices.count and not self.is_half_gone(state):
            state.enough = 2 * slices.count
            return
        state.enough = 2 * needed
        kept = self.without_gone(state, slices.from_slice(first))
        cuts = self.cuts_needed(state, kept.times, kept.epochs, begins)
        state.slices = Slices.empty(self.partials)
        if len(kept.times):
            kept = replace(kept, epochs=epochs_of(kept.epochs, self.table.starts))
            state.slices.append(regrouped(kept, self.partials, cuts, state.known))
        self.forget_cells(state)

    def cuts_needed(
        self, state: ManyWindowsState, times: Int64s, epochs: Int64s, begins: Int64s
    ) -> Bools:
        """Return which slices some window needs apart from those before, of windows from a time."""
        cuts = np.zeros(len(times), np.bool_)
        if len(times):
            mark_cuts(frozen(times.copy()), state.kinds, begins.copy(), cuts)
        own = epochs_of(epochs, self.table.starts)
        cuts[1:] |= own[1:] != own[:-1]
        return cuts

    def is_half_gone(self, state: ManyWindowsState) -> bool:
        """Whether half of the rows are in synopses that no query reads."""
        here = np.isin(state.known.synopsis_of, list(self.table.synopses.conditions))
        if here.all():
            return False
        rows = here[state.slices.cells[: state.slices.log.end]]
        return 2 * int(rows.sum()) <= len(rows)

    def without_gone(self, state: ManyWindowsState, rows: SliceRows) -> SliceRows:
        """Return slices without the synopses that no query reads."""
        synopses = list(self.table.synopses.conditions)
        here = np.isin(state.known.synopsis_of, synopses)[rows.cells]
        if here.all():
            return rows
        counts = np.add.reduceat(here.astype(np.int64), rows.starts[:-1])
        filled = counts > 0
        starts = np.append(0, np.cumsum(counts[filled]))
        return SliceRows(
            rows.times[filled],
            rows.epochs[filled],
            starts,
            rows.cells[here],
            rows.partials.filter(pa.array(here)),
        )

    def forget_cells(self, state: ManyWindowsState) -> None:
        """Number only the cells that slices have."""
        newest = [] if state.newest is None else state.newest.batches
        parts = [state.slices.cells[: state.slices.log.end], *(batch.cells for batch in newest)]
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
            newest = state.newest.whole(state.known)
            slices = together([slices, newest], self.partials.schema)
        facts = {
            "closed_us": state.closed_us,
            "newest_us": state.newest_us,
            "newest_seq": state.newest_seq,
        }
        kept = self.without_gone(state, slices)
        keys = state.known.values(kept.cells)
        synopses = state.known.synopsis_of[kept.cells]
        name = type(self).__name__
        return write_windows(name, kept, (keys, synopses), self.table, facts, self.due_apart(state))

    def due_apart(self, state: ManyWindowsState) -> dict[int, int]:
        """Return what is next for queries of which the clock does not say it."""
        times = self.times_of(self.table.sizes, self.table.slides)
        by_clock = np.full(len(self.table.births), NEVER)
        set_due(times, near(state.closed_us), self.table.births > 0, by_clock)
        due = self.due_of(state) if self.node.refreshes else {}
        places = self.table.places_of(np.array(list(due), np.int64))
        return {
            number: own
            for (number, own), clock in zip(due.items(), by_clock[places].tolist(), strict=True)
            if own != clock
        }

    def due_of(self, state: ManyWindowsState) -> dict[int, int]:
        """Return what is next for each query that was there in the last step."""
        numbers = np.array([row.number for row in self.table.rows], np.int64)
        places = self.table.places_of(numbers)
        known = places < len(state.births)
        numbers, places = numbers[known], places[known]
        here = state.births[places] == self.table.births[places]
        return dict(zip(numbers[here].tolist(), state.due[places[here]].tolist(), strict=True))

    def set_due_of(self, state: ManyWindowsState, due: Mapping[int, int]) -> None:
        """Let something else be next for queries that were there in the last step."""
        numbers = np.array([each for each in due if each in self.due_of(state)], np.int64)
        state.due[self.table.places_of(numbers)] = [due[each] for each in numbers.tolist()]
        state.next_due = int(state.due.min(initial=NEVER))

    def read(self, written: bytes) -> ManyWindowsState:
        """Read back what `write` wrote; the table has to have the same rows as then."""
        schemas = self.key_schema, self.partials.schema
        name = type(self).__name__
        slices, (keys, synopses), facts, due = read_windows(name, written, schemas, self.table)
        state = self.initial_state()
        codes, distinct, count = encode_keys(keys, len(slices.cells))
        cells, places = np.unique(synopses * count + codes, return_inverse=True)
        if len(slices.times):
            numbers = state.known.numbers(cells // count, cells % count, distinct)
            state.slices.append(replace(slices, cells=numbers[places]))
        state.closed_us = facts["closed_us"]
        self.follow_table(state)
        state.newest_us, state.newest_seq = facts["newest_us"], facts["newest_seq"]
        state.begun_us = NEVER if state.newest_us == START_OF_TIME_US else state.closed_us
        self.set_due_of(state, due)
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
