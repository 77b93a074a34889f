"""What a GROUP BY of a query that slides remembers: groups, their totals, and their panes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.kernels.compiled import Int32s, Int64s, frozen
from eventide.kernels.expiring import longest_lifetime
from eventide.kernels.growing import longer
from eventide.kernels.key_table import KeyTable, empty_table, roomy
from eventide.kernels.slabs import LENGTH, Slabs, empty_slabs
from eventide.kernels.slide_lists import STEP, close_up
from eventide.kernels.slide_reading import PANES
from eventide.kernels.slide_ring import (
    CURRENT,
    DUE,
    LAST,
    LIVING,
    NEVER,
    SCHEDULED,
    TIMES,
    WIDTH,
    Ring,
    empty_ring,
    link_all,
    listed,
    living,
    spanned,
)
from eventide.kernels.slide_waiting import OWNER, Queue
from eventide.kernels.sliding_groups import (
    COUNT,
    FIRST,
    FREE,
    GROUPS,
    HEAD,
    SECOND,
    SEEN,
    Groups,
    free_empty_groups,
    number_groups,
)
from eventide.operators.standing.array_state import Arrays, prefixed, under
from eventide.operators.standing.changes import Changes
from eventide.operators.standing.compaction import (
    compact_table,
    is_too_roomy,
    new_numbers,
)
from eventide.operators.standing.group_slabs import compact_slabs, needed_words
from eventide.operators.standing.keys import Fingerprints
from eventide.operators.standing.row_log import RowLog, is_sparse
from eventide.operators.standing.slide_plan import SlidePlan

TALLIES = 4
PIECE = 1024
"""So many rows at least are looked up at once."""
FEW = 64
"""A queue has room for so many entries at least."""


@dataclass(slots=True)
class SlideState:
    """Groups by number: `keys.take(numbers)` are the values of their keys."""

    table: KeyTable
    groups: Groups
    times: Int64s
    slabs: Slabs
    ring: Ring
    queue: Queue
    keys: RowLog
    numbers: Int64s
    unchecked: int = 0
    """How many tuples came since it was looked how much of the slabs is in use."""

    @classmethod
    def empty(cls, plan: SlidePlan, keys: pa.Schema, slide_us: int) -> SlideState:
        """Return the state without groups."""
        none = np.zeros(0, np.int64)
        groups = Groups(
            np.zeros((0, HEAD + plan.width), np.int64),
            np.zeros((0, len(plan.parts), TALLIES), np.int64),
            none,
            np.zeros(2, np.int64),
        )
        times, log = np.zeros((0, TIMES), np.int64), RowLog.empty(keys)
        ring, queue = empty_ring(slide_us), Queue(none, np.zeros(3, np.int64))
        return cls(empty_table(), groups, times, empty_slabs(), ring, queue, log, none)

    @property
    def living(self) -> int:
        """How many groups there are."""
        return int(self.groups.facts[GROUPS] - self.groups.facts[FREE])

    @property
    def nbytes(self) -> int:
        """How many bytes all arrays and rows take."""
        return int(sum(array.nbytes for array in self.arrays().values()) + self.keys.nbytes)

    def entries(self, plan: SlidePlan) -> int:
        """Return how many partial results there are: of panes, and those of staircases."""
        count, parts = int(self.groups.facts[GROUPS]), len(plan.parts)
        lengths = self.slabs.notes[: count * parts, LENGTH].reshape(count, parts)
        words = np.array([plan.entry_words if part.kind == PANES else STEP for part in plan.parts])
        front, end, _ = self.queue.facts
        queued = int(end - front) // plan.entry_words
        return queued + int((lengths // words)[:, plan.lists].sum())

    def numbered(self, prints: Fingerprints, keys: pa.RecordBatch) -> tuple[Int32s, Int64s]:
        """Return the group of each row, and the groups that are new."""
        count, fresh, start = len(prints), 0, 0
        of_row = np.empty(count, np.int32)
        rows, new = np.empty(count, np.int64), np.empty(count, np.int64)
        while start < count:
            # Piece by piece: room for a whole batch of new keys would be most of a small state.
            end = min(count, start + max(PIECE, len(self.table.handles) // 4))
            self.table = roomy(self.table, end - start)
            first, second = prints.first[start:end], prints.second[start:end]
            found, groups = rows[fresh:], new[fresh:]
            more = number_groups(
                self.table, first, second, self.groups, of_row[start:end], found, groups
            )
            found[:more] += start
            fresh, start = fresh + more, end
        rows, new = rows[:fresh], new[:fresh]
        self._make_room()
        about = self.groups.about
        about[new, FIRST], about[new, SECOND] = prints.first[rows], prints.second[rows]
        about[new, SEEN] = 0
        self.times[new, DUE], self.times[new, LAST] = NEVER, -1
        if fresh and self.keys.schema.names:
            self.numbers[new] = self.keys.end + np.arange(fresh)
            self.keys = self.keys.append(keys.take(pa.array(rows)))
        return of_row, new

    def _make_room(self) -> None:
        """Have arrays as long as there are groups."""
        wanted = int(self.groups.facts[GROUPS])
        if wanted <= len(self.groups.about):
            return
        grown = {name: longer(array, wanted) for name, array in self.groups._asdict().items()}
        self.groups = Groups(**(grown | {"facts": self.groups.facts}))
        self.times, self.numbers = longer(self.times, wanted), longer(self.numbers, wanted)
        owners = len(self.groups.about) * self.groups.tallies.shape[1]
        self.slabs = self.slabs._replace(notes=longer(self.slabs.notes, owners))

    def lengthen(self, width: int) -> None:
        """Have room behind the queue for more entries of so many words."""
        front, end, _ = self.queue.facts
        # With half of it as spare room, an entry is moved twice before it goes.
        held = int(end - front) // width
        self.queue = self._moved(np.empty((held + held // 2 + FEW) * width, np.int64))

    def _moved(self, words: Int64s) -> Queue:
        """Return the queue in front of another array."""
        front, end, offset = self.queue.facts
        words[: end - front] = self.queue.words[front:end]
        return Queue(words, np.array([0, end - front, offset + front], np.int64))

    def stretch(self, changes: Changes, slide_us: int) -> None:
        """Have a ring for lives as long as those that come."""
        lifetime = longest_lifetime(changes.at, changes.exp)
        if lifetime > spanned(self.ring):
            # A bit longer than needed, so that lives that grow slowly seldom lead here.
            wider = empty_ring(slide_us, (lifetime + lifetime // 4) // slide_us)
            before, width = self.ring.facts, wider.facts[WIDTH]
            wider.facts[:] = before
            wider.facts[WIDTH] = width
            wider.facts[CURRENT] = int(before[CURRENT]) * int(before[WIDTH]) // int(width)
            due, alive = self._orders()
            link_all(wider, self.times, due, alive)
            self.ring = wider

    def _orders(self) -> tuple[Int64s, Int64s]:
        """Return the groups in slots, and those that have rows, in order."""
        due = np.empty(self.ring.facts[SCHEDULED], np.int64)
        alive = np.empty(self.ring.facts[LIVING], np.int64)
        listed(self.ring, self.times, due)
        living(self.ring, self.times, alive)
        return due, alive

    def forget(self, candidates: Int64s) -> None:
        """Free the numbers of those groups that have no rows, and keys that nobody needs."""
        free_empty_groups(self.table, self.groups, frozen(candidates))
        if is_sparse(self.keys.size, self.living):
            counts = self.groups.about[: self.groups.facts[GROUPS], COUNT]
            left = np.flatnonzero(counts > 0)
            self.keys = self.keys.kept(self.numbers[left])
            self.numbers[left] = np.arange(len(left))

    def fitted(self, arrivals: int, plan: SlidePlan) -> SlideState:
        """Return the state after so many arrivals; without the spare room if that is most of it."""
        room = len(self.groups.about)
        front, end, _ = self.queue.facts
        queued = int(end - front)
        # New numbers of groups have to be told to all panes: that has to be worth it.
        if is_too_roomy(room, self.living + queued // 64 + arrivals):
            return self.compacted(plan)
        if is_too_roomy(len(self.queue.words), queued + PIECE):
            self.queue = self._moved(np.empty(2 * queued, np.int64))
        if is_too_roomy(len(self.table.handles) // 2, self.living + PIECE):
            self.table = compact_table(self.table)
        self.unchecked += arrivals
        # To look at the slabs takes as long as there are groups: so many tuples come first.
        if self.unchecked > room // 4 + 4 * arrivals:
            self.unchecked = 0
            notes = self.slabs.notes
            kinds = np.resize(plan.slabs, len(notes))
            needed = needed_words(self.slabs, notes, kinds)
            if is_too_roomy(len(self.slabs.words), needed + arrivals):
                close_up(self.slabs.words, notes, np.flatnonzero(np.resize(plan.lists, len(notes))))
                self.slabs = compact_slabs(self.slabs, notes, kinds)
        return self

    def compacted(self, plan: SlidePlan) -> SlideState:
        """Return the state without spare room, its groups numbered from 0 on."""
        lists = plan.lists
        count, parts = int(self.groups.facts[GROUPS]), len(lists)
        taken = np.ones(count, np.bool_)
        taken[self.groups.free[: self.groups.facts[FREE]]] = False
        kept = np.flatnonzero(taken)
        numbers = new_numbers(kept, count)
        keys, rows = self.keys, self.numbers[kept]
        if keys.schema.names:
            keys, rows = keys.kept(rows), np.arange(len(kept))
        close_up(self.slabs.words, self.slabs.notes, np.flatnonzero(np.tile(lists, count)))
        notes = self.slabs.notes[: count * parts].reshape(count, parts, 4)[kept].reshape(-1, 4)
        orders = [numbers[order].astype(np.int64) for order in self._orders()]
        ring = Ring(np.full_like(self.ring.ends, -1), self.ring.facts.copy())
        times = self.times[kept]
        link_all(ring, times, *orders)
        front, end, _ = self.queue.facts
        queue = self._moved(np.empty(end - front, np.int64))
        owners = queue.words[OWNER :: plan.entry_words]
        owners[:] = numbers[owners]
        return SlideState(
            compact_table(self.table, numbers),
            Groups(
                self.groups.about[kept],
                self.groups.tallies[kept],
                np.zeros(len(kept), np.int64),
                np.array([len(kept), 0], np.int64),
            ),
            times,
            compact_slabs(self.slabs, notes, np.tile(plan.slabs, len(kept))),
            ring,
            queue,
            keys,
            rows,
        )

    def arrays(self) -> Arrays:
        """Return all arrays; the keys are rows and stand elsewhere."""
        return {
            **prefixed("table", self.table._asdict()),
            **prefixed("groups", self.groups._asdict()),
            **prefixed("slabs", self.slabs._asdict()),
            **prefixed("ring", self.ring._asdict()),
            **prefixed("queue", self.queue._asdict()),
            "times": self.times,
            "numbers": self.numbers,
        }

    @classmethod
    def load(cls, arrays: Arrays, keys: RowLog) -> SlideState:
        """Return the state that `arrays` and keys were of."""
        return cls(
            KeyTable(**under("table", arrays)),
            Groups(**under("groups", arrays)),
            arrays["times"],
            Slabs(**under("slabs", arrays)),
            Ring(**under("ring", arrays)),
            Queue(**under("queue", arrays)),
            keys,
            arrays["numbers"],
        )
