"""The events of the index cases: five attributes of growing noise, and a city's crimes.

Both are kept in a folder once they are built, for the next run: to build them takes minutes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import eventide as ev
from benchmarks.store.setting import remove, size_of

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]

SEED = 20_210_101
START_US = 978_307_200_000_000  # 2001-01-01
SECOND_US = 1_000_000
CHUNK_ROWS = 1_000_000

# Attributes of growing noise: W2 of the source.
NOISY = "readings"
NOISY_EVENTS = 50_000_000
SPREADS = {"A1": 0.0, "A2": 0.001, "A3": 0.01, "A4": 0.1, "A5": 1.0}
PAYLOAD = tuple(f"B{number}" for number in range(1, 11))
NOISY_BYTES = 8 * (1 + len(SPREADS) + len(PAYLOAD))

# Crimes of a city: like W3 of the source.
CRIMES = "crimes"
CRIME_EVENTS = 7_000_000
CRIME_BYTES = 130
YEARS_US = int(19.5 * 365.25 * 86_400) * SECOND_US
DAY_US = 86_400 * SECOND_US
MINUTE_US = 60 * SECOND_US
DAY_RHYTHM = 0.6
BEAT = 2232
BEATS = np.array(
    [100 * d + 10 * s + b for d in range(1, 26) for s in (1, 2, 3) for b in range(1, 5)]
)
SOUTH_WEST = (41.645, -87.935)
NORTH_EAST = (42.022, -87.525)
BEAT_SPREAD = 0.006
"""In degrees: how far from the middle of a beat its crimes are."""
PLANTED_GAP = 4
"""Rows between the crimes of a planted match: some six minutes."""
TYPES = {
    "THEFT": 21.1,
    "BATTERY": 18.3,
    "CRIMINAL DAMAGE": 11.4,
    "NARCOTICS": 10.3,
    "ASSAULT": 6.3,
    "OTHER OFFENSE": 6.2,
    "BURGLARY": 5.7,
    "MOTOR VEHICLE THEFT": 4.6,
    "DECEPTIVE PRACTICE": 4.0,
    "ROBBERY": 3.7,
    "CRIMINAL TRESPASS": 2.9,
    "WEAPONS VIOLATION": 1.1,
    "PROSTITUTION": 1.0,
    "PUBLIC PEACE VIOLATION": 0.7,
    "OFFENSE INVOLVING CHILDREN": 0.7,
    "CRIM SEXUAL ASSAULT": 0.4,
    "SEX OFFENSE": 0.4,
    "INTERFERENCE WITH PUBLIC OFFICER": 0.25,
    "GAMBLING": 0.2,
    "LIQUOR LAW VIOLATION": 0.2,
    "ARSON": 0.17,
    "HOMICIDE": 0.15,
    "KIDNAPPING": 0.1,
    "INTIMIDATION": 0.06,
    "STALKING": 0.05,
    "OBSCENITY": 0.01,
    "CONCEALED CARRY LICENSE VIOLATION": 0.01,
    "PUBLIC INDECENCY": 0.005,
    "HUMAN TRAFFICKING": 0.002,
    "NON-CRIMINAL": 0.002,
}
TYPE_NAMES = list(TYPES)
PLANTED = tuple(map(TYPE_NAMES.index, ("ROBBERY", "BATTERY", "MOTOR VEHICLE THEFT")))


@dataclass(frozen=True, slots=True)
class Built:
    """What it took to write a stream with its indexes."""

    events: int
    seconds: float
    size: int


@dataclass(frozen=True, slots=True)
class Dataset:
    """A stream to build: its attributes, those with an index, and its events in chunks."""

    name: str
    stream: str
    attributes: dict[str, str]
    index: tuple[str, ...]
    chunks: Callable[[int], Iterator[pa.Table]]
    event_bytes: int

    def built(self, folder: Path, events: int) -> tuple[ev.Database, Built]:
        """Return the stream's database, built before or now, and what building took."""
        path, told = folder / self.name, folder / f"{self.name}.json"
        if told.exists():
            built = Built(**json.loads(told.read_text(encoding="utf-8")))
            if built.events == events:
                return ev.open(path), built
        told.unlink(missing_ok=True)
        if path.exists():
            remove(path)
        database = ev.open(path)
        stream = database.create_stream(self.stream, self.attributes, index=list(self.index))
        seconds = 0.0
        for chunk in self.chunks(events):
            start = time.perf_counter()
            stream.append(chunk)
            seconds += time.perf_counter() - start
        built = Built(events, seconds, size_of(path))
        told.write_text(json.dumps(asdict(built)), encoding="utf-8")
        return database, built


def noisy_chunks(events: int) -> Iterator[pa.Table]:
    """Yield events a second apart; each attribute is its event's place in [0, 1) plus noise."""
    for number, start in enumerate(range(0, events, CHUNK_ROWS)):
        rows = np.arange(start, min(start + CHUNK_ROWS, events))
        random = np.random.default_rng((SEED, number))
        columns = {"ts": as_times(START_US + rows * SECOND_US)}
        for name, spread in SPREADS.items():
            columns[name] = pa.array(around(random, rows / events, spread))
        for name in PAYLOAD:
            columns[name] = pa.array(random.random(len(rows)))
        yield pa.table(columns)


def around(random: np.random.Generator, means: Floats, spread: float) -> Floats:
    """Return normal values, drawn again until they are in [0, 1).

    >>> values = around(np.random.default_rng(1), np.full(1_000, 0.9), 1.0)
    >>> bool(values.min() >= 0 and values.max() < 1)
    True
    """
    values = random.normal(means, spread)
    wrong = np.flatnonzero((values < 0) | (values >= 1))
    while len(wrong):
        values[wrong] = random.normal(means[wrong], spread)
        again = values[wrong]
        wrong = wrong[(again < 0) | (again >= 1)]
    return values


