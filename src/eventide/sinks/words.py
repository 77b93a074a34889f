"""Sizes, counts and times as a person says them."""

from __future__ import annotations

from datetime import datetime, timedelta

SECOND_US = 1_000_000
UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


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


def clock_text(ts_us: int) -> str:
    """Return a time of day in UTC, with as many digits behind the second as it needs.

    >>> clock_text(61_000_000), clock_text(61_250_000), clock_text(7)
    ('00:01:01', '00:01:01.250', '00:00:00.000007')
    """
    moment = datetime(1970, 1, 1) + timedelta(microseconds=ts_us)
    exact = "seconds" if not moment.microsecond else "milliseconds"
    return moment.time().isoformat(exact if moment.microsecond % 1000 == 0 else "microseconds")


def lasting_text(us: int) -> str:
    """Return how long something lasted, in its two largest units.

    >>> lasting_text(4_000_000), lasting_text(90_500_000), lasting_text(2_500_000)
    ('4 s', '1 min 30 s', '2.5 s')
    >>> lasting_text(250_000), lasting_text(40), lasting_text(90_000_000_000)
    ('250 ms', '40 us', '1 d 1 h')
    """
    if 0 < us < 1_000:
        return f"{us} us"
    if 0 < us < SECOND_US:
        return f"{us // 1_000} ms" if us >= 10_000 else f"{us / 1_000:.3g} ms"
    if us < 60 * SECOND_US:
        return f"{us // 10_000 / 100:g} s"
    left, said = us // SECOND_US, list[str]()
    for size, unit in UNITS:
        amount, left = divmod(left, size)
        if amount or said:
            said.append(f"{amount} {unit}" if amount else "")
    return " ".join(part for part in said[:2] if part)
