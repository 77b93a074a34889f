"""Round times and round numbers for the axes, and their labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from eventide.sinks.words import EPOCH, moment

SECOND, MINUTE, HOUR, DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000

STEPS_US = (
    *(mantissa * 10**power for power in range(6) for mantissa in (1, 2, 5)),
    *(n * SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * HOUR for n in (1, 2, 3, 6, 12)),
    *(n * DAY for n in (1, 2, 7, 14)),
)
MONTH_STEPS = (1, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 6000, 12_000)


@dataclass(frozen=True, slots=True)
class Tick:
    """A place on an axis and its label."""

    at: float
    label: str


def time_ticks(start_us: int, end_us: int, most: int) -> list[Tick]:
    """Return up to `most` round times in [start, end].

    >>> [tick.label for tick in time_ticks(0, 2 * HOUR, 5)]
    ['1 Jan', '00:30', '01:00', '01:30', '02:00']
    """
    for step in STEPS_US:
        first = -(-start_us // step)
        if end_us // step - first < most:
            times = [n * step for n in range(first, end_us // step + 1)]
            return [Tick(at, time_label(at, step)) for at in times]
    return month_ticks(start_us, end_us, most)


def clock_ticks(start_us: int, end_us: int, room: float, per_tick: float) -> list[Tick]:
    """Return round times as `time_ticks` does, as many as there is room for.

    Below a second a label has the hour too, so it cannot be taken for hours and minutes; it is
    half as wide again as `per_tick`, the room of a label such as 08:00:01.

    >>> [tick.label for tick in clock_ticks(HOUR, HOUR + SECOND, 90, 20)]
    ['01:00:00.0', '01:00:00.5', '01:00:01.0']
    """
    ticks = time_ticks(start_us, end_us, max(2, int(room / per_tick)))
    if len(ticks) > 1 and ticks[1].at - ticks[0].at >= SECOND:
        return ticks
    ticks = time_ticks(start_us, end_us, max(2, int(room / per_tick / 1.5)))
    return [Tick(tick.at, with_hour(tick)) for tick in ticks]


def with_hour(tick: Tick) -> str:
    """Return the label of a tick with the hour before it, if it lacks it."""
    short = tick.label.count(":") == 1 and "." in tick.label
    return f"{moment(int(tick.at)):%H}:{tick.label}" if short else tick.label


def month_ticks(start_us: int, end_us: int, most: int) -> list[Tick]:
    """Return the starts of months or years in [start, end]."""
    start, end = moment(start_us), moment(end_us)
    for step in MONTH_STEPS:
        first = -(-month_number(start) // step) * step
        numbers = [n for n in range(first, month_number(end) + 1, step) if n >= 12]
        months = [datetime(n // 12, n % 12 + 1, 1) for n in numbers]
        months = [month for month in months if start <= month <= end]
        if len(months) <= most:
            form = "%b %Y" if step < 12 else "%Y"
            return [
                Tick((month - EPOCH) // timedelta(microseconds=1), month.strftime(form))
                for month in months
            ]
    return []


def month_number(day: datetime) -> int:
    """Return the months since the year 0."""
    return day.year * 12 + day.month - 1


def time_label(ts_us: int, step_us: int) -> str:
    """Return a time as exact as the step between ticks needs; midnight is a date.

    >>> time_label(90_000_000, 30_000_000), time_label(DAY, HOUR)
    ('00:01:30', '2 Jan')
    """
    at = moment(ts_us)
    if ts_us % DAY == 0:
        return f"{at.day} {at:%b}"
    if step_us >= MINUTE:
        return f"{at:%H:%M}"
    if step_us >= SECOND:
        return f"{at:%H:%M:%S}"
    digits = 6 - int(math.log10(step_us))
    return f"{at:%M:%S}.{at.microsecond:06d}"[: 6 + digits]


def day_text(start_us: int, end_us: int) -> str:
    """Return the day or days of a period, shown once beside the axis.

    >>> day_text(0, HOUR)
    'Thu 1 January 1970, UTC'
    """
    first, last = moment(start_us), moment(end_us)
    if first.date() == last.date():
        return f"{first:%a} {first.day} {first:%B %Y}, UTC"
    return f"{first.day} {first:%b %Y} to {last.day} {last:%b %Y}, UTC"


def value_ticks(low: float, high: float, most: int) -> list[Tick]:
    """Return about `most` round numbers that enclose [low, high].

    >>> [tick.label for tick in value_ticks(0, 93, 4)]
    ['0', '50', '100']
    """
    if not low < high:
        pad = abs(low) * 0.1 or 1.0
        low, high = (0.0, low + pad) if low >= 0 else (low - pad, 0.0)
    step = round_step((high - low) / max(most - 1, 1))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [Tick(n * step, number(n * step, step)) for n in range(first, last + 1)]


def round_step(rough: float) -> float:
    """Return the round number at or above `rough`: 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough))
    for mantissa in (1.0, 2.0, 2.5, 5.0):
        if mantissa * power >= rough * (1 - 1e-9):
            return mantissa * power
    return 10 * power


def number(value: float, step: float = 0.0) -> str:
    """Return a number as short as possible, as exact as `step` needs.

    >>> number(1_250_000, 50_000), number(12_000), number(0.25, 0.05), number(-3.0)
    ('1.25M', '12k', '0.25', '−3')
    """
    size = max(abs(value), step)
    for least, unit, suffix in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if size >= least:
            return signed(f"{value / unit:.6g}{suffix}" if value else "0")
    return signed(f"{value:.6g}")


def signed(text: str) -> str:
    """Return a number with a minus sign as wide as its digits."""
    return text.replace("-", "−")
