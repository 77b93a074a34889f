"""The ways to answer and the steps of the work, as tables with bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eventide.drawing.plan.model import Section, StepRow, WayRow
from eventide.drawing.plan.tracks import fitting
from eventide.sinks.words import escape

HEAD, LINE, ROW_GAP = 34, 17, 8
BAR, STEP_BAR, BAR_WIDTH = 210, 380, 220
LEFT, WIDTH = 24, 960
CELL_RIGHT = WIDTH - 24
CELL = 88


def tables_height(section: Section) -> float:
    """Return how high the tables of a section are."""
    height = 0.0
    if section.ways:
        height += HEAD + sum(map(way_height, section.ways))
    if section.steps:
        height += HEAD + LINE * len(section.steps) + ROW_GAP
    return height


def way_height(way: WayRow) -> float:
    """Return how high a way is: estimate, measured cost, description."""
    return LINE * (2 if way.actual_seconds is None else 3) + ROW_GAP


def draw_tables(section: Section, y: float) -> Iterator[str]:
    """Yield the ways and the steps, one under the other."""
    if section.ways:
        yield from draw_head("Ways considered", section.way_heads, y + 22)
        y += HEAD
        most = max(1e-9, *(max(way.seconds, way.actual_seconds or 0.0) for way in section.ways))
        for way in section.ways:
            yield from draw_way(way, y + LINE - 4, most)
            y += way_height(way)
    if section.steps:
        yield from draw_head("Where the time went", section.step_heads, y + 22)
        y += HEAD
        most = max(1e-9, *(step.seconds for step in section.steps))
        for step in section.steps:
            yield from draw_step(step, y + LINE - 4, most)
            y += LINE


def draw_head(title: str, heads: Sequence[str], y: float) -> Iterator[str]:
    """Yield the title of a table and those of its columns."""
    yield f'<text class="ev-title" x="{LEFT}" y="{y:g}">{escape(title)}</text>'
    yield from draw_cells(heads, y, "ev-num")
    line = y + 7
    yield f'<line class="ev-axis" x1="{LEFT}" x2="{CELL_RIGHT}" y1="{line:g}" y2="{line:g}"/>'


def draw_way(way: WayRow, y: float, most: float) -> Iterator[str]:
    """Yield a way: its estimate, its measured cost, and its description."""
    kind = "ev-chosen" if way.chosen else "ev-ink"
    if way.chosen:
        yield f'<circle class="ev-bar ev-orange" cx="{LEFT + 4}" cy="{y - 4:g}" r="3.5"/>'
    yield f'<text class="{kind}" x="{LEFT + 14}" y="{y:g}">{escape(way.name)}</text>'
    tone = "orange" if way.chosen else "grey"
    yield draw_bar(way.seconds / most, BAR, y, f"ev-{tone} ev-pale")
    yield from draw_cells(way.cells, y, "ev-num ev-ink" if way.actual_seconds is None else "ev-num")
    if way.actual_seconds is not None:
        y += LINE
        yield f'<text class="ev-num" x="{BAR - 8}" y="{y:g}" text-anchor="end">as it ran</text>'
        yield draw_bar(way.actual_seconds / most, BAR, y, f"ev-{tone}")
        yield from draw_cells(way.actual_cells, y, "ev-num ev-ink")
    y += LINE
    summary = escape(fitting(way.summary, CELL_RIGHT - LEFT - 14))
    yield f'<text class="ev-num" x="{LEFT + 14}" y="{y:g}">'
    yield f"<title>{escape(way.summary)}</title>{summary}</text>"


def draw_step(step: StepRow, y: float, most: float) -> Iterator[str]:
    """Yield a step with its bar."""
    named = escape(fitting(step.name, STEP_BAR - LEFT - 24))
    yield (
        f'<text class="ev-num ev-ink" x="{LEFT + 14}" y="{y:g}">'
        f"<title>{escape(step.name)}</title>{named}</text>"
    )
    yield draw_bar(step.seconds / most, STEP_BAR, y, "ev-blue")
    yield from draw_cells(step.cells, y, "ev-num ev-ink")


def draw_bar(share: float, x: float, y: float, tones: str) -> str:
    """Return a bar as long as a share of the longest."""
    width = max(1.5, BAR_WIDTH * share)
    return (
        f'<rect class="ev-bar {tones}" x="{x:g}" y="{y - 9:g}" width="{width:.1f}" '
        'height="10" rx="1.5"/>'
    )


def draw_cells(cells: Sequence[str], y: float, kind: str) -> Iterator[str]:
    """Yield cells to the right, the last one at the margin."""
    for place, cell in enumerate(reversed(cells)):
        x = CELL_RIGHT - place * CELL
        yield f'<text class="{kind}" x="{x}" y="{y:g}" text-anchor="end">{escape(cell)}</text>'
