"""A whole chart as SVG: frames, axes, legends, and the styles for light and dark."""

from __future__ import annotations

from collections.abc import Iterator

from eventide.drawing.chart.marks import (
    draw_bars,
    draw_line,
    draw_periods,
    draw_points,
    hover_bands,
)
from eventide.drawing.chart.model import COLORS, Bars, Chart, Color, Line, Panel, PeriodBars, Points
from eventide.drawing.chart.scale import TimeScale, ValueScale, lanes_of, ticks_of, time_period
from eventide.drawing.chart.ticks import Tick, day_text, time_ticks
from eventide.sinks.words import escape

TOP, GUTTER, RIGHT = 10, 58, 14
HEAD, GAP, FOOT = 30, 16, 40
LANE, LANE_GAP = 14, 6
LETTER = 6.6
"""About the width of a letter of the legend."""
PER_TICK = 74
"""About the width that a tick of the time axis needs."""

STYLE = """
.ev-chart{--paper:#fff;--ink:#1d2433;--soft:#667085;--grid:#e9ecf1;--axis:#c9cfd9;
--blue:#2f6fde;--orange:#dd6b1f;--teal:#0e9384;--violet:#7a5af0;--rose:#d8365f;--grey:#8a94a6;
font:12px ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",sans-serif}
@media (prefers-color-scheme:dark){.ev-chart{--paper:#151a23;--ink:#e8ebf1;--soft:#98a2b3;
--grid:#232a36;--axis:#3b4557;--blue:#6aa1ff;--orange:#ff9650;--teal:#3fc7b5;--violet:#a78bfa;
--rose:#ff6f91;--grey:#7d8798}}
.ev-chart text{fill:var(--soft)}
.ev-chart .ev-title{fill:var(--ink);font-weight:600;font-size:13px}
.ev-chart .ev-paper{fill:var(--paper)}
.ev-chart .ev-grid{stroke:var(--grid)}.ev-chart .ev-axis{stroke:var(--axis)}
.ev-chart .ev-num{font-size:11px;font-variant-numeric:tabular-nums}
.ev-line{fill:none;stroke:var(--c);stroke-width:1.75;stroke-linejoin:round;stroke-linecap:round}
.ev-faint{stroke-width:1.2;opacity:.8}
.ev-bar,.ev-dot,.ev-period{fill:var(--c)}.ev-period{opacity:.88}.ev-period:hover{opacity:1}
.ev-dot{stroke:var(--paper);stroke-width:.5}
.ev-band{fill:var(--ink);opacity:0}.ev-band:hover{opacity:.07}
"""
STYLE += "".join(f".ev-{color}{{--c:var(--{color})}}" for color in COLORS)


def draw(chart: Chart) -> str:
    """Return a chart as an SVG element that stands alone, in a page or in a file."""
    start_us, end_us = time_period(chart)
    time = TimeScale(start_us, end_us, GUTTER, chart.width - RIGHT)
    y, body = float(TOP), list[str]()
    for panel in chart.panels:
        height = panel_height(panel)
        body += draw_panel(panel, time, y + HEAD, y + HEAD + height)
        y += HEAD + height + GAP
    bottom = y - GAP
    body += draw_time_axis(time, bottom)
    size = f"{chart.width} {bottom + FOOT:g}"
    return (
        f'<svg class="ev-chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" '
        f'role="img" aria-label="{escape(chart.title)}">'
        f"<title>{escape(chart.title)}</title><style>{STYLE}</style>"
        f'<rect class="ev-paper" width="100%" height="100%" rx="8"/>{"".join(body)}</svg>'
    )


def panel_height(panel: Panel) -> float:
    """Return the height of a panel: as asked, or as many lanes need."""
    lanes = lanes_of(panel)
    return len(lanes) * (LANE + LANE_GAP) + LANE_GAP if lanes else panel.height


def draw_panel(panel: Panel, time: TimeScale, top: float, bottom: float) -> Iterator[str]:
    """Yield a panel: its head, its grid, its series."""
    colors = [each.color or COLORS[i % len(COLORS)] for i, each in enumerate(panel.series)]
    yield from draw_head(panel, colors, time, top)
    for tick in time_ticks(time.start_us, time.end_us, most_ticks(time)):
        x = float(time.x(int(tick.at)))
        yield f'<line class="ev-grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top:g}" y2="{bottom:g}"/>'
    lanes = lanes_of(panel)
    yield from (
        draw_lanes(panel, colors, time, top)
        if lanes
        else draw_values(panel, colors, time, top, bottom)
    )


