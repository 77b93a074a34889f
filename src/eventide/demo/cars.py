"""Connected cars around Marburg: trips, stops, speeding, hard braking, and a patchy network.

Cars start over the first part of the morning; towards noon many are home. A moving car reports
every second, a parked one every half minute. Reports arrive within a few seconds, in a slightly
different order; a car without a network keeps its reports and sends them all when it is back,
minutes late.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

SEED = 20260302
CARS = 200
START_US = 1_772_433_000_000_000  # Monday 2 March 2026, 06:30 UTC
SECOND_US = 1_000_000
PARKED_EVERY = 30
FILES = 8

Floats = np.ndarray[tuple[int, int], np.dtype[np.float64]]
Flags = np.ndarray[tuple[int, int], np.dtype[np.bool_]]

ATTRIBUTES = {
    "car": "string",
    "lat": "float64",
    "lon": "float64",
    "speed": "float64",
    "accel": "float64",
}
"""The attributes of the stream: speed in km/h, acceleration in m/s²."""

TARGETS = np.array([0.0, 30.0, 50.0, 50.0, 70.0, 100.0, 100.0, 120.0])
"""The speeds that drivers aim for, in km/h: a stop, streets, roads, the motorway."""


@dataclass(frozen=True, slots=True)
class Drive:
    """Second by second, car by car: [second, car]."""

    speed: Floats
    accel: Floats
    reports: Flags


def make_events(count: int, seed: int = SEED) -> pa.Table:
    """Return `count` events in the order in which they arrive."""
    rng = np.random.default_rng(seed)
    seconds = int(1.6 * count / CARS) + 10  # cars park at times
    drive = simulate(rng, seconds)
    while drive.reports.sum() < count:
        seconds = int(seconds * 1.25) + 10
        rng = np.random.default_rng(seed)
        drive = simulate(rng, seconds)
    return arriving(rng, drive, count)


def simulate(rng: np.random.Generator, seconds: int) -> Drive:
    """Drive all cars for some seconds, all of them one second at a time."""
    speed = np.zeros((seconds, CARS))
    accel = np.zeros((seconds, CARS))
    begins = (rng.beta(1.3, 3.0, CARS) * seconds * 0.45).astype(np.int64)
    hurry = rng.normal(1.0, 0.09, CARS)
    home = (rng.uniform(0.62, 1.15, CARS) * seconds).astype(np.int64)
    target, until, brake = np.zeros(CARS), begins.copy(), np.full(CARS, 2.0)
    now, mood = np.zeros(CARS), np.zeros(CARS)
    for second in range(seconds):
        due = np.flatnonzero(until <= second)
        if len(due):
            target[due], until[due], brake[due] = next_aims(rng, second, hurry[due])
            target[home <= second] = 0
        # Drivers do not hold a speed: it drifts for half a minute or so.
        mood = 0.97 * mood + rng.normal(0, 0.012, CARS)
        change = np.clip((target * (1 + mood) - now) / 3.6, -brake, 1.6)
        change += rng.normal(0, 0.12, CARS)
        change = np.where((target == 0) & (now < 1), -now / 3.6, change)
        after = np.maximum(now + 3.6 * change, 0)
        accel[second], speed[second] = (after - now) / 3.6, after
        now = after
    ticks = (np.arange(seconds)[:, None] + np.arange(CARS)) % PARKED_EVERY == 0
    return Drive(speed, accel, (speed > 0) | ticks)


def next_aims(
    rng: np.random.Generator, second: int, hurry: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the speeds that some drivers aim for now, until when, and how hard they may brake."""
    n = len(hurry)
    target = rng.choice(TARGETS, n) * hurry
    # One driver in eight on the motorway is in a real hurry.
    target = np.where((target > 105) & (rng.random(n) < 0.12), rng.uniform(140, 175, n), target)
    lasts = np.where(target == 0, rng.exponential(45, n) + 8, rng.exponential(100, n) + 20)
    parks = (target == 0) & (rng.random(n) < 0.08)
    lasts = np.where(parks, rng.uniform(300, 1200, n), lasts)
    emergency = rng.random(n) < 0.03
    target = np.where(emergency, rng.uniform(0, 15, n), target)
    lasts = np.where(emergency, rng.uniform(4, 12, n), lasts)
    brake = np.where(emergency, rng.uniform(6.5, 9.5, n), rng.uniform(1.2, 2.6, n))
    return target, second + lasts.astype(np.int64) + 1, brake


