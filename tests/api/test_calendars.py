"""Calendar periods cover time without gaps, in the local time of their zone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.api.calendars import (
    EPOCH,
    UNITS,
    group_numbers,
    grouped_by,
    local_time,
    periods_every,
)
from eventide.errors import EventideError
from eventide.instants import TimeRange

HOUR = 3_600_000_000
DAY = 24 * HOUR
READ: dict[str, Callable[[datetime], int]] = {
    "hour": lambda at: at.hour,
    "weekday": lambda at: at.isoweekday(),
    "day": lambda at: at.day,
    "week": lambda at: at.isocalendar().week,
    "month": lambda at: at.month,
    "quarter": lambda at: (at.month + 2) // 3,
    "year": lambda at: at.year,
}
ZONES = ["UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia", "Australia/Lord_Howe"]


def us(text: str) -> int:
    return (datetime.fromisoformat(text).replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


@settings(deadline=None, max_examples=150)
@given(
    st.integers(us("1900-01-01"), us("2100-01-01")),
    st.integers(1, 40 * DAY),
    st.sampled_from([*UNITS, "90 min", "1 s"]),
    st.sampled_from(ZONES),
)
def test_periods_cover_a_range_and_nothing_twice(
    start: int, length: int, every: str, zone: str
) -> None:
    times = TimeRange(start, start + min(length, HOUR if every == "1 s" else length))
    cuts = periods_every(times, every, zone if every in UNITS else "UTC")
    assert cuts[0] <= times.start_us < cuts[1]
    assert cuts[-2] < times.end_us <= cuts[-1]
    assert all(before < after for before, after in pairwise(cuts))
    if every in UNITS and every != "hour":
        at = [local_time(cut, ZoneInfo(zone)) for cut in cuts]
        # Where the clock goes forward at midnight, a day begins a little later.
        assert all((each.hour, each.minute) == (0, 0) or each.fold == 0 for each in at)


def test_days_follow_the_clock_on_the_wall() -> None:
    times = TimeRange(us("2026-03-28T12:00"), us("2026-03-31T12:00"))
    lengths = [
        after - before for before, after in pairwise(periods_every(times, "day", "Europe/Berlin"))
    ]
    assert [length // HOUR for length in lengths] == [24, 23, 24, 24]


def test_an_hour_that_comes_twice_is_two_hours() -> None:
    times = TimeRange(us("2026-10-24T22:00"), us("2026-10-25T04:00"))
    cuts = periods_every(times, "hour", "Europe/Berlin")
    assert {after - before for before, after in pairwise(cuts)} == {HOUR}


@pytest.mark.parametrize("every", list(UNITS))
def test_the_calendar_ends_with_the_year_9999(every: str) -> None:
    end = us("9999-12-31T23:59:59") + 1
    for zone in ZONES:
        cuts = periods_every(TimeRange(end - 1, end), every, zone)
        assert cuts[0] <= end - 1 < cuts[-1]


def test_weeks_begin_on_monday_and_quarters_in_january() -> None:
    times = TimeRange(us("2026-02-17"), us("2026-02-18"))
    assert periods_every(times, "week") == [us("2026-02-16"), us("2026-02-23")]
    assert periods_every(times, "quarter") == [us("2026-01-01"), us("2026-04-01")]
    assert periods_every(times, "year") == [us("2026-01-01"), us("2027-01-01")]


@settings(deadline=None, max_examples=60)
@given(
    st.integers(us("1960-01-01"), us("2060-01-01")),
    st.integers(1, 30 * DAY),
    st.sampled_from(list(READ)),
    st.sampled_from(ZONES[:2]),
)
def test_groups_are_what_the_calendar_says(start: int, length: int, by: str, zone: str) -> None:
    cuts, labels = grouped_by(TimeRange(start, start + length), by, zone)
    found, numbers = group_numbers(labels)
    assert [found[number] for number in numbers] == list(labels)
    for cut, label in zip(cuts, labels, strict=False):
        assert READ[by](local_time(cut, ZoneInfo(zone))) == label


def test_an_empty_range_has_no_periods() -> None:
    assert periods_every(TimeRange(5, 5), "day") == []


@pytest.mark.parametrize(
    ("every", "zone", "message"),
    [
        ("1 us", "UTC", "more than 1,000,000 periods"),
        ("0 s", "UTC", "cannot cut time every"),
        ("day", "Mars/Olympus", "no time zone 'Mars/Olympus'"),
        ("a while", "UTC", "a while"),
        ("1 day", "Europe/Berlin", "do not follow the clock"),
        ("1 h", "Mars/Olympus", "no time zone"),
    ],
)
def test_what_is_no_period_is_refused(every: str, zone: str, message: str) -> None:
    with pytest.raises(EventideError, match=message):
        periods_every(TimeRange(0, DAY), every, zone)
