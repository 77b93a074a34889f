"""The store's events: 80 bytes each, nine sensors at a thousand readings a second, in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.data import START_US

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
Delays = Callable[[np.random.Generator, int], Int64s]
"""Returns by how many microseconds each of so many late events is late."""

STREAM = "sensors"
SEED = 20_090_102
GAP_US = 1_000
WALKS = ("temperature", "humidity", "pressure", "voltage", "current", "torque", "vibration")
MEASURED = "temperature"
WEAR = "wear"
NOISE = "noise"
ATTRIBUTES = (*WALKS, WEAR, NOISE)
COLUMNS = ("ts", *ATTRIBUTES)
EVENT_BYTES = 8 * len(COLUMNS)
BURST_ROWS = 10_000
MEAN_DELAY_US = 40_000


def sensor_chunks(events: int, rows: int) -> Iterator[pa.Table]:
    """Yield events in order of time, no two at once, `rows` in a table.

    Seven sensors walk at random and are read with an error, at full precision; `wear` only grows,
    but for the error; `noise` is uniform.

    >>> [chunk.num_rows for chunk in sensor_chunks(250, 100)]
    [100, 100, 50]
    """
    levels = dict.fromkeys(ATTRIBUTES, 20.0)
    last_us = START_US
    with ThreadPoolExecutor() as threads:
        for number, start in enumerate(range(0, events, rows)):
            count = min(rows, events - start)
            readings = threads.map(
                lambda name, number=number, count=count: reading(name, levels[name], number, count),
                ATTRIBUTES,
            )
            random = np.random.default_rng((SEED, number))
            ts = last_us + np.cumsum(random.integers(GAP_US // 2, GAP_US * 3 // 2, count))
            last_us = int(ts[-1])
            columns = {"ts": pa.array(ts).cast(pa.timestamp("us"))}
            for name, (values, level) in zip(ATTRIBUTES, readings, strict=True):
                columns[name], levels[name] = pa.array(values), level
            yield pa.table(columns)


def reading(name: str, level: float, number: int, count: int) -> tuple[Floats, float]:
    """Return what a sensor reads in one chunk, and where it stands at the end."""
    random = np.random.default_rng((SEED, number, ATTRIBUTES.index(name)))
    if name == NOISE:
        return random.random(count), level
    steps = random.standard_normal(count)
    if name == WEAR:
        np.abs(steps, out=steps)
    steps *= 1e-3
    walk = np.cumsum(steps, out=steps)
    walk += level
    end = float(walk[-1])
    error = random.standard_normal(count)
    error *= 0.05
    walk += error
    return walk, end


def exponential(random: np.random.Generator, count: int) -> Int64s:
    """Most are late by little: 40 ms on average."""
    return random.exponential(MEAN_DELAY_US, count).astype(np.int64)


def uniform(random: np.random.Generator, count: int) -> Int64s:
    """Late by up to 80 ms, all delays alike."""
    return random.integers(0, 2 * MEAN_DELAY_US, count)


def far(random: np.random.Generator, count: int) -> Int64s:
    """Late by up to 100 s, which is some 100,000 events."""
    return random.integers(0, 100_000_000, count)


def as_they_arrive(events: pa.Table, share: float, delays: Delays) -> pa.Table:
    """Return events in the order of arrival, a share of them late."""
    random = np.random.default_rng(SEED)
    arrival = times_of(events).copy()
    late = np.flatnonzero(random.random(len(arrival)) < share)
    arrival[late] += delays(random, len(late))
    return events.take(pa.array(np.argsort(arrival, kind="stable"))).combine_chunks()


def in_bursts(events: pa.Table, share: float) -> pa.Table:
    """Return events so that after each 10,000 in order come the late ones, from that time."""
    random = np.random.default_rng(SEED)
    period = int(BURST_ROWS / (1 - share))
    late = random.random(events.num_rows) < share
    burst = np.arange(events.num_rows) // period
    return events.take(pa.array(np.lexsort((late, burst)))).combine_chunks()


def times_of(events: pa.Table) -> Int64s:
    """Return the times of events as integers."""
    times: Int64s = events.column("ts").cast(pa.int64()).to_numpy()
    return times
