"""Events of the benchmarks of CEL: uniform ones, and daily closes of firms."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

DISCRETE, CONTINUOUS = ("a0", "a1", "a2", "a3"), ("x0", "x1", "x2", "x3")
DOMAIN = 100
"""Values of a discrete attribute."""
FIRMS, DAYS = 24, 4_667
"""112,008 closes: as many firms as in the document, and about as many closes."""
_SECOND_US = 1_000_000
_DAY_US = 86_400_000_000
_SHORTEST, _LONGEST = 3, 12
"""Days between two turns of a price. With fewer than three, the extrema of three events each
overlap, and an event cannot follow one that it overlaps."""


def uniform_events(count: int, seed: int = 41) -> pa.Table:
    """Return events with four discrete and four continuous attributes, one a second."""
    random = np.random.default_rng(seed)
    columns = {"ts": pa.array(np.arange(count) * _SECOND_US).view(pa.timestamp("us"))}
    columns |= {name: pa.array(random.integers(0, DOMAIN, count)) for name in DISCRETE}
    columns |= {name: pa.array(random.random(count)) for name in CONTINUOUS}
    return pa.table(columns)


def closes(firms: int = FIRMS, days: int = DAYS, seed: int = 42) -> pa.Table:
    """Return daily closes of firms, which rise and fall for some days each; no two are equal."""
    random = np.random.default_rng(seed)
    prices = np.empty((days, firms))
    for firm in range(firms):
        day, level, rises = 0, 3.0 + random.random(), True
        while day < days:
            leg = int(random.integers(_SHORTEST, _LONGEST + 1))
            steps = random.uniform(0.005, 0.05, leg) * (1 if rises else -1)
            logs = level + np.cumsum(steps)
            prices[day : day + leg, firm] = np.exp(logs[: days - day])
            day, level, rises = day + leg, logs[-1], not rises
    times = np.repeat(np.arange(days) * _DAY_US, firms)
    names = pa.array([f"firm{number:02}" for number in range(firms)])
    return pa.table(
        {
            "ts": pa.array(times).view(pa.timestamp("us")),
            "name": names.take(pa.array(np.tile(np.arange(firms), days))),
            "price": pa.array(prices.reshape(-1)),
        }
    )
