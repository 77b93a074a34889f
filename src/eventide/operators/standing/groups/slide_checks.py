"""Refuse written panes that are inconsistent: kernels follow the numbers in them without checks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eventide.kernels.compiled import Int64s
from eventide.kernels.groups.sliding import DOUBLES, SQUARES
from eventide.kernels.groups.tables import COUNT, GroupTables
from eventide.kernels.panes.lists import STEP
from eventide.kernels.panes.reading import PANES
from eventide.kernels.panes.ring import FEWEST, MOST, NEVER
from eventide.kernels.panes.waiting import OWNER
from eventide.kernels.slabs import BASE, LENGTH, ROOM, START, Slabs
from eventide.operators.checking import LONGEST_US, require, require_within
from eventide.operators.standing.groups.checks import check_ascending
from eventide.operators.standing.groups.slabs import spread
from eventide.operators.standing.groups.slide_plan import SlidePlan
from eventide.schema import MAX_TS_US, MIN_TS_US


class Entries(NamedTuple):
    """Entries of panes: their words, the group of each, and when each expires."""

    words: Int64s
    groups: Int64s

    @property
    def ends(self) -> Int64s:
        """When entries expire."""
        return self.words[:, 0]


def check_lists(slabs: Slabs, plan: SlidePlan, count: int) -> Entries:
    """Refuse lists that are not whole entries in order of expiry; return those of panes."""
    found = [np.zeros((0, plan.entry_words), np.int64)]
    groups = [np.zeros(0, np.int64)]
    for part, each in enumerate(plan.parts):
        if not plan.lists[part]:
            continue
        notes = slabs.notes[part :: len(plan.parts)]
        width = plan.entry_words if each.kind == PANES else STEP
        require(not notes[:, BASE].any(), "lists that do not begin at their start")
        require(not (notes[:, LENGTH] % width).any(), "lists of parts of entries")
        lengths = notes[:, LENGTH] // width
        check_ascending(slabs.words, notes[:, START], lengths, width)
        if each.kind == PANES:
            places = spread(notes[:, START], notes[:, LENGTH])
            found.append(slabs.words[places].reshape(-1, width))
            groups.append(np.repeat(np.arange(count), lengths))
    return Entries(np.concatenate(found), np.concatenate(groups))


def check_queue(words: Int64s, plan: SlidePlan, count: int) -> Entries:
    """Refuse a queue that does not consist of whole entries of groups in order; return them."""
    width = plan.entry_words
    require(words.dtype == np.int64 and words.ndim == 1, "a queue of another type")
    require(plan.queues or not len(words), "a queue, though panes stand in lists")
    require(len(words) % width == 0, "a queue of parts of entries")
    entries = words.reshape(-1, width)
    require((entries[1:, 0] >= entries[:-1, 0]).all(), "a queue that is not in order")
    groups = entries[:, OWNER] if plan.queues else entries[:, 0]
    require_within(groups, 0, count, "groups of panes")
    return Entries(entries, groups)


def check_entries(entries: Entries, plan: SlidePlan, groups: GroupTables, slabs: Slabs) -> None:
    """Refuse entries that do not fit the rows of their groups, or cannot be subtracted exactly."""
    count, kept = len(groups.about), plan.kept
    rows = kept.entry[1]
    if rows >= 0:
        require_within(entries.words[:, rows], 0, 2**40, "rows of panes")
        held = np.bincount(entries.groups, entries.words[:, rows], count)
        require((held <= groups.about[:, COUNT]).all(), "groups that count other rows")
    for part, (kind, _, place, _) in enumerate(kept.parts.tolist()):
        if kind not in (DOUBLES, SQUARES):
            continue
        words = 3 if kind == SQUARES else 2
        bits = entries.words[:, place + 1 : place + 1 + words]
        values = np.ascontiguousarray(bits).view(np.float64)
        exponents = (bits >> 52) & 0x7FF
        digits = (np.maximum(exponents, 1) + 13) >> 5
        notes = slabs.notes[entries.groups * len(kept.parts) + part]
        low, room = notes[:, BASE][:, None], notes[:, ROOM][:, None]
        fits = (digits >= low) & (digits + 4 <= low + room)
        free = (values == 0.0) | ~np.isfinite(values)
        counted = entries.words[:, place][:, None] > 0
        require((fits | free | ~counted).all(), "panes whose sums have no digits")
        require_within(entries.words[:, place], 0, 2**40, "values of panes")


def check_ring(dues: Int64s, due: Int64s, facts: Int64s, slots: int, slide_us: int) -> None:
    """Refuse a ring whose slots do not fit when its groups are due."""
    require(facts.dtype == np.int64 and facts.shape == (6,), "a ring of other facts")
    require(FEWEST <= slots <= MOST and slots & (slots - 1) == 0, f"a ring of {slots} slots")
    width = int(facts[0])
    require(0 < width < LONGEST_US and width % slide_us == 0, f"slots of {width} us")
    scheduled = np.flatnonzero(dues != NEVER)
    require(np.array_equal(np.sort(due), scheduled), "groups that are due and in no slot")
    times = dues[scheduled]
    require_within(times, MIN_TS_US, MAX_TS_US + LONGEST_US, "when groups are due")
    if len(times):
        behind = int(times.max()) // width - int(times.min()) // width
        require(behind < slots, "groups that are due later than the ring reaches")
