"""The state of a GROUP BY of a sliding query: groups, their totals, and their panes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.kernels.compiled import Int32s, Int64s, frozen
from eventide.kernels.groups.tables import COUNT, FIRST, GROUPS, SECOND, GroupTables
from eventide.kernels.growing import longer
from eventide.kernels.key_table import empty_table, put_keys, roomy
from eventide.kernels.lifetimes.expiring import longest_lifetime
from eventide.kernels.panes.lists import STEP, close_up
from eventide.kernels.panes.reading import PANES
from eventide.kernels.panes.ring import (
    CLOCK,
    CURRENT,
    DUE,
    LAST,
    LIVING,
    NEVER,
    SCHEDULED,
    TIMES,
    UNTIL,
    WIDTH,
    Ring,
    covered_us,
    empty_ring,
    link_all,
    listed,
    living,
)
from eventide.kernels.panes.waiting import OWNER, Queue
from eventide.kernels.slabs import BLOCK, LENGTH, Slabs, empty_slabs
from eventide.operators.changes import Changes
from eventide.operators.checking import LONGEST_US, require, require_within
from eventide.operators.fingerprints import Fingerprints
from eventide.operators.standing.array_state import Arrays, prefixed
from eventide.operators.standing.compaction import (
    compact_table,
    is_too_roomy,
)
from eventide.operators.standing.groups.checks import check_groups, check_slabs
from eventide.operators.standing.groups.numbering import KEYS_AT_ONCE, NumberedGroups, no_groups
from eventide.operators.standing.groups.slabs import compact_slabs, needed_words
from eventide.operators.standing.groups.slide_checks import (
    check_entries,
    check_lists,
    check_queue,
    check_ring,
)
from eventide.operators.standing.groups.slide_plan import SlidePlan
from eventide.operators.standing.row_log import RowLog
from eventide.schema import MAX_TS_US, MIN_TS_US

_WRITTEN = [DUE, UNTIL, LAST]
"""What is written of the times of groups; their places in lists are rebuilt."""
FEW = 64
"""A queue has room for at least this many entries."""


@dataclass(slots=True)
class SlideState(NumberedGroups):
    """Groups, their panes, and when these go."""

    times: Int64s
    ring: Ring
    queue: Queue
    unchecked: int = 0
    """How many tuples came since the use of the slabs was last measured."""

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
        """Return the group of each row, and the groups that are new, for which nothing is due."""
        of_row, new = self.groups_of(prints, keys)
        self.times = longer(self.times, len(self.groups.about))
        self.times[new, DUE], self.times[new, LAST] = NEVER, -1
        return of_row, new

    def lengthen(self, width: int) -> None:
        """Make room behind the queue for more entries of this many words."""
        front, end, _ = self.queue.facts
        # With half of it as spare room, an entry is moved twice before it goes.
        held = int(end - front) // width
        self.queue = self._moved(np.empty((held + held // 2 + FEW) * width, np.int64))

    def _moved(self, words: Int64s) -> Queue:
        """Return the queue in front of another array."""
        front, end, offset = self.queue.facts
        words[: end - front] = self.queue.words[front:end]
        return Queue(words, np.array([0, end - front, offset + front], np.int64))

    def widen(self, changes: Changes, slide_us: int) -> None:
        """Make a ring long enough for the longest life that comes."""
        lifetime = longest_lifetime(changes.at, changes.exp)
        if lifetime > covered_us(self.ring):
            # A bit longer than needed, so that slowly growing lives seldom lead here.
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

    def trimmed(self, arrivals: int, plan: SlidePlan) -> SlideState:
        """Return the state after this many arrivals, without spare room if that is most of it."""
        room = len(self.groups.about)
        front, end, _ = self.queue.facts
        queued = int(end - front)
        # Renumbering groups changes all panes, so it has to pay.
        if is_too_roomy(room, self.living + queued // 64 + arrivals):
            return self.compacted(plan)
        if is_too_roomy(len(self.queue.words), queued + KEYS_AT_ONCE):
            self.queue = self._moved(np.empty(2 * queued, np.int64))
        if is_too_roomy(len(self.table.handles) // 2, self.living + KEYS_AT_ONCE):
            self.table = compact_table(self.table)
        self.unchecked += arrivals
        # Looking at the slabs takes time proportional to the groups: as many tuples come first.
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
        """Return all arrays; the keys are rows and are kept elsewhere."""
        return {
            **prefixed("table", self.table._asdict()),
            **prefixed("groups", self.groups._asdict()),
            **prefixed("slabs", self.slabs._asdict()),
            **prefixed("ring", self.ring._asdict()),
            **prefixed("queue", self.queue._asdict()),
            "times": self.times,
            "numbers": self.numbers,
        }

    def written(self) -> Arrays:
        """Return what cannot be rebuilt, of a state without spare room."""
        due, alive = self._orders()
        return {
            "about": self.groups.about,
            "tallies": self.groups.tallies,
            "words": self.slabs.words,
            "notes": self.slabs.notes,
            "times": np.ascontiguousarray(self.times[:, _WRITTEN]),
            "due": due,
            "alive": alive,
            "ring": self.ring.facts,
            "slots": np.array([len(self.ring.ends) - 1]),
            "queue": self.queue.words,
            "offset": self.queue.facts[2:],
        }

    def read(self, arrays: Arrays, plan: SlidePlan, keys: RowLog, slide_us: int) -> SlideState:
        """Return the state that was `written`; this one is empty. Refuse inconsistent ones."""
        about, written = arrays["about"], arrays["times"]
        count, kinds = len(about), np.tile(plan.slabs, len(about))
        facts = np.array([count, 0], np.int64)
        groups = GroupTables(about, arrays["tallies"], np.zeros(count, np.int64), facts)
        check_groups(groups, self.groups)
        require((about[:, COUNT] > 0).all(), "groups without rows")
        room = np.array([len(arrays["words"]), 0, self.slabs.facts[BLOCK]], np.int64)
        free = np.full_like(self.slabs.free, -1)
        slabs = Slabs(arrays["words"], arrays["notes"], free, room)
        check_slabs(slabs, kinds)
        require(written.dtype == np.int64 and written.shape == (count, 3), "times of other groups")
        dues, until, last = written.T
        queue, (offset,) = arrays["queue"], arrays["offset"].tolist()
        for entries in (check_lists(slabs, plan, count), check_queue(queue, plan, count)):
            check_entries(entries, plan, groups, slabs)
            require((entries.ends <= until[entries.groups]).all(), "panes that outlive their group")
        require_within(np.array([offset]), 0, 2**62, "words before the queue")
        require_within(last, -1, offset + len(queue), "last panes of groups")
        (slots,), due, alive = arrays["slots"].tolist(), arrays["due"], arrays["alive"]
        check_ring(dues, due, arrays["ring"], slots, slide_us)
        everyone = np.arange(count) if plan.fades else np.zeros(0, np.int64)
        require(np.array_equal(np.sort(alive), everyone), "groups that are not listed")
        require(keys.size == count or not keys.schema.names, "keys are not those of groups")
        times = np.full((count, TIMES), -1, np.int64)
        times[:, _WRITTEN] = written
        ring = self._ring_of(arrays, slots, dues)
        link_all(ring, times, due, alive)
        table = roomy(empty_table(), count)
        first, second = (np.ascontiguousarray(about[:, word]) for word in (FIRST, SECOND))
        put_keys(table, frozen(first), frozen(second))
        numbers = np.arange(count) if keys.schema.names else np.zeros(count, np.int64)
        held = Queue(queue, np.array([0, len(queue), offset], np.int64))
        return SlideState(table, groups, slabs, keys, numbers, times, ring, held)

    def _ring_of(self, arrays: Arrays, slots: int, dues: Int64s) -> Ring:
        """Return an empty ring as it was written; its first slot is that of the group due first."""
        width, _, _, clock, moving, _ = arrays["ring"].tolist()
        require_within(np.array([moving]), 0, 2, "whether values fade")
        never = int(self.ring.facts[CLOCK])
        require(clock == never or MIN_TS_US <= clock <= MAX_TS_US + LONGEST_US, f"clock {clock}")
        scheduled = dues[dues != NEVER]
        current = int(scheduled.min()) // width if len(scheduled) else never
        facts = [width, current, len(scheduled), clock, moving, len(arrays["alive"])]
        return Ring(np.full((slots + 1, 2), -1, np.int64), np.array(facts, np.int64))
