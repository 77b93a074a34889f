"""One series as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite

import numpy as np

from eventide.drawing.chart.model import Bars, Color, Line, PeriodBar, PeriodBars, Points
from eventide.drawing.chart.scale import Floats, TimeScale, ValueScale
from eventide.drawing.chart.thin import around, seen_bars, seen_on_line, seen_points
from eventide.drawing.chart.ticks import number
from eventide.sinks.words import escape, moment

HOVER_BANDS = 120
"""Places along the time axis that have tooltips with values."""


def draw_line(line: Line, color: Color, time: TimeScale, value: ValueScale) -> str:
    """Return a line as one path, broken where values are missing."""
    shown = time.shows(line.ts_us)
    ts_us, values = line.ts_us[shown], line.values[shown]
    x = time.x(ts_us)
    seen = seen_on_line(x.astype(np.int64), values)
    # Half units are enough for the eye, and halve the file.
    path = path_of(np.round(x[seen], 1), np.round(value.y(values[seen]), 1), line.stepped)
    faint = " ev-faint" if line.faint else ""
    return f'<path class="ev-line ev-{color}{faint}" d="{path}"/>'


def path_of(x: Floats, y: Floats, stepped: bool) -> str:
    """Return the points as an SVG path; NaN interrupts it."""
    parts: list[str] = []
    down = False
    for at, height in zip(x.tolist(), y.tolist(), strict=True):
        if not isfinite(height):
            down = False
            continue
        if not down:
            parts.append(f"M{at:g} {height:g}")
        else:
            parts.append(f"H{at:g}V{height:g}" if stepped else f"L{at:g} {height:g}")
        down = True
    return "".join(parts)


def draw_points(points: Points, color: Color, time: TimeScale, value: ValueScale) -> Iterator[str]:
    """Yield a dot for each point, one for many that fall on the same spot."""
    shown = time.shows(points.ts_us) & ~np.isnan(points.values)
    ts_us, values = points.ts_us[shown], points.values[shown]
    x, y = time.x(ts_us), value.y(values)
    for i in seen_points(x.astype(np.int64), y.astype(np.int64)).tolist():
        text = escape(f"{points.name}: {number(values[i])} at {clock(int(ts_us[i]))}")
        yield (
            f'<circle class="ev-dot ev-{color}" cx="{x[i]:.1f}" cy="{y[i]:.1f}" r="2.2">'
            f"<title>{text}</title></circle>"
        )


def draw_bars(bars: Bars, color: Color, time: TimeScale, value: ValueScale) -> Iterator[str]:
    """Yield a bar for each value; where several share a pixel column, the highest."""
    shown = time.shows(bars.starts_us)
    starts, values = bars.starts_us[shown], bars.values[shown]
    width = bars.width_us / time.us_per_unit
    x = time.x(starts)
    if width < 1:
        columns, values = seen_bars(x.astype(np.int64), values)
        x, width = columns.astype(np.float64), 1.0
    gap = 1.0 if width >= 3 else 0.0
    zero = float(value.y(0.0))
    y = value.y(values)
    for i in np.flatnonzero(~np.isnan(values) & (values != 0)).tolist():
        top, height = min(float(y[i]), zero), max(abs(float(y[i]) - zero), 0.5)
        yield (
            f'<rect class="ev-bar ev-{color}" x="{x[i] + gap / 2:.1f}" y="{top:.1f}" '
            f'width="{min(width, time.right - float(x[i])) - gap:.1f}" height="{height:.1f}"/>'
        )


def draw_periods(
    periods: PeriodBars, color: Color, time: TimeScale, lane_tops: dict[str, float], height: float
) -> Iterator[str]:
    """Yield a rounded bar for each period that the axis shows."""
    for period in periods.periods:
        if period.end_us <= time.start_us or period.start_us >= time.end_us:
            continue
        left, right = float(time.x(period.start_us)), float(time.x(period.end_us))
        width = max(right - left, 2.0)
        text = escape(period_text(period))
        yield (
            f'<rect class="ev-period ev-{color}" x="{left:.1f}" y="{lane_tops[period.lane]:.1f}" '
            f'width="{width:.1f}" height="{height:.1f}" rx="{min(3.0, width / 2):.1f}">'
            f"<title>{text}</title></rect>"
        )


def period_text(period: PeriodBar) -> str:
    """Return the tooltip of a period."""
    said = f"{period.lane}, {clock(period.start_us)} to {clock(period.end_us)}"
    return f"{said}\n{period.text}" if period.text else said


def hover_bands(series: Sequence[Line | Bars], time: TimeScale, value: ValueScale) -> Iterator[str]:
    """Yield invisible bands that show the values at their time as tooltips."""
    if not any(len(times_of(each)) for each in series):
        return
    edges = np.linspace(time.start_us, time.end_us, HOVER_BANDS + 1)
    middles = ((edges[:-1] + edges[1:]) / 2).astype(np.int64)
    width = (time.right - time.left) / HOVER_BANDS
    texts = [values_at(each, middles, int(edges[1] - edges[0])) for each in series]
    for i, middle in enumerate(middles.tolist()):
        lines = [clock(middle), *(words[i] for words in texts if words[i])]
        if len(lines) > 1:
            yield (
                f'<rect class="ev-band" x="{time.left + i * width:.1f}" y="{value.top:.1f}" '
                f'width="{width:.1f}" height="{value.bottom - value.top:.1f}">'
                f"<title>{escape(chr(10).join(lines))}</title></rect>"
            )


def values_at(
    series: Line | Bars, times: np.ndarray[tuple[int], np.dtype[np.int64]], band_us: int
) -> list[str]:
    """Return the text of a series at each of some times, empty if it has no value near."""
    at = times_of(series)
    if len(at) == 0:
        return [""] * len(times)
    if isinstance(series, Bars):
        index = np.clip(np.searchsorted(at, times, side="right") - 1, 0, None)
        near = (times >= at[index]) & (times < at[index] + max(series.width_us, band_us))
    else:
        index = around(at, times)
        near = np.abs(at[index] - times) <= 2 * max(
            band_us, int(np.median(np.diff(at, append=at[-1:])))
        )
    values = series.values[index]
    return [
        f"{series.name}: {number(float(f'{value:.4g}'))}" if ok and isfinite(value) else ""
        for value, ok in zip(values.tolist(), near.tolist(), strict=True)
    ]


def times_of(series: Line | Bars) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the times of a series."""
    return series.starts_us if isinstance(series, Bars) else series.ts_us


def clock(ts_us: int) -> str:
    """Return a time of day to the second."""
    return f"{moment(ts_us):%H:%M:%S}"
