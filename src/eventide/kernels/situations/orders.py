"""In which order situations are joined: the cheapest for each that may set a match off.

The size of a set of joined situations does not depend on the order in which they came, so the best
order is found set by set (dynamic programming), up to `MOST_EXACT` of them; with more, the cheapest
step is taken each time. The situation that sets a match off is already joined.
"""

from __future__ import annotations

import numpy as np

from eventide.kernels.compiled import Floats, Int64s, call, kernel

MOST_EXACT = 12
UNLINKED = 1e6
"""How much more a step costs if no constraint links it to what is already joined."""
WORTH = 0.9
"""Orders are changed if the new ones cost at most this share of the old."""


@call
def step_size(
    size: float, chosen: int, symbol: int, sizes: Floats, shares: Floats, linked: Int64s
) -> tuple[float, float]:
    """Return how many are left after joining a symbol, and the cost of joining it."""
    symbols = len(sizes)
    after = size * max(sizes[symbol], 1e-3)
    links = 0
    for other in range(symbols):
        if chosen >> other & 1 and linked[other * symbols + symbol]:
            after *= shares[other * symbols + symbol]
            links += 1
    cost = size * 4.0 * np.log2(2.0 + sizes[symbol]) * max(1, links) + after
    return after, cost if links else cost * UNLINKED


@kernel
def order_cost(order: Int64s, sizes: Floats, shares: Floats, linked: Int64s) -> float:
    """Return the cost of joining in an order."""
    left = 1.0
    total = 0.0
    chosen = 1 << order[0]
    for place in range(1, len(order)):
        left, step = step_size(left, chosen, order[place], sizes, shares, linked)
        total += step
        chosen |= 1 << order[place]
    return total


@kernel
def plan_orders(sizes: Floats, shares: Floats, linked: Int64s, orders: Int64s) -> None:
    """Write for each symbol the order that begins with it."""
    symbols = len(sizes)
    if symbols > MOST_EXACT:
        for anchor in range(symbols):
            plan_greedily(anchor, sizes, shares, linked, orders)
        return
    # By set and symbol: how much a step reduces the size, and how many constraints it has. The
    # values of a set are those of the set without its first member, combined with the first.
    factors = np.ones((1 << symbols, symbols))
    links = np.zeros((1 << symbols, symbols))
    for chosen in range(1, 1 << symbols):
        first = 0
        while not chosen >> first & 1:
            first += 1
        rest = chosen & ~(1 << first)
        for symbol in range(symbols):
            link = first * symbols + symbol
            share = shares[link] if linked[link] else 1.0
            factors[chosen, symbol] = factors[rest, symbol] * share
            links[chosen, symbol] = links[rest, symbol] + linked[link]
    for anchor in range(symbols):
        plan_exactly(anchor, sizes, factors, links, orders)


@call
def plan_exactly(
    anchor: int, sizes: Floats, factors: Floats, links: Floats, orders: Int64s
) -> None:
    """Write the cheapest order that begins with a symbol."""
    symbols = len(sizes)
    sets = 1 << symbols
    searched = 4.0 * np.log2(2.0 + sizes)
    cost = np.full(sets, np.inf)
    left = np.zeros(sets)
    last = np.zeros(sets, np.int64)
    cost[1 << anchor] = 0.0
    left[1 << anchor] = 1.0
    for chosen in range(sets):
        if cost[chosen] == np.inf:
            continue
        for symbol in range(symbols):
            if chosen >> symbol & 1:
                continue
            after = left[chosen] * max(sizes[symbol], 1e-3) * factors[chosen, symbol]
            step = left[chosen] * searched[symbol] * max(1.0, links[chosen, symbol]) + after
            if links[chosen, symbol] == 0.0:
                step *= UNLINKED
            joined = chosen | 1 << symbol
            if cost[chosen] + step < cost[joined]:
                cost[joined] = cost[chosen] + step
                left[joined] = after
                last[joined] = symbol
    chosen = sets - 1
    for place in range(symbols - 1, 0, -1):
        orders[anchor * symbols + place] = last[chosen]
        chosen &= ~(1 << last[chosen])
    orders[anchor * symbols] = anchor


@kernel
def plan_greedily(
    anchor: int, sizes: Floats, shares: Floats, linked: Int64s, orders: Int64s
) -> None:
    """Write an order that begins with a symbol and takes the cheapest step each time."""
    symbols = len(sizes)
    chosen = 1 << anchor
    left = 1.0
    orders[anchor * symbols] = anchor
    for place in range(1, symbols):
        best, best_cost, best_left = -1, np.inf, 0.0
        for symbol in range(symbols):
            if chosen >> symbol & 1:
                continue
            after, step = step_size(left, chosen, symbol, sizes, shares, linked)
            if best < 0 or step < best_cost:
                best, best_cost, best_left = symbol, step, after
        orders[anchor * symbols + place] = best
        chosen |= 1 << best
        left = best_left


@call
def improve_orders(sizes: Floats, shares: Floats, linked: Int64s, orders: Int64s) -> bool:
    """Plan anew and change the orders that become clearly cheaper; return whether any did."""
    symbols = len(sizes)
    better = np.empty(len(orders), np.int64)
    plan_orders(sizes, shares, linked, better)
    changed = False
    for anchor in range(symbols):
        own = slice(anchor * symbols, (anchor + 1) * symbols)
        cost = order_cost(orders[own], sizes, shares, linked)
        if order_cost(better[own], sizes, shares, linked) < WORTH * cost:
            orders[own] = better[own]
            changed = True
    return changed
