"""Charts: valid SVG, marks in their places, extremes kept for any number of points."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.drawing.chart import Bars, Chart, Line, Panel, PeriodBar, PeriodBars, Points, draw
from eventide.drawing.chart.thin import around, seen_bars, seen_on_line
from eventide.drawing.chart.ticks import DAY, HOUR, MINUTE, SECOND, number, time_ticks, value_ticks

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*panels: Panel, **options: int) -> ElementTree.Element:
    return ElementTree.fromstring(draw(Chart("A chart & more", panels, **options)))


def marks(root: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return [each for each in root.iter() if kind in each.get("class", "").split()]


def micros(*seconds: float) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return (np.array(seconds) * SECOND).astype(np.int64)


def places(path: ElementTree.Element) -> list[tuple[float, float]]:
    pairs = re.findall(r"[ML]([\d.]+) ([\d.]+)", path.get("d", ""))
    return [(float(x), float(y)) for x, y in pairs]


def test_a_line_goes_right_with_time_and_up_with_value() -> None:
    line = Line("speed", micros(0, 10, 20), np.array([0.0, 50.0, 100.0]))
    (path,) = marks(drawn(Panel("Speed", (line,))), "ev-line")
    (x0, y0), (x1, y1), (x2, y2) = places(path)
    assert x0 < x1 < x2
    assert y0 > y1 > y2
    assert x1 - x0 == pytest.approx(x2 - x1)


def test_a_missing_value_lifts_the_pen() -> None:
    line = Line("speed", micros(0, 1, 2, 3, 4), np.array([1.0, 2.0, np.nan, 3.0, np.inf]))
    (path,) = marks(drawn(Panel("Speed", (line,))), "ev-line")
    assert path.get("d", "").count("M") == 2


def test_a_million_points_stay_small_and_keep_their_extremes() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(0, 1, 1_000_000)
    values[123_456], values[654_321] = 50.0, -50.0
    line = Line("noise", np.arange(1_000_000) * 1000, values)
    text = draw(Chart("Noise", (Panel("Noise", (line,)),)))
    assert len(text) < 120_000
    (path,) = marks(ElementTree.fromstring(text), "ev-line")
    heights = [y for _, y in places(path)]
    middle = sorted(heights)[len(heights) // 2]
    assert min(heights) < middle - 50
    assert max(heights) > middle + 50


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.one_of(st.floats(-1e9, 1e9), st.just(float("nan")))),
        min_size=1,
        max_size=60,
    )
)
def test_thinning_keeps_first_last_lowest_and_highest(points: list[tuple[int, float]]) -> None:
    points.sort(key=lambda point: point[0])
    columns = np.array([column for column, _ in points], np.int64)
    values = np.array([value for _, value in points])
    seen = seen_on_line(columns, values)
    assert np.all(np.diff(seen) > 0)
    for column in np.unique(columns):
        rows = np.flatnonzero(columns == column)
        kept = seen[columns[seen] == column]
        assert {rows[0], rows[-1]} <= set(kept.tolist())
        assert len(kept) <= 5
        present = values[rows][~np.isnan(values[rows])]
        if len(present):
            assert np.nanmin(values[kept]) == present.min()
            assert np.nanmax(values[kept]) == present.max()
        assert np.isnan(values[rows]).any() == np.isnan(values[kept]).any()


def test_bars_that_share_a_pixel_show_the_highest() -> None:
    columns, values = seen_bars(np.array([0, 0, 1, 3]), np.array([1.0, 5.0, np.nan, 2.0]))
    assert (columns.tolist(), values.tolist()) == ([0, 3], [5.0, 2.0])


def test_bars_stand_on_zero() -> None:
    bars = Bars("n", micros(0, 60, 120), MINUTE, np.array([2.0, 0.0, 4.0]))
    first, last = marks(drawn(Panel("Count", (bars,), height=100)), "ev-bar")
    bottoms = {float(bar.get("y", 0)) + float(bar.get("height", 0)) for bar in (first, last)}
    assert len(bottoms) == 1
    assert float(last.get("height", 0)) == pytest.approx(2 * float(first.get("height", 0)))


def test_periods_lie_in_lanes_and_say_what_they_are() -> None:
    periods = PeriodBars(
        "fast",
        (PeriodBar("b", 0, 10 * SECOND, "<top>"), PeriodBar("a", 5 * SECOND, 20 * SECOND)),
    )
    root = drawn(Panel("Situations", (periods,)))
    first, second = marks(root, "ev-period")
    assert float(first.get("y", 0)) < float(second.get("y", 0))
    assert float(first.get("width", 0)) < float(second.get("width", 0))
    assert first.findtext(f"{SVG}title") == "b, 00:00:00 to 00:00:10\n<top>"


def test_panels_share_one_axis_and_periods_outside_it_are_left_out() -> None:
    line = Line("v", micros(0, 100), np.array([1.0, 2.0]))
    points = Points("p", micros(10, 50, 90), np.array([5.0, 6.0, 7.0]))
    outside = PeriodBars("o", (PeriodBar("x", 0, SECOND), PeriodBar("x", 50 * SECOND, 60 * SECOND)))
    panels = (Panel("A", (line,)), Panel("B", (points,)), Panel("C", (outside,)))
    root = drawn(*panels, start_us=40 * SECOND, end_us=80 * SECOND)
    assert len(marks(root, "ev-dot")) == 1
    assert len(marks(root, "ev-period")) == 1
    titles = [text for each in marks(root, "ev-title") for text in each.itertext()]
    assert titles == ["A", "B", "C"]


def test_one_points_at_a_line_and_reads_its_value() -> None:
    line = Line("speed", micros(0, 60), np.array([50.0, 70.0]))
    bands = marks(drawn(Panel("Speed", (line,))), "ev-band")
    assert bands[0].findtext(f"{SVG}title") == "00:00:00\nspeed: 50"
    assert bands[-1].findtext(f"{SVG}title") == "00:00:59\nspeed: 70"


def test_an_empty_chart_is_still_a_chart() -> None:
    nothing = Line("v", np.empty(0, np.int64), np.empty(0))
    root = drawn(Panel("A", (nothing,)), Panel("B", (PeriodBars("p", ()),)), Panel("C", ()))
    assert root.tag == f"{SVG}svg"


def test_nothing_comes_from_elsewhere() -> None:
    text = draw(Chart("A", (Panel("<b>", (Points("&", micros(0), np.array([1.0])),)),)))
    assert "<script" not in text
    assert not re.search(r"(href|src|url\()", text)
    assert "&lt;b&gt;" in text


@pytest.mark.parametrize(
    ("period", "labels"),
    [
        (3 * SECOND, ["1 Jan", "00:00:01", "00:00:02", "00:00:03"]),
        (4 * MINUTE, ["1 Jan", "00:01", "00:02", "00:03", "00:04"]),
        (3 * HOUR, ["1 Jan", "01:00", "02:00", "03:00"]),
        (4 * DAY, ["1 Jan", "2 Jan", "3 Jan", "4 Jan", "5 Jan"]),
        (120 * DAY, ["Jan 1970", "Feb 1970", "Mar 1970", "Apr 1970", "May 1970"]),
        (1500 * DAY, ["1970", "1971", "1972", "1973", "1974"]),
        (300_000, ["1 Jan", "00:00.1", "00:00.2", "00:00.3"]),
    ],
)
def test_time_ticks_are_round(period: int, labels: list[str]) -> None:
    assert [tick.label for tick in time_ticks(0, period, 5)] == labels


@given(st.integers(-(10**17), 10**17), st.integers(1, 10**17), st.integers(2, 14))
def test_time_ticks_are_few_and_inside(start: int, period: int, most: int) -> None:
    start = max(start, -62_135_596_800_000_000)
    ticks = time_ticks(start, start + period, most)
    assert len(ticks) <= most
    assert all(start <= tick.at <= start + period for tick in ticks)


@given(st.floats(-1e12, 1e12), st.floats(1e-6, 1e12), st.integers(2, 8))
def test_value_ticks_enclose_the_values(low: float, period: float, most: int) -> None:
    ticks = value_ticks(low, low + period, most)
    slack = 1e-6 * max(abs(low), period)
    assert ticks[0].at <= low + slack
    assert ticks[-1].at >= low + period - slack
    assert len(ticks) <= most + 3


def test_a_flat_line_has_an_axis() -> None:
    assert value_ticks(5.0, 5.0, 3)[0].label == "0"
    assert number(0.1 + 0.2) == "0.3"


def test_the_nearest_time() -> None:
    assert around(np.array([0, 10, 20]), np.array([-5, 4, 6, 99])).tolist() == [0, 0, 1, 2]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Line("v", micros(0, 1), np.array([1.0])),
        lambda: Points("v", micros(1, 0), np.array([1.0, 2.0])),
        lambda: Bars("v", micros(0), 0, np.array([1.0])),
        lambda: Panel("p", (PeriodBars("a", ()), Line("v", micros(0), np.array([1.0])))),
    ],
)
def test_series_that_make_no_sense_are_refused(wrong: type) -> None:
    with pytest.raises(ValueError, match=r"'(v|p)'"):
        wrong()
