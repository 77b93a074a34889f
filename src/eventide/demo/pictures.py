"""The charts of the page, from answers of the database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.api.database import Database
from eventide.drawing.chart import Bars, Chart, Line, Panel, PeriodBar, PeriodBars, Points

FAST = 140
SECONDS_PER_BAR = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600)
BARS = 240
CLOSE_UP_US = 45 * 60_000_000
SHOWN_CARS = 3
SHOWN_POINTS = 4_000

Times = np.ndarray[tuple[int], np.dtype[np.int64]]
Values = np.ndarray[tuple[int], np.dtype[np.float64]]


def arrivals_chart(database: Database, late: pa.Table) -> Chart:
    """Return events a second over all of the time, and under them the late ones."""
    times = database.stream("cars").snapshot().time_range
    seconds = (times.end_us - times.start_us) / 1e6
    width = next((w for w in SECONDS_PER_BAR if seconds / w <= BARS), SECONDS_PER_BAR[-1])
    counts = database.sql(
        "SELECT window_start, COUNT(*) AS events FROM cars "  # noqa: S608
        f"GROUP BY TUMBLE(ts, INTERVAL '{width}' SECOND) ORDER BY window_start"
    ).to_arrow()
    starts, width_us = micros(counts["window_start"]), width * 1_000_000
    late_bins, late_counts = np.unique(micros(late["ts"]) // width_us, return_counts=True)
    return Chart(
        "Events a second",
        (
            Panel(
                "Events",
                (Bars("events", starts, width_us, floats(counts["events"]) / width),),
                "a second",
            ),
            Panel(
                "Late events",
                (
                    Bars(
                        "late events", late_bins * width_us, width_us, late_counts / width, "orange"
                    ),
                ),
                "a second, at the time when they happened",
                height=80,
            ),
        ),
        start_us=times.start_us,
        end_us=times.end_us,
    )


def cars_chart(database: Database, minutes: pa.Table, top: pa.Table) -> Chart:
    """Return the speed of some cars, report by report and minute by minute."""
    times = database.stream("cars").snapshot().time_range
    middle = (times.start_us + times.end_us) // 2
    start = max(times.start_us, middle - CLOSE_UP_US // 2) // 60_000_000 * 60_000_000
    end = min(times.end_us, start + CLOSE_UP_US)
    cars = [*top["car"].to_pylist(), *pc.unique(minutes["car"]).to_pylist()]
    panels = tuple(
        car_panel(database, minutes, car, start, end)
        for car in list(dict.fromkeys(cars))[:SHOWN_CARS]
    )
    return Chart("Speed of three cars", panels, start_us=start, end_us=end)


def car_panel(database: Database, minutes: pa.Table, car: str, start_us: int, end_us: int) -> Panel:
    """Return one car's reports and averages."""
    first, last = (np.datetime_as_string(np.datetime64(ts, "us")) for ts in (start_us, end_us))
    reports = database.sql(
        f"SELECT ts, speed FROM cars WHERE car = '{car}' AND ts >= TIMESTAMP '{first}' "  # noqa: S608
        f"AND ts < TIMESTAMP '{last}' ORDER BY ts"
    ).to_arrow()
    own = minutes.filter(pc.equal(minutes["car"], car)).sort_by("window_start")
    averages = stepped(micros(own["window_start"]), micros(own["window_end"]), floats(own["mean"]))
    return Panel(
        car,
        (
            Line(
                "each report", micros(reports["ts"]), floats(reports["speed"]), "grey", faint=True
            ),
            Line("average of the minute", *averages, "blue", stepped=True),
        ),
        "km/h",
        height=96,
    )


def stepped(starts: Times, ends: Times, values: Values) -> tuple[Times, Values]:
    """Return windows as times and values: each holds to its end, missing windows are gaps."""
    order = np.argsort(np.concatenate([starts, ends]), kind="stable")
    # If the next window starts at the same time, the end comes first and is not visible.
    times = np.concatenate([starts, ends])[order]
    held = np.concatenate([values, values])[order]
    is_end = order >= len(starts)
    keep = ~(is_end & np.isin(times, starts))
    times, held, is_end = times[keep], held[keep], is_end[keep]
    gaps = np.flatnonzero(is_end)
    return np.insert(times, gaps + 1, times[gaps]), np.insert(held, gaps + 1, np.nan)


def results_chart(minutes: pa.Table, braking: pa.Table, sudden: pa.Table, top: pa.Table) -> Chart:
    """Return the answers to the questions, on one time axis."""
    cars = top["car"].to_pylist()
    fast = minutes.filter(pc.greater(minutes["top"], FAST))
    fastest = sudden.sort_by("ts")
    step = max(1, fastest.num_rows // SHOWN_POINTS)
    fastest = fastest.take(pa.array(np.arange(0, fastest.num_rows, step)))
    start = int(micros(minutes["window_start"]).min())
    end = int(micros(minutes["window_end"]).max())
    return Chart(
        "What the windows found",
        (
            Panel(
                "Fast minutes and hard braking",
                (
                    PeriodBars(
                        "above 140 km/h", tuple(periods(fast, cars, "top", "top {:g} km/h")), "blue"
                    ),
                    PeriodBars(
                        "hard braking",
                        tuple(periods(braking, cars, "hardest", "{:g} m/s²")),
                        "rose",
                    ),
                ),
            ),
            Panel(
                "Much faster than lately",
                (Points("speed", micros(fastest["ts"]), floats(fastest["speed"]), "teal"),),
                "km/h, all cars",
                height=110,
            ),
        ),
        start_us=start,
        end_us=end,
    )


def periods(windows: pa.Table, cars: list[str], column: str, words: str) -> Iterator[PeriodBar]:
    """Yield the windows of some cars, those that touch joined, with their most extreme value."""
    for car in cars:
        own = windows.filter(pc.equal(windows["car"], car)).sort_by("window_start")
        rows = zip(
            micros(own["window_start"]).tolist(),
            micros(own["window_end"]).tolist(),
            floats(own[column]).tolist(),
            strict=True,
        )
        for start, end, value in joined(rows):
            yield PeriodBar(car, start, end, words.format(value))


def joined(windows: Iterable[tuple[int, int, float]]) -> Iterator[tuple[int, int, float]]:
    """Yield runs of windows that touch or overlap, with the value furthest from zero.

    >>> list(joined([(0, 10, 1.0), (10, 20, -5.0), (40, 50, 2.0)]))
    [(0, 20, -5.0), (40, 50, 2.0)]
    """
    run: tuple[int, int, float] | None = None
    for start, end, value in windows:
        if run is not None and start <= run[1]:
            run = (run[0], max(end, run[1]), max(run[2], value, key=abs))
            continue
        if run is not None:
            yield run
        run = (start, end, value)
    if run is not None:
        yield run


def micros(column: pa.ChunkedArray) -> Times:
    """Return times in microseconds."""
    return np.asarray(column.cast(pa.int64()).to_numpy(), dtype=np.int64)


def floats(column: pa.ChunkedArray) -> Values:
    """Return numbers, NaN for null."""
    return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
