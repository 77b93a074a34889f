"""From time and value to places on the page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from eventide.drawing.chart.model import (
    Bars,
    Chart,
    Line,
    Panel,
    PeriodBar,
    PeriodBars,
    Points,
    Series,
)
from eventide.drawing.chart.thin import Indexes
from eventide.drawing.chart.ticks import Tick, value_ticks

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class TimeScale:
    """[start_us, end_us] from `left` to `right`."""

    start_us: int
    end_us: int
    left: float
    right: float

    @property
    def us_per_unit(self) -> float:
        """How much time one unit of the drawing covers."""
        return max(self.end_us - self.start_us, 1) / (self.right - self.left)

    def x(self, ts_us: Indexes | int) -> Floats:
        """Return places; times outside the axis land on its edge."""
        offset = np.asarray(np.clip(ts_us, self.start_us, self.end_us)) - self.start_us
        return np.asarray(self.left + offset / self.us_per_unit, dtype=np.float64)

    def shows(self, ts_us: Indexes) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Tell which times lie on the axis."""
        return (ts_us >= self.start_us) & (ts_us <= self.end_us)


@dataclass(frozen=True, slots=True)
class ValueScale:
    """[low, high] from `bottom` up to `top`."""

    low: float
    high: float
    top: float
    bottom: float

    def y(self, values: Floats | float) -> Floats:
        """Return places; NaN stays NaN."""
        share = (np.asarray(values, dtype=np.float64) - self.low) / (self.high - self.low)
        return np.asarray(self.bottom - share * (self.bottom - self.top), dtype=np.float64)


def time_period(chart: Chart) -> tuple[int, int]:
    """Return the first and the last time of a chart."""
    periods = [
        period for panel in chart.panels for each in panel.series for period in periods_of(each)
    ]
    start = (
        chart.start_us if chart.start_us is not None else min((s for s, _ in periods), default=0)
    )
    end = chart.end_us if chart.end_us is not None else max((e for _, e in periods), default=start)
    return start, max(end, start + 1)


def periods_of(series: Series) -> Iterable[tuple[int, int]]:
    """Yield the periods that a series touches."""
    match series:
        case Line() | Points():
            if len(series.ts_us):
                yield int(series.ts_us[0]), int(series.ts_us[-1])
        case Bars():
            if len(series.starts_us):
                yield int(series.starts_us[0]), int(series.starts_us[-1]) + series.width_us
        case PeriodBars():
            yield from ((period.start_us, period.end_us) for period in series.periods)


def ticks_of(panel: Panel, time: TimeScale) -> list[Tick]:
    """Return the value ticks of a panel: they enclose all values, and zero under bars."""
    low, high = np.inf, -np.inf
    for series in panel.series:
        match series:
            case Line() | Points():
                shown = series.values[time.shows(series.ts_us)]
            case Bars():
                shown = np.append(series.values[time.shows(series.starts_us)], 0.0)
            case PeriodBars():
                continue
        shown = shown[np.isfinite(shown)]
        if len(shown):
            low, high = min(low, float(shown.min())), max(high, float(shown.max()))
    if low > high:
        return value_ticks(0.0, 1.0, 2)
    # A line that starts near zero reads better from zero.
    low = 0.0 if 0 < low < 0.3 * high else low
    return value_ticks(low, high, max(3, panel.height // 42))


def lanes_of(panel: Panel) -> list[str]:
    """Return the lanes of a panel of periods, in order of appearance."""
    periods: list[PeriodBar] = []
    for series in panel.series:
        if isinstance(series, PeriodBars):
            periods += series.periods
    return list(dict.fromkeys(period.lane for period in periods))
