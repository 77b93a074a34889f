"""What the index cases ask: patterns of many symbols at random, and three crimes in a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import log2

import numpy as np

from benchmarks.index.data import (
    BEAT,
    BEATS,
    CRIME,
    CRIMES,
    NOISY,
    READINGS,
    SEED,
    SPREADS,
    Dataset,
    beat_middles,
)
from benchmarks.race import Target, at_least, at_most

WITHIN_EVENTS = 300
SYMBOLS = (2, 4, 8, 16, 32)
UNIFORM = "A5"
FEW = 3
COMPARED_SYMBOLS, COMPARED_ATTRIBUTES = (4, 8), ("A3", "A4")
"""Where one query is also answered by other choices of conditions: that takes minutes."""
BOX = 0.012
"""In degrees: from the middle of the box to its sides."""

# What has to hold: how much faster than replay the chosen way is in the middle, or at least once,
# or how much slower it may be.
LEAST_OF_SELECTIVE = at_least(10)
MOST_OF_UNSELECTIVE = at_most(1.2)
LEAST_OF_CRIMES = at_least(100)
# Over all series: the chosen way over the best that was measured, on average and at worst, and the
# seconds of choosing over those that it saves.
MEAN_OVER_BEST = at_most(1.2)
MOST_OVER_BEST = at_most(2)
MOST_OF_CHOOSING = at_most(0.01)

Range = tuple[str, float, float]
"""An attribute, and the values between which it has to be."""
Draw = Callable[[np.random.Generator], str]


@dataclass(frozen=True, slots=True)
class Series:
    """Queries of one kind over one stream."""

    name: str
    asked: str
    dataset: Dataset
    texts: tuple[str, ...]
    target: Target | None = None
    compared: int = 0
    """For so many of its queries other choices of conditions are measured too."""


def all_series(queries: int) -> Iterator[Series]:
    """Yield the series, most of them with so many queries."""
    for symbols in SYMBOLS:
        yield Series(
            f"0–10 %, {symbols} symbols",
            f"{symbols} ranges of {UNIFORM}, each of up to a tenth of the values",
            READINGS,
            drawn(partial(on_noise, symbols, 0.0, 0.1), queries, symbols),
            compared=1 if symbols in COMPARED_SYMBOLS else 0,
        )
    few = min(FEW, queries)
    for symbols in SYMBOLS:
        yield Series(
            f"1 %, {symbols} symbols",
            f"{symbols} ranges of {UNIFORM}, each of a hundredth of the values",
            READINGS,
            drawn(partial(on_noise, symbols, 0.01, 0.01), few, 100 + symbols),
            LEAST_OF_SELECTIVE,
            compared=1 if symbols == 4 else 0,
        )
    for symbols in (4, 8):
        yield Series(
            f"20–60 %, {symbols} symbols",
            f"{symbols} ranges of {UNIFORM}, each of a fifth to three fifths of the values",
            READINGS,
            drawn(partial(on_noise, symbols, 0.2, 0.6), max(1, queries // 2), 200 + symbols),
            MOST_OF_UNSELECTIVE,
        )
    for number, (attribute, spread) in enumerate(SPREADS.items()):
        yield Series(
            f"skewed, {attribute}",
            f"8 ranges of up to a tenth, one of them of {attribute} (deviation {spread:g})",
            READINGS,
            drawn(partial(skewed, attribute), few, 300 + number),
            compared=1 if attribute in COMPARED_ATTRIBUTES else 0,
        )
    yield Series(
        "crimes, one beat",
        f"robbery, battery, motor vehicle theft within 30 minutes in beat {BEAT}",
        CRIME,
        (crimes_in_beat(),),
        LEAST_OF_CRIMES,
        compared=1,
    )
    yield Series(
        "crimes, a box",
        f"the same within {2 * BOX:g} degrees of latitude and longitude",
        CRIME,
        (crimes_in_box(),),
        compared=1,
    )


def drawn(draw: Draw, queries: int, number: int) -> tuple[str, ...]:
    """Return so many queries, in every run the same."""
    return tuple(draw(np.random.default_rng((SEED, 3, number, each))) for each in range(queries))


def on_noise(symbols: int, least: float, most: float, random: np.random.Generator) -> str:
    """Return a query over ranges of the attribute that is noise."""
    return over_readings([range_of(UNIFORM, least, most, random) for _ in range(symbols)], random)


def skewed(attribute: str, random: np.random.Generator) -> str:
    """Return a query over eight ranges of which one is of another attribute."""
    ranges = [range_of(UNIFORM, 0.0, 0.1, random) for _ in range(8)]
    ranges[int(random.integers(8))] = range_of(attribute, 0.0, 0.1, random)
    return over_readings(ranges, random)


def range_of(attribute: str, least: float, most: float, random: np.random.Generator) -> Range:
    """Return a range of values that covers some share of them."""
    width = random.uniform(least, most)
    low = random.uniform(0.0, 1.0 - width)
    return attribute, float(low), float(low + width)


def over_readings(ranges: Sequence[Range], random: np.random.Generator) -> str:
    """Return a query for rows in ranges, one after another, at some places with gaps between.

    >>> print(over_readings([("A5", 0.25, 0.5), ("A5", 0.5, 0.75)], np.random.default_rng(1)))
    SELECT * FROM readings MATCH_RECOGNIZE (MEASURES FIRST(ts) AS t0, LAST(ts) AS t1 PATTERN (S1 T* S2) WITHIN INTERVAL '300' SECOND DEFINE S1 AS A5 BETWEEN 0.25 AND 0.5, S2 AS A5 BETWEEN 0.5 AND 0.75)
    """  # noqa: E501
    count = len(ranges)
    gaps = set(random.choice(count - 1, round(log2(count)), replace=False).tolist())
    pattern = " ".join(f"S{n + 1} T*" if n in gaps else f"S{n + 1}" for n in range(count))
    conditions = [
        f"S{number} AS {attribute} BETWEEN {low!r} AND {high!r}"
        for number, (attribute, low, high) in enumerate(ranges, 1)
    ]
    return match(NOISY, pattern, f"'{WITHIN_EVENTS}' SECOND", conditions)


def crimes_in_beat() -> str:
    """Return the query for three crimes in one beat."""
    conditions = [
        f"A AS primary_type = 'ROBBERY' AND beat = {BEAT}",
        "B AS primary_type = 'BATTERY' AND beat = A.beat",
        "C AS primary_type = 'MOTOR VEHICLE THEFT' AND beat = A.beat",
    ]
    return match(CRIMES, "A T* B T* C", "'30' MINUTE", conditions)


def crimes_in_box() -> str:
    """Return the query for three crimes around the middle of that beat."""
    (number,) = np.flatnonzero(BEATS == BEAT)
    sides = " AND ".join(
        f"{name} BETWEEN {middles[number] - BOX:.4f} AND {middles[number] + BOX:.4f}"
        for name, middles in zip(("latitude", "longitude"), beat_middles(), strict=True)
    )
    types = {"A": "ROBBERY", "B": "BATTERY", "C": "MOTOR VEHICLE THEFT"}
    conditions = [f"{name} AS primary_type = '{kind}' AND {sides}" for name, kind in types.items()]
    return match(CRIMES, "A T* B T* C", "'30' MINUTE", conditions)


def match(stream: str, pattern: str, within: str, conditions: Sequence[str]) -> str:
    """Return a query for when matches begin and end."""
    return (
        f"SELECT * FROM {stream} MATCH_RECOGNIZE (MEASURES FIRST(ts) AS t0, LAST(ts) AS t1 "
        f"PATTERN ({pattern}) WITHIN INTERVAL {within} DEFINE {', '.join(conditions)})"
    )
