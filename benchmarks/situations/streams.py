"""W3: patterns of many situations, over booleans among which those patterns do occur.

All booleans are copies of one. A boolean's situations begin and end a little later than the
first's, by as much as was drawn for it; now and then they do so by something else, so that a
match is broken. Between two of them that gives a relation that they mostly have, and patterns
are made of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.guard import MismatchError
from benchmarks.race import ROUNDS, Finding, at_most
from benchmarks.situations.cases import SituationCase
from benchmarks.situations.data import ALIKE, SEED, Int64s, Spans, shown
from benchmarks.situations.queries import Ask, over_booleans
from benchmarks.situations.scan import scan_matches
from benchmarks.situations.setting import (
    SituationSetting,
    check_counts,
    fastest,
    matches_in,
    over_arrow,
)
from benchmarks.situations.sql import drawn_count
from eventide.plan.situations import allen

SHAPES = ("equal", "meets", "chain", "star", "combined")
DRAWN_SHAPES = SHAPES[2:]
"""Shapes whose relations are drawn at random."""
STREAMS = (4, 6, 8, 10)
PATTERNS = 5
WITHIN_S = 2_000
COMPARED = 10_000
"""So many events are enough to compare numbers of matches with those of the drawn situations."""
SHIFTS_S = np.array([0, 2, 4])
"""By so much a copy begins and ends later: less than any situation or gap lasts."""
BROKEN = 0.05
"""The share of situations that are shifted by something else."""
APART = 0.4
"""The share of patterns with one pair that is before: with more pairs, matches are without end."""
MOST_OF_STREAMS = at_most(2.5)


@dataclass(frozen=True, slots=True)
class Copies:
    """The situations of each boolean, and by how much each is mostly shifted: start and end."""

    spans: tuple[Spans, ...]
    shifts: Int64s

    def relation(self, one: int, other: int) -> int:
        """Return the relation that two booleans' situations mostly have."""
        long = 10 * int(SHIFTS_S[-1])
        a, b = (
            (int(start), long + int(end)) for start, end in (self.shifts[one], self.shifts[other])
        )
        return int(allen.relation_between(a, b))


def copies(shape: str, count: int, seed: int) -> Copies:
    """Draw the situations of so many seconds for the largest pattern of a shape."""
    random = np.random.default_rng((SEED, seed))
    streams = max(STREAMS)
    starts, ends = ALIKE.periods(random, count)
    shifts = np.zeros((streams, 2), np.int64)
    if shape in DRAWN_SHAPES:
        shifts = random.choice(SHIFTS_S, (streams, 2))
    spans = []
    for place in range(streams):
        # What meets is the gap, and then again the situation.
        is_gap = shape == "meets" and place % 2
        whole = np.stack([ends[:-1], starts[1:]] if is_gap else [starts, ends])
        broken = random.random(whole.shape[1]) < BROKEN
        other = random.choice(SHIFTS_S, whole.shape)
        whole = whole + np.where(broken, other, shifts[place][:, None])
        spans.append((whole[0], whole[1]))
    return Copies(tuple(spans), shifts)


def pairs_of(shape: str, count: int) -> list[tuple[int, int]]:
    """Return which situations of a pattern have a constraint.

    >>> pairs_of("combined", 4)
    [(0, 1), (1, 2), (1, 3)]
    """
    places, half = range(1, count), count // 2
    found: dict[str, list[tuple[int, int]]] = {
        "star": [(0, place) for place in places],
        "combined": [(min(place, half) - 1, place) for place in places],
    }
    return found.get(shape, [(place - 1, place) for place in places])


def shaped(shape: str, count: int, seed: int, among: Copies) -> Ask:
    """Return a pattern of a shape: its relations occur, of drawn ones one pair may be before."""
    pairs = pairs_of(shape, count)
    fixed = {"equal": allen.EQUALS, "meets": allen.MEETS}.get(shape)
    relations = {pair: fixed or among.relation(*pair) for pair in pairs}
    random = np.random.default_rng(seed)
    # The same patterns have such a pair, however many situations there are.
    if not fixed and random.random() < APART:
        relations[pairs[int(random.integers(len(pairs)))]] = allen.BEFORE
    return over_booleans(f"{shape}, {count}, {seed}", count, relations, WITHIN_S)


def seeds_of(shape: str) -> Sequence[int]:
    """Return the numbers of the patterns of a shape: of fixed relations there is only one."""
    return range(PATTERNS if shape in DRAWN_SHAPES else 1)


def check_shape(shape: str) -> None:
    """Compare numbers of matches with those of the drawn situations, and with the scan."""
    for seed in seeds_of(shape):
        among = copies(shape, COMPARED, seed)
        events = shown(COMPARED, among.spans)
        for count in STREAMS:
            early = shaped(shape, count, seed, among)
            final = early.asking("count", "final")
            scanned = scan_matches(final, events)
            assert isinstance(scanned, int)
            for ask, others in ((early, {}), (final, {"scan": scanned})):
                ours = matches_in(over_arrow(ask, events))
                expected = drawn_count(ask, among.spans, COMPARED, duckdb.connect())
                what = f"{ask.name}, {ask.detection}"
                check_counts(what, {"Eventide": ours, "DuckDB": expected, **others})
                if not ours:
                    message = f"{what}: no match at all, so that nothing is compared"
                    raise MismatchError(message)


def many_streams(setting: SituationSetting) -> list[Finding]:
    """W3: from 4 to 10 situations in patterns of five shapes; a few random patterns each."""
    return [line for shape in SHAPES for line in of_shape(shape, setting.sizes.of(0.05))]


def of_shape(shape: str, count: int) -> list[Finding]:
    """Compare numbers of matches, then time all patterns of a shape in turn."""
    check_shape(shape)
    asked: dict[tuple[int, int], tuple[Ask, pa.Table]] = {}
    for seed in seeds_of(shape):
        among = copies(shape, count, seed)
        events = shown(count, among.spans)
        asked |= {(n, seed): (shaped(shape, n, seed, among), events) for n in STREAMS}
    ways = {f"{n} {seed}": partial(over_arrow, *each) for (n, seed), each in asked.items()}
    matches = {name: matches_in(way()) for name, way in ways.items()}
    seconds = fastest(ways, ROUNDS)

    def middle(n: int, of: dict[str, float] | dict[str, int]) -> float:
        return median(of[f"{n} {seed}"] for seed in seeds_of(shape))

    def named(n: int) -> str:
        return f"{shape}, {n}: {middle(n, matches):,.0f} matches"

    fewest, most = STREAMS[0], STREAMS[-1]
    return [
        Finding(
            named(n),
            middle(n, seconds),
            named(fewest),
            middle(fewest, seconds),
            MOST_OF_STREAMS if n == most else None,
            count,
        )
        for n in STREAMS[1:]
    ]


STREAM_CASES = (
    SituationCase(
        "W3 many streams",
        f"patterns of 4 to 10 situations within 2,000 s, only counted; booleans are shifted copies "
        f"of one, of which {BROKEN:.0%} of the situations are shifted otherwise, so that the "
        f"relations asked for do occur; of chains, stars and both combined the median of "
        f"{PATTERNS} patterns drawn at random, of which at most one relation is before; seconds "
        f"are the least of {ROUNDS} rounds in turn; numbers of matches are compared with a scan, "
        f"and with the situations as they were drawn, over {COMPARED:,} events",
        many_streams,
    ),
)
