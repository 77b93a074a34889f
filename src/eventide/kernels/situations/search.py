"""Matches of a temporal pattern, at the first position at which they are certain.

The runs of each key and symbol lie side by side in order of time, those that can be seen in
[low, high) of their stretch; the last may still be open. When runs change at a position, all
changes are made first. Then every changed run in turn is the anchor of a search for the others, in
the order planned for it, and runs that were anchors before are left out. What is found is new if
some member can be seen only now, or if some pair was not certain before: both can only be true of
the last run of a stretch.
"""

from __future__ import annotations

from eventide.kernels.compiled import Floats, Int64s, kernel
from eventide.kernels.situations.orders import improve_orders
from eventide.kernels.situations.periods import (
    ANY,
    certain_stretches,
    first_at_least,
    intersect_stretches,
    possible,
)
from eventide.kernels.situations.runs import ENDED, NEVER, SEEN

WEIGHT = 0.01
"""How much one observation counts in a moving average."""
DRIFT = 0.2
"""How far a statistic may move before orders are planned anew."""
RARE = 0.01
"""Shares below it are too small to tell how far they have moved."""
OBSERVED_BETWEEN = 64
"""How many positions lie at least between two plans."""

GroupedRuns = tuple[Int64s, Int64s, Int64s, Int64s]
"""Start (time, position), end and first sight (positions) of runs, by key and symbol."""
Statistics = tuple[Floats, Floats, Floats, Floats, Int64s]
"""Moving averages of sizes and shares, those that the plan was made with, and counts: of
positions since the last look at them, of new plans, and of positions between two looks."""
Pause = Int64s
"""Where a search was left to be gone on with: the depth (0 if it was not), whether its candidates
are still to be found, how many steps it may take, and how many matches are enough."""
Scratch = tuple[Int64s, Int64s, Int64s, Int64s, Int64s, Int64s, Int64s, Int64s, Pause]
Found = tuple[Int64s, Int64s]
"""Members of matches, symbol by symbol, and the change that set each off; of counts, the number."""


@kernel
def was_certain(one: int, other: int, mask: int, now: int, runs: GroupedRuns) -> bool:
    """Whether two runs had a relation of the mask for certain just before `now`."""
    _, start, end, _ = runs
    end_one = end[one] if end[one] < now else NEVER
    end_other = end[other] if end[other] < now else NEVER
    return not possible(start[one], end_one, start[other], end_other) & ~mask


@kernel
def candidates(
    symbol: int,
    placed: Int64s,
    count: int,
    members: Int64s,
    low: int,
    high: int,
    now: int,
    masks: Int64s,
    runs: GroupedRuns,
    shares: Floats,
    observed: bool,
    stretches: Int64s,
    spare: Int64s,
    other: Int64s,
) -> int:
    """Write the stretches of [low, high) that certainly fit what is placed; return how many."""
    symbols = len(members)
    _, start, end, _ = runs
    stretches[0] = low
    stretches[1] = high
    found = 1 if low < high else 0
    for place in range(count):
        if not found:
            return 0
        placed_symbol = placed[place]
        mask = masks[placed_symbol * symbols + symbol]
        if mask == ANY:
            continue
        run = members[placed_symbol]
        run_end = end[run] if end[run] <= now else NEVER
        size = certain_stretches(start[run], run_end, mask, start, end, now, low, high, spare)
        if observed:
            fitting = 0
            for i in range(size):
                fitting += spare[2 * i + 1] - spare[2 * i]
            link = placed_symbol * symbols + symbol
            shares[link] += WEIGHT * (fitting / (high - low) - shares[link])
            shares[symbol * symbols + placed_symbol] = shares[link]
        found = intersect_stretches(stretches, found, spare, size, other)
        stretches[: 2 * found] = other[: 2 * found]
    return found


