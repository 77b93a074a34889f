"""A whole picture of a query as SVG."""

from __future__ import annotations

from collections.abc import Iterator

from eventide.drawing.chart.scale import TimeScale
from eventide.drawing.chart.svg import STYLE
from eventide.drawing.plan.model import PlanPicture, Section
from eventide.drawing.plan.tables import LEFT, WIDTH, draw_tables, tables_height
from eventide.drawing.plan.tracks import draw_tracks, fitting, tracks_height
from eventide.sinks.words import escape

GUTTER, NOTES = 210, 176
TOP, BETWEEN, FOOT = 62, 18, 18
SECTION_HEAD = 52

PLAN_STYLE = """
.ev-chart .ev-big{fill:var(--ink);font-weight:650;font-size:16px}
.ev-chart .ev-ink{fill:var(--ink)}.ev-chart .ev-chosen{fill:var(--ink);font-weight:650}
.ev-chart .ev-pale{opacity:.32}
"""


def draw_plan(picture: PlanPicture) -> str:
    """Return a picture as an SVG element that stands alone, in a page or in a file."""
    body: list[str] = [
        f'<text class="ev-big" x="{LEFT}" y="32">'
        f"{escape(fitting(picture.title, 2 * WIDTH / 3))}</text>",
        f'<text x="{LEFT}" y="51">{escape(fitting(picture.summary, WIDTH - 90))}</text>',
    ]
    y = float(TOP)
    for section in picture.sections:
        body += draw_section(section, y)
        y += section_height(section) + BETWEEN
    height = y - BETWEEN + FOOT
    return (
        f'<svg class="ev-chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}"'
        f' role="img" aria-label="{escape(picture.title)}">'
        f"<title>{escape(picture.title)}</title><style>{STYLE}{PLAN_STYLE}</style>"
        f'<rect class="ev-paper" width="100%" height="100%" rx="8"/>{"".join(body)}</svg>'
    )


def section_height(section: Section) -> float:
    """Return how high a section is."""
    drawn = tracks_height(section) if section.tracks else 0.0
    return SECTION_HEAD + drawn + tables_height(section)


def draw_section(section: Section, y: float) -> Iterator[str]:
    """Yield a section: its heading, its tracks over time, its tables."""
    yield f'<line class="ev-grid" x1="{LEFT}" x2="{WIDTH - LEFT}" y1="{y:g}" y2="{y:g}"/>'
    yield (
        f'<text class="ev-title" x="{LEFT}" y="{y + 22:g}">'
        f"{escape(fitting(section.title, 0.74 * WIDTH))}</text>"
        f'<text x="{LEFT}" y="{y + 39:g}"><title>{escape(section.summary)}</title>'
        f"{escape(fitting(section.summary, WIDTH - 90))}</text>"
    )
    y += SECTION_HEAD
    if section.tracks:
        time = TimeScale(section.start_us, section.end_us, GUTTER, WIDTH - NOTES)
        yield from draw_tracks(section, time, y)
        y += tracks_height(section)
    yield from draw_tables(section, y)
