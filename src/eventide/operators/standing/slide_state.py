"""What a GROUP BY of a query that slides remembers: groups, their totals, and their panes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.kernels.compiled import Int32s, Int64s
from eventide.kernels.expiring import longest_lifetime
from eventide.kernels.growing import longer
from eventide.kernels.key_table import KeyTable, empty_table
from eventide.kernels.shown_groups import (
    GROUPS,
    Groups,
)
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
from eventide.operators.fingerprints import Fingerprints
from eventide.operators.standing.array_state import Arrays, prefixed, under
from eventide.operators.standing.changes import Changes
from eventide.operators.standing.compaction import (
    compact_table,
    is_too_roomy,
)
from eventide.operators.standing.group_slabs import compact_slabs, needed_words
from eventide.operators.standing.numbered_groups import PIECE, NumberedGroups, no_groups
from eventide.operators.standing.row_log import RowLog
from eventide.operators.standing.slide_plan import SlidePlan

FEW = 64
"""A queue has room for so many entries at least."""


@dataclass(slots=True)
class SlideState(NumberedGroups):
    """Groups, their panes, and when these go."""

    times: Int64s
    ring: Ring
    queue: Queue
    unchecked: int = 0
    """How many tuples came since it was looked how much of the slabs is in use."""

    @classmethod
    def empty(cls, plan: SlidePlan, keys: pa.Schema, slide_us: int) -> SlideState:
        """Return the state without groups."""
        log, none = RowLog.empty(keys), np.zeros(0, np.int64)
        groups, slabs = no_groups(len(plan.parts), plan.width), empty_slabs()
        times, queue = np.zeros((0, TIMES), np.int64), Queue(none, np.zeros(3, np.int64))
        return cls(empty_table(), groups, slabs, log, none, times, empty_ring(slide_us), queue)

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

    def timed(self, prints: Fingerprints, keys: pa.RecordBatch) -> tuple[Int32s, Int64s]:
        """Return the group of each row, and the groups that are new, of which nothing is due."""
        of_row, new = self.numbered(prints, keys)
        self.times = longer(self.times, len(self.groups.about))
        self.times[new, DUE], self.times[new, LAST] = NEVER, -1
        return of_row, new

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
        count = int(self.groups.facts[GROUPS])
        close_up(self.slabs.words, self.slabs.notes, np.flatnonzero(np.tile(plan.lists, count)))
        left = self.without_spare_room(plan.slabs)
        orders = [left.renumbered[order].astype(np.int64) for order in self._orders()]
        ring = Ring(np.full_like(self.ring.ends, -1), self.ring.facts.copy())
        times = self.times[left.kept]
        link_all(ring, times, *orders)
        front, end, _ = self.queue.facts
        queue = self._moved(np.empty(end - front, np.int64))
        owners = queue.words[OWNER :: plan.entry_words]
        owners[:] = left.renumbered[owners]
        return SlideState(
            left.table, left.groups, left.slabs, left.keys, left.numbers, times, ring, queue
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
            Slabs(**under("slabs", arrays)),
            keys,
            arrays["numbers"],
            arrays["times"],
            Ring(**under("ring", arrays)),
            Queue(**under("queue", arrays)),
        )
