"""A scene as SVG: bars in lanes over time, the instant of detection as a line through them.

Marks have their times: `data-s` and `data-e` are times from the start of the axis on, `data-at` an
instant. With these a page can draw them over a part of the axis (zoom.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from eventide.drawing.chart.model import COLORS, Color
from eventide.drawing.chart.scale import TimeScale
from eventide.drawing.chart.svg import LETTER, PER_TICK, STYLE, draw_time_axis
from eventide.drawing.chart.ticks import clock_ticks, day_text
from eventide.drawing.situations.model import Bar, Lane, Scene, Timeline
from eventide.sinks.words import clock_text, cut, escape, moment_text, text_width

WIDTH, LEFT = 920, 24
TOP, FOOT, BETWEEN = 64, 14, 14
TITLE, CAPTION, MOMENT = 32, 17, 14
LANE, LANE_GAP, THIN = 16, 8, 6
TIP, HALF = 7.0, 5.0
"""How long the tip of a bar that goes on is, and half the width of an instant."""
AXIS = 40
LEAST_WIDTH = 2.0
NAMES, NOTES = (60.0, 190.0), (24.0, 190.0)
"""The least and the most room for what stands left and right of the lanes."""

SCENE_STYLE = """
.ev-chart .ev-big{fill:var(--ink);font-weight:650;font-size:16px}
.ev-chart .ev-ink{fill:var(--ink)}
.ev-chart .ev-goes-on{opacity:.34}.ev-chart .ev-other{opacity:.4}
.ev-chart .ev-moment{stroke:var(--ink);stroke-width:1.5;stroke-dasharray:4 3}
.ev-chart .ev-when{fill:var(--soft);font-weight:400;font-size:12px}
.ev-chart .ev-tip{fill:var(--ink)}
.ev-chart .ev-instant{stroke:var(--paper)}
"""
GREY: Color = "grey"


def draw_scene(scene: Scene, *, headed: bool = True) -> str:
    """Return a scene as an SVG element that stands alone, in a page or in a file.

    Without `headed`, the page around it shows its title and sentence.
    """
    room = WIDTH - 2 * LEFT
    body = [
        f'<text class="ev-big" x="{LEFT}" y="32">{cut_to_width(scene.title, room, 8.6)}</text>'
        f'<text x="{LEFT}" y="51">{cut_to_width(scene.summary, room)}</text>'
    ]
    if not headed:
        body = []
    left, right = sides(scene)
    y = float(TOP if headed else FOOT)
    for number, timeline in enumerate(scene.timelines):
        with_axis = not scene.one_axis or number == len(scene.timelines) - 1
        time = TimeScale(*timeline.period, left, right)
        body += draw_timeline(timeline, time, y, with_axis=with_axis)
        y += timeline_height(timeline, with_axis=with_axis) + BETWEEN
    legend = legend_of(scene)
    if legend:
        body += draw_legend(legend, y + 6)
        y += 20
    if scene.rest:
        body.append(f'<text x="{LEFT}" y="{y + 6:g}">{escape(scene.rest)}</text>')
        y += 20
    height = y - BETWEEN + FOOT
    return (
        f'<svg class="ev-chart" data-left="{left:g}" data-right="{right:g}" '
        f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}"'
        f' role="img" aria-label="{escape(f"{scene.title}. {scene.summary}")}">'
        f"<title>{escape(scene.title)}</title><style>{STYLE}{SCENE_STYLE}</style>"
        f'<rect class="ev-paper" width="100%" height="100%" rx="8"/>{"".join(body)}</svg>'
    )


def legend_of(scene: Scene) -> list[tuple[str, str]]:
    """Return the marks of a scene that need an explanation, and what they mean."""
    bars = [bar for timeline in scene.timelines for bar in timeline.all_bars]
    lanes = [lane for timeline in scene.timelines for lane in timeline.lanes]
    meant = (
        (
            any(bar.end_us is None for lane in lanes for bar in lane.bars),
            "goes on",
            "goes on, until when is not known",
        ),
        (any(lane.others for lane in lanes), "other", "of the same key, in other matches"),
        (any(bar.is_instant for bar in bars), "instant", "begins and ends at one instant"),
        (any(bar.count > 1 for bar in bars), "many", "several, too close to be told apart"),
    )
    return [(mark, words) for there, mark, words in meant if there]


def draw_legend(legend: list[tuple[str, str]], y: float) -> Iterator[str]:
    """Yield marks in grey, and what they mean."""
    x = float(LEFT)
    for mark, words in legend:
        middle = y - 4
        match mark:
            case "goes on":
                yield draw_going_on(TimeScale(0, 1, x, x + 24), 0, GREY, middle - LANE / 2, "")
            case "instant":
                yield instant(x + 12, middle, LANE / 2, GREY)
            case _:
                thin, pale = (THIN, " ev-other") if mark == "other" else (LANE, "")
                yield (
                    f'<rect class="ev-bar{pale} ev-{GREY}" x="{x:.1f}" y="{middle - thin / 2:g}" '
                    f'width="24" height="{thin}" rx="1.5"/>'
                )
        yield f'<text x="{x + 31:.1f}" y="{y:g}">{escape(words)}</text>'
        x += 31 + len(words) * LETTER + 18


def sides(scene: Scene) -> tuple[float, float]:
    """Return where the lanes of all timelines begin and end, beside their names and notes."""
    lanes = [lane for timeline in scene.timelines for lane in timeline.lanes]
    name = max((text_width(lane.name) for lane in lanes), default=0) * LETTER + 12
    note = max((text_width(lane.note) for lane in lanes), default=0) * LETTER + 12
    right = (
        WIDTH - LEFT - clamped(note, NOTES) if any(lane.note for lane in lanes) else WIDTH - LEFT
    )
    return LEFT + clamped(name, NAMES), right


def clamped(length: float, bounds: tuple[float, float]) -> float:
    """Return a length within bounds."""
    return min(max(length, bounds[0]), bounds[1])


def head_height(timeline: Timeline) -> float:
    """Return how high the text above the lanes is."""
    caption = CAPTION if timeline.caption else 0
    return TITLE + caption + (MOMENT if timeline.detected_us is not None else 0)


def timeline_height(timeline: Timeline, *, with_axis: bool) -> float:
    """Return how high a timeline is."""
    lanes = len(timeline.lanes) * (LANE + LANE_GAP)
    words = CAPTION if timeline.relations and not with_axis else 0
    return head_height(timeline) + lanes + (AXIS if with_axis else words)


def draw_timeline(
    timeline: Timeline, time: TimeScale, y: float, *, with_axis: bool
) -> Iterator[str]:
    """Yield a timeline: what it is, its lanes, the moment of detection, its axis."""
    length = time.end_us - time.start_us
    yield f'<g class="ev-timeline" data-start="{time.start_us}" data-length="{length}">'
    yield f'<line class="ev-grid" x1="{LEFT}" x2="{WIDTH - LEFT}" y1="{y:g}" y2="{y:g}"/>'
    yield from draw_head(timeline, y)
    top = y + head_height(timeline)
    bottom = top + len(timeline.lanes) * (LANE + LANE_GAP)
    ticks = clock_ticks(time.start_us, time.end_us, time.right - time.left, PER_TICK)
    yield f'<g class="ev-lines" data-top="{top:g}" data-bottom="{bottom:g}">'
    for tick in ticks:
        x = float(time.x(int(tick.at)))
        yield f'<line class="ev-grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top:g}" y2="{bottom:g}"/>'
    yield "</g>"
    for number, lane in enumerate(timeline.lanes):
        at = top + LANE_GAP / 2 + number * (LANE + LANE_GAP)
        color = lane_color(number if timeline.color is None else timeline.color)
        yield from draw_lane(lane, color, time, at, timeline.known_until_us)
    if timeline.detected_us is not None:
        yield from draw_moment(timeline.detected_us, time, top, bottom)
    if with_axis:
        yield f'<g class="ev-labels" data-bottom="{bottom:g}">'
        yield from draw_time_axis(time, bottom, ticks)
        yield "</g>"
    if timeline.relations:
        yield draw_relations(timeline, time, bottom + (32 if with_axis else 13))
    yield "</g>"


def lane_color(number: int) -> Color:
    """Return the colour of a lane; grey is for what is in the background."""
    return COLORS[number % (len(COLORS) - 1)]


def draw_head(timeline: Timeline, y: float) -> Iterator[str]:
    """Yield the subject of a timeline, when it was detected, and its values."""
    room = WIDTH - 2 * LEFT
    detected = ""
    if timeline.detected_us is not None:
        detected = f"detected {moment_text(timeline.detected_us)}"
    title = cut_to_width(timeline.title, room - (len(detected) + 2) * LETTER, 7.4)
    yield f'<text class="ev-title" x="{LEFT}" y="{y + 22:g}">{title}'
    if detected:
        yield f'<tspan class="ev-when" dx="8">{detected}</tspan>'
    yield "</text>"
    if timeline.caption:
        yield (
            f'<text x="{LEFT}" y="{y + 22 + CAPTION:g}"><title>{escape(timeline.caption)}</title>'
            f"{cut_to_width(timeline.caption, room)}</text>"
        )


def draw_lane(
    lane: Lane, color: Color, time: TimeScale, top: float, known_until_us: int
) -> Iterator[str]:
    """Yield a lane: its name, its bars over a thin line, its note."""
    middle = top + LANE / 2
    yield f"<g><title>{escape(lane_words(lane))}</title>"
    yield (
        f'<text class="ev-ink" x="{time.left - 10:g}" y="{middle + 4:g}" text-anchor="end">'
        f"{cut_to_width(lane.name, time.left - LEFT - 8)}</text>"
        f'<line class="ev-grid" x1="{time.left:g}" x2="{time.right:g}" '
        f'y1="{middle:g}" y2="{middle:g}"/>'
    )
    for bar in lane.others:
        yield draw_other(lane.name, bar, color, time, middle)
    for bar in lane.bars:
        yield draw_bar(lane.name, bar, color, time, top, known_until_us)
    if lane.note:
        room = WIDTH - LEFT - time.right
        yield (
            f'<text class="ev-num" x="{time.right + 10:g}" y="{middle + 4:g}">'
            f"{cut_to_width(lane.note, room)}</text>"
        )
    yield "</g>"


def lane_words(lane: Lane) -> str:
    """Return a lane in words, for screen readers."""
    note = f": {lane.note}" if lane.note else ""
    return f"{lane.name}{note}"


def draw_bar(
    name: str, bar: Bar, color: Color, time: TimeScale, top: float, known_until_us: int
) -> str:
    """Return a bar; an open one is pale from where it is not known, up to an arrow."""
    if not shown(bar, time):
        return ""
    title = f"<title>{escape(name)}, {escape(bar.words)}</title>"
    if bar.is_instant:
        return instant(float(time.x(bar.start_us)), top + LANE / 2, LANE / 2, color, title,
                       bar.start_us - time.start_us)  # fmt: skip
    if bar.end_us is not None:
        return draw_period(bar.start_us, bar.end_us, color, time, top, title)
    known_us = max(known_until_us, bar.start_us)
    return draw_going_on(time, known_us, color, top, title) + draw_period(
        bar.start_us, known_us, color, time, top, title
    )


def draw_period(
    start_us: int, end_us: int, color: Color, time: TimeScale, top: float, title: str
) -> str:
    """Return what is known of a situation."""
    left = float(time.x(start_us))
    width = max(float(time.x(end_us)) - left, LEAST_WIDTH)
    return (
        f'<rect class="ev-period ev-{color}" x="{left:.1f}" y="{top:g}" width="{width:.1f}" '
        f'height="{LANE}" rx="{min(3.0, width / 2):.1f}" data-s="{start_us - time.start_us}" '
        f'data-e="{end_us - time.start_us}">{title}</rect>'
    )


def draw_going_on(time: TimeScale, known_us: int, color: Color, top: float, title: str) -> str:
    """Return the pale rest of an open situation, up to a tip at the right."""
    left, shaft = float(time.x(known_us)), time.right - TIP
    since = known_us - time.start_us
    tip = (
        f'<path class="ev-bar ev-goes-on ev-{color}" data-tip="{since}" '
        f'd="M{shaft:.1f} {top:g}L{time.right:.1f} {top + LANE / 2:g}L{shaft:.1f} {top + LANE:g}z">'
        f"{title}</path>"
    )
    return (
        f'<rect class="ev-bar ev-goes-on ev-{color}" x="{left:.1f}" y="{top:g}" '
        f'width="{max(shaft - left, 0):.1f}" height="{LANE}" data-s="{since}">{title}</rect>{tip}'
    )


def instant(
    x: float, middle: float, half: float, color: Color, title: str = "", since: int | None = None
) -> str:
    """Return a situation without length: a diamond, large enough to be seen."""
    at = "" if since is None else f' data-at="{since}" data-y="{middle:g}"'
    return (
        f'<path class="ev-period ev-instant ev-{color}" transform="translate({x:.1f} {middle:g})" '
        f'd="M{-HALF:g} 0L0 {-half:g}L{HALF:g} 0L0 {half:g}z"{at}>{title}</path>'
    )


def draw_other(name: str, bar: Bar, color: Color, time: TimeScale, middle: float) -> str:
    """Return a situation of the same key that is not part of the match: thin and pale."""
    if not shown(bar, time):
        return ""
    left = float(time.x(bar.start_us))
    right = time.right if bar.end_us is None else float(time.x(bar.end_us))
    since = bar.start_us - time.start_us
    if bar.is_instant:
        title = f"<title>{escape(name)}, {escape(bar.words)}</title>"
        return instant(left, middle, THIN / 2 + 1, color, title, since)
    until = "" if bar.end_us is None else f' data-e="{bar.end_us - time.start_us}"'
    return (
        f'<rect class="ev-bar ev-other ev-{color}" x="{left:.1f}" y="{middle - THIN / 2:g}" '
        f'width="{max(right - left, LEAST_WIDTH):.1f}" height="{THIN}" rx="1.5" '
        f'data-s="{since}"{until}>'
        f"<title>{escape(name)}, {escape(bar.words)}</title></rect>"
    )


def shown(bar: Bar, time: TimeScale) -> bool:
    """Tell whether any of a bar lies on the axis."""
    return bar.start_us < time.end_us and (bar.end_us is None or bar.end_us >= time.start_us)


def draw_moment(ts_us: int, time: TimeScale, top: float, bottom: float) -> Iterator[str]:
    """Yield the moment of detection: a line through all lanes, its time above it."""
    x = float(time.x(ts_us))
    said = clock_text(ts_us)
    half = len(said) * LETTER / 2
    anchor, at = "middle", x
    if x - half < time.left:
        anchor, at = "start", time.left
    elif x + half > time.right:
        anchor, at = "end", time.right
    since = f'data-at="{ts_us - time.start_us}"'
    yield (
        f'<line class="ev-moment" {since} x1="{x:.1f}" x2="{x:.1f}" y1="{top:g}" y2="{bottom:g}"/>'
        f'<path class="ev-tip" {since} data-y="{top - 3:g}" '
        f'transform="translate({x:.1f} {top - 3:g})" d="M-4 0h8l-4 6z"/>'
        f'<text class="ev-num ev-ink" {since} x="{at:.1f}" y="{top - 6:g}" '
        f'text-anchor="{anchor}">{said}</text>'
    )


def draw_relations(timeline: Timeline, time: TimeScale, y: float) -> str:
    """Return the relations between the situations, in words, to the right under the lanes."""
    said = "; ".join(timeline.relations)
    day = len(day_text(time.start_us, time.end_us)) * 6.0
    room = WIDTH - LEFT - time.left - day - 24
    return (
        f'<text class="ev-ink" x="{WIDTH - LEFT}" y="{y:g}" text-anchor="end">'
        f"<title>{escape(said)}</title>{cut_to_width(said, room)}</text>"
    )


def cut_to_width(text: str, width: float, letter: float = LETTER) -> str:
    """Return as much of a text as fits into a width, escaped."""
    return escape(cut(text, max(2, int(width / letter))))
