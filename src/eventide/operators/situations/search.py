"""Find matches among the runs of a step, some at a time.

Runs are grouped by key and symbol for the kernel that goes through the changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from eventide.instants import TimeRange
from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.grouping import order_by_key
from eventide.kernels.situations.matching import match_changes
from eventide.kernels.situations.problem import (
    STEPS,
    WRITTEN,
    FoundMatches,
    Search,
    SearchedChanges,
    SearchedRuns,
    SearchLimits,
    SearchRoom,
)
from eventide.kernels.situations.runs import NEVER
from eventide.operators.situations.plan import PatternTables, Statistics
from eventide.operators.situations.runs import LONGEST_US, Derived, run_codes
from eventide.plan.situations.nodes import TemporalPattern

ROOM = 1 << 16
"""This many matches become rows before the search goes on."""
MOST_WORK = 20_000_000
"""The search takes this many steps before it returns, so that it can be interrupted."""
NO_LIMIT = 1 << 62


@dataclass(frozen=True, slots=True)
class SituationMatches:
    """Matches by the numbers of their members' runs, and the change with which each became certain.

    If only their number is needed, there are no members, and `counts` has it for each change.
    """

    members: Int64s
    change: Int64s
    counts: Int64s


@dataclass(frozen=True, slots=True)
class GroupedRuns:
    """The visible runs of a step, grouped by key and symbol, in order of time.

    `visible` are their numbers in the step, `place` is where each run of the step is among them,
    `group` its key and symbol. In a group, [lows, highs) were visible before the step.
    """

    visible: Int64s
    place: Int64s
    group: Int64s
    columns: SearchedRuns

    @classmethod
    def of(cls, derived: Derived, symbols: int) -> GroupedRuns:
        """Group the runs of keys that changed."""
        runs, keys = derived.runs, len(derived.keys)
        group = runs.key * symbols + runs.symbol
        touched = np.zeros(keys, np.bool_)
        touched[runs.key[derived.changes.run]] = True
        visible = np.flatnonzero((runs.visible != NEVER) & touched[runs.key])
        order, offsets = np.empty(len(visible), np.int64), np.zeros(keys * symbols + 1, np.int64)
        order_by_key(run_codes(group[visible]), offsets, order)
        visible = visible[order]
        place = np.full(len(runs), -1, np.int64)
        place[visible] = np.arange(len(visible))
        lows = offsets[:-1].copy()
        earlier = group[visible[runs.visible[visible] < derived.base]]
        highs = lows + np.bincount(earlier, minlength=len(lows))
        columns = SearchedRuns(
            frozen(runs.start_ts[visible]),
            frozen(runs.start_pos[visible]),
            frozen(runs.end_pos[visible]),
            frozen(runs.visible[visible]),
            lows,
            highs,
        )
        return cls(visible, place, group, columns)


@dataclass(frozen=True)
class MatchSearch:
    """Searches the matches of a pattern."""

    node: TemporalPattern
    tables: PatternTables
    owned: TimeRange
    counting: bool
    adaptive: bool

    def matches(
        self, derived: Derived, reported: Int64s, statistics: Statistics
    ) -> Iterator[SituationMatches]:
        """Yield the matches that changes make certain; with a limit, count them in `reported`."""
        changes = derived.changes
        total = len(changes.position)
        # The first step runs even without changes, so that no event waits for compilation.
        if not total and derived.base:
            return
        symbols = len(self.node.situations)
        runs = GroupedRuns.of(derived, symbols)
        inputs = SearchedChanges(
            frozen(changes.position),
            frozen(changes.ts),
            frozen(runs.place[changes.run]),
            frozen(changes.kind),
            frozen(runs.group[changes.run]),
        )
        within_us = min(self.node.within_us, LONGEST_US)
        owned = (self.owned.start_us, self.owned.end_us)
        limits = SearchLimits(within_us, *owned, self.counting, self.adaptive)
        quota = self.limit - reported
        progress = np.zeros(8, np.int64)
        room = total if self.counting else ROOM
        task = Search(
            runs.columns,
            self.tables.searched,
            limits,
            statistics.moving,
            statistics.orders,
            search_room(symbols),
            room_for(room, 1 if self.counting else symbols),
        )
        change = 0
        while True:
            task.room.pause[STEPS] = MOST_WORK
            change = match_changes(task, inputs, change, quota, progress)
            count, found = int(progress[WRITTEN]), task.found
            if change < total and self.keeps_all:
                task = task._replace(found=larger(found, count))
                continue
            if change < total and self.counting:
                continue
            if self.counting:
                yield SituationMatches(
                    np.empty((0, symbols), np.int64), found.change[:count], found.members[:count]
                )
            elif count or not total:
                members = runs.visible[found.members[: count * symbols]].reshape(count, symbols)
                none = np.empty(0, np.int64)
                matches = SituationMatches(members, found.change[:count].copy(), none)
                yield self.limited(matches, derived, reported)
            if change == total:
                return
            progress[WRITTEN] = 0

    @property
    def keeps_all(self) -> bool:
        """Whether all matches have to be found before it is known which are the first."""
        return self.node.limit is not None

    @property
    def limit(self) -> int:
        """How many matches of a key are reported."""
        return NO_LIMIT if self.node.limit is None else min(self.node.limit, NO_LIMIT)

    def limited(
        self, found: SituationMatches, derived: Derived, reported: Int64s
    ) -> SituationMatches:
        """Return the matches within the limit: the first ones of each key."""
        if self.node.limit is None:
            return found
        runs = derived.runs
        key = runs.key[found.members[:, 0]]
        starts = [runs.start_pos[column] for column in found.members.T]
        order = np.lexsort((*starts[::-1], derived.changes.position[found.change], key))
        ordered = key[order]
        first = np.searchsorted(ordered, ordered)
        rank = np.arange(len(order)) - first
        chosen = np.sort(order[reported[ordered] + rank < self.limit])
        np.add.at(reported, key[chosen], 1)
        return SituationMatches(found.members[chosen], found.change[chosen], found.counts)


def search_room(symbols: int) -> SearchRoom:
    """Return the arrays that a search works in."""
    width = 16 * symbols + 16
    members, novel, at, number, sizes = (np.zeros(symbols, np.int64) for _ in range(5))
    ranges = np.empty(symbols * width, np.int64)
    spare, other = np.empty(width, np.int64), np.empty(width, np.int64)
    pause = np.zeros(4, np.int64)
    return SearchRoom(members, novel, at, number, sizes, ranges, spare, other, pause)


def room_for(matches: int, symbols: int) -> FoundMatches:
    """Return room for members of matches, and for the change of each."""
    return FoundMatches(np.empty(matches * symbols, np.int64), np.empty(matches, np.int64))


def larger(found: FoundMatches, count: int) -> FoundMatches:
    """Return the same arrays with twice the room, if there is none left."""
    members, change = found
    if count < len(change):
        return found
    symbols = len(members) // len(change)
    grown = room_for(2 * count, symbols)
    grown.members[: len(members)] = members
    grown.change[: len(change)] = change
    return grown