@kernel
def search(  # noqa: PLR0912, PLR0915 - one loop over a stack
    anchor: int,
    change: int,
    now: int,
    is_new: bool,
    left_out: int,
    bounds: tuple[Int64s, Int64s],
    group: int,
    masks: Int64s,
    orders: Int64s,
    runs: GroupedRuns,
    shares: Floats,
    scratch: Scratch,
    counting: bool,
    found: Found,
    count: int,
    most: int,
) -> int:
    """Find the matches of an anchor, `most` at most; return how many there are by now.

    It pauses when there is no room for another, or when it has taken as many steps as it may.
    """
    members, novel, at, number, sizes, stretches, spare, other, pause = scratch
    symbols = len(members)
    lows, highs = bounds
    order = orders[anchor * symbols : (anchor + 1) * symbols]
    width = len(spare)
    room = len(found[1])
    depth, entered, enough = 1, True, count + most
    if pause[0]:
        depth, entered, enough = pause[0], pause[1] != 0, pause[3]
        pause[0] = 0
    else:
        members[anchor] = highs[group + anchor] - 1
        novel[0] = 1 if is_new else 0
    if symbols == 1:
        if counting or not is_new:
            return count + 1 if is_new else count
        if count == room:
            pause[0], pause[1], pause[3] = 1, 1, enough
            return count
        found[0][count] = members[0]
        found[1][count] = change
        return count + 1
    while depth and count < enough:
        pause[2] -= 1
        full = not counting and depth == symbols - 1 and count == room
        if full or pause[2] < 0:
            pause[0], pause[1], pause[3] = depth, 1 if entered else 0, enough
            return count
        symbol = order[depth]
        own = stretches[depth * width : (depth + 1) * width]
        last = highs[group + symbol] - 1
        if entered:
            low = lows[group + symbol]
            high = last if left_out >> symbol & 1 else last + 1
            # At the end, only the last run can make it new: how many fit is not seen then.
            whole = depth < symbols - 1 or novel[depth - 1] != 0
            if not whole:
                low = max(low, last)
            sizes[depth] = candidates(
                symbol, order, depth, members, low, high, now, masks, runs, shares, whole,
                own, spare, other,
            )  # fmt: skip
            number[depth] = 0
            at[depth] = own[0]
            entered = False
            if counting and depth == symbols - 1 and novel[depth - 1]:
                for i in range(sizes[depth]):
                    count += own[2 * i + 1] - own[2 * i]
                sizes[depth] = 0
        if number[depth] == sizes[depth]:
            depth -= 1
            continue
        run = at[depth]
        at[depth] += 1
        if at[depth] == own[2 * number[depth] + 1]:
            number[depth] += 1
            if number[depth] < sizes[depth]:
                at[depth] = own[2 * number[depth]]
        new = novel[depth - 1]
        if not new and run == last:
            new = 1 if runs[3][run] == now else 0
            for place in range(depth):
                if new:
                    break
                mask = masks[order[place] * symbols + symbol]
                if mask != ANY and not was_certain(members[order[place]], run, mask, now, runs):
                    new = 1
        members[symbol] = run
        if depth < symbols - 1:
            novel[depth] = new
            depth += 1
            entered = True
            continue
        if not new:
            continue
        if counting:
            count += 1
            continue
        for each in range(symbols):
            found[0][count * symbols + each] = members[each]
        found[1][count] = change
        count += 1
    return count


