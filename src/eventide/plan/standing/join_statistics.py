"""What a running join has measured of its windows, and when it changes its order.

A join reads its counters from time to time, at most once in a step. Moving averages forget old
measurements, so the order follows the streams; a new order has to be clearly cheaper, so that small
changes do not make it alternate. The order changes no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eventide.plan.standing.join_order import JoinInput, Order, best_orders, cost_of_orders

OBSERVED_BETWEEN = 1024
"""After this many arrivals the counters are read."""
NEWEST_SHARE = 0.25
"""The weight of the newest look against all before it."""
WORTH = 0.9
"""Orders are changed if the new ones cost at most this share of the old."""
_FEW_PROBES = 64.0
"""With fewer probes of a window, the number of matches is not known well enough."""


@dataclass(frozen=True, slots=True)
class Look:
    """The counters of one window since the last look, and what the window holds now.

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
        """Return the assumptions before the first event; rates are per second."""
        windows = (
            WindowAverages(each.rate, each.living, each.distinct, 0.0, 0.0) for each in inputs
        )
        return cls(tuple(windows), best_orders(inputs))


def is_worth_a_look(arrived: int) -> bool:
    """Whether this many arrivals since the last look are reason for another."""
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
    """Return the inputs of the cost model, for windows whose tuples are found by key.

    How often a probe finds something tells more than a count of keys, because keys that many tuples
    have are also looked for more often. So the number of keys is the one that explains the matches.
    """
    return tuple(map(_input, windows))


def worthwhile_orders(
    orders: tuple[Order, ...], inputs: Sequence[JoinInput], worth: float = WORTH
) -> tuple[Order, ...]:
    """Return the best orders if they are clearly cheaper, else the present ones."""
    best = best_orders(inputs)
    cheaper = cost_of_orders(best, inputs) <= worth * cost_of_orders(orders, inputs)
    return best if cheaper else orders


def _moved(before: WindowAverages, look: Look, elapsed_us: int, share: float) -> WindowAverages:
    def moved(old: float, new: float) -> float:
        return (1.0 - share) * old + share * new

    return WindowAverages(
        # Within one instant no time passes: such a look says nothing about rates.
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
    # A probe costs something even if it finds nothing.
    return JoinInput(rate, living / rate, distinct, buckets=min(distinct, living))
