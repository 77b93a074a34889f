"""Selections, sequences of two events, row patterns and time windows over one stream of trades."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa

from benchmarks.sharing.sets.running import (
    BATCH,
    BATCHES,
    START_US,
    WARM,
    Arrived,
    Asked,
    QuerySet,
    numbered,
)
from eventide.schema import Schema

CATALOG = {"trades": Schema.of({"sym": "int64", "x": "float64"})}
SYMBOLS, MANY_SYMBOLS = 100, 10_000
BEFORE, STEP_US = 60_000, 200
ROUND_EVENTS = 400_000
"""Of a thousand windows one ends in every few thousand events of a round with so many."""

SELECTION = "SELECT ts, sym, x FROM trades WHERE sym = $sym AND x > $high"
SEQUENCE = (
    "SELECT * FROM FILTER{sym = $sym AND x > $high} trades "
    "NEXT{DUR <= 10 s AND $2.sym = $sym AND $2.x < $low} trades"
)
PATTERN = """SELECT * FROM trades MATCH_RECOGNIZE (
  ORDER BY ts MEASURES FIRST(A.ts) AS began, LAST(B.x) AS x, COUNT(B.x) AS n
  PATTERN (A B+ C) WITHIN INTERVAL '1' MINUTE
  DEFINE A AS x > $high, B AS x > $low, C AS x < $low)"""
OF_SYMBOL = PATTERN.replace("FROM trades", "FROM (SELECT * FROM trades WHERE sym = $sym)")


def trades(symbols: int, step_us: int, batch: int = BATCH) -> Iterator[Arrived]:
    """Yield batches of trades, without end."""
    rng = np.random.default_rng(symbols)
    first = 0
    while True:
        columns = {"sym": rng.integers(0, symbols, batch), "x": rng.random(batch)}
        yield {"trades": numbered(columns, first, step_us)}
        first += batch


def of_symbols(text: str, symbols: int, high: float, low: float, count: int) -> list[Asked]:
    """Return queries of a text for symbols in turn, with constants above `high` and below `low`."""
    rng = np.random.default_rng(count)
    columns = {
        "sym": np.arange(count) % symbols,
        "high": high + (1 - high) * rng.random(count),
        "low": low * rng.random(count),
    }
    return [(text, pa.table({k: v for k, v in columns.items() if f"${k}" in text}))]


def usual(name: str, about: str, text: str, symbols: int, high: float, low: float) -> QuerySet:
    """Return queries over trades, a millisecond after each other."""
    asked: Callable[[int], list[Asked]] = partial(of_symbols, text, symbols, high, low)
    return QuerySet(name, about, CATALOG, asked, partial(trades, symbols, 1_000))


def selections(symbols: int) -> QuerySet:
    """Return selections of the trades of one of so many symbols each."""
    return usual("selections", f"sym = s AND x > c, {symbols:,} symbols", SELECTION, symbols, 0, 0)


SELECTIONS = selections(SYMBOLS)
SEQUENCES = usual(
    "sequences",
    "x above 0.9 to 1, then the next below 0 to 0.1 of the same symbol within 10 s, 100 symbols",
    *(SEQUENCE, SYMBOLS, 0.9, 0.1),
)


def patterns(symbols: int) -> QuerySet:
    """Return row patterns over the trades of one of so many symbols each."""
    about = (
        f"MATCH_RECOGNIZE (A B+ C) within a minute, over the trades of one of {symbols:,} symbols"
    )
    return usual("row patterns", about, OF_SYMBOL, symbols, 0.6, 0.4)


PATTERNS = patterns(MANY_SYMBOLS)


def dense_trades(batch: int) -> Iterator[Arrived]:
    """Yield a million trades a second, behind a minute of fewer ones: all windows have begun."""
    rng = np.random.default_rng(4)
    for number in range(WARM):
        columns = {"sym": rng.integers(0, 1_000, BEFORE), "x": rng.random(BEFORE)}
        rows = numbered(columns, number * BEFORE, STEP_US, START_US - WARM * BEFORE * STEP_US)
        yield {"trades": rows}
    first = WARM * BEFORE
    for arrived in trades(1_000, 1, batch):
        columns = {name: arrived["trades"].column(name) for name in ("sym", "x")}
        yield {"trades": numbered(columns, first, 1)}
        first += batch


def window_texts(keyed: bool, count: int) -> list[Asked]:
    """Return sums and means in tumbling windows of 1 to 20 s, at random."""
    sizes = np.random.default_rng(3).integers(1_000, 20_001, count) if count > 1 else [10_000]
    key, by = ("sym, ", "sym, ") if keyed else ("", "")
    return [
        (
            [
                f"SELECT {key}window_start, SUM(x) AS total, AVG(x) AS mean FROM trades "
                f"GROUP BY {by}TUMBLE(ts, INTERVAL '{size / 1000:.3f}' SECOND)"
                for size in sizes
            ],
            None,
        )
    ]


def windows(*, keyed: bool, batch: int) -> QuerySet:
    """Return windows over trades, of which a million come in a second of event time."""
    name = f"windows{', 1,000 keys' if keyed else ''}, batches of {batch:,}"
    asked, events = partial(window_texts, keyed), partial(dense_trades, batch)
    about = "SUM and AVG; TUMBLE of 1 to 20 s"
    return QuerySet(name, about, CATALOG, asked, events, max(BATCHES, ROUND_EVENTS // batch))
