"""Sizes, counts and times as a person says them."""

from __future__ import annotations

from datetime import datetime, timedelta


def size_text(count: int) -> str:
    """Return a number of bytes as a person says it.

    >>> size_text(71_403_112)
    '71.4 MB'
    >>> size_text(512)
    '512 bytes'
    """
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> plural(1, "event"), plural(1200, "event")
    ('1 event', '1,200 events')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def span_text(start_us: int, end_us: int) -> str:
    """Return the time from the first to the last event; the date is not said twice.

    >>> span_text(0, 90_000_000)
    '1970-01-01 00:00:00 to 00:01:30'
    """
    first, last = time_text(start_us), time_text(end_us)
    if first[:11] == last[:11]:
        last = last[11:]
    return first if first.endswith(last) else f"{first} to {last}"


def time_text(ts_us: int) -> str:
    """Return a time to the second, in UTC."""
    moment = datetime(1970, 1, 1) + timedelta(microseconds=ts_us)
    return moment.isoformat(sep=" ", timespec="seconds")
