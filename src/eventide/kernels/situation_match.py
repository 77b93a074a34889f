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
from eventide.kernels.periods import (
    ANY,
    certain_stretches,
    first_at_least,
    intersect_stretches,
    possible,
)
from eventide.kernels.situation_orders import improve_orders
from eventide.kernels.situations import ENDED, NEVER, SEEN

NO_ROOM = -1
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
Scratch = tuple[Int64s, Int64s, Int64s, Int64s, Int64s, Int64s, Int64s, Int64s]
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
) -> int:
    """Find the matches of an anchor; return how many there are by now, or NO_ROOM."""
    members, novel, at, number, sizes, stretches, spare, other = scratch
    symbols = len(members)
    lows, highs = bounds
    order = orders[anchor * symbols : (anchor + 1) * symbols]
    width = len(spare)
    room = len(found[1])
    members[anchor] = highs[group + anchor] - 1
    novel[0] = 1 if is_new else 0
    if symbols == 1:
        if not is_new:
            return count
        if counting:
            return count + 1
        if count == room:
            return NO_ROOM
        found[0][count] = members[0]
        found[1][count] = change
        return count + 1
    depth = 1
    entered = True
    while depth:
        symbol = order[depth]
        own = stretches[depth * width : (depth + 1) * width]
        last = highs[group + symbol] - 1
        if entered:
            low = lows[group + symbol]
            high = last if left_out >> symbol & 1 else last + 1
            if depth == symbols - 1 and not novel[depth - 1]:
                # Only the last run can make it new.
                low = max(low, last)
            sizes[depth] = candidates(
                symbol, order, depth, members, low, high, now, masks, runs, shares,
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
        if count == room:
            return NO_ROOM
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
    counts[0] += 1
    if counts[0] < counts[2]:
        return
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
    pattern: tuple[Int64s, Int64s, Int64s, Int64s],
    orders: Int64s,
    statistics: Statistics,
    quota: Int64s,
    scratch: Scratch,
    found: Found,
    progress: Int64s,
) -> int:
    """Go through changes and write the matches; return the change to go on with.

    `changes` are positions, times, runs, kinds and groups (key times symbols, plus symbol), in
    order of position; `limits` the window, the span of time whose matches are wanted, whether to
    count only, and whether to plan anew; `pattern` the masks of pairs, which pairs have one, whose
    first sight can complete a match, and whose end. `quota` is how many matches of a key are still
    wanted. What was found is in progress[0]; with no room for the matches of a position, it comes
    back.
    """
    position, times, run_of, kinds, groups = changes
    within_us, from_us, until_us, counting, adaptive = limits
    masks, linked, starts_matter, ends_matter = pattern
    lows, highs = bounds
    start_ts = runs[0]
    sizes, shares = statistics[0], statistics[1]
    symbols = len(sizes)
    count = 0
    total = len(position)
    change = first
    while change < total:
        now, ts = position[change], times[change]
        behind = change
        while behind < total and position[behind] == now:
            if kinds[behind] != ENDED:
                highs[groups[behind]] += 1
            behind += 1
        key = groups[change] // symbols
        group = key * symbols
        empty = False
        for symbol in range(symbols):
            each = group + symbol
            if lows[each] < highs[each] and start_ts[lows[each]] < ts - within_us:
                lows[each] = first_at_least(start_ts, lows[each], highs[each], ts - within_us)
            size = highs[each] - lows[each]
            sizes[symbol] += WEIGHT * (size - sizes[symbol])
            empty = empty or size == 0
        if adaptive:
            plan_if_drifted(statistics, linked, orders)
        if empty or ts < from_us or ts >= until_us or quota[key] <= 0:
            change = behind
            continue
        before = count
        anchors = 0
        for each in range(change, behind):
            symbol = groups[each] - group
            ended = kinds[each] == ENDED
            if ended and not ends_matter[symbol]:
                continue
            if kinds[each] == SEEN and not starts_matter[symbol]:
                continue
            if start_ts[run_of[each]] < ts - within_us:
                continue
            count = search(
                symbol, change, now, not ended, anchors, bounds, group, masks, orders, runs,
                shares, scratch, counting, found, count,
            )  # fmt: skip
            if count == NO_ROOM:
                for again in range(change, behind):
                    if kinds[again] != ENDED:
                        highs[groups[again]] -= 1
                progress[0] = before
                return change
            anchors |= 1 << symbol
        if counting:
            # One row a position: its number of matches.
            if count:
                found[0][progress[0]] = count
                found[1][progress[0]] = change
                progress[0] += 1
            count = 0
        else:
            quota[key] -= count - before
        change = behind
    if not counting:
        progress[0] = count
    return total
