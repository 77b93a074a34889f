"""Matches of a temporal pattern, at the first position at which they are certain.

When runs change at a position, all changes are made first. Then every changed run in turn is the
anchor of a search (`search.py`). The number of runs, and how many fit, is measured on the way:
orders of joining are planned by it.
"""

from __future__ import annotations

from eventide.kernels.compiled import Int64s, call, call_lean, inline, kernel
from eventide.kernels.situations.orders import improve_orders
from eventide.kernels.situations.periods import first_at_least
from eventide.kernels.situations.problem import (
    ANCHORS,
    BEFORE,
    COUNT,
    DEPTH,
    EACH,
    EARLIER,
    FOLLOWS,
    PAUSED,
    WRITTEN,
    Anchor,
    MovingAverages,
    Search,
    SearchedChanges,
)
from eventide.kernels.situations.runs import ENDED, SEEN
from eventide.kernels.situations.search import WEIGHT, search

DRIFT = 0.2
"""How far a statistic may move before orders are planned anew."""
RARE = 0.01
"""Shares below it are too small to tell how far they have moved."""
OBSERVED_BETWEEN = 64
"""How many positions lie at least between two plans."""


@call
def plan_if_drifted(averages: MovingAverages, linked: Int64s, orders: Int64s) -> None:
    """Plan anew if sizes or shares differ from those that the orders were made for.

    A plan that changes nothing was not worth its time: then the next one is made twice as late, and
    after one that does change something, in half the time.
    """
    sizes, shares, planned_sizes, planned_shares, counts = averages
    counts[0] = 0
    drifted = False
    for i in range(len(sizes)):
        if abs(sizes[i] - planned_sizes[i]) > DRIFT * max(planned_sizes[i], 1.0):
            drifted = True
    for i in range(len(shares)):
        if linked[i] and abs(shares[i] - planned_shares[i]) > DRIFT * max(planned_shares[i], RARE):
            drifted = True
    if not drifted:
        return
    for i in range(len(sizes)):
        planned_sizes[i] = sizes[i]
    for i in range(len(shares)):
        planned_shares[i] = shares[i]
    if improve_orders(sizes, shares, linked, orders):
        counts[1] += 1
        counts[2] = max(OBSERVED_BETWEEN, counts[2] // 2)
    else:
        counts[2] = min(2 * counts[2], OBSERVED_BETWEEN << len(sizes))


@call_lean
def make_changes(
    task: Search, changes: SearchedChanges, change: int, made: bool
) -> tuple[int, bool]:
    """Make the changes of a position, unless they are `made`.

    Returns where those of the next position begin, and whether some can complete a match.
    """
    starts_matter, ends_matter = task.pattern.starts_matter, task.pattern.ends_matter
    symbols = len(task.room.members)
    now, behind, active = changes.position[change], change, False
    while behind < len(changes.position) and changes.position[behind] == now:
        group, kind = changes.group[behind], changes.kind[behind]
        symbol = group % symbols
        if kind == ENDED:
            active = active or ends_matter[symbol] != 0
        else:
            active = active or kind != SEEN or starts_matter[symbol] != 0
            if not made:
                task.runs.highs[group] += 1
        behind += 1
    return behind, active


@call_lean
def look_at_window(task: Search, group: int, ts: int) -> bool:
    """Leave out runs that began before the window; return whether every symbol has a run."""
    lows, highs, start_ts = task.runs.lows, task.runs.highs, task.runs.start_ts
    sizes, since_us = task.averages.sizes, ts - task.limits.within_us
    complete = True
    for symbol in range(len(sizes)):
        own = group + symbol
        if lows[own] < highs[own] and start_ts[lows[own]] < since_us:
            lows[own] = first_at_least(start_ts, lows[own], highs[own], since_us)
        size = highs[own] - lows[own]
        sizes[symbol] += WEIGHT * (size - sizes[symbol])
        complete = complete and size != 0
    return complete


@inline
def is_anchor(
    task: Search, changes: SearchedChanges, each: int, symbol: int, since_us: int
) -> bool:
    """Whether a change can complete a match, and its run began in the window."""
    kind = changes.kind[each]
    if kind == ENDED and not task.pattern.ends_matter[symbol]:
        return False
    if kind == SEEN and not task.pattern.starts_matter[symbol]:
        return False
    return bool(task.runs.start_ts[changes.run[each]] >= since_us)


@call_lean
def search_position(
    task: Search, changes: SearchedChanges, change: int, behind: int, wanted: int,
    progress: Int64s,
) -> None:  # fmt: skip
    """Search from the changes of a position that are left, for `wanted` matches at most of each.

    Of each anchor one match more than that is looked for. If there is one, which matches come
    first is known without the rest if they are joined as defined, so the search begins anew.
    """
    symbols = len(task.room.members)
    group = changes.group[change] // symbols * symbols
    since_us = changes.ts[change] - task.limits.within_us
    again = progress[PAUSED] != 0
    progress[PAUSED] = 0
    while progress[EACH] < behind:
        each = progress[EACH]
        symbol = changes.group[each] - group
        if not again:
            if not is_anchor(task, changes, each, symbol, since_us):
                progress[EACH] += 1
                continue
            progress[EARLIER], progress[FOLLOWS] = progress[COUNT], 0
        again = False
        follows = progress[FOLLOWS] != 0
        anchor = Anchor(
            symbol,
            change,
            changes.position[change],
            changes.kind[each] != ENDED,
            progress[ANCHORS],
            group,
        )
        orders = task.pattern.defined if follows else task.orders
        most = wanted if follows else wanted + 1
        progress[COUNT] = search(task, anchor, orders, progress[COUNT], most)
        if task.room.pause[DEPTH]:
            progress[PAUSED] = 1
            return
        if not follows and progress[COUNT] - progress[EARLIER] > wanted:
            progress[COUNT], progress[FOLLOWS], again = progress[EARLIER], 1, True
            continue
        progress[ANCHORS] |= 1 << symbol
        progress[EACH] += 1


@kernel
def match_changes(
    task: Search, changes: SearchedChanges, first: int, quota: Int64s, progress: Int64s
) -> int:
    """Go through changes and write the matches; return the change to go on with, or their number.

    `quota` is how many matches of a key are still wanted: the first ones of each anchor. How many
    rows were written is in progress[WRITTEN]. If a search pauses, the rest of `progress` says where
    to go on.
    """
    limits, averages = task.limits, task.averages
    # Taken out here: in the loop, each would be counted as one more reference to the array.
    counts, times, groups = averages.counts, changes.ts, changes.group
    total, symbols = len(times), len(averages.sizes)
    resumed = progress[PAUSED] != 0
    if not limits.counting:
        progress[COUNT] = progress[WRITTEN]
    change = first
    while change < total:
        ts, key = times[change], groups[change] // symbols
        behind, wanted = make_changes(task, changes, change, resumed)
        if wanted and not resumed:
            wanted = look_at_window(task, key * symbols, ts)
            # Counted here: a call for each position would cost more than it saves.
            counts[0] += 1
            if limits.adaptive and counts[0] >= counts[2]:
                plan_if_drifted(averages, task.pattern.linked, task.orders)
            wanted = wanted and limits.from_us <= ts < limits.until_us and quota[key] > 0
            progress[EACH], progress[ANCHORS], progress[BEFORE] = change, 0, progress[COUNT]
        resumed = False
        if wanted:
            search_position(task, changes, change, behind, quota[key], progress)
            if progress[PAUSED]:
                if not limits.counting:
                    progress[WRITTEN] = progress[COUNT]
                return change
            if not limits.counting:
                quota[key] -= progress[COUNT] - progress[BEFORE]
            elif progress[COUNT]:
                # One row a position: its number of matches.
                task.found.members[progress[WRITTEN]] = progress[COUNT]
                task.found.change[progress[WRITTEN]] = change
                progress[WRITTEN] += 1
                progress[COUNT] = 0
        change = behind
    if not limits.counting:
        progress[WRITTEN] = progress[COUNT]
    return total
