"""A scene as lines of text: ━ a situation, ─ another of its key, ◆ an instant, │ the detection.

Half columns are drawn too, so a bar may begin with ╺ and end with ╸. A terminal without such
characters gets = - |.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from eventide.drawing.chart.ticks import clock_ticks, day_text
from eventide.drawing.situations.model import Bar, Lane, Scene, Timeline
from eventide.sinks.words import cut, moment_text, pad, text_width

NARROWEST = 40
MOST_NAME, MOST_NOTE = 18, 26
COLUMNS_PER_TICK = 13
NONE, OTHER, MEMBER = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Letters:
    """The characters of lines.

    `cells[left][right]` is a column by the contents of its halves, `crossed` the same with the
    instant of detection through it.
    """

    cells: tuple[str, str, str]
    crossed: tuple[str, str, str]
    goes_on: str
    arrow: str
    instant: str
    axis: str
    tick: str
    foot: str
    both: str
    dots: str


BOX = Letters(
    cells=(" ╶╺", "╴─╼", "╸╾━"),
    crossed=("│├┝", "┤┼┾", "┥┽┿"),
    goes_on="╍",
    arrow="→",
    instant="◆",
    axis="─",
    tick="┬",
    foot="┴",
    both="┼",
    dots="…",
)
ASCII = Letters(
    cells=(" -=", "--=", "==="),
    crossed=("|||", "|||", "|||"),
    goes_on=".",
    arrow=">",
    instant="*",
    axis="-",
    tick="+",
    foot="|",
    both="+",
    dots=".",
)


@dataclass(frozen=True, slots=True)
class TerminalColumns:
    """[start_us, end_us] as columns of the terminal, and halves of them."""

    start_us: int
    end_us: int
    count: int

    def half(self, ts_us: int) -> int:
        """Return the edge between halves of columns that is nearest to a time."""
        share = (ts_us - self.start_us) / (self.end_us - self.start_us)
        return min(max(round(share * 2 * self.count), 0), 2 * self.count)

    def column(self, ts_us: int) -> int:
        """Return the column of a time."""
        return min(self.half(ts_us) // 2, self.count - 1)


def scene_text(scene: Scene, width: int, *, ascii_only: bool = False) -> str:
    """Return a scene as text of at most `width` columns."""
    letters = ASCII if ascii_only else BOX
    wide = max(width, NARROWEST)
    lines = [cut(scene.title, wide, letters.dots), cut(scene.summary, wide, letters.dots)]
    lanes = [lane for timeline in scene.timelines for lane in timeline.lanes]
    name = min(max((text_width(lane.name) for lane in lanes), default=0), MOST_NAME)
    note = min(max((text_width(lane.note) for lane in lanes), default=0), MOST_NOTE, wide // 3)
    room = wide - name - 4 - (note + 2 if note else 0)
    for number, timeline in enumerate(scene.timelines):
        last = number == len(scene.timelines) - 1
        lines.append("")
        for line in timeline_lines(timeline, name, room, letters, not scene.one_axis or last):
            lines.append(cut(line.rstrip(), wide, letters.dots))
    said = legend_text(scene, letters)
    lines += ["", cut(said, wide, letters.dots)] if said else []
    if scene.rest:
        lines += ["", cut(scene.rest, wide, letters.dots)]
    text = "\n".join(line for line in lines)
    return text.encode("ascii", "replace").decode("ascii") if ascii_only else text


def legend_text(scene: Scene, letters: Letters) -> str:
    """Return the explanation of marks that need one, if there are any."""
    said = []
    if any(lane.others for timeline in scene.timelines for lane in timeline.lanes):
        said.append(f"{letters.cells[OTHER][OTHER]} of the same key, in other matches")
    if any(bar.is_instant for timeline in scene.timelines for bar in timeline.all_bars):
        said.append(f"{letters.instant} begins and ends at one instant")
    return "; ".join(said)


def timeline_lines(
    timeline: Timeline, name: int, room: int, letters: Letters, with_axis: bool
) -> Iterator[str]:
    """Yield a timeline: its title, its lanes, its axis, and what there is to say."""
    start, end = timeline.period
    columns = TerminalColumns(start, end, room)
    detected = timeline.detected_us
    moment = None if detected is None else columns.column(detected)
    said = "" if detected is None else f", detected {moment_text(detected)}"
    yield f"{timeline.title}{said}"
    for lane in timeline.lanes:
        drawn = lane_line(lane, columns, moment, timeline.known_until_us, letters)
        note = cut(lane.note, MOST_NOTE, letters.dots)
        yield f"  {pad(cut(lane.name, name, letters.dots), name)}  {drawn}  {note}"
    margin = " " * (name + 4)
    if with_axis:
        line, labels = axis_lines(columns, moment, letters)
        yield margin + line
        yield margin + labels
        yield f"  {day_text(start, end)}"
    if timeline.caption:
        yield f"  {timeline.caption}"
    if timeline.relations:
        yield f"  {'; '.join(timeline.relations)}"


def lane_line(
    lane: Lane, columns: TerminalColumns, moment: int | None, known_until_us: int, letters: Letters
) -> str:
    """Return the bars of a lane, and the moment of detection through them."""
    halves = bytearray(2 * columns.count)
    for bar in lane.others:
        fill(halves, columns, bar, columns.end_us, OTHER)
    for bar in lane.bars:
        fill(halves, columns, bar, known_until_us, MEMBER)
    pairs = list(zip(halves[::2], halves[1::2], strict=True))
    cells = [letters.cells[left][right] for left, right in pairs]
    if moment is not None:
        left, right = pairs[moment]
        cells[moment] = letters.crossed[left][right]
    for bar in (*lane.others, *lane.bars):
        if bar.is_instant and columns.start_us <= bar.start_us <= columns.end_us:
            cells[columns.column(bar.start_us)] = letters.instant
    if any(bar.end_us is None for bar in lane.bars):
        behind = columns.column(known_until_us) + 1
        cells[behind:] = letters.goes_on * (columns.count - behind)
        cells[-1] = letters.arrow
    return "".join(cells)


def fill(
    halves: bytearray, columns: TerminalColumns, bar: Bar, known_until_us: int, kind: int
) -> None:
    """Put a bar into a lane; at least half a column of it is visible."""
    if bar.start_us > columns.end_us or (bar.end_us or columns.end_us) < columns.start_us:
        return
    start = min(columns.half(bar.start_us), len(halves) - 1)
    if bar.end_us is None:
        end = 2 * columns.column(max(known_until_us, bar.start_us)) + 2
    else:
        end = max(columns.half(bar.end_us), start + 1)
    halves[start:end] = bytes([kind]) * (end - start)


def axis_lines(columns: TerminalColumns, moment: int | None, letters: Letters) -> tuple[str, str]:
    """Return the axis of time and the labels under it; labels do not overlap."""
    line = [letters.axis] * columns.count
    labels = ""
    if moment is not None:
        line[moment] = letters.foot
    for tick in clock_ticks(columns.start_us, columns.end_us, columns.count, COLUMNS_PER_TICK):
        at = columns.column(int(tick.at))
        line[at] = letters.both if at == moment else letters.tick
        start = min(max(at - len(tick.label) // 2, 0), columns.count - len(tick.label))
        if start > len(labels) or not labels:
            labels = labels.ljust(start) + tick.label
    return "".join(line), labels
