"""From the changes of an answer to a scene: a bar for each row, while it was in the answer."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from eventide.drawing.situations.model import Bar, Lane, Scene, Timeline
from eventide.sinks.words import lasting_text, plural, rough_period_text

AT, EXP, SIGN = "at", "exp", "sign"


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A row of an answer, as text, and from when until when it was there."""

    row: str
    start_us: int
    end_us: int | None


def scene_of_lifetimes(answers: Mapping[str, pa.Table], most: int) -> Scene:
    """Return the lifetimes of the rows of several answers, one above the other over one axis."""
    lives = {title: lifetimes(table) for title, table in answers.items()}
    drawn = {title: lanes_of(each) for title, each in lives.items()}
    timelines = [
        Timeline(title, tuple(lanes[:most]) or (Lane("no rows", ()),), color=number)
        for number, (title, lanes) in enumerate(drawn.items())
    ]
    known = [bar for each in timelines for lane in each.lanes for bar in lane.bars]
    starts = [bar.start_us for bar in known]
    if known:
        # A period that holds all of them: there is one axis.
        hull = Timeline("", (Lane("", tuple(known)),)).period
        timelines = [replace(each, start_us=hull[0], end_us=hull[1]) for each in timelines]
    count = sum(map(len, lives.values()))
    ends = [bar.end_us for bar in known if bar.end_us is not None]
    since = f", {rough_period_text(min(starts), max([*starts, *ends]))}" if starts else ""
    left_out = sum(max(0, len(lanes) - most) for lanes in drawn.values())
    rest = f"{plural(left_out, 'more lane')} not drawn" if left_out else ""
    summary = plural(count, "row") + since
    return Scene("From coming to going", summary, tuple(timelines), rest, one_axis=True)


def lifetimes(changes: pa.Table) -> list[Lifetime]:
    """Return the rows that changes bring, each until it expires or a sign of -1 takes it back."""
    if not changes.num_rows:
        return []
    names = [name for name in changes.column_names if name not in (AT, EXP, SIGN)]
    rows = zip(*(changes.column(name).to_pylist() for name in names), strict=True)
    texts = [", ".join(map(str, row)) for row in rows] if names else [""] * changes.num_rows
    at, exp = (changes.column(name).cast(pa.int64()).to_pylist() for name in (AT, EXP))
    signs = changes.column(SIGN).to_pylist() if SIGN in changes.column_names else [1] * len(at)
    found: list[Lifetime] = []
    there: defaultdict[tuple[str, int | None], deque[int]] = defaultdict(deque)
    for text, start_us, end_us, sign in zip(texts, at, exp, signs, strict=True):
        if sign > 0:
            there[text, end_us].append(len(found))
            found.append(Lifetime(text, start_us, end_us))
        elif there[text, end_us]:
            # Rows with equal values and ends are alike: it does not matter which of them goes.
            gone = there[text, end_us].popleft()
            found[gone] = replace(found[gone], end_us=start_us)
    return found


def lanes_of(lives: Sequence[Lifetime]) -> list[Lane]:
    """Return lanes in the order in which rows first came; equal rows share one if they can."""
    lanes: list[list[Lifetime]] = []
    for life in sorted(lives, key=lambda each: each.start_us):
        for lane in lanes:
            last = lane[-1]
            if last.row == life.row and last.end_us is not None and last.end_us <= life.start_us:
                lane.append(life)
                break
        else:
            lanes.append([life])
    return [
        Lane(lane[0].row, tuple(Bar(each.start_us, each.end_us) for each in lane), note=note(lane))
        for lane in lanes
    ]


def note(lane: Sequence[Lifetime]) -> str:
    """Return how long rows were in the answer, all together."""
    ends = [each.end_us for each in lane if each.end_us is not None]
    if len(ends) < len(lane):
        return "stays"
    return lasting_text(sum(ends) - sum(each.start_us for each in lane))
