"""Subscriptions of the document on event algebra: its table 4.1, and feeds of news.

A condition has two equalities and two ranges of 25 that hold for 0.7 of the values. One equality is
*primary*: the same in all steps. How often conditions are used falls as Zipf says, 1, 1 and 0.8 in
the three steps. Events have four attributes of 100 values and four numbers, one a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa

from benchmarks.sharing.sets.running import BATCH, Arrived, Asked, QuerySet, numbered, zipf
from eventide.schema import Schema

DOMAIN, RANGES, WIDTH = 100, 25, 0.7
SMALL_DOMAIN = 3
"""Few values, so that also a few subscriptions have rows to compare."""
SKEWS = (1.0, 1.0, 0.8)
SECOND_US = 1_000_000
_MULTIPLIER = 2_654_435_761
"""Has no factor in common with the numbers of conditions: neighbours in rank are no neighbours."""
COLUMNS = {f"a{k}": "int64" for k in range(4)} | {f"x{k}": "float64" for k in range(4)}
CATALOG = {"s": Schema.of(COLUMNS)}
CHANNELS, TOPICS = 415, 100


def condition(step: int) -> str:
    """Return the condition of a step without the primary equality."""
    ranges = (f"x{k} >= $low{step}{k} AND x{k} < $high{step}{k}" for k in range(2))
    return f"a1 = $a{step} AND {' AND '.join(ranges)}"


FIRST, SECOND, THIRD = (condition(step) for step in (1, 2, 3))
_STEP = "DUR <= 20 seconds AND $2.a0 = $primary"
_START = f"FILTER{{a0 = $primary AND {FIRST}}} s"
_ATTRIBUTES = ", ".join(COLUMNS)
_SUMS = "$.total + $2.x2 AS total, $.other + $2.x3 AS other"
TEXTS = {
    "LinearStat": (
        f"SELECT * FROM FILTER{{a0 = $primary AND {THIRD}}}"
        f"(FILTER{{a0 = $primary AND {SECOND}}}({_START} NEXT{{}} s) NEXT{{}} s)"
    ),
    "LinearDyn": (
        f"SELECT * FROM FILTER{{a0 = $primary AND {THIRD} AND a3 = a3_1}}"
        f"(FILTER{{a0 = $primary AND {SECOND} AND a3 = a3_1}}({_START} NEXT{{}} s) NEXT{{}} s)"
    ),
    "Filter": (
        f"SELECT * FROM FILTER{{{THIRD}}}"
        f"(FILTER{{{SECOND}}}({_START} NEXT{{{_STEP}}} s) NEXT{{{_STEP}}} s)"
    ),
    "NonDeterministic": (
        f"SELECT * FROM FILTER{{{THIRD}}}((SELECT {_ATTRIBUTES} FROM FILTER{{{SECOND}}}"
        f"({_START} FOLD{{{_STEP}, , }} s)) FOLD{{{_STEP}, , }} s)"
    ),
    "NonDeterministicAgg": (
        f"SELECT * FROM FILTER{{{THIRD}}}((SELECT {_ATTRIBUTES}, total, other "
        f"FROM FILTER{{{SECOND}}}((SELECT *, x2 AS total, x3 AS other FROM {_START}) "
        f"FOLD{{{_STEP}, , {_SUMS}}} s)) FOLD{{{_STEP}, , {_SUMS}}} s)"
    ),
}
STATIC = f"SELECT * FROM s WHERE a0 = $primary AND {FIRST}"


def constants(
    count: int, skews: tuple[float, ...] = SKEWS, width: float = WIDTH, domain: int = DOMAIN
) -> pa.Table:
    """Return the constants of so many subscriptions."""
    rng = np.random.default_rng(1)
    of_step = domain * RANGES * RANGES
    columns: dict[str, np.ndarray] = {}
    for step, skew in enumerate(skews, 1):
        places = of_step * (domain if step == 1 else 1)
        drawn = zipf(rng, places, skew, count) * _MULTIPLIER % places
        if step == 1:
            columns["primary"] = drawn // of_step
        columns[f"a{step}"] = drawn // (RANGES * RANGES) % domain
        for k, of_range in enumerate((drawn // RANGES % RANGES, drawn % RANGES)):
            low = of_range * (1 - width) / (RANGES - 1)
            columns |= {f"low{step}{k}": low, f"high{step}{k}": low + width}
    return pa.table(columns)


def prefixes(table: pa.Table) -> tuple[int, ...]:
    """Return how many different first, first two, and three conditions subscriptions have."""
    found = []
    for steps in (1, 2, 3):
        names = ["primary"]
        for step in range(1, steps + 1):
            names += [f"a{step}", f"low{step}0", f"low{step}1"]
        found.append(table.group_by(names).aggregate([]).num_rows)
    return tuple(found)


def uniform_events(domain: int) -> Iterator[Arrived]:
    """Yield batches of events, without end."""
    rng = np.random.default_rng(2)
    first = 0
    while True:
        columns = {
            name: rng.integers(0, domain, BATCH) if kind == "int64" else rng.random(BATCH)
            for name, kind in COLUMNS.items()
        }
        yield {"s": numbered(columns, first, SECOND_US)}
        first += BATCH


def subscriptions(
    text: str, skews: tuple[float, ...], width: float, domain: int, count: int
) -> list[Asked]:
    """Return a text with the constants of so many subscriptions."""
    table = constants(count, skews, width, domain)
    return [(text, table.select([name for name in table.column_names if f"${name}" in text]))]


def template(
    name: str, skews: tuple[float, ...] = SKEWS, width: float = WIDTH, domain: int = DOMAIN
) -> QuerySet:
    """Return the subscriptions of a template of table 4.1."""
    asked = partial(subscriptions, TEXTS.get(name, STATIC), skews, width, domain)
    return QuerySet(name, ABOUT[name], CATALOG, asked, partial(uniform_events, domain))


ABOUT = {
    "static": "two equalities and two ranges of 0.7 on one event",
    "LinearStat": "three events, each the next after the other, with such a condition on each",
    "LinearDyn": "the same, and a value of each event is that of the one before",
    "Filter": "three events of the primary value within 20 events, the next ones",
    "NonDeterministic": "the same with FOLD: any later event of the primary value",
    "NonDeterministicAgg": "the same with sums of two numbers over the events of a FOLD",
}
TEMPLATES = tuple(TEXTS)

NEWS = {"news": Schema.of({"channel": "int64", "topic": "int64", "words": "int64"})}
NEWS_TEXTS = {
    "Stateless": "SELECT * FROM news WHERE channel = $channel AND topic = $topic",
    "Concatenation": (
        "SELECT * FROM (FILTER{channel = $channel AND topic = $topic} news "
        "NEXT{DUR <= 100 seconds AND $2.channel = $channel} news) "
        "NEXT{DUR <= 100 seconds AND $2.channel = $channel} news"
    ),
    "Parameterization": (
        "SELECT * FROM (FILTER{channel = $channel AND topic = $topic} news "
        "NEXT{DUR <= 100 seconds AND $1.channel = $2.channel AND $2.words > $1.words} news) "
        "NEXT{DUR <= 100 seconds AND $1.channel = $2.channel AND $2.words > $1.words} news"
    ),
    "Iteration": (
        "SELECT * FROM FILTER{channel = $channel AND topic = $topic} news "
        "FOLD{$2.channel = $.channel AND $2.words > $.words, DUR <= 100 seconds, } news"
    ),
}


def news_events() -> Iterator[Arrived]:
    """Yield batches of news: popular channels have most of them."""
    rng = np.random.default_rng(5)
    first = 0
    while True:
        columns = {
            "channel": zipf(rng, CHANNELS, 1.0, BATCH),
            "topic": rng.integers(0, TOPICS, BATCH),
            "words": rng.integers(0, 1_000, BATCH),
        }
        yield {"news": numbered(columns, first, SECOND_US)}
        first += BATCH


def news_subscriptions(name: str, count: int) -> list[Asked]:
    """Return so many subscriptions to channels and topics."""
    rng = np.random.default_rng(6)
    topics, channels = rng.integers(0, TOPICS, count), rng.integers(0, CHANNELS, count)
    return [(NEWS_TEXTS[name], pa.table({"channel": channels, "topic": topics}))]


def news(name: str) -> QuerySet:
    """Return subscriptions to news."""
    asked = partial(news_subscriptions, name)
    return QuerySet(name, "feeds of 415 channels", NEWS, asked, news_events)