@kernel
def plan_if_drifted(statistics: Statistics, linked: Int64s, orders: Int64s) -> None:
    """Plan anew if sizes or shares are no longer what the orders were made for.

    A plan that changes nothing was not worth its time: the next is made twice as late, and
    after one that does, in half the time.
    """
    sizes, shares, planned_sizes, planned_shares, counts = statistics
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
    planned_sizes[:] = sizes
    planned_shares[:] = shares
    if improve_orders(sizes, shares, linked, orders):
        counts[1] += 1
        counts[2] = max(OBSERVED_BETWEEN, counts[2] // 2)
    else:
        counts[2] = min(2 * counts[2], OBSERVED_BETWEEN << len(sizes))


@kernel
def match_changes(  # noqa: PLR0912, PLR0915 - a call for each change would cost more
    runs: GroupedRuns,
    bounds: tuple[Int64s, Int64s],
    changes: tuple[Int64s, Int64s, Int64s, Int64s, Int64s],
    first: int,
    limits: tuple[int, int, int, bool, bool],
    pattern: tuple[Int64s, Int64s, Int64s, Int64s, Int64s],
    orders: Int64s,
    statistics: Statistics,
    quota: Int64s,
    scratch: Scratch,
    found: Found,
    progress: Int64s,
) -> int:
    """Go through changes and write the matches; return the change to go on with, or their number.

    `changes` are positions, times, runs, kinds and groups (key times symbols, plus symbol), in
    order of position; `limits` the window, the span of time whose matches are wanted, whether to
    count only, and whether to plan anew; `pattern` the masks of pairs, which pairs have one, whose
    first sight can complete a match, whose end, and orders that follow the definitions. `quota` is
    how many matches of a key are still wanted: of each anchor the first so many. What was found is
    in progress[0]. If a search pauses, the rest of `progress` says where to go on: that it paused,
    the change and the anchors before it, how many were found before its position and before it,
    and whether it follows the definitions; when counting, how many its position has by then.
    """
    position, times, run_of, kinds, groups = changes
    within_us, from_us, until_us, counting, adaptive = limits
    masks, linked, starts_matter, ends_matter, defined = pattern
    lows, highs = bounds
    start_ts = runs[0]
    sizes, shares, counts = statistics[0], statistics[1], statistics[4]
    symbols = len(sizes)
    pause = scratch[-1]
    rows = progress[0]
    count = progress[7] if counting else rows
    resumed = progress[1] != 0
    progress[1] = 0
    total = len(position)
    change = first
    while change < total:
        now, ts = position[change], times[change]
        key = groups[change] // symbols
        group = key * symbols
        behind = change
        active = False
        while behind < total and position[behind] == now:
            symbol = groups[behind] - group
            if kinds[behind] == ENDED:
                active = active or ends_matter[symbol] != 0
            else:
                active = active or kinds[behind] != SEEN or starts_matter[symbol] != 0
                if not resumed:
                    highs[groups[behind]] += 1
            behind += 1
        if not active:
            change = behind
            continue
        each, anchors, before = change, 0, count
        earlier, follows = count, 0
        if resumed:
            each, anchors, before = progress[2], progress[3], progress[4]
            earlier, follows = progress[5], progress[6]
        else:
            empty = False
            for symbol in range(symbols):
                own = group + symbol
                if lows[own] < highs[own] and start_ts[lows[own]] < ts - within_us:
                    lows[own] = first_at_least(start_ts, lows[own], highs[own], ts - within_us)
                size = highs[own] - lows[own]
                sizes[symbol] += WEIGHT * (size - sizes[symbol])
                empty = empty or size == 0
            # Counted here: a call for each position would cost more than it saves.
            counts[0] += 1
            if adaptive and counts[0] >= counts[2]:
                plan_if_drifted(statistics, linked, orders)
            if empty or ts < from_us or ts >= until_us or quota[key] <= 0:
                change = behind
                continue
        while each < behind:
            symbol = groups[each] - group
            ended = kinds[each] == ENDED
            if not resumed:
                seen = kinds[each] == SEEN
                idle = (ended and not ends_matter[symbol]) or (seen and not starts_matter[symbol])
                if idle or start_ts[run_of[each]] < ts - within_us:
                    each += 1
                    continue
                earlier, follows = count, 0
            resumed = False
            wanted = quota[key]
            count = search(
                symbol, change, now, not ended, anchors, bounds, group, masks,
                defined if follows else orders, runs, shares, scratch, counting, found, count,
                wanted if follows else wanted + 1,
            )  # fmt: skip
            if pause[0]:
                progress[0] = rows if counting else count
                progress[1:] = (1, each, anchors, before, earlier, follows, count)
                return change
            if not follows and count - earlier > wanted:
                # Which come first is known without the rest if they are joined as defined.
                count, follows, resumed = earlier, 1, True
                continue
            anchors |= 1 << symbol
            each += 1
        if counting:
            # One row a position: its number of matches.
            if count:
                found[0][rows] = count
                found[1][rows] = change
                rows += 1
            count = 0
        else:
            quota[key] -= count - before
        change = behind
    progress[0] = rows if counting else count
    progress[7] = 0
    return total