def draw_head(panel: Panel, colors: list[Color], time: TimeScale, top: float) -> Iterator[str]:
    """Yield the title to the left, the legend to the right."""
    unit = f'<tspan font-weight="400" fill="var(--soft)"> {escape(panel.unit)}</tspan>'
    yield (
        f'<text class="ev-title" x="{time.left:g}" y="{top - 12:g}">{escape(panel.title)}'
        f"{unit if panel.unit else ''}</text>"
    )
    named = [(each.name, color) for each, color in zip(panel.series, colors, strict=True)]
    if len(named) == 1:
        return  # the title says it
    x = time.right
    for name, color in reversed(named):
        x -= len(name) * LETTER
        yield f'<text x="{x:.1f}" y="{top - 12:g}">{escape(name)}</text>'
        yield (
            f'<rect class="ev-bar ev-{color}" x="{x - 15:.1f}" y="{top - 20:g}" '
            'width="10" height="10" rx="2.5"/>'
        )
        x -= 30


def draw_values(
    panel: Panel, colors: list[Color], time: TimeScale, top: float, bottom: float
) -> Iterator[str]:
    """Yield the value axis and all series of a panel, bars behind lines behind points."""
    ticks = ticks_of(panel, time)
    value = ValueScale(ticks[0].at, ticks[-1].at, top, bottom)
    for tick in ticks:
        y = float(value.y(tick.at))
        kind = "ev-axis" if tick.at == 0 or tick is ticks[0] else "ev-grid"
        yield (
            f'<line class="{kind}" x1="{time.left:g}" x2="{time.right:g}" '
            f'y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="ev-num" x="{time.left - 8:g}" y="{y + 4:.1f}" text-anchor="end">'
            f"{tick.label}</text>"
        )
    pairs = list(zip(panel.series, colors, strict=True))
    for series, color in pairs:
        if isinstance(series, Bars):
            yield from draw_bars(series, color, time, value)
    for series, color in pairs:
        if isinstance(series, Line):
            yield draw_line(series, color, time, value)
    yield from hover_bands(
        [each for each in panel.series if isinstance(each, Line | Bars)], time, value
    )
    for series, color in pairs:
        if isinstance(series, Points):
            yield from draw_points(series, color, time, value)


def draw_lanes(panel: Panel, colors: list[Color], time: TimeScale, top: float) -> Iterator[str]:
    """Yield lanes with their names to the left, and the periods in them."""
    tops = {lane: top + LANE_GAP + i * (LANE + LANE_GAP) for i, lane in enumerate(lanes_of(panel))}
    for lane, y in tops.items():
        middle = y + LANE / 2
        yield (
            f'<text class="ev-num" x="{time.left - 8:g}" y="{middle + 4:g}" text-anchor="end">'
            f"{escape(shortened(lane))}</text>"
            f'<line class="ev-grid" x1="{time.left:g}" x2="{time.right:g}" '
            f'y1="{middle:g}" y2="{middle:g}"/>'
        )
    for series, color in zip(panel.series, colors, strict=True):
        if isinstance(series, PeriodBars):
            yield from draw_periods(series, color, time, tops, LANE)


def draw_time_axis(
    time: TimeScale, bottom: float, ticks: list[Tick] | None = None
) -> Iterator[str]:
    """Yield the time axis that all panels share, with the given ticks instead of the usual ones."""
    y = bottom
    yield f'<line class="ev-axis" x1="{time.left:g}" x2="{time.right:g}" y1="{y:g}" y2="{y:g}"/>'
    for tick in ticks or time_ticks(time.start_us, time.end_us, most_ticks(time)):
        x = float(time.x(int(tick.at)))
        anchor = "end" if x > time.right - 15 else "middle"
        yield (
            f'<text class="ev-num" x="{x:.1f}" y="{y + 16:g}" text-anchor="{anchor}">'
            f"{tick.label}</text>"
        )
    day = escape(day_text(time.start_us, time.end_us))
    yield f'<text class="ev-num" x="{time.left:g}" y="{y + 32:g}">{day}</text>'


def most_ticks(time: TimeScale) -> int:
    """Return how many labels fit under the axis."""
    return max(2, int((time.right - time.left) / PER_TICK))


def shortened(name: str) -> str:
    """Return a lane's name, cut to the room at its left."""
    return name if len(name) <= 8 else name[:7] + "…"
