"""W4: how much sooner a match is certain than over, and whether it is reported just then.

The situations are known from how they were drawn, so that matches and moments are found without
any engine: all pairs near each other, Allen's definitions, and the closed form of the moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks.situations.data import (
    BOOLEANS,
    SECOND_US,
    START_US,
    Bools,
    Int64s,
    Kind,
    Periods,
    periods,
)
from benchmarks.situations.queries import Ask, Holds
from benchmarks.situations.setting import check_rows, over_arrow
from eventide.plan.situations import allen

WITHIN_S = 1_000
RATIOS = {"2:1": 0.5, "1:1": 1.0, "1:2": 2.0}
"""How long A lasts to how long B does: by how much B lasts longer than A."""
RELATIONS = ("before", "meets", "overlaps", "starts", "during", "finishes", "equals")
NO_GAIN = ("finishes", "equals")
"""Certain only when both are over."""
SIMULATED = {
    ("meets", "1:1"): 54.6,
    ("overlaps", "1:1"): 37.9,
    ("starts", "1:1"): 30.7,
    ("during", "1:1"): 22.8,
}
"""Mean gains in seconds, as an independent simulation found them."""


@dataclass(frozen=True, slots=True)
class Gain:
    """By how many seconds on average early detection is sooner than the end of a match."""

    relation: str
    ratio: str
    matches: int
    mean_s: float
    mean_b_s: float


@dataclass(frozen=True, slots=True)
class Pairs:
    """Situations of both kinds that have the relation asked for, in seconds."""

    a: tuple[Int64s, Int64s]
    b: tuple[Int64s, Int64s]

    @property
    def first(self) -> Int64s:
        """When the earlier one began."""
        return np.minimum(self.a[0], self.b[0])

    @property
    def over(self) -> Int64s:
        """When both are over."""
        return np.maximum(self.a[1], self.b[1])

    def certain(self, mask: int) -> Int64s:
        """When the relation became certain: the closed form, for a constraint of one relation."""
        began = np.maximum(self.a[0], self.b[0])
        ended = np.minimum(self.a[1], self.b[1])
        apart = allen.BEFORE | allen.AFTER | allen.MEETS | allen.MET_BY
        return began if mask & apart else ended

    def rows(self, moments: Int64s, kept: Bools) -> pa.Table:
        """Return such rows as the query gives."""
        columns = {"ts": moments, "a_start": self.a[0], "b_start": self.b[0]}
        return pa.table(
            {
                name: pa.array(START_US + SECOND_US * seconds[kept]).cast(pa.timestamp("us"))
                for name, seconds in columns.items()
            }
        )


def gains(
    situations: int,
    relations: Sequence[str] = RELATIONS,
    ratios: Sequence[str] = tuple(RATIOS),
) -> Iterator[Gain]:
    """Yield the gain of each relation, once every match has been found at its moment."""
    for ratio in ratios:
        drawn = periods(situations, (Kind(), Kind(length=RATIOS[ratio])))
        near = near_pairs(drawn)
        mean_b_s = float((drawn.ends[1] - drawn.starts[1]).mean())
        for relation in relations:
            mask = allen.mask_named(relation)
            assert mask is not None
            pairs = related(near, mask)
            certain, over, first = pairs.certain(mask), pairs.over, pairs.first
            for detection, moments in (("early", certain), ("final", over)):
                ask = asked(mask)
                found = over_arrow(
                    ask.asking("starts", "early" if detection == "early" else "final"),
                    drawn.events,
                )
                expected = pairs.rows(moments, moments - first <= WITHIN_S)
                check_rows(f"{relation}, {ratio}, {detection}", expected, found)
            both = over - first <= WITHIN_S
            mean_s = float((over - certain)[both].mean()) if both.any() else 0.0
            yield Gain(relation, ratio, int(both.sum()), mean_s, mean_b_s)


def asked(mask: int) -> Ask:
    """Return the pattern of one relation."""
    conditions = (Holds("s0"), Holds("s1"))
    return Ask("one relation", BOOLEANS, "", conditions, {(0, 1): mask}, WITHIN_S)


def near_pairs(drawn: Periods) -> Pairs:
    """Return all pairs of which one began at most a window before the other."""
    (a_start, b_start), (a_end, b_end) = drawn.starts, drawn.ends
    low = np.searchsorted(b_start, a_start - WITHIN_S)
    high = np.searchsorted(b_start, a_start + WITHIN_S, side="right")
    widths = high - low
    a = np.repeat(np.arange(len(a_start)), widths)
    offsets = np.arange(len(a)) - np.repeat(np.cumsum(widths) - widths, widths)
    b = np.repeat(low, widths) + offsets
    return Pairs((a_start[a], a_end[a]), (b_start[b], b_end[b]))


def related(pairs: Pairs, mask: int) -> Pairs:
    """Return the pairs that have a relation, by Allen's definitions."""
    (a_start, a_end), (b_start, b_end) = pairs.a, pairs.b
    held: Bools = {
        allen.BEFORE: a_end < b_start,
        allen.MEETS: a_end == b_start,
        allen.OVERLAPS: (a_start < b_start) & (b_start < a_end) & (a_end < b_end),
        allen.STARTS: (a_start == b_start) & (a_end < b_end),
        allen.DURING: (b_start < a_start) & (a_end < b_end),
        allen.FINISHES: (b_start < a_start) & (a_end == b_end),
        allen.EQUALS: (a_start == b_start) & (a_end == b_end),
    }[mask]
    return Pairs((a_start[held], a_end[held]), (b_start[held], b_end[held]))
