"""The events: made from a seed, so that every run and every contestant has the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

EVENTS = 10_000_000
HOUR_US = 3_600_000_000
SPAN_US = 10 * HOUR_US
START_US = 1_760_000_000_000_000


@dataclass(frozen=True, slots=True)
class Traffic:
    """Readings of cars. With fewer events than `EVENTS`, what one car does stays alike.

    Either there are fewer cars, or a shorter time: windows hold as many events as they do in
    the full run, and a guard that sees a sample sees windows worth checking.
    """

    name: str
    cars: int
    fewer_cars: bool = False

    def events(self, count: int = EVENTS) -> pa.Table:
        """Return `count` events in order of time.

        >>> CARS.events(3).column_names
        ['ts', 'car', 'speed', 'accel']
        """
        cars = max(1, self.cars * count // EVENTS) if self.fewer_cars else self.cars
        span_us = SPAN_US if self.fewer_cars else max(1, SPAN_US * count // EVENTS)
        random = np.random.default_rng(20_090_101)
        ts = START_US + np.sort(random.integers(0, span_us, count))
        car = random.integers(0, cars, count)
        speed = np.abs(random.normal(70.0, 30.0, count))
        accel = random.normal(0.0, 3.0, count)
        names = pa.array([f"car-{number:06}" for number in range(cars)])
        return pa.table(
            {
                "ts": pa.array(ts).cast(pa.timestamp("us")),
                "car": names.take(pa.array(car)),
                "speed": speed,
                "accel": accel,
            }
        )


CARS = Traffic("200 cars", 200)
THOUSAND_CARS = Traffic("1,000 cars", 1_000)
MANY_CARS = Traffic("100,000 cars", 100_000, fewer_cars=True)
