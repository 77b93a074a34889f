"""The tracks of a section over its axis of time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eventide.drawing.chart.model import Values
from eventide.drawing.chart.scale import Floats, TimeScale
from eventide.drawing.chart.svg import LETTER, draw_time_axis, most_ticks
from eventide.drawing.chart.ticks import time_ticks
from eventide.drawing.plan.bins import (
    amounts,
    bar_path,
    counts,
    covered_shares,
    heights_of_counts,
)
from eventide.drawing.plan.model import Marks, Section, Track
from eventide.sinks.words import escape

GAP = 9
AXIS = 46
LEGEND = 22
LEFT = 24.0
LEAST_SEEN = 0.4
"""Anything present takes at least this share of a column's height."""


def tracks_height(section: Section) -> float:
    """Return how high the tracks of a section are, with legend and axis."""
    return LEGEND + sum(track.height + GAP for track in section.tracks) + AXIS


def draw_tracks(section: Section, time: TimeScale, y: float) -> Iterator[str]:
    """Yield the legend, the tracks and the axis of time."""
    yield from draw_legend(section, y + 10)
    top = y + LEGEND
    bottom = top + sum(track.height + GAP for track in section.tracks)
    for tick in time_ticks(time.start_us, time.end_us, most_ticks(time)):
        x = float(time.x(int(tick.at)))
        yield f'<line class="ev-grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top:g}" y2="{bottom:g}"/>'
    at = top + GAP / 2
    for track in section.tracks:
        yield from draw_track(track, time, at)
        at += track.height + GAP
    yield from draw_time_axis(time, bottom)


def draw_legend(section: Section, y: float) -> Iterator[str]:
    """Yield the names of all marks once, from left to right."""
    named = [(each.name, each.color, each.faint) for t in section.tracks for each in t.marks]
    x = LEFT
    for name, color, faint in dict.fromkeys(named):
        shade = " ev-pale" if faint else ""
        yield (
            f'<rect class="ev-bar ev-{color}{shade}" x="{x:.1f}" y="{y - 9:g}" '
            'width="10" height="10" rx="2.5"/>'
            f'<text x="{x + 15:.1f}" y="{y:g}">{escape(name)}</text>'
        )
        x += 15 + len(name) * LETTER + 10


def draw_track(track: Track, time: TimeScale, top: float) -> Iterator[str]:
    """Yield a lane: its name, its marks as one path for each kind, its note."""
    middle = top + track.height / 2 + 4
    yield "<g>"
    yield f"<title>{escape(track.label)}: {escape(track.note)}</title>"
    yield (
        f'<text class="ev-ink" x="{time.left - 10:g}" y="{middle:g}" text-anchor="end">'
        f"{escape(fitting(track.label, time.left - 18))}</text>"
    )
    base = top + track.height
    yield (
        f'<line class="ev-axis" x1="{time.left:g}" x2="{time.right:g}" '
        f'y1="{base:g}" y2="{base:g}" opacity=".6"/>'
    )
    columns = round(time.right - time.left)
    edges = np.linspace(time.start_us, time.end_us, columns + 1)
    low = np.zeros(columns)
    for marks in track.marks:
        found = heights(marks, edges)
        stacked = marks.form == "periods" and not marks.faint
        high = np.minimum(1.0, low + found) if stacked else found
        path = bar_path(low if stacked else np.zeros(columns), high, time.left, top, track.height)
        low = high if stacked else low
        shade = " ev-pale" if marks.faint else ""
        if path:
            yield f'<path class="ev-bar ev-{marks.color}{shade}" d="{path}"/>'
    yield (
        f'<text class="ev-num" x="{time.right + 10:g}" y="{middle:g}">'
        f"{escape(track.note)}</text></g>"
    )


def heights(marks: Marks, edges: Floats) -> Values:
    """Return how high the marks are in each column, from 0 to 1."""
    match marks.form:
        case "moments":
            return heights_of_counts(counts(marks.start_us, edges))
        case "rate":
            values = np.ones(len(marks.start_us)) if marks.values is None else marks.values
            found = amounts(marks.start_us, marks.end_us, values, edges)
            return np.asarray(found / max(float(found.max(initial=0.0)), 1e-9))
        case "periods":
            shares = np.clip(covered_shares(marks.start_us, marks.end_us, edges), 0.0, 1.0)
            return np.where(shares > 0, np.maximum(shares, LEAST_SEEN), 0.0)


def fitting(text: str, width: float) -> str:
    """Return as much of a text as fits into a width."""
    most = int(width / LETTER)
    return text if len(text) <= most else f"{text[: most - 1]}…"
