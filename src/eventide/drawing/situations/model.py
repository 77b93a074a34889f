"""The contents of a picture of situations. Times are microseconds since 1970, in UTC."""

from __future__ import annotations

from dataclasses import dataclass

from eventide.sinks.words import lasting_text, moment_text, period_text, plural
from eventide.visible import visible

MARGIN = 0.04
"""Room left and right of what is drawn, as a share of it."""
ROOM_TO_GO_ON = 0.16
"""The room to the right if something is still open."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A situation, [start_us, end_us); without an end it is still open.

    If many lie too close together to be told apart, one bar stands for `count` of them.
    """

    start_us: int
    end_us: int | None = None
    count: int = 1

    def __post_init__(self) -> None:
        if self.end_us is not None and self.end_us < self.start_us:
            message = f"a situation ends at {self.end_us} us, before it starts at {self.start_us}"
            raise ValueError(message)

    @property
    def is_instant(self) -> bool:
        """Whether it ends when it starts: with events of one time, a situation may."""
        return self.end_us == self.start_us

    @property
    def words(self) -> str:
        """The text of its tooltip: when it was."""
        if self.end_us is None:
            return f"{moment_text(self.start_us)}, goes on"
        if self.is_instant:
            return f"{moment_text(self.start_us)}, an instant"
        times = period_text(self.start_us, self.end_us)
        if self.count > 1:
            return f"{times}, {plural(self.count, 'situation')}"
        return f"{times}, {lasting_text(self.end_us - self.start_us)}"


@dataclass(frozen=True, slots=True)
class Lane:
    """The situations of one name; `others` are shown in the background.

    The note stands to the right, such as how long it lasted.
    """

    name: str
    bars: tuple[Bar, ...]
    others: tuple[Bar, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        make_visible(self, "name", "note")


@dataclass(frozen=True, slots=True)
class Timeline:
    """Lanes over one axis of time: a match with the moment it was detected, or all of one key.

    The axis reaches from `start_us` to `end_us`; by default it holds all bars and the moment. Each
    lane has a colour of its own, unless all have the one with the number `color`.
    """

    title: str
    lanes: tuple[Lane, ...]
    detected_us: int | None = None
    caption: str = ""
    relations: tuple[str, ...] = ()
    start_us: int | None = None
    end_us: int | None = None
    color: int | None = None

    def __post_init__(self) -> None:
        make_visible(self, "title", "caption")
        object.__setattr__(self, "relations", tuple(map(visible, self.relations)))

    @property
    def period(self) -> tuple[int, int]:
        """The first and the last time of the axis."""
        bars = [bar for lane in self.lanes for bar in lane.bars]
        moments = [] if self.detected_us is None else [self.detected_us]
        starts = [*(bar.start_us for bar in bars), *moments]
        ends = [*starts, *(bar.end_us for bar in bars if bar.end_us is not None)]
        first, last = min(starts, default=0), max(ends, default=0)
        length = max(last - first, 1_000)
        right = ROOM_TO_GO_ON if any(bar.end_us is None for bar in bars) else MARGIN
        start = first - int(MARGIN * length) if self.start_us is None else self.start_us
        end = last + int(right * length) if self.end_us is None else self.end_us
        return start, max(end, start + 1)

    @property
    def all_bars(self) -> tuple[Bar, ...]:
        """The bars of all lanes, others too."""
        return tuple(bar for lane in self.lanes for bar in (*lane.bars, *lane.others))

    @property
    def known_until_us(self) -> int:
        """Until when an open bar is known to hold: the detection, or else the latest time."""
        if self.detected_us is not None:
            return self.detected_us
        bars = [bar for lane in self.lanes for bar in lane.bars]
        return max((max(bar.start_us, bar.end_us or bar.start_us) for bar in bars), default=0)


@dataclass(frozen=True, slots=True)
class Scene:
    """A whole picture: a title, a sentence, timelines, and in words what is not drawn.

    With `one_axis`, all timelines have the same axis, which is drawn once.
    """

    title: str
    summary: str
    timelines: tuple[Timeline, ...]
    rest: str = ""
    one_axis: bool = False

    def __post_init__(self) -> None:
        make_visible(self, "title", "summary", "rest")


def make_visible(part: Lane | Timeline | Scene, *fields: str) -> None:
    """Replace the control characters in texts of a part: a name cannot draw outside its lane."""
    for field in fields:
        object.__setattr__(part, field, visible(getattr(part, field)))
