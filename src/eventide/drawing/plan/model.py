"""The contents of a picture of a query. Times are microseconds since 1970, in UTC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from eventide.drawing.chart.model import Color, Times, Values

Form = Literal["periods", "moments", "rate"]


@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """Periods [start_us, end_us), instants that are their starts, or rates: `values` over periods.

    Periods of several marks of a track are stacked: the height of each is its share of the time.
    Those named `faint` are the background of the others.
    """

    name: str
    color: Color
    start_us: Times
    end_us: Times
    form: Form = "periods"
    values: Values | None = None
    faint: bool = False


@dataclass(frozen=True, slots=True)
class Track:
    """A lane over the axis of time: its name to the left, a note to the right."""

    label: str
    note: str
    marks: tuple[Marks, ...]
    height: int = 16


@dataclass(frozen=True, slots=True)
class WayRow:
    """A way to answer: seconds and counts, as estimated and, if it was run, as measured."""

    name: str
    summary: str
    seconds: float
    cells: tuple[str, ...]
    actual_seconds: float | None = None
    actual_cells: tuple[str, ...] = ()
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class StepRow:
    """A part of the work: what it was, its seconds, and its output."""

    name: str
    seconds: float
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """One block of a query: a heading, tracks over time, the ways, the steps."""

    title: str
    summary: str
    start_us: int
    end_us: int
    tracks: tuple[Track, ...]
    ways: tuple[WayRow, ...]
    way_heads: tuple[str, ...]
    steps: tuple[StepRow, ...] = ()
    step_heads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanPicture:
    """A picture: its title, a sentence under it, and a section for each block."""

    title: str
    summary: str
    sections: tuple[Section, ...]
