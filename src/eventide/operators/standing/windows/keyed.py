"""Windows whose tuples go because others come, or do not come: the last rows, and sessions.

It is not known how long a tuple stays when it comes, so its end is always announced.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import int64s
from eventide.instants import START_OF_TIME_US
from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.lifetimes.stream_windows import (
    DIES,
    NEWEST,
    OLDEST,
    Arrivals,
    WindowKeys,
    keep_last,
    keep_sessions,
    more_keys,
    no_keys,
)
from eventide.kernels.lifetimes.stream_windows import TS as TIME
from eventide.operators.changes import NEVER, Changes
from eventide.operators.checking import require
from eventide.operators.fingerprints import Fingerprints, fingerprints
from eventide.operators.operator import Size
from eventide.operators.standing.row_log import is_sparse
from eventide.operators.standing.windows.leaf import LeafWindow
from eventide.operators.standing.windows.log import TupleLog
from eventide.operators.stateful import Stateful
from eventide.plan.standing.windows import RowsWindow, SessionWindow
from eventide.schema import TS


@dataclass(frozen=True, slots=True)
class KeyedState:
    """The tuples, their keys, and the tuple whose session is the next that may end."""

    log: TupleLog
    keys: WindowKeys
    watched: int = 0

    def compacted(self) -> KeyedState:
        """Return the state with only the living tuples, if there are too many others."""
        if not is_sparse(self.log.count, self.log.living):
            return self
        log, renumbered = self.log.compacted()
        ends = self.keys.facts[OLDEST : NEWEST + 1]
        ends[:] = renumbered[ends]
        return KeyedState(log, self.keys, int(renumbered[self.watched]))

    def size(self) -> Size:
        """Return the size of the state."""
        keys = self.keys
        arrays = (*keys.table, keys.facts, keys.free, keys.spare)
        return Size(self.log.living, self.log.nbytes + sum(array.nbytes for array in arrays))


@dataclass(frozen=True)
class KeyedWindow(LeafWindow, Stateful[KeyedState]):
    """The base of the windows of this file."""

    @property
    @abstractmethod
    def keys(self) -> tuple[str, ...]:
        """The columns that partition the events."""

    @property
    def deleted(self) -> str | None:
        """The column that is true for an event that only removes another."""
        return None

    @abstractmethod
    def keep(
        self, state: KeyedState, arrivals: Arrivals, start: int, until_us: int
    ) -> tuple[int, int, int]:
        """Add arrivals from `start` on, and find the tuples that leave because of them.

        Return the first arrival without room or -1, the number of tuples leaving, and the one
        watched.
        """

    def initial_state(self) -> KeyedState:
        """Return the state before the first instant."""
        log = TupleLog.empty(self.value_schema, stays=True, slide_us=self.slide_us)
        return KeyedState(log, no_keys())

    def step(
        self, state: KeyedState, inputs: tuple[pa.RecordBatch, ...], until_us: int
    ) -> tuple[KeyedState, Changes]:
        """Take the events at instants before `until_us`."""
        (rows,) = inputs
        log, ts, ids, there = state.log, int64s(rows.column(TS)), self.ids(rows), None
        numbers = np.arange(log.count, log.count + len(ts))
        if self.deleted is not None:
            there = int64s(rows.column(self.deleted)) == 0
            numbers = np.where(there, log.count - 1 + np.cumsum(there), -1)
        values = self.values(rows, there)
        came = slice(None) if there is None else there
        log = log.append(values, ids[came], ts[came], np.full(values.num_rows, NEVER))
        words = fingerprints([rows.column(name) for name in self.keys], len(ts))
        state = self.taken_in(replace(state, log=log), words, (ts, numbers), until_us)
        log, emitted = state.log.emit(until_us)
        changes = self.changes(log, emitted, np.full(len(emitted.at), NEVER))
        return replace(state, log=log).compacted(), changes

    def taken_in(
        self, state: KeyedState, words: Fingerprints, places: tuple[Int64s, Int64s], until_us: int
    ) -> KeyedState:
        """Return the state after events have come; `places` are their times and their numbers."""
        ts, numbers = places
        arrivals = Arrivals(words.first, words.second, frozen(ts), frozen(numbers))
        start = 0
        while start >= 0:
            start, leaving, watched = self.keep(state, arrivals, start, until_us)
            keys = state.keys if start < 0 else more_keys(state.keys)
            state = KeyedState(state.log.now_leave(leaving), keys, watched)
        return state

    def write(self, state: KeyedState) -> bytes:
        """Write the state out."""
        return state.log.write(self.label)

    def read(self, written: bytes) -> KeyedState:
        """Read back what `write` wrote: add the tuples without an end again."""
        state = self.initial_state()
        log = state.log.read(self.label, written)
        numbers = np.flatnonzero(log.facts[DIES, : log.count] == NEVER)
        rows, ts = log.values.take(numbers), log.facts[TIME, numbers]
        columns = [rows.column(f"{self.node.alias}.{name}") for name in self.keys]
        words = fingerprints(columns, len(ts))
        after = self.taken_in(replace(state, log=log), words, (ts, numbers), START_OF_TIME_US)
        require(after.log.leaving == log.leaving, "more tuples than the window has room for")
        return after

    def size(self, state: KeyedState) -> Size:
        """Return the size of the state."""
        return state.size()


@dataclass(frozen=True)
class LastRows(KeyedWindow):
    """ROWS: the last events of each key; also relations, whose events may only remove one."""

    @property
    def window(self) -> RowsWindow:
        """The window."""
        assert isinstance(self.node.window, RowsWindow)
        return self.node.window

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that partition the events."""
        return self.window.keys

    @property
    def deleted(self) -> str | None:
        """The column that is true for an event that only removes another."""
        return self.window.deleted

    def keep(
        self,
        state: KeyedState,
        arrivals: Arrivals,
        start: int,
        until_us: int,  # noqa: ARG002
    ) -> tuple[int, int, int]:
        """Add arrivals from `start` on; each removes the oldest of its key."""
        log, count = state.log, min(self.window.count, NEVER)
        start, leaving = keep_last(arrivals, start, count, log.facts, state.keys, log.leaving)
        return start, leaving, state.watched


@dataclass(frozen=True)
class SessionRows(KeyedWindow):
    """SESSION: the events of each key since the last pause; all go when the next pause is over."""

    @property
    def window(self) -> SessionWindow:
        """The window."""
        assert isinstance(self.node.window, SessionWindow)
        return self.node.window

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that partition the events."""
        return self.window.keys

    def keep(
        self, state: KeyedState, arrivals: Arrivals, start: int, until_us: int
    ) -> tuple[int, int, int]:
        """Add arrivals from `start` on, and end the sessions that end before `until_us`."""
        log, bounds = state.log, (min(self.window.gap_us, NEVER), until_us, state.log.count)
        return keep_sessions(
            arrivals, start, bounds, log.facts, state.keys, log.leaving, state.watched
        )
