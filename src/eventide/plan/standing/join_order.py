"""In which order the windows of a join are probed: the one with the fewest comparisons.

A tuple that arrives at one window, its origin, is joined with the other windows one after the
other; no intermediate result is kept. So each origin may have an order of its own. The model
assumes that all values are equally frequent, and that the values of a window are among those of
one that has more of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

MOST_EXACT = 7
"""Up to this many windows, all orders are compared."""

Order = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class JoinInput:
    """The statistics of one window of a join.

    Arrivals per unit of time, how long each tuple lives, the number of different keys among the
    living ones, and the number of buckets by key, if a probe does not search the whole window.
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


def cost_from(origin: int, order: Sequence[int], inputs: Sequence[JoinInput]) -> float:
    """Return the cost of the arrivals at one window, which then probe the others in an order."""
    found, distinct, cost = 1.0, inputs[origin].distinct, 0.0
    for number in order:
        other = inputs[number]
        cost += found * other.looked_at
        # How many are found does not depend on the buckets.
        found *= growth(other, distinct)
        distinct = min(distinct, other.distinct)
    return inputs[origin].rate * cost


def cost_of_orders(orders: Sequence[Sequence[int]], inputs: Sequence[JoinInput]) -> float:
    """Return the cost of an order for each origin."""
    return sum(cost_from(origin, order, inputs) for origin, order in enumerate(orders))


def best_orders(inputs: Sequence[JoinInput]) -> tuple[Order, ...]:
    """Return the cheapest order for each origin; for many windows, one that should be close."""
    find = _cheapest_from if len(inputs) <= MOST_EXACT else _greedy_from
    return tuple(find(origin, inputs) for origin in range(len(inputs)))


def growth(added: JoinInput, distinct: float) -> float:
    """Return how many tuples of a window are found for each one that looks into it."""
    return added.living / max(distinct, added.distinct, 1.0)


def without(order: Sequence[int], origin: int) -> Order:
    """Return an order without one of its windows."""
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
        found *= growth(inputs[number], distinct)
        distinct = min(distinct, inputs[number].distinct)
    return cost + found * inputs[last].looked_at, (*order, last)


def _greedy_from(origin: int, inputs: Sequence[JoinInput]) -> Order:
    """Return an order that always takes the window that adds least, in comparisons and results."""
    order: Order = ()
    distinct = inputs[origin].distinct
    left = without(range(len(inputs)), origin)
    while left:

        def weight(number: int, distinct: float = distinct) -> float:
            return inputs[number].looked_at * (1.0 + growth(inputs[number], distinct))

        chosen = min(left, key=weight)
        order, left = (*order, chosen), without(left, chosen)
        distinct = min(distinct, inputs[chosen].distinct)
    return order
