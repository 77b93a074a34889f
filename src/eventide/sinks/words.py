"""Sizes, counts and times as text for people, and texts made safe to show."""

from __future__ import annotations

import html
from datetime import datetime, timedelta
from unicodedata import combining, east_asian_width

from eventide.visible import visible

SECOND_US = 1_000_000
EPOCH = datetime(1970, 1, 1)
FIRST_US = (datetime.min - EPOCH) // timedelta(microseconds=1)
LAST_US = (datetime.max - EPOCH) // timedelta(microseconds=1)
UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def size_text(count: int) -> str:
    """Return a number of bytes as text.

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


def rough_period_text(start_us: int, end_us: int) -> str:
    """Return the time from the first to the last event; the same date is not repeated.

    >>> rough_period_text(0, 90_000_000)
    '1970-01-01 00:00:00 to 00:01:30'
    """
    first, last = time_text(start_us), time_text(end_us)
    if first[:11] == last[:11]:
        last = last[11:]
    return first if first.endswith(last) else f"{first} to {last}"


def moment(ts_us: int) -> datetime:
    """Return a time as a datetime; beyond the calendar, its first or last moment."""
    return EPOCH + timedelta(microseconds=min(max(int(ts_us), FIRST_US), LAST_US))


def time_text(ts_us: int) -> str:
    """Return a time to the second, in UTC."""
    return moment(ts_us).isoformat(sep=" ", timespec="seconds")


def clock_text(ts_us: int) -> str:
    """Return a time of day in UTC, with as many digits behind the second as it needs.

    >>> clock_text(61_000_000), clock_text(61_250_000), clock_text(7)
    ('00:01:01', '00:01:01.250', '00:00:00.000007')
    """
    at = moment(ts_us)
    exact = "seconds" if not at.microsecond else "milliseconds"
    return at.time().isoformat(exact if at.microsecond % 1000 == 0 else "microseconds")


def moment_text(ts_us: int) -> str:
    """Return a date and a time of day in UTC, with all its digits.

    >>> moment_text(61_250_000)
    '1970-01-01 00:01:01.250'
    """
    return f"{moment(ts_us).date()} {clock_text(ts_us)}"


def period_text(start_us: int, end_us: int) -> str:
    """Return the start and the end of a period; the same date is not repeated.

    >>> period_text(0, 1_500_000)
    '1970-01-01 00:00:00 to 00:00:01.500'
    """
    same = moment(start_us).date() == moment(end_us).date()
    return f"{moment_text(start_us)} to {(clock_text if same else moment_text)(end_us)}"


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


def escape(text: str, *, quote: bool = True) -> str:
    r"""Return a text as HTML and SVG may hold it: escaped, its control characters visible.

    >>> escape("a < b\x1b")
    'a &lt; b␛'
    """
    return html.escape(visible(text.replace("\r\n", "\n"), keep="\n\t"), quote=quote)


def text_width(text: str) -> int:
    """Return how many columns of a terminal a text takes.

    >>> text_width("car"), text_width("漢字")
    (3, 4)
    """
    return len(text) if text.isascii() else sum(map(char_width, text))


def char_width(char: str) -> int:
    """Return how many columns a character takes: two for 漢, none for an accent of its own."""
    if combining(char) or char in "\u200c\u200d\ufe0f":
        return 0
    return 2 if east_asian_width(char) in "WF" else 1


def cut(text: str, width: int, dots: str = "…") -> str:
    """Return as much of a text as some columns have room for.

    >>> cut("situation", 5), cut("漢字漢字", 5)
    ('situ…', '漢字…')
    """
    if text_width(text) <= width:
        return text
    left, kept = width - text_width(dots), list[str]()
    for char in text:
        left -= char_width(char)
        if left < 0:
            break
        kept.append(char)
    return "".join(kept) + dots


def pad(text: str, width: int, right: bool = False) -> str:
    """Return text in a column.

    >>> pad("漢", 4), pad("7", 4, right=True)
    ('漢  ', '   7')
    """
    blanks = " " * (width - text_width(text))
    return blanks + text if right else text + blanks
