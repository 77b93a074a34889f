"""Calendar periods: where days, months or quarters of an hour begin, in any time zone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from eventide.errors import EvaluationError, listed
from eventide.instants import TimeRange
from eventide.plan.times import duration_us

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOST_PERIODS = 1_000_000


@dataclass(frozen=True, slots=True)
class Unit:
    """A calendar period: where the one around a time begins, and where the next one begins."""

    floor: Callable[[datetime], datetime]
    following: Callable[[datetime], datetime]


def hour_start(at: datetime) -> datetime:
    """Return the beginning of an hour."""
    return at.replace(minute=0, second=0, microsecond=0)


def an_hour_later(at: datetime) -> datetime:
    """Return the time an hour later; when clocks go back, its local hour may be the same again."""
    return (at.astimezone(UTC) + timedelta(hours=1)).astimezone(at.tzinfo)


def at_midnight(day: datetime) -> datetime:
    """Return the beginning of a day."""
    return day.replace(hour=0, minute=0, second=0, microsecond=0)


def month_start(day: datetime, months: int) -> datetime:
    """Return the first of the month some months after that of a day."""
    index = day.year * 12 + day.month - 1 + months
    return at_midnight(day).replace(year=index // 12, month=index % 12 + 1, day=1)


UNITS: Mapping[str, Unit] = {
    "hour": Unit(hour_start, lambda at: hour_start(an_hour_later(at))),
    "day": Unit(at_midnight, lambda at: at + timedelta(days=1)),
    "week": Unit(
        lambda at: at_midnight(at) - timedelta(days=at.weekday()),
        lambda at: at + timedelta(days=7),
    ),
    "month": Unit(lambda at: month_start(at, 0), lambda at: month_start(at, 1)),
    "quarter": Unit(
        lambda at: month_start(at, -((at.month - 1) % 3)), lambda at: month_start(at, 3)
    ),
    "year": Unit(
        lambda at: at_midnight(at).replace(month=1, day=1),
        lambda at: month_start(at, 12),
    ),
}

GROUPS: Mapping[str, tuple[str, Callable[[datetime], int]]] = {
    "hour": ("hour", lambda at: at.hour),
    "weekday": ("day", lambda at: at.isoweekday()),
    "day": ("day", lambda at: at.day),
    "week": ("week", lambda at: at.isocalendar().week),
    "month": ("month", lambda at: at.month),
    "quarter": ("quarter", lambda at: (at.month - 1) // 3 + 1),
    "year": ("year", lambda at: at.year),
}
"""By name: the periods to cut time into, and what a period is grouped by."""


def periods_every(times: TimeRange, every: str | timedelta, zone: str = "UTC") -> list[int]:
    """Return where the periods around a time range begin and end, in microseconds.

    >>> periods_every(TimeRange(5_000_000, 130_000_000), "1 min")
    [0, 60000000, 120000000, 180000000]
    >>> len(periods_every(TimeRange(0, 366 * 86_400_000_000), "month"))
    14
    """
    where = zone_of(zone)
    if times.is_empty:
        return []
    unit = UNITS.get(every.strip().lower()) if isinstance(every, str) else None
    if unit is not None:
        return calendar_cuts(times, unit, where)
    step = duration_us(every)
    if zone != "UTC":
        message = f"periods of {every!r} do not follow the clock of a zone"
        raise EvaluationError(message, hint=f"use one of {listed(list(UNITS))}, or leave zone out")
    if step <= 0:
        message = f"cannot cut time every {every!r}"
        raise EvaluationError(message, hint=f"use a duration, or one of {listed(list(UNITS))}")
    first = times.start_us // step
    last = -(-times.end_us // step)
    check_count(last - first)
    return [int(place) * step for place in range(first, last + 1)]


def calendar_cuts(times: TimeRange, unit: Unit, zone: tzinfo) -> list[int]:
    """Return where calendar periods begin, by the local time of a zone."""
    cuts: list[int] = []
    try:
        at = unit.floor(local_time(times.start_us, zone))
        cuts.append(instant_us(at))
        while cuts[-1] < times.end_us:
            # In local time, so that a day on which the clocks change is still one day.
            at = unit.following(at)
            if (us := instant_us(at)) > cuts[-1]:
                cuts.append(us)
            check_count(len(cuts))
    except (OverflowError, ValueError):
        # The calendar begins with the year 1 and ends with 9999.
        cuts = [*(cuts or [times.start_us]), times.end_us]
    return cuts


def grouped_by(times: TimeRange, by: str, zone: str = "UTC") -> tuple[list[int], Sequence[int]]:
    """Return the periods of a time range, and what each is grouped by, such as its weekday."""
    if not isinstance(by, str) or by not in GROUPS:
        message = f"cannot group time by {by!r}"
        raise EvaluationError(message, hint=f"group by one of {listed(list(GROUPS))}")
    unit, label = GROUPS[by]
    cuts = periods_every(times, unit, zone)
    return cuts, [label(local_time(cut, zone_of(zone))) for cut in cuts[:-1]]


def group_numbers(
    labels: Sequence[int],
) -> tuple[list[int], np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Return the distinct labels, ascending, and for each period the number of its label."""
    found, numbers = np.unique(np.array(labels, np.int64), return_inverse=True)
    return found.tolist(), numbers.astype(np.int64)


def zone_of(name: str) -> tzinfo:
    """Return a time zone by its name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError, TypeError, AttributeError) as error:
        message = f"no time zone {name!r}"
        raise EvaluationError(message, hint="use a name such as UTC or Europe/Berlin") from error


def local_time(us: int, zone: tzinfo) -> datetime:
    """Return an instant in the local time of a zone; at the ends of the calendar, in UTC."""
    at = EPOCH + timedelta(microseconds=us)
    try:
        return at.astimezone(zone)
    except OverflowError:
        return at


def instant_us(at: datetime) -> int:
    """Return a local time as microseconds since 1970 UTC."""
    return (at.astimezone(UTC) - EPOCH) // timedelta(microseconds=1)


def check_count(periods: int) -> None:
    """Refuse more periods than anybody can read."""
    if periods > MOST_PERIODS:
        message = f"time would be cut into more than {MOST_PERIODS:,} periods"
        raise EvaluationError(message, hint="use longer periods, or less time from start to end")
