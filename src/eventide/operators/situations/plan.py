"""The input of the matcher for a temporal pattern: masks of pairs, first guesses, statistics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eventide.kernels.compiled import Floats, Int64s, frozen
from eventide.kernels.situations.matching import OBSERVED_BETWEEN
from eventide.kernels.situations.orders import plan_orders
from eventide.kernels.situations.problem import MovingAverages, SearchedPattern
from eventide.plan.situations.allen import (
    AFTER,
    ANY,
    BEFORE,
    CONTAINS,
    DURING,
    EQUALS,
    FINISHED_BY,
    FINISHES,
    GROUPS,
    MET_BY,
    OVERLAPPED_BY,
    OVERLAPS,
    STARTS,
    inverse,
    relations_of,
)
from eventide.plan.situations.nodes import TemporalPattern

_SHARES = {BEFORE: 0.445, AFTER: 0.445, DURING: 0.03, CONTAINS: 0.03, EQUALS: 0.0006}
_SHARES |= {OVERLAPS: 0.01, OVERLAPPED_BY: 0.01}
_OTHER_SHARE = 0.0049
"""The share of pairs that are assumed to have a relation, before anything is known."""

_SETTLED_BY_END = OVERLAPS | STARTS | DURING | EQUALS | FINISHES | FINISHED_BY
"""The relations of a to b that are only certain once a is over."""


@dataclass(frozen=True)
class PatternTables:
    """The constraints of a pattern as arrays.

    Masks of all pairs (at symbol times symbols, plus symbol), which pairs have one, which symbols
    can complete a match when they are first seen, which when they end, and orders of joining that
    follow the definitions.
    """

    masks: Int64s
    linked: Int64s
    starts_matter: Int64s
    ends_matter: Int64s
    defined: Int64s

    @classmethod
    def of(cls, node: TemporalPattern) -> PatternTables:
        """Return the tables of a pattern."""
        count = len(node.situations)
        masks = np.full((count, count), ANY, np.int64)
        for each in node.constraints:
            masks[each.first, each.second] = each.mask
            masks[each.second, each.first] = inverse(each.mask)
        starts = [
            bool(situation.least_us) or all(settled_by_start(int(mask)) for mask in row)
            for situation, row in zip(node.situations, masks, strict=True)
        ]
        ends = [any(settled_by_end(int(mask)) for mask in row) for row in masks]
        return cls(
            frozen(masks.ravel()),
            frozen((masks != ANY).astype(np.int64).ravel()),
            frozen(np.array(starts, np.int64)),
            frozen(np.array(ends, np.int64)),
            fixed_orders(tuple(range(count))),
        )

    @property
    def searched(self) -> SearchedPattern:
        """The tables, as the kernels take them."""
        matter = (self.starts_matter, self.ends_matter)
        return SearchedPattern(self.masks, self.linked, *matter, self.defined)


def settled_by_start(mask: int) -> bool:
    """Whether the relation of a situation to another can be certain when it has just begun.

    The other is over by then, or both are open and the mask has all relations they may come to
    have.
    """
    together, later = GROUPS[1:]
    return bool(mask & (AFTER | MET_BY)) or mask & together == together or mask & later == later


def settled_by_end(mask: int) -> bool:
    """Whether the end of a situation can make its relation to another certain.

    If the mask has all relations that two open situations may come to have, it is certain before.
    """
    undecided = mask
    for group in GROUPS:
        if mask & group == group:
            undecided &= ~group
    return bool(undecided & _SETTLED_BY_END)


@dataclass(frozen=True)
class Statistics:
    """Moving averages of how many situations there are and how often pairs fit.

    Beside them those that `orders` were planned with; `counts` are positions since the last look,
    plans, and positions between two looks.
    """

    sizes: Floats
    shares: Floats
    planned_sizes: Floats
    planned_shares: Floats
    counts: Int64s
    orders: Int64s

    @classmethod
    def initial(cls, tables: PatternTables, symbols: int) -> Statistics:
        """Return the assumptions before the first event."""
        sizes = np.ones(symbols)
        shares = np.array([share_of(int(mask)) for mask in tables.masks])
        orders = np.empty(symbols * symbols, np.int64)
        plan_orders(sizes, shares, tables.linked, orders)
        return cls(
            sizes,
            shares,
            sizes.copy(),
            shares.copy(),
            np.array([0, 0, OBSERVED_BETWEEN], np.int64),
            orders,
        )

    @property
    def moving(self) -> MovingAverages:
        """The averages that the kernels update."""
        planned = (self.planned_sizes, self.planned_shares)
        return MovingAverages(self.sizes, self.shares, *planned, self.counts)

    def copy(self) -> Statistics:
        """Return the same in arrays of its own."""
        return Statistics(
            self.sizes.copy(),
            self.shares.copy(),
            self.planned_sizes.copy(),
            self.planned_shares.copy(),
            self.counts.copy(),
            self.orders.copy(),
        )


def share_of(mask: int) -> float:
    """Return the estimated share of pairs that have one of the relations."""
    return sum(_SHARES.get(each, _OTHER_SHARE) for each in relations_of(mask))


def fixed_orders(order: tuple[int, ...]) -> Int64s:
    """Return orders that follow a given one, each after the symbol that sets the match off."""
    rows = [[anchor, *(each for each in order if each != anchor)] for anchor in range(len(order))]
    return np.array(rows, np.int64).ravel()
