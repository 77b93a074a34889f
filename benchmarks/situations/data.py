"""The events of the situation cases, made from seeds: cars on an expressway, and bare booleans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Spans = tuple[Int64s, Int64s]
"""Starts and ends of the situations of one kind, in seconds."""

START_US = 1_760_000_000_000_000
SECOND_US = 1_000_000
DRIVERS = "drivers"
BOOLEANS = "booleans"
DEVICES = "devices"
SEED = 20_180_326

CARS = 1_000
LEAST_SECONDS = 2_000
"""A car drives for so long at least; with few events there are fewer cars."""
SAMPLE = 1_000_000
# A car cruises, and now and then accelerates, then speeds or not, and brakes hard or not.
CRUISE, ACCELERATE, SPEED, BRAKE = range(4)
MEAN_SECONDS = np.array([90.0, 6.0, 20.0, 4.0])
NEXT_MODE = np.array(
    [
        [0.20, 0.55, 0.00, 0.25],
        [0.45, 0.00, 0.45, 0.10],
        [0.40, 0.10, 0.00, 0.50],
        [0.80, 0.10, 0.10, 0.00],
    ]
)
# Metres a second, towards which a car tends, how strongly, and what it adds.
WANTED_SPEED = np.array([25.0, 34.0, 36.0, 12.0])
PULL = np.array([0.05, 0.05, 0.10, 0.05])
PUSH = np.array([0.0, 1.5, 0.0, -3.0])
NOISE = 0.35

LENGTHS_S = (10, 100)
GAPS_S = (10, 50)
MEAN_LENGTH_S = sum(LENGTHS_S) / 2
MEAN_GAP_S = sum(GAPS_S) / 2


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From where on a car is fast, slow, or changes its speed sharply."""

    fast: float
    slow: float
    sharp: float
    hard: float