def crime_chunks(events: int) -> Iterator[pa.Table]:
    """Yield crimes in order of time, to the minute, fewer at night; one match in each chunk."""
    for number, start in enumerate(range(0, events, CHUNK_ROWS)):
        count = min(CHUNK_ROWS, events - start)
        random = np.random.default_rng((SEED, 1, number))
        kinds, beats = kinds_and_beats(random, count)
        latitude, longitude = positions(random, beats)
        yield pa.table(
            {
                "ts": as_times(crime_times(random, start, count)),
                "primary_type": pa.array(TYPE_NAMES).take(pa.array(kinds)),
                "beat": BEATS[beats],
                "latitude": latitude,
                "longitude": longitude,
                **crime_details(random, start, beats, latitude, longitude),
            }
        )


def crime_times(random: np.random.Generator, start: int, count: int) -> Int64s:
    """Return ascending times of a chunk's crimes: at random, in a rhythm of days."""
    first, last = (YEARS_US * place / CRIME_EVENTS for place in (start, start + count))
    even = np.sort(random.uniform(first, last, count))
    # Ascending, as the rhythm is less than the flow itself; days begin where it is zero.
    waves = DAY_RHYTHM * DAY_US / (2 * np.pi) * np.sin(2 * np.pi * even / DAY_US)
    times: Int64s = np.maximum(even + waves, 0).astype(np.int64) // MINUTE_US * MINUTE_US
    return START_US + np.maximum.accumulate(times)


def kinds_and_beats(random: np.random.Generator, count: int) -> tuple[Int64s, Int64s]:
    """Return the types and beats of crimes by their numbers, with a planted match."""
    shares = np.array(list(TYPES.values()))
    kinds = random.choice(len(TYPES), count, p=shares / shares.sum())
    # Some beats are worse than others, in all chunks the same ones.
    weights = np.random.default_rng(SEED).lognormal(0.0, 0.4, len(BEATS))
    beats = random.choice(len(BEATS), count, p=weights / weights.sum())
    planted = count // 2 + PLANTED_GAP * np.arange(len(PLANTED))
    if planted[-1] < count:
        kinds[planted] = PLANTED
        beats[planted] = np.flatnonzero(BEATS == BEAT)
    return kinds, beats


def positions(random: np.random.Generator, beats: Int64s) -> tuple[Floats, Floats]:
    """Return where crimes are: around the middle of their beat."""
    latitude, longitude = (
        middles + random.normal(0.0, BEAT_SPREAD, len(beats))
        for middles in (middle[beats] for middle in beat_middles())
    )
    return latitude, longitude


def beat_middles() -> tuple[Floats, Floats]:
    """Return the latitude and longitude of each beat's middle: a grid, shaken."""
    random = np.random.default_rng((SEED, 2))
    columns = 15
    across, up = np.arange(len(BEATS)) % columns, np.arange(len(BEATS)) // columns
    rows = up.max() + 1
    parts = (
        (up + random.uniform(0.2, 0.8, len(BEATS))) / rows,
        (across + random.uniform(0.2, 0.8, len(BEATS))) / columns,
    )
    latitude, longitude = (
        low + part * (high - low)
        for part, low, high in zip(parts, SOUTH_WEST, NORTH_EAST, strict=True)
    )
    return latitude, longitude


def crime_details(
    random: np.random.Generator, start: int, beats: Int64s, latitude: Floats, longitude: Floats
) -> dict[str, object]:
    """Return what else is known about crimes: what makes an event as wide as the source's."""
    count = len(beats)
    streets = pa.array([f"{n % 120:03}XX S {STREETS[n % len(STREETS)]}" for n in range(2_400)])
    places = pa.array(["STREET", "RESIDENCE", "APARTMENT", "SIDEWALK", "SCHOOL", "ALLEY", "OTHER"])
    return {
        "case_number": pa.array(start + np.arange(count)).cast(pa.string()),
        "block": streets.take(pa.array(random.integers(0, len(streets), count))),
        "location": places.take(pa.array(random.integers(0, len(places), count))),
        "arrest": random.random(count) < 0.27,
        "domestic": random.random(count) < 0.13,
        "ward": random.integers(1, 51, count),
        "community_area": beats // 4 + 1,
        "x_coordinate": np.round((longitude + 91.0) * 364_000),
        "y_coordinate": np.round((latitude - 36.6) * 364_000),
    }


STREETS = ("STATE ST", "MICHIGAN AVE", "HALSTED ST", "ASHLAND AVE", "WESTERN AVE", "PULASKI RD")


def as_times(times: Int64s) -> pa.Array:
    """Return microseconds as timestamps."""
    return pa.array(times).cast(pa.timestamp("us"))


READINGS = Dataset(
    "w2",
    NOISY,
    dict.fromkeys((*SPREADS, *PAYLOAD), "float64"),
    tuple(SPREADS),
    noisy_chunks,
    NOISY_BYTES,
)
CRIME = Dataset(
    "w3",
    CRIMES,
    {
        "primary_type": "string",
        "beat": "int64",
        "latitude": "float64",
        "longitude": "float64",
        "case_number": "string",
        "block": "string",
        "location": "string",
        "arrest": "bool",
        "domestic": "bool",
        "ward": "int64",
        "community_area": "int64",
        "x_coordinate": "float64",
        "y_coordinate": "float64",
    },
    ("primary_type", "beat", "latitude", "longitude"),
    crime_chunks,
    CRIME_BYTES,
)
