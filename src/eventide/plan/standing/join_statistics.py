"""What a running join has seen of its windows, and when that is reason for another order.

A join looks at its counters from time to time, once in a step at most. Moving averages forget what
was long ago, so orders follow the streams; a new order has to be clearly cheaper, so that small
changes do not make it go to and fro. The order changes no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eventide.plan.standing.join_order import JoinInput, Order, best_orders, cost_of_orders

OBSERVED_BETWEEN = 1024
"""So many arrivals are worth a look."""
NEWEST_SHARE = 0.25
"""What the newest look weighs beside all before it."""
WORTH = 0.9
"""Orders are changed if the new ones cost at most this share of the old."""
_FEW_PROBES = 64.0
"""With fewer looks into a window, how many it finds is not yet known."""


@dataclass(frozen=True, slots=True)
class Look:
    """What was counted of one window since the last look, and what it holds now.

    `arrived` tuples in all; `probes` for one key each, which found `matches` tuples together.
    """

    arrived: int
    living: int
    distinct: int
    probes: int = 0
    matches: int = 0


@dataclass(frozen=True, slots=True)
class WindowAverages:
    """Moving averages of one window: arrivals per second, tuples, keys, probes and matches."""

    rate: float
    living: float
    distinct: float
    probes: float
    matches: float


@dataclass(frozen=True, slots=True)
class Observed:
    """Moving averages of all windows of a join, and the orders that were planned with them."""

    windows: tuple[WindowAverages, ...]
    orders: tuple[Order, ...]
    looks: int = 0
    changes: int = 0

    @classmethod
    def initial(cls, inputs: Sequence[JoinInput]) -> Observed:
        """Return what is assumed before the first event; rates are per second."""
        windows = (
            WindowAverages(each.rate, each.living, each.distinct, 0.0, 0.0) for each in inputs
        )
        return cls(tuple(windows), best_orders(inputs))


def is_worth_a_look(arrived: int) -> bool:
    """Whether so many arrivals since the last look are reason for another."""
    return arrived >= OBSERVED_BETWEEN


def after_look(observed: Observed, looks: Sequence[Look], elapsed_us: int) -> Observed:
    """Return the averages with a look taken in, and the orders to go on with.

    `elapsed_us` is the time since the last look, by the clock of the events.
    """
    share = 1.0 if observed.looks == 0 else NEWEST_SHARE
    windows = tuple(
        _moved(before, look, elapsed_us, share)
        for before, look in zip(observed.windows, looks, strict=True)
    )
    orders = worthwhile_orders(observed.orders, inputs_of(windows))
    changed = orders != observed.orders
    return Observed(windows, orders, observed.looks + 1, observed.changes + changed)


def inputs_of(windows: Sequence[WindowAverages]) -> tuple[JoinInput, ...]:
    """Return what the cost model takes, of windows whose tuples are found by key.

    How often a look finds something tells more than a count of keys: keys that many tuples have
    are also looked for more often. So the keys are as many as would explain what was found.
    """
    return tuple(map(_input, windows))


def worthwhile_orders(
    orders: tuple[Order, ...], inputs: Sequence[JoinInput], worth: float = WORTH
) -> tuple[Order, ...]:
    """Return the best orders if they are clearly cheaper than the present ones, or those."""
    best = best_orders(inputs)
    cheaper = cost_of_orders(best, inputs) <= worth * cost_of_orders(orders, inputs)
    return best if cheaper else orders


def _moved(before: WindowAverages, look: Look, elapsed_us: int, share: float) -> WindowAverages:
    def moved(old: float, new: float) -> float:
        return (1.0 - share) * old + share * new

    return WindowAverages(
        # Within one instant no time passes: of how fast they come, such a look says nothing.
        moved(before.rate, look.arrived * 1e6 / elapsed_us) if elapsed_us > 0 else before.rate,
        moved(before.living, look.living),
        moved(before.distinct, look.distinct),
        (1.0 - NEWEST_SHARE) * before.probes + look.probes,
        (1.0 - NEWEST_SHARE) * before.matches + look.matches,
    )


def _input(seen: WindowAverages) -> JoinInput:
    living = max(seen.living, 1.0)
    rate = max(seen.rate, 1e-9)
    distinct = min(max(seen.distinct, 1.0), living)
    if seen.probes >= _FEW_PROBES:
        found = max(seen.matches / seen.probes, 1.0 / seen.probes)
        distinct = max(living / found, 1.0)
    # A look costs something also where it finds nothing.
    return JoinInput(rate, living / rate, distinct, buckets=min(distinct, living))
