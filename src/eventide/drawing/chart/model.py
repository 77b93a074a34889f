"""Chart, Panel, and the four kinds of series. Times are microseconds since 1970, in UTC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

Times = np.ndarray[tuple[int], np.dtype[np.int64]]
Values = np.ndarray[tuple[int], np.dtype[np.float64]]

Color = Literal["blue", "orange", "teal", "violet", "rose", "grey"]
COLORS: tuple[Color, ...] = ("blue", "orange", "teal", "violet", "rose", "grey")
"""The colours of a panel's series in order; neighbours differ to colour-blind eyes too."""


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """Values over time, joined; NaN is a gap. Times ascend."""

    name: str
    ts_us: Times
    values: Values
    color: Color | None = None
    faint: bool = False
    """Thinner, for a series that another one summarises."""
    stepped: bool = False
    """Each value holds until the next time, as a window's does."""

    def __post_init__(self) -> None:
        check_same_length(self.name, self.ts_us, self.values)
        check_ascending(self.name, self.ts_us)


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Single values at single times. Times ascend."""

    name: str
    ts_us: Times
    values: Values
    color: Color | None = None

    def __post_init__(self) -> None:
        check_same_length(self.name, self.ts_us, self.values)
        check_ascending(self.name, self.ts_us)


@dataclass(frozen=True, slots=True, eq=False)
class Bars:
    """One value for each period of the same length, drawn from zero. Starts ascend."""

    name: str
    starts_us: Times
    width_us: int
    values: Values
    color: Color | None = None

    def __post_init__(self) -> None:
        check_same_length(self.name, self.starts_us, self.values)
        check_ascending(self.name, self.starts_us)
        if self.width_us <= 0:
            message = f"bars {self.name!r} must be wider than nothing, got {self.width_us} us"
            raise ValueError(message)


@dataclass(frozen=True, slots=True)
class PeriodBar:
    """[start_us, end_us) in a lane, with the text of a tooltip."""

    lane: str
    start_us: int
    end_us: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class PeriodBars:
    """Periods as horizontal bars, one lane under the other in order of appearance."""

    name: str
    periods: tuple[PeriodBar, ...]
    color: Color | None = None


Series = Line | Points | Bars | PeriodBars


@dataclass(frozen=True, slots=True)
class Panel:
    """Series over one value axis, or lanes of periods."""

    title: str
    series: tuple[Series, ...]
    unit: str = ""
    height: int = 150

    def __post_init__(self) -> None:
        lanes = [isinstance(each, PeriodBars) for each in self.series]
        if any(lanes) and not all(lanes):
            message = f"panel {self.title!r} mixes periods with series that have values"
            raise ValueError(message)


@dataclass(frozen=True, slots=True)
class Chart:
    """Panels, one under the other, over one time axis.

    The axis spans `start_us` to `end_us`; by default all that the series hold.
    """

    title: str
    panels: tuple[Panel, ...]
    width: int = 920
    start_us: int | None = None
    end_us: int | None = None


def check_same_length(name: str, times: Times, values: Values) -> None:
    """Refuse a series with different numbers of times and values."""
    if len(times) != len(values):
        message = f"series {name!r} has {len(times)} times but {len(values)} values"
        raise ValueError(message)


def check_ascending(name: str, times: Times) -> None:
    """Refuse a series that goes back in time."""
    if len(times) > 1 and bool(np.any(times[1:] < times[:-1])):
        message = f"the times of series {name!r} do not ascend; sort it first"
        raise ValueError(message)
