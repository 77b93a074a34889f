"""The contents of the picture of a query: leaves, conditions, periods and ways, from the engine."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eventide.drawing.chart.model import Color
from eventide.drawing.plan import Marks, PlanPicture, Section, StepRow, Track, WayRow
from eventide.engines.explain.explained import Considered, Explained, ExplainedBlock
from eventide.engines.explain.leaf_strip import Fate, LeafStrip
from eventide.engines.explain.text import events_text, numbers_of, seconds_text
from eventide.engines.history.access import WorkStep
from eventide.engines.history.ends import EndsAccess
from eventide.engines.history.patterns.pattern_map import meets
from eventide.engines.history.patterns.replay import merged
from eventide.engines.history.patterns.ways import IntervalAccess
from eventide.engines.history.replay import SLICE_ROWS
from eventide.engines.history.slices import slices_of
from eventide.engines.history.windows.calendar import CalendarIndex
from eventide.engines.history.windows.count_index import CountIndex
from eventide.engines.history.windows.index import WindowIndex
from eventide.kernels.compiled import Bools, Int64s
from eventide.plan.nodes import EndRows, Scan
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.situations.nodes import Situations, TemporalPattern
from eventide.plan.windows.nodes import SlidingAggregate, WindowAggregate
from eventide.sinks.words import plural

WAY_HEADS = ("time", "events", "leaves", "entries", "intervals")
STEP_HEADS = ("time", "rows in", "rows out")
HEADED = (EndRows, WindowAggregate, SlidingAggregate, MatchRecognize, Situations, TemporalPattern)
MOST_CONDITIONS = 10
MOST_SLICES = 100_000
"""At most this many slices are drawn; more would look like a solid bar."""

FATE_COLORS: dict[Fate, tuple[Color, str]] = {
    "read": ("orange", "leaves read"),
    "kept": ("blue", "left by the map"),
    "summarised": ("teal", "answered by the index"),
    "ruled out": ("grey", "ruled out"),
}


def picture_of(query: str, seen: Explained) -> PlanPicture:
    """Return the picture of a query, a section for each block."""
    title = "How this query would be answered"
    if seen.analyzed:
        title = f"How this query was answered, in {seconds_text(total_seconds(seen))}"
    return PlanPicture(title, " ".join(query.split()), tuple(map(section_of, seen.blocks)))


def total_seconds(seen: Explained) -> float:
    """Return how long a query took: to plan it, to answer its blocks, and to run the rest."""
    blocks = sum(b.planning.seconds + (b.actual.seconds if b.actual else 0.0) for b in seen.blocks)
    standing = sum(query.seconds for query in seen.standing)
    return blocks + standing + (seen.rest.seconds if seen.rest else 0.0)


def section_of(block: ExplainedBlock) -> Section:
    """Return the picture of one block."""
    times = block.source.time_range
    of = f"{block.name}: " if block.name else ""
    rows = f", {plural(block.rows, 'row')} found" if block.actual is not None else ""
    refused = f"; index: no, because {block.ways.refused}" if block.ways.refused else ""
    return Section(
        f"{of}{heading(block)}",
        f"{block.best.describe()}{rows}{refused}",
        times.start_us,
        max(times.end_us, times.start_us + 1),
        () if times.is_empty else tuple(tracks_of(block)),
        tuple(way_rows(block)),
        WAY_HEADS,
        tuple(map(step_row, block.steps)) if block.actual is not None else (),
        STEP_HEADS,
    )


def heading(block: ExplainedBlock) -> str:
    """Return the line of the most important node: the highest that is not a projection."""
    plan = block.plan
    while not isinstance(plan, Scan):
        if isinstance(plan, HEADED):
            break
        (plan,) = plan.children
    return f"{plan.line}, over {plural(block.source.row_count, 'event')}"


def tracks_of(block: ExplainedBlock) -> Iterator[Track]:
    """Yield the lanes over time: events, leaves, then the parts that the chosen way reads."""
    strip = block.strip
    if strip is not None and len(strip.rows):
        events = Marks(
            "events", "grey", strip.start_us, strip.end_us, "rate", strip.rows.astype(np.float64)
        )
        yield Track("events", plural(int(strip.rows.sum()), "event"), (events,), 26)
        yield leaf_track(strip)
    best = block.best
    if block.question is not None:
        yield from (condition_track(block, each) for each in block.conditions[:MOST_CONDITIONS])
    if isinstance(best, IntervalAccess):
        yield from period_tracks(block, best)
    elif isinstance(best, WindowIndex):
        yield slice_track(best)
    elif isinstance(best, CountIndex):
        yield count_track(best)
    elif isinstance(best, CalendarIndex):
        cuts = best.cuts
        yield Track("periods", plural(len(cuts) - 1, "period"), (moments("ends of periods", cuts),))
    elif not isinstance(best, EndsAccess):
        yield from replay_tracks(block)


def leaf_track(strip: LeafStrip) -> Track:
    """Return the leaves, coloured by whether they are read or ruled out."""
    marks = [
        Marks(name, color, strip.start_us[own], leaf_ends(strip, own), faint=fate == "ruled out")
        for fate, (color, name) in FATE_COLORS.items()
        if (own := strip.are(fate)).any()
    ]
    # Leaves ruled out are drawn behind the rest, or stacked shares would not add up to one.
    marks.sort(key=lambda each: not each.faint)
    read = strip.count("read")
    left = f"{strip.count('kept'):,} left" if strip.count("kept") and not read else f"{read:,} read"
    return Track("leaves", f"{left} of {len(strip.rows):,}", tuple(marks), 22)


def leaf_ends(strip: LeafStrip, own: Bools) -> Int64s:
    """Return where some leaves end: where the next begins, so that no gap shows between them."""
    following = np.append(strip.start_us[1:], strip.end_us[-1:])
    gap = following - strip.end_us
    usual = 4 * max(1, int(np.median(strip.end_us - strip.start_us)))
    return np.asarray(np.where(gap < usual, following, strip.end_us)[own])


def condition_track(block: ExplainedBlock, each: Considered) -> Track:
    """Return where a condition can hold by the index, and where it holds if that was looked up."""
    question = block.question
    assert question is not None
    units = question.units
    possible = meets(units, [each.condition])
    start, end = units.ts_min[possible], units.ts_max[possible] + 1
    marks = [Marks("may hold, by the map", "violet", start, end, faint=True)]
    note, hits = events_text(each).replace("about ", "~"), question.found.get(each.condition.clause)
    if hits is not None:
        marks.append(Marks("events that meet it", "violet", hits.ts, hits.ts, "moments"))
        note = plural(len(hits), "event")
    note += ", index" if not each.reach.read_rows else ", column"
    return Track(f"{'● ' if each.chosen else ''}{each.text}", note, tuple(marks))


def period_tracks(block: ExplainedBlock, best: IntervalAccess) -> Iterator[Track]:
    """Yield the periods that are replayed, once it is known where the conditions hold."""
    question = best.question
    if any(each.clause not in question.found for each in best.chosen):
        return
    periods = question.periods(best.chosen)
    order = np.argsort(periods.start_us, kind="stable")
    start, end = merged(periods.start_us[order], periods.end_us[order] + 1)
    # Only what touches a leaf that the map has left is read at all.
    left = np.append(0, np.cumsum(question.kept))
    units = question.units
    first = np.searchsorted(units.ts_max, start)
    behind = np.searchsorted(units.ts_min, end)
    some = left[np.maximum(first, behind)] > left[first]
    start, end = start[some], end[some]
    count = len(start) if block.actual is None else block.actual.intervals
    marks = Marks("replayed", "rose", start, end)
    yield Track("replayed", plural(count, "interval"), (marks,))


def slice_track(best: WindowIndex) -> Track:
    """Return where time is cut for windows."""
    cuts, times = best.cuts, best.times
    count = cuts.between(times) + 1
    starts = np.array([times.start_us], np.int64)
    if 1 < count <= MOST_SLICES:
        first, last = cuts.periods_of(np.array([times.start_us, times.end_us - 1])).tolist()
        starts = np.clip(cuts.starts_of(np.arange(first, last + 1)), times.start_us, None)
    if count <= MOST_SLICES:
        marks = moments("cuts of windows", starts)
    else:
        whole = np.array([times.end_us], np.int64)
        marks = Marks("cuts of windows", "blue", starts, whole)
    return Track("slices", plural(count, "slice"), (marks,))


def count_track(best: CountIndex) -> Track:
    """Return where events are cut for windows by count: in the leaves that are read."""
    counted = best.counted
    units, read = counted.units, counted.read
    marks = Marks("cuts of windows", "blue", units.ts_min[read], units.ts_max[read] + 1)
    return Track("slices", plural(counted.slices, "slice"), (marks,))


def moments(name: str, times: Int64s) -> Marks:
    """Return marks at some times."""
    return Marks(name, "blue", times, times, "moments")


def replay_tracks(block: ExplainedBlock) -> Iterator[Track]:
    """Yield the slices of time of a replay, where there are several."""
    slices = slices_of(block.plan, block.scan, block.source, SLICE_ROWS)
    inner = [part.owned.start_us for part in slices[1:]]
    if inner:
        starts = np.array(inner, np.int64)
        yield Track("slices", plural(len(slices), "slice"), (moments("cuts of slices", starts),))


def way_rows(block: ExplainedBlock) -> Iterator[WayRow]:
    """Yield the ways, with the measured time of the chosen one."""
    for number, access in enumerate(block.ways.accesses):
        actual = block.actual if number == 0 else None
        yield WayRow(
            access.name,
            access.describe(),
            access.estimate.seconds,
            numbers_of(access.estimate),
            None if actual is None else actual.seconds,
            () if actual is None else numbers_of(actual),
            chosen=number == 0,
        )


def step_row(step: WorkStep) -> StepRow:
    """Return a step as a row."""
    taken = "" if step.rows_in is None else f"{step.rows_in:,}"
    given = f"{step.rows:,}" if step.rows or taken else ""
    return StepRow(step.name, step.seconds, (seconds_text(step.seconds), taken, given))
