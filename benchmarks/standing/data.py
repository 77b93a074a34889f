"""The events of the standing cases, made from seeds: traffic on links, streams to join, readings.

The traffic stands for a trace of connections of a laboratory: few sources send most of it, each of
them in bursts. A tuple comes on each link once in a unit of time, which here is a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide.plan.standing.join_order import JoinInput

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

START_US = 1_760_000_000_000_000
SECOND_US = 1_000_000
SEED = 20_060_801

SOURCES = 1_647
DESTINATIONS = 4_000
"""Of each link: traffic is divided by destination."""
EXPONENT = 0.6
"""How uneven sources and destinations are: the n-th has n to the power of minus this."""
PROTOCOLS = {"ftp": 0.05, "telnet": 0.16, "smtp": 0.45, "nntp": 0.34}
"""With a window of 200,000 units on two links, ftp joins about once, telnet ten times a tuple."""
BURST_UNITS = 500
"""For so long nobody falls silent or begins to send; then some do."""
ENDING, BEGINNING = 0.2, 0.1
LINKS = ("link1", "link2", "link3")
PARTIAL = 0.4
"""This share of the sources never sends on one of the links."""

JOINED_KEYS = 1_000
BETWEEN_US = 20_000
"""Of two streams together; each has 25 events a second then, and 1.5 partners within 60 s."""
READING_US = 1_000

FOUR_INPUTS = (
    JoinInput(10.0, 100.0, 40.0),
    JoinInput(1.0, 100.0, 100.0),
    JoinInput(1.0, 100.0, 8.0),
    JoinInput(1.0, 100.0, 5.0),
)
"""Arrivals per unit of time, length of the window and number of values, of four streams."""
OTHER_INPUTS = (
    JoinInput(10.0, 100.0, 500.0),
    JoinInput(1.0, 100.0, 50.0),
    JoinInput(1.0, 200.0, 40.0),
    JoinInput(3.0, 100.0, 5.0),
)
"""Four others, with fewer results."""
SCALE = 10
"""The same with so many times the tuples and values: all orders cost the same in comparison."""


def links(units: int, count: int = len(LINKS)) -> dict[str, pa.Table]:
    """Return the traffic of some links in order of time, a tuple a unit on each.

    >>> links(3)["link1"].column_names
    ['ts', 'src', 'dst', 'protocol']
    """
    draw = np.random.default_rng(SEED)
    weights = zipf(SOURCES)
    bursts = -(-units // BURST_UNITS)
    sending = draw.random(SOURCES) < BEGINNING / (BEGINNING + ENDING)
    shunned = np.where(draw.random(SOURCES) < PARTIAL, draw.integers(0, len(LINKS), SOURCES), -1)
    sources = np.empty((bursts, count, BURST_UNITS), np.int64)
    for number in range(bursts):
        chance = np.where(sending, ENDING, BEGINNING)
        sending = sending ^ (draw.random(SOURCES) < chance)
        for link in range(count):
            here = weights * (sending & (shunned != link))
            sources[number, link] = drawn(draw, here, (BURST_UNITS,))
    found: dict[str, pa.Table] = {}
    names = pa.array(list(PROTOCOLS))
    shares = np.array(list(PROTOCOLS.values()))
    # The links take turns within a unit: no two tuples come at the same time.
    moments = START_US + SECOND_US * np.arange(units, dtype=np.int64)
    for link, name in enumerate(LINKS[:count]):
        protocols = names.take(pa.array(drawn(draw, shares, (units,))))
        destinations = link * DESTINATIONS + drawn(draw, zipf(DESTINATIONS), (units,))
        found[name] = pa.table(
            {
                "ts": timestamps(moments + link * (SECOND_US // count)),
                "src": sources[:, link].ravel()[:units],
                "dst": destinations,
                "protocol": protocols,
            }
        )
    return found


def zipf(count: int) -> Floats:
    """Return how often each of some values occurs, the most frequent first."""
    weights = np.arange(1, count + 1, dtype=np.float64) ** -EXPONENT
    shares: Floats = weights / weights.sum()
    return shares


def drawn(draw: np.random.Generator, weights: Floats, shape: tuple[int, ...]) -> Int64s:
    """Return numbers from 0 on, each as often as its weight says."""
    upper = np.cumsum(weights)
    places: Int64s = np.searchsorted(upper, draw.random(shape) * upper[-1], side="right")
    return places


def timestamps(moments_us: Int64s) -> pa.Array:
    """Return times as Arrow has them."""
    return pa.array(moments_us).cast(pa.timestamp("us"))


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Tuples of several streams in order of time: when, from which stream, and with which value."""

    at_us: Int64s
    stream: Int64s
    value: Int64s


def scaled(inputs: Sequence[JoinInput], scale: float) -> tuple[JoinInput, ...]:
    """Return streams with so many times as many tuples, and values."""
    return tuple(
        JoinInput(each.rate * scale, each.lifetime, each.distinct * scale) for each in inputs
    )


def arrivals_of(inputs: Sequence[JoinInput], count: int) -> Arrivals:
    """Return tuples, each from a stream by chance as its rate says, with any of its values."""
    draw = np.random.default_rng(SEED)
    rates = np.array([each.rate for each in inputs])
    values = np.array([each.distinct for each in inputs], np.int64)
    stream = drawn(draw, rates, (count,))
    at_us = START_US + (SECOND_US / rates.sum() * np.arange(count)).astype(np.int64)
    return Arrivals(at_us, stream, 1 + draw.integers(0, values[stream]))


def sided(count: int) -> pa.Table:
    """Return `count` events of two streams in turn, which `side` tells apart, with keys.

    >>> sided(4).column("side").to_pylist()
    [0, 1, 0, 1]
    """
    draw = np.random.default_rng(SEED)
    return pa.table(
        {
            # Whole milliseconds: Flink's event time has no finer parts.
            "ts": timestamps(START_US + BETWEEN_US * np.arange(count, dtype=np.int64)),
            "side": np.arange(count, dtype=np.int64) % 2,
            "key": draw.integers(0, JOINED_KEYS, count),
            "x": draw.random(count),
        }
    )


def readings(count: int) -> pa.Table:
    """Return `count` values of keys, one a millisecond."""
    draw = np.random.default_rng(SEED)
    return pa.table(
        {
            "ts": timestamps(START_US + READING_US * np.arange(count, dtype=np.int64)),
            "key": draw.integers(0, JOINED_KEYS, count),
            "x": np.round(draw.normal(20.0, 5.0, count), 3),
        }
    )