def drivers(count: int) -> pa.Table:
    """Return `count` reports of cars, one a second each, in order of time, no two at the same.

    >>> drivers(3).column_names
    ['ts', 'car', 'speed', 'accel', 'position']
    """
    cars = max(1, min(CARS, count // LEAST_SECONDS))
    seconds = -(-count // cars)
    speed, accel = rides(cars, seconds)
    position = np.cumsum(speed, axis=0)
    # A millisecond from car to car: Flink's event time has no finer parts.
    second = START_US + SECOND_US * np.arange(seconds, dtype=np.int64)
    ts = second[:, None] + 1_000 * np.arange(cars, dtype=np.int64)
    car = np.broadcast_to(np.arange(cars, dtype=np.int64), ts.shape)
    return pa.table(
        {
            "ts": pa.array(ts.ravel()[:count]).cast(pa.timestamp("us")),
            "car": car.ravel()[:count],
            "speed": speed.ravel()[:count],
            "accel": accel.ravel()[:count],
            "position": position.ravel()[:count],
        }
    )


def rides(cars: int, seconds: int) -> tuple[Floats, Floats]:
    """Return speeds and accelerations, a row a second and a column a car."""
    random = np.random.default_rng(SEED)
    later = np.cumsum(NEXT_MODE, axis=1)
    mode = np.full(cars, CRUISE)
    left = random.integers(1, 2 * int(MEAN_SECONDS[CRUISE]), cars)
    speed = np.full(cars, WANTED_SPEED[CRUISE])
    speeds, accels = np.empty((seconds, cars)), np.empty((seconds, cars))
    for second in range(seconds):
        over = np.flatnonzero(left <= 0)
        if len(over):
            mode[over] = (random.random(len(over))[:, None] > later[mode[over]]).sum(axis=1)
            left[over] = 1 + random.exponential(MEAN_SECONDS[mode[over]]).astype(np.int64)
        left -= 1
        pulled = PULL[mode] * (WANTED_SPEED[mode] - speed)
        accel = pulled + PUSH[mode] + random.normal(0.0, NOISE, cars)
        after = np.maximum(speed + accel, 0.0)
        accels[second] = after - speed
        speeds[second] = speed = after
    return speeds, accels


@cache
def thresholds() -> Thresholds:
    """Return the 99th percentile of speed and the 90th of gaining and of losing speed."""
    sample = drivers(SAMPLE)
    speed, accel = sample.column("speed").to_numpy(), sample.column("accel").to_numpy()
    return Thresholds(
        fast=float(np.percentile(speed, 99)),
        slow=float(np.percentile(speed, 10)),
        sharp=float(np.percentile(accel[accel > 0], 90)),
        hard=float(np.percentile(accel[accel < 0], 10)),
    )


@dataclass(frozen=True, slots=True)
class Kind:
    """How long situations of one kind last, and how often they occur among the other kinds."""

    length: float = 1.0
    rarity: float = 1.0

    def periods(self, random: np.random.Generator, until_s: int) -> tuple[Int64s, Int64s]:
        """Return starts and ends in seconds, the last end not before `until_s`."""
        cycle = self.length * MEAN_LENGTH_S + MEAN_GAP_S
        # As rare as asked: the gaps make up for it.
        stretch = (self.rarity * cycle - self.length * MEAN_LENGTH_S) / MEAN_GAP_S
        count = 16 + int(1.2 * until_s / (self.rarity * cycle))
        lengths = random.integers(LENGTHS_S[0], LENGTHS_S[1] + 1, count) * self.length
        gaps = random.integers(GAPS_S[0], GAPS_S[1] + 1, count) * stretch
        both = np.stack([np.rint(gaps), np.maximum(np.rint(lengths), 1)], axis=1)
        edges = np.cumsum(both.astype(np.int64).ravel())
        assert edges[-1] >= until_s
        return edges[0::2], edges[1::2]


ALIKE = Kind()


def booleans(count: int, kinds: Sequence[Kind], seed: int = SEED) -> pa.Table:
    """Return `count` events, one a second, with attributes s0, s1, … that hold for a while.

    >>> booleans(3, [ALIKE, ALIKE]).column_names
    ['ts', 's0', 's1']
    """
    return shown(count, drawn(count, kinds, seed))


def drawn(count: int, kinds: Sequence[Kind], seed: int = SEED) -> list[Spans]:
    """Return the situations behind `booleans`: of each attribute starts and ends in seconds."""
    random = np.random.default_rng(seed)
    return [kind.periods(random, count) for kind in kinds]


def shown(count: int, spans: Sequence[Spans]) -> pa.Table:
    """Return `count` events, one a second, that show situations as attributes."""
    columns = {f"s{place}": marked(each, count) for place, each in enumerate(spans)}
    return as_events(np.arange(count, dtype=np.int64), columns)


def devices(count: int, keys: int, kinds: Sequence[Kind]) -> pa.Table:
    """Return such events of several devices, each with situations of its own, in order of time.

    >>> devices(4, 2, [ALIKE]).column("device").to_pylist()
    [0, 1, 0, 1]
    """
    random = np.random.default_rng(SEED)
    seconds = -(-count // keys)
    columns = {}
    for place, kind in enumerate(kinds):
        each = [held(random, kind, seconds) for _ in range(keys)]
        columns[f"s{place}"] = np.stack(each, axis=1).ravel()[:count]
    # A millisecond from one to the next: Flink's event time has no finer parts.
    number = np.arange(count, dtype=np.int64)
    ts = START_US + SECOND_US * (number // keys) + 1_000 * (number % keys)
    return pa.table(
        {"ts": pa.array(ts).cast(pa.timestamp("us")), "device": number % keys, **columns}
    )


def held(random: np.random.Generator, kind: Kind, count: int) -> Bools:
    """Return for each second whether a situation of a kind goes on."""
    return marked(kind.periods(random, count), count)


def marked(spans: Spans, count: int) -> Bools:
    """Return for each second whether one of the situations goes on."""
    changes = np.zeros(count + 1, np.int8)
    for edges, change in zip(spans, (1, -1), strict=True):
        changes[edges[edges < count]] = change
    return np.cumsum(changes[:count], dtype=np.int8).astype(np.bool_)


def phases(count: int, ratios: Sequence[Sequence[float]]) -> list[pa.Table]:
    """Return events in as many parts as there are ratios of how often each kind occurs."""
    each = count // len(ratios)
    parts = []
    for number, ratio in enumerate(ratios):
        kinds = [Kind(rarity=max(ratio) / share) for share in ratio]
        part = booleans(each, kinds, SEED + number)
        later = pa.array(part.column("ts").cast(pa.int64()).to_numpy() + number * each * SECOND_US)
        parts.append(part.set_column(0, "ts", later.cast(pa.timestamp("us"))))
    return parts


@dataclass(frozen=True, slots=True)
class Periods:
    """The situations of two kinds as they were drawn, in seconds, and events that show them.

    There is an event only where one of them begins or ends: those between say nothing new.
    """

    starts: tuple[Int64s, Int64s]
    ends: tuple[Int64s, Int64s]
    events: pa.Table


def periods(count: int, kinds: tuple[Kind, Kind]) -> Periods:
    """Return about `count` situations of the first kind, and those of the second meanwhile."""
    random = np.random.default_rng(SEED)
    until_s = int(count * (kinds[0].length * MEAN_LENGTH_S + MEAN_GAP_S))
    starts, ends = zip(*(kind.periods(random, until_s) for kind in kinds), strict=True)
    # All that began before is over when the events end.
    last = min(int(each[-1]) for each in ends)
    kept = [each <= last for each in ends]
    starts = tuple(each[keep] for each, keep in zip(starts, kept, strict=True))
    ends = tuple(each[keep] for each, keep in zip(ends, kept, strict=True))
    seconds = np.unique(np.concatenate([*starts, *ends]))
    columns = {}
    for place in range(2):
        begun = np.searchsorted(starts[place], seconds, side="right")
        columns[f"s{place}"] = begun > np.searchsorted(ends[place], seconds, side="right")
    return Periods(starts, ends, as_events(seconds, columns))


def as_events(seconds: Int64s, columns: dict[str, Bools]) -> pa.Table:
    """Return attributes with the times at which they are as they are."""
    ts = pa.array(START_US + SECOND_US * seconds).cast(pa.timestamp("us"))
    return pa.table({"ts": ts, **columns})


def in_chunks(count: int, kinds: Sequence[Kind], rows: int) -> Iterator[pa.Table]:
    """Yield the events of `booleans` without ever having all of them as a table.

    >>> [part.num_rows for part in in_chunks(5, [ALIKE], 2)]
    [2, 2, 1]
    """
    random = np.random.default_rng(SEED)
    packed = [np.packbits(held(random, kind, count)) for kind in kinds]
    for start in range(0, count, rows):
        stop = min(count, start + rows)
        first = start // 8
        cut = slice(start - 8 * first, stop - 8 * first)
        columns = {
            f"s{place}": np.unpackbits(bits[first : -(-stop // 8)])[cut].astype(np.bool_)
            for place, bits in enumerate(packed)
        }
        yield as_events(np.arange(start, stop, dtype=np.int64), columns)
