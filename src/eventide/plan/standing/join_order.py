"""In which order the windows of a join are probed: the one with the fewest comparisons.

A tuple that arrives at one window, its origin, is joined with the other windows one after the
other;
no intermediate result is kept. So each origin may have an order of its own; a global order is one
that all origins follow, leaving themselves out. The model assumes that all values are equally
frequent, and that the values of a window are among those of one that has more of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product
from statistics import median

MOST_EXACT = 7
"""Up to this many windows, all orders are compared."""
FAST = 2.0
"""A window is fast if its rate is this many times the median of the others."""
MOST_FAST = 3
"""This many of the fast windows are moved up in the orders that are compared."""

Order = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class JoinInput:
    """The statistics of one window of a join.

    Arrivals per unit of time, how long each tuple lives, the number of different keys among the
    living
    ones, and the number of buckets by key, if a probe does not search the whole window.
    """

    rate: float
    lifetime: float
    distinct: float
    buckets: float | None = None

    @property
    def living(self) -> float:
        """How many tuples there are at a time."""
        return self.rate * self.lifetime

    @property
    def looked_at(self) -> float:
        """How many tuples a probe for one key compares."""
        return self.living if self.buckets is None else self.living / max(self.buckets, 1.0)


def pair_size(left: JoinInput, right: JoinInput) -> float:
    """Return how many pairs of two windows there are at a time."""
    return left.living * right.living / max(left.distinct, right.distinct, 1.0)


def cost_from(origin: int, order: Sequence[int], inputs: Sequence[JoinInput]) -> float:
    """Return the cost of the arrivals at one window, which then probe the others in an order."""
    found, distinct, cost = 1.0, inputs[origin].distinct, 0.0
    for number in order:
        other = inputs[number]
        cost += found * other.looked_at
        # How many are found does not depend on the buckets.
        found *= _growth(other, distinct)
        distinct = min(distinct, other.distinct)
    return inputs[origin].rate * cost


def cost_of_order(order: Sequence[int], inputs: Sequence[JoinInput]) -> float:
    """Return the cost of a global order.

    >>> rates = ((10, 100, 500), (1, 100, 50), (1, 200, 40), (3, 100, 5))
    >>> cost_of_order((0, 1, 2, 3), [JoinInput(*each) for each in rates])
    16000.0
    """
    return cost_of_orders([_without(order, origin) for origin in range(len(inputs))], inputs)


def cost_of_orders(orders: Sequence[Sequence[int]], inputs: Sequence[JoinInput]) -> float:
    """Return the cost of an order for each origin."""
    return sum(cost_from(origin, order, inputs) for origin, order in enumerate(orders))


def best_order(inputs: Sequence[JoinInput]) -> Order:
    """Return the cheapest global order; for many windows, one that should be close to it."""
    if len(inputs) <= MOST_EXACT:
        candidates: Iterator[Order] = permutations(range(len(inputs)))
    else:
        candidates = _promising(inputs)
    return min(candidates, key=lambda order: _comparable(cost_of_order(order, inputs)))


def _comparable(cost: float) -> float:
    """Return a cost without its last digits: of orders with equal costs, the first is taken."""
    return float(f"{cost:.12g}")


def best_orders(inputs: Sequence[JoinInput]) -> tuple[Order, ...]:
    """Return the cheapest order for each origin; for many windows, one that should be close."""
    find = _cheapest_from if len(inputs) <= MOST_EXACT else _greedy_from
    return tuple(find(origin, inputs) for origin in range(len(inputs)))


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
        order.append(min(left, key=lambda number: _growth(inputs[number], distinct)))
        distinct = min(distinct, inputs[order[-1]].distinct)
    return tuple(order)


def _growth(added: JoinInput, distinct: float) -> float:
    return added.living / max(distinct, added.distinct, 1.0)


def _promising(inputs: Sequence[JoinInput]) -> Iterator[Order]:
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


def _without(order: Sequence[int], origin: int) -> Order:
    return tuple(number for number in order if number != origin)


def _cheapest_from(origin: int, inputs: Sequence[JoinInput]) -> Order:
    """Return the cheapest order of one origin.

    The number of combinations of a set of windows does not depend on the order in which they were
    probed. So the best order of a set ends with one of them, after the best order of the rest.
    """
    others = [number for number in range(len(inputs)) if number != origin]
    best: dict[frozenset[int], tuple[float, Order]] = {frozenset(): (0.0, ())}
    for size in range(1, len(others) + 1):
        for chosen in combinations(others, size):
            best[frozenset(chosen)] = min(
                _ending_with(last, best[frozenset(chosen) - {last}], origin, inputs)
                for last in chosen
            )
    return best[frozenset(others)][1]


def _ending_with(
    last: int, before: tuple[float, Order], origin: int, inputs: Sequence[JoinInput]
) -> tuple[float, Order]:
    cost, order = before
    found, distinct = 1.0, inputs[origin].distinct
    for number in order:
        found *= _growth(inputs[number], distinct)
        distinct = min(distinct, inputs[number].distinct)
    return cost + found * inputs[last].looked_at, (*order, last)


def _greedy_from(origin: int, inputs: Sequence[JoinInput]) -> Order:
    """Return an order that always takes the window that adds least, in comparisons and results."""
    order: Order = ()
    distinct = inputs[origin].distinct
    left = _without(range(len(inputs)), origin)
    while left:

        def weight(number: int, distinct: float = distinct) -> float:
            return inputs[number].looked_at * (1.0 + _growth(inputs[number], distinct))

        chosen = min(left, key=weight)
        order, left = (*order, chosen), _without(left, chosen)
        distinct = min(distinct, inputs[chosen].distinct)
    return order
