"""Situations of a batch of events: runs on which conditions hold, and their changes.

Only changes go on to the matcher. A run that is open at the end of a batch is the same run in the
next one: the state is the open runs, those that matches may still need, and the state of each key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.arrays import to_arrow, to_numpy
from eventide.kernels.compiled import Bools, Int32s, Int64s, frozen
from eventide.kernels.situations.runs import (
    NEVER,
    derive_runs,
    set_bits,
    silence_keys,
)
from eventide.operators.expressions.evaluate import evaluate
from eventide.plan.expressions import Named
from eventide.plan.situations.parts import Situation

if TYPE_CHECKING:
    from eventide.operators.situations.share import Share

LONGEST_US = 1 << 61
"""Longer than any situation, and still far from the end of 64 bits."""
SPARE = 1024
"""This many unneeded runs, or keys, are kept before all are dropped at once."""


def columns_at(table: Int64s, places: Int64s) -> Int64s:
    """Return some columns of a table; NumPy would copy the whole of one that has room for more."""
    found = np.empty((len(table), len(places)), np.int64)
    for row, chosen in zip(table, found, strict=True):
        row.take(places, out=chosen, mode="clip")
    return found


def row_of(table: Int64s, number: int) -> Int64s:
    """Return a row of a table, with its type."""
    row: Int64s = table[number]
    return row


RUN_COLUMNS = ("key", "symbol", "start_ts", "start_pos", "end_ts", "end_pos", "visible")
"""What is known of a run: key, symbol, start, end, and the position of first sight."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of events: one array, with a row for each of `RUN_COLUMNS`.

    For the few runs of one event, an array for each column would take seven times as long.
    """

    table: Int64s

    @classmethod
    def empty(cls, room: int = 0) -> Runs:
        """Return room for runs."""
        return cls(np.empty((len(RUN_COLUMNS), room), np.int64))

    @property
    def key(self) -> Int64s:
        """The numbers of their keys."""
        return row_of(self.table, 0)

    @property
    def symbol(self) -> Int64s:
        """The numbers of their symbols."""
        return row_of(self.table, 1)

    @property
    def start_ts(self) -> Int64s:
        """When they start."""
        return row_of(self.table, 2)

    @property
    def start_pos(self) -> Int64s:
        """The positions at which they start."""
        return row_of(self.table, 3)

    @property
    def end_ts(self) -> Int64s:
        """When they end, if they have ended."""
        return row_of(self.table, 4)

    @property
    def end_pos(self) -> Int64s:
        """The positions at which they end, or NEVER."""
        return row_of(self.table, 5)

    @property
    def visible(self) -> Int64s:
        """The positions at which they are seen for the first time, or NEVER."""
        return row_of(self.table, 6)

    @property
    def columns(self) -> tuple[Int64s, Int64s, Int64s, Int64s, Int64s, Int64s, Int64s]:
        """The columns, as kernels take them."""
        key, symbol, start_ts, start_pos, end_ts, end_pos, visible = self.table
        return key, symbol, start_ts, start_pos, end_ts, end_pos, visible

    def take(self, rows: Int64s) -> Runs:
        """Return some of the runs."""
        return Runs(columns_at(self.table, rows))

    def of_keys(self, keys: Int64s) -> Runs:
        """Return the same runs, whose keys have these numbers."""
        table = self.table.copy()
        table[0] = keys
        return Runs(table)

    def first(self, count: int) -> Runs:
        """Return the first runs."""
        return Runs(self.table[:, :count])

    def with_room(self, room: int) -> Runs:
        """Return the runs in columns with room for more."""
        grown = Runs.empty(room)
        grown.table[:, : len(self)] = self.table
        return grown

    def __len__(self) -> int:
        return int(self.table.shape[1])


@dataclass(frozen=True, slots=True)
class KeyStates:
    """The keys, and for each: bits of its last event, bits of runs too short to count, its time.

    These are the rows of one array, as for runs.
    """

    keys: tuple[pa.Array, ...]
    table: Int64s

    @property
    def held(self) -> Int64s:
        """The bits of the last event of each key."""
        return row_of(self.table, 0)

    @property
    def waiting(self) -> Int64s:
        """The bits of runs that are too short to be seen yet."""
        return row_of(self.table, 1)

    @property
    def last_ts(self) -> Int64s:
        """The time of the last event of each key."""
        return row_of(self.table, 2)

    def __len__(self) -> int:
        return int(self.table.shape[1])

    def take(self, chosen: Int64s) -> KeyStates:
        """Return some of the keys."""
        rows = to_arrow(chosen)
        return KeyStates(tuple(key.take(rows) for key in self.keys), columns_at(self.table, chosen))

    def one(self, key: int) -> KeyStates:
        """Return one of the keys."""
        keys = tuple(each.slice(key, 1) for each in self.keys)
        return KeyStates(keys, self.table[:, key : key + 1])

    def joined(self, others: Sequence[KeyStates]) -> KeyStates:
        """Return these keys, then others."""
        each = [self, *others]
        return KeyStates(
            tuple(map(pa.concat_arrays, zip(*(one.keys for one in each), strict=True))),
            np.concatenate([one.table for one in each], axis=1),
        )


@dataclass(frozen=True, slots=True)
class RunState:
    """The state: keys, runs that are open or may still be needed, the next position.

    `least` is how many runs and keys were left when unneeded ones were last dropped, and
    `dropped_at` the position at that time.
    """

    keys: KeyStates
    runs: Runs
    position: int = 0
    least: int = 0
    dropped_at: int = 0


@dataclass(frozen=True, slots=True)
class RunChanges:
    """The changes of runs, in order of position: position, time, run, and kind."""

    position: Int64s
    ts: Int64s
    run: Int64s
    kind: Int64s


@dataclass(frozen=True, slots=True)
class Derived:
    """The runs of a step, earlier ones first, their changes, and which events are in which run.

    `members[s]` are rows of the batch and the run of symbol s that each is in; a row stands at
    position base + 2 row + 1.
    """

    keys: KeyStates
    runs: Runs
    changes: RunChanges
    members: tuple[tuple[Int64s, Int64s], ...]
    base: int
    position: int


@dataclass(frozen=True)
class Derivation:
    """Which runs to follow: the conditions, the keys, and how long each has to last.

    `late` shows runs only at their end. `counted` are the symbols whose events are listed.
    """

    keys: tuple[Named, ...]
    situations: tuple[Situation, ...]
    gap_us: int | None
    late: bool
    counted: frozenset[int] = frozenset()
    rules: tuple[Int64s, Int64s, Int64s] = field(init=False)

    def __post_init__(self) -> None:
        least = [min(each.least_us, LONGEST_US) for each in self.situations]
        most = [
            LONGEST_US if each.most_us is None else min(each.most_us, LONGEST_US)
            for each in self.situations
        ]
        late = [self.late or each.most_us is not None for each in self.situations]
        columns = (least, most, late)
        object.__setattr__(
            self, "rules", tuple(frozen(np.array(each, np.int64)) for each in columns)
        )

    @property
    def key_schema(self) -> pa.Schema:
        """The columns of keys."""
        return pa.schema([(f"key{i}", key.type.arrow) for i, key in enumerate(self.keys)])

    def initial_state(self) -> RunState:
        """Return the state before the first event."""
        keys = tuple(pa.nulls(0, kind) for kind in self.key_schema.types)
        states = KeyStates(keys, np.zeros((3, 0 if self.keys else 1), np.int64))
        return RunState(states, Runs.empty())

    def step(self, share: Share, position: int, watermark_us: int) -> Derived:
        """Follow the runs of some keys through their events, and the silence behind these.

        The next position is given: it is that of all keys.
        """
        codes, count, held = share.codes, share.count, share.held
        table = np.zeros((3, count), np.int64)
        table[:, : len(held.known)] = held.known.table
        known, waiting, last_ts = table
        by_key = (known, waiting, last_ts, self.open_runs(held.runs, count))
        symbols = len(self.situations)
        # Room for all events: what is not written to takes none.
        sizes = [len(codes) if each in self.counted else 0 for each in range(symbols)]
        places = np.cumsum([0, *sizes])
        member_row, member_run = (np.empty(int(places[-1]), np.int64) for _ in range(2))
        place = places[:-1].copy()
        counted = sum(1 << each for each in self.counted)
        runs = held.runs.with_room(len(held.runs) + 64 * symbols + len(codes) // 8)
        changes = room_for_changes(len(runs))
        filled = np.array([len(held.runs), 0], np.int64)
        inputs = (codes, share.places, share.ts, share.bits)
        gap_us = -1 if self.gap_us is None else min(self.gap_us, LONGEST_US)
        done = 0
        while True:
            done = derive_runs(
                inputs, done, position, self.rules, gap_us, counted, by_key,
                runs.columns, changes, (member_row, member_run, place), filled,
            )  # fmt: skip
            if done == len(codes):
                break
            runs = runs.with_room(2 * len(runs) + symbols)
            changes = with_room(changes, 2 * len(changes[0]) + 3 * symbols)
        silent = 0
        base = position + 2 * share.step_rows + 1
        while gap_us >= 0 and silent < count:
            silent = silence_keys(
                watermark_us, gap_us, base + share.first_key, silent, self.rules, by_key,
                runs.columns, changes, filled,
            )  # fmt: skip
            if silent < count:
                changes = with_room(changes, 2 * len(changes[0]) + symbols)
        found, changed = filled.tolist()
        members = tuple(
            (member_row[start:end], member_run[start:end])
            for start, end in zip(places[:-1], place, strict=True)
        )
        return Derived(
            KeyStates(tuple(share.keys), table),
            runs.first(found),
            RunChanges(*(column[:changed] for column in changes)),
            members,
            position,
            base + share.step_keys,
        )

    def add_bits(self, rows: pa.RecordBatch, bits: Int64s) -> None:
        """Set a bit for each condition that is true on a row."""
        for symbol, each in enumerate(self.situations):
            holds = evaluate(each.condition, rows)
            if holds.null_count:
                holds = pc.fill_null(holds, False)
            set_bits(frozen(to_numpy(holds)), symbol, bits)

    def open_runs(self, runs: Runs, count: int) -> Int64s:
        """Return the open run of each key and symbol, or -1."""
        symbols = len(self.situations)
        found = np.full(count * symbols, -1, np.int64)
        is_open = np.flatnonzero(runs.end_pos == NEVER)
        found[runs.key[is_open] * symbols + runs.symbol[is_open]] = is_open
        return found

    def is_due(self, state: RunState, derived: Derived) -> bool:
        """Whether to drop unneeded runs and keys now: not for each event, but once it pays.

        It pays when their number has doubled, or when as many events have come as have to be looked
        at: so a burst is forgotten even if little follows it.
        """
        known = len(derived.runs) + len(derived.keys)
        events = (derived.position - state.dropped_at) // 2
        return known > 2 * state.least + SPARE or events > known + SPARE

    def remember(
        self, derived: Derived, kept: Int64s, used: Bools, *, spare: bool
    ) -> tuple[RunState, Int64s]:
        """Return the state with the runs kept, by number, and the keys that are left, by number.

        Keys without state are dropped, with `spare` only once there are many; `used` ones have to
        stay.
        """
        runs, keys = derived.runs.take(kept), derived.keys
        chosen = np.arange(len(keys))
        busy = used | (keys.held != 0)
        busy[runs.key] = True
        most = int(np.count_nonzero(busy))
        if self.keys and len(busy) > (2 * most + SPARE if spare else most):
            chosen = np.flatnonzero(busy)
            runs = runs.of_keys((np.cumsum(busy) - 1)[runs.key])
            keys = keys.take(chosen)
        left = len(kept) + len(chosen)
        return RunState(keys, runs, derived.position, left, derived.position), chosen


def run_codes(numbers: Int64s) -> Int32s:
    """Return numbers of runs, or of groups of them, as codes for `order_by_key`."""
    return frozen(numbers.astype(np.int32))


Columns = tuple[Int64s, Int64s, Int64s, Int64s]


def room_for_changes(room: int) -> Columns:
    """Return room for changes."""
    one, two, three, four = (np.empty(3 * room + 192, np.int64) for _ in range(4))
    return one, two, three, four


def with_room(changes: Columns, room: int) -> Columns:
    """Return changes in columns with room for more."""
    one, two, three, four = (np.empty(room, np.int64) for _ in range(4))
    grown = (one, two, three, four)
    for column, larger in zip(changes, grown, strict=True):
        larger[: len(column)] = column
    return grown
