"""The matches of one anchor: a search through the runs of the other symbols.

The runs of each key and symbol lie side by side in order of time; those in [low, high) of their
range are visible, and the last may still be open. The anchor is the last run of its symbol. The
others are joined to it in the order planned for it; runs that were anchors at the same position
before are left out. A match is new if some member became visible only now, or if some pair was not
certain before: both can be true only of the last run of a range.
"""

from __future__ import annotations

from eventide.kernels.compiled import Int64s, call_lean, inline, lean_kernel
from eventide.kernels.situations.periods import (
    ANY,
    certain_ranges,
    intersect_ranges,
    possible,
)
from eventide.kernels.situations.problem import (
    DEPTH,
    ENOUGH,
    ENTERED,
    STEPS,
    Anchor,
    FoundMatches,
    Search,
    SearchedRuns,
    SearchRoom,
)
from eventide.kernels.situations.runs import NEVER

WEIGHT = 0.01
"""How much one observation counts in a moving average."""


@call_lean
def was_certain(one: int, other: int, mask: int, now: int, start: Int64s, end: Int64s) -> bool:
    """Whether two runs certainly had a relation of the mask just before `now`."""
    end_one = end[one] if end[one] < now else NEVER
    end_other = end[other] if end[other] < now else NEVER
    return not possible(start[one], end_one, start[other], end_other) & ~mask


@call_lean
def candidates(
    task: Search, order: Int64s, depth: int, low: int, high: int, now: int, observed: bool
) -> int:
    """Write the ranges of [low, high) that certainly fit the members so far; return how many.

    With `observed`, how many of the runs fit goes into the moving averages.
    """
    room, shares, masks = task.room, task.averages.shares, task.pattern.masks
    start, end = task.runs.start, task.runs.end
    members, spare, other = room.members, room.spare, room.other
    symbols, symbol, width = len(members), order[depth], len(spare)
    ranges = room.ranges[depth * width : (depth + 1) * width]
    ranges[0] = low
    ranges[1] = high
    found = 1 if low < high else 0
    for place in range(depth):
        if not found:
            return 0
        placed = order[place]
        mask = masks[placed * symbols + symbol]
        if mask == ANY:
            continue
        run = members[placed]
        run_end = end[run] if end[run] <= now else NEVER
        size = certain_ranges(start[run], run_end, mask, start, end, now, low, high, spare)
        if observed:
            fitting = 0
            for i in range(size):
                fitting += spare[2 * i + 1] - spare[2 * i]
            link = placed * symbols + symbol
            shares[link] += WEIGHT * (fitting / (high - low) - shares[link])
            shares[symbol * symbols + placed] = shares[link]
        found = intersect_ranges(ranges, found, spare, size, other)
        for i in range(2 * found):
            ranges[i] = other[i]
    return found


@inline
def next_candidate(room: SearchRoom, depth: int) -> int:
    """Return the next run of the ranges of a depth, and go on behind it."""
    own = depth * len(room.spare)
    run = int(room.at[depth])
    room.at[depth] += 1
    if room.at[depth] == room.ranges[own + 2 * room.number[depth] + 1]:
        room.number[depth] += 1
        if room.number[depth] < room.sizes[depth]:
            room.at[depth] = room.ranges[own + 2 * room.number[depth]]
    return run


@inline
def makes_new(
    runs: SearchedRuns, masks: Int64s, members: Int64s, order: Int64s, depth: int, run: int,
    now: int,
) -> int:  # fmt: skip
    """Return 1 if the last run of a range, as a member, makes a match new; else 0."""
    new = 1 if runs.seen[run] == now else 0
    for place in range(depth):
        if new:
            break
        mask = masks[order[place] * len(members) + order[depth]]
        if mask != ANY and not was_certain(
            members[order[place]], run, mask, now, runs.start, runs.end
        ):
            new = 1
    return new


@inline
def write_match(found: FoundMatches, members: Int64s, change: int, count: int) -> None:
    """Write a match as number `count`."""
    symbols = len(members)
    for each in range(symbols):
        found.members[count * symbols + each] = members[each]
    found.change[count] = change


@inline
def enter(task: Search, anchor: Anchor, order: Int64s, depth: int, last: int) -> None:
    """Find the candidates of a depth; `last` is the last run of its symbol."""
    room, symbol = task.room, order[depth]
    low = task.runs.lows[anchor.group + symbol]
    high = last if anchor.left_out >> symbol & 1 else last + 1
    # At the end, only the last run can make it new: how many fit is not seen then.
    whole = depth < len(room.members) - 1 or room.novel[depth - 1] != 0
    if not whole:
        low = max(low, last)
    room.sizes[depth] = candidates(task, order, depth, low, high, anchor.now, whole)
    room.number[depth] = 0
    room.at[depth] = room.ranges[depth * len(room.spare)]


@inline
def candidates_left(room: SearchRoom, depth: int) -> int:
    """Return how many candidates a depth has that was just entered."""
    own, count = depth * len(room.spare), 0
    for i in range(own, own + 2 * room.sizes[depth], 2):
        count += room.ranges[i + 1] - room.ranges[i]
    return count


@inline
def alone(task: Search, anchor: Anchor, count: int, enough: int) -> int:
    """Take the anchor itself as a match, for a pattern with one symbol."""
    room, found = task.room, task.found
    if not anchor.is_new:
        return count
    if not task.limits.counting:
        if count == len(found.change):
            room.pause[DEPTH], room.pause[ENTERED], room.pause[ENOUGH] = 1, 1, enough
            return count
        write_match(found, room.members, anchor.change, count)
    return count + 1


@lean_kernel
def search(task: Search, anchor: Anchor, orders: Int64s, count: int, most: int) -> int:
    """Find the matches of an anchor, at most `most`; return how many there are by now.

    It pauses when there is no room for another, or when it has taken as many steps as it may.
    """
    room, runs, found = task.room, task.runs, task.found
    members, novel, sizes, pause = room.members, room.novel, room.sizes, room.pause
    counting, now = task.limits.counting, anchor.now
    symbols = len(members)
    deepest = symbols - 1
    order = orders[anchor.symbol * symbols : (anchor.symbol + 1) * symbols]
    depth, entered, enough = 1, True, count + most
    if pause[DEPTH]:
        depth, entered, enough = pause[DEPTH], pause[ENTERED] != 0, pause[ENOUGH]
        pause[DEPTH] = 0
    else:
        members[anchor.symbol] = runs.highs[anchor.group + anchor.symbol] - 1
        novel[0] = 1 if anchor.is_new else 0
    if deepest == 0:
        return alone(task, anchor, count, enough)
    while depth and count < enough:
        pause[STEPS] -= 1
        full = not counting and depth == deepest and count == len(found.change)
        if full or pause[STEPS] < 0:
            pause[DEPTH], pause[ENTERED], pause[ENOUGH] = depth, 1 if entered else 0, enough
            return count
        symbol = order[depth]
        last = runs.highs[anchor.group + symbol] - 1
        if entered:
            enter(task, anchor, order, depth, last)
            entered = False
            if counting and depth == deepest and novel[depth - 1]:
                count += candidates_left(room, depth)
                sizes[depth] = 0
        if room.number[depth] == sizes[depth]:
            depth -= 1
            continue
        run = next_candidate(room, depth)
        new = novel[depth - 1]
        if not new and run == last:
            new = makes_new(runs, task.pattern.masks, members, order, depth, run, now)
        members[symbol] = run
        if depth < deepest:
            novel[depth] = new
            depth += 1
            entered = True
        elif new:
            if not counting:
                write_match(found, members, anchor.change, count)
            count += 1
    return count
