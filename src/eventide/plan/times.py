"""Times and durations as text: reading literals, printing plans."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from eventide.errors import PlanError
from eventide.instants import END_OF_TIME_US, START_OF_TIME_US, TimeRange

Duration = timedelta | str
"""A length of time in a call: a timedelta, or text such as "10 s" or "1 min 30 s"."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

UNIT_US: dict[str, int] = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
"""The units of an interval, without months and years, which vary in length."""

_UNIT_ALIASES = {
    "us": "microsecond",
    "usec": "microsecond",
    "ms": "millisecond",
    "msec": "millisecond",
    "s": "second",
    "sec": "second",
    "m": "minute",
    "min": "minute",
    "h": "hour",
    "hr": "hour",
    "d": "day",
    "w": "week",
}
MOST_DIGITS = 30
"""Times with this many digits are beyond any calendar in any unit; Python refuses to read endless
ones."""
_PRINTED = (("d", "day"), ("h", "hour"), ("min", "minute"), ("s", "second"), ("ms", "millisecond"))
_CLOCK = re.compile(r"([+-]?)(\d+):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?")
_AMOUNT = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([a-zA-Z]+)\s*")


def parse_timestamp(text: str) -> int | None:
    """Read an ISO 8601 time as microseconds since 1970 UTC; None if it is none.

    A time without a zone is UTC; with one, it is converted.

    >>> parse_timestamp("1970-01-01 00:00:01.5")
    1500000
    >>> parse_timestamp("1970-01-01T02:00+02:00")
    0
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    aware = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return (aware - _EPOCH) // _MICROSECOND


def format_timestamp(us: int) -> str:
    """Return a time as SQL writes it; beyond the calendar, as microseconds since 1970.

    >>> format_timestamp(1_500_000)
    '1970-01-01 00:00:01.5'
    """
    try:
        moment = _EPOCH + us * _MICROSECOND
    except OverflowError:
        return f"{us} us"
    text = moment.replace(tzinfo=None).isoformat(sep=" ")
    return text.rstrip("0") if "." in text else text


def unit_us(name: str) -> int | None:
    """Return the length of a unit such as `SECONDS` or `ms`, or None."""
    lower = name.lower()
    singular = lower if lower in _UNIT_ALIASES else lower.removesuffix("s")
    return UNIT_US.get(_UNIT_ALIASES.get(singular, singular))


def parse_duration(text: str) -> int | None:
    """Read `1 hour 30 minutes`, `90 s` or `01:30:00` as microseconds; None if it is none.

    >>> parse_duration("1 min 30 s") == parse_duration("00:01:30") == 90_000_000
    True
    """
    clock = _CLOCK.fullmatch(text.strip())
    if clock:
        return _read_clock(clock)
    total, place = 0, 0
    while place < len(text):
        amount = _AMOUNT.match(text, place)
        unit = unit_us(amount[2]) if amount else None
        if amount is None or unit is None:
            return None
        total += _scaled(amount[1], unit)
        place = amount.end()
    return total if text.strip() else None


def scaled_duration(amount: str, unit: str) -> int | None:
    """Return `amount` units in microseconds, or None."""
    length = unit_us(unit)
    if length is None or not re.fullmatch(r"\s*[+-]?\d+(?:\.\d+)?\s*", amount):
        return None
    return _scaled(amount.strip(), length)


def _scaled(amount: str, unit: int) -> int:
    whole, _, fraction = amount.lstrip("+-").partition(".")
    fraction = fraction[:MOST_DIGITS]
    us = _whole(whole) * unit + (int(fraction) * unit // 10 ** len(fraction) if fraction else 0)
    return -us if amount.startswith("-") else us


def _whole(digits: str) -> int:
    """Return a whole number; one longer than all of time is cut, and stays longer than that."""
    return int(digits.lstrip("0")[:MOST_DIGITS] or 0)


def _read_clock(clock: re.Match[str]) -> int:
    sign, hours, minutes, seconds, fraction = clock.groups()
    us = _whole(hours) * UNIT_US["hour"] + int(minutes) * UNIT_US["minute"]
    us += int(seconds or 0) * UNIT_US["second"] + int((fraction or "0").ljust(6, "0"))
    return -us if sign == "-" else us


def format_duration(us: int) -> str:
    """Return a duration as a person writes it.

    >>> [format_duration(us) for us in (10_000_000, 90_000_000, 250_000, 0)]
    ['10 s', '1 min 30 s', '250 ms', '0 s']
    """
    if us < 0:
        return f"-({format_duration(-us)})"
    parts = []
    for short, unit in _PRINTED:
        amount, us = divmod(us, UNIT_US[unit])
        if amount:
            parts.append(f"{amount} {short}")
    if us:
        parts.append(f"{us} us")
    return " ".join(parts) or "0 s"


def duration_us(duration: Duration) -> int:
    """Return a length of time, as a caller gave it, in microseconds.

    >>> duration_us("1 min 30 s")
    90000000
    """
    if isinstance(duration, timedelta):
        return duration // _MICROSECOND
    parsed = parse_duration(duration) if isinstance(duration, str) else None
    if parsed is None:
        message = f"{duration!r} is not a length of time"
        raise PlanError(message, hint='write a timedelta, or text such as "10 s" or "2 h"')
    return parsed


def format_range(time_range: TimeRange) -> str:
    """Return a period as the end of a line; all of time is nothing to tell."""
    if time_range.is_empty:
        return " never"
    text = ""
    if time_range.start_us != START_OF_TIME_US:
        text += f" from {format_timestamp(time_range.start_us)}"
    if time_range.end_us != END_OF_TIME_US:
        text += f" until {format_timestamp(time_range.end_us)}"
    return text