def arriving(rng: np.random.Generator, drive: Drive, count: int) -> pa.Table:
    """Return the reports in order of arrival, the first `count` of them."""
    second, car = np.nonzero(drive.reports)
    ts = START_US + second * SECOND_US + rng.integers(0, 900_000, len(second))
    delay = np.minimum(rng.exponential(0.5, len(second)), 6.0)
    delay = np.maximum(delay, outage_delay(rng, second, car, len(drive.speed)))
    order = np.argsort(ts + (delay * SECOND_US).astype(np.int64), kind="stable")[:count]
    second, car = second[order], car[order]
    lat, lon = positions(rng, drive.speed)
    names = pa.array([f"car-{number:03d}" for number in range(CARS)])
    return pa.table(
        {
            "ts": pa.array(ts[order]).cast(pa.timestamp("us", "UTC")),
            "car": names.take(pa.array(car)),
            "lat": with_nulls(rng, np.round(lat[second, car], 6), 0.002),
            "lon": with_nulls(rng, np.round(lon[second, car], 6), 0.002),
            "speed": with_nulls(rng, np.round(drive.speed[second, car], 1), 0.005),
            "accel": with_nulls(rng, np.round(drive.accel[second, car], 2), 0.005),
        }
    )


def outage_delay(
    rng: np.random.Generator,
    second: np.ndarray[tuple[int], np.dtype[np.int64]],
    car: np.ndarray[tuple[int], np.dtype[np.int64]],
    seconds: int,
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return how long each report waits for the network, in seconds: usually not at all."""
    begin = rng.uniform(0.1, 0.9, CARS) * seconds
    # About one car in three has an outage; it lasts minutes, less in a very short demo.
    lasts = rng.uniform(45, 240, CARS) * (rng.random(CARS) < 0.35)
    end = begin + np.minimum(lasts, seconds / 8)
    cut_off = (second >= begin[car]) & (second < end[car])
    return np.where(cut_off, end[car] - second, 0.0)


def positions(rng: np.random.Generator, speed: Floats) -> tuple[Floats, Floats]:
    """Return latitude and longitude: each car keeps turning a little from where it lives."""
    heading = rng.uniform(0, 2 * np.pi, CARS) + np.cumsum(
        rng.normal(0, 0.05, speed.shape) * (speed > 0), axis=0
    )
    metres = speed / 3.6
    north = np.cumsum(metres * np.cos(heading), axis=0)
    east = np.cumsum(metres * np.sin(heading), axis=0)
    lat = 50.81 + rng.normal(0, 0.05, CARS) + north / 111_320
    lon = 8.77 + rng.normal(0, 0.08, CARS) + east / (111_320 * np.cos(np.radians(50.81)))
    return lat, lon


def with_nulls(
    rng: np.random.Generator, values: np.ndarray[tuple[int], np.dtype[np.float64]], share: float
) -> pa.Array:
    """Return values with a few missing, as from a sensor."""
    return pa.array(values, mask=rng.random(len(values)) < share)


def write_files(events: pa.Table, folder: Path, files: int = FILES) -> list[Path]:
    """Write events as Parquet files, each a part of what arrived."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = -(-events.num_rows // files)
    paths = []
    for number in range(files):
        path = folder / f"cars-{number:02d}.parquet"
        part = events.slice(number * rows, rows)
        pyarrow.parquet.write_table(part, path, compression="zstd", row_group_size=262_144)
        paths.append(path)
    return paths
