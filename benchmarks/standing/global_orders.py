"""Global orders of a join: one order of the windows for all origins, as joins elsewhere have it.

An origin leaves itself out. Eventide's join has an order for each origin instead, which never costs
more (`eventide.plan.standing.join_order`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations, product
from statistics import median

from eventide.plan.standing.join_order import (
    MOST_EXACT,
    JoinInput,
    Order,
    cost_of_orders,
    growth,
    without,
)

FAST = 2.0
"""A window is fast if its rate is so many times the median of the others."""
MOST_FAST = 3
"""So many of the fast windows are moved up in orders that are compared."""


def cost_of_order(order: Sequence[int], inputs: Sequence[JoinInput]) -> float:
    """Return the cost of a global order.

    >>> rates = ((10, 100, 500), (1, 100, 50), (1, 200, 40), (3, 100, 5))
    >>> cost_of_order((0, 1, 2, 3), [JoinInput(*each) for each in rates])
    16000.0
    """
    return cost_of_orders([without(order, origin) for origin in range(len(inputs))], inputs)


def best_order(inputs: Sequence[JoinInput]) -> Order:
    """Return the cheapest global order, or of many windows one that should be close to it."""
    if len(inputs) <= MOST_EXACT:
        candidates: Iterator[Order] = permutations(range(len(inputs)))
    else:
        candidates = promising(inputs)
    return min(candidates, key=lambda order: comparable(cost_of_order(order, inputs)))


def comparable(cost: float) -> float:
    """Return a cost without its last digits: of orders that cost the same, the first is taken."""
    return float(f"{cost:.12g}")


def by_selectivity(inputs: Sequence[JoinInput]) -> Order:
    """Return the order that begins with the smallest pair and goes on with the least growth."""
    count = len(inputs)
    if count < 2:
        return tuple(range(count))
    pairs = combinations(range(count), 2)
    first, second = min(pairs, key=lambda pair: pair_size(inputs[pair[0]], inputs[pair[1]]))
    order = [first, second]
    distinct = min(inputs[first].distinct, inputs[second].distinct)
    while len(order) < count:
        left = [number for number in range(count) if number not in order]
        order.append(min(left, key=lambda number: growth(inputs[number], distinct)))
        distinct = min(distinct, inputs[order[-1]].distinct)
    return tuple(order)


def pair_size(left: JoinInput, right: JoinInput) -> float:
    """Return how many pairs of two windows there are at a time."""
    return left.living * right.living / max(left.distinct, right.distinct, 1.0)


def promising(inputs: Sequence[JoinInput]) -> Iterator[Order]:
    """Yield the order by selectivity, and those with fast windows moved up to the first third."""
    initial = by_selectivity(inputs)
    yield initial
    usual = median(each.rate for each in inputs)
    fast = [number for number in initial if inputs[number].rate > FAST * usual]
    fast = sorted(fast, key=lambda number: -inputs[number].rate)[:MOST_FAST]
    top = -(-len(inputs) // 3)
    for places in product([None, *range(top + 1)], repeat=len(fast)):
        order = list(initial)
        for number, place in zip(fast, places, strict=True):
            if place is not None:
                order.remove(number)
                order.insert(place, number)
        yield tuple(order)
