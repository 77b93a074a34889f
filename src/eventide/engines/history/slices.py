"""Where a plan can be cut in time, so that the parts run side by side.

Each slice owns a period: it reports the windows that start there, or the events that are there. For
that it reads a halo around its period: as far back as frames reach, as far ahead as windows last.
Slices need nothing from each other, here or on a cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from eventide.instants import END_OF_TIME_US, START_OF_TIME_US, TimeRange
from eventide.plan.expressions import RangeFrame, RowsFrame
from eventide.plan.nodes import EndRows, Scan, situations_of
from eventide.plan.patterns.cutting import why_whole
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.situations.nodes import Situations, TemporalPattern
from eventide.plan.tree import Plan, remembers
from eventide.plan.windows.nodes import (
    CalendarWindow,
    CountWindow,
    Sessions,
    SlidingAggregate,
    Window,
    WindowAggregate,
    WindowRanks,
)
from eventide.store.source import EventSource

SEARCHED_BACK = 3
"""How many times WITHIN is read before a slice, at first, to find where its matches begin."""


@dataclass(frozen=True, slots=True)
class Halo:
    """How far outside its own period a slice has to read, and where cuts cost least."""

    before_us: int = 0
    after_us: int = 0
    align_us: int = 1

    @property
    def total_us(self) -> int:
        """The length of time that each cut makes to be read twice."""
        return self.before_us + self.after_us


@dataclass(frozen=True, slots=True)
class Slice:
    """What a part of a run reports (`owned`), and what it reads for that (`read`)."""

    owned: TimeRange
    read: TimeRange
    rows: int


class NoEntryError(Exception):
    """Matches reach across every row near a slice. This error never leaves `engines`."""


def halo_of(plan: Plan) -> Halo | None:
    """Return the halo a plan over one scan needs, or None if it cannot be cut in time."""
    match plan:
        case Scan():
            return Halo()
        case SlidingAggregate(frame=RowsFrame()):
            return None  # the row before can be any time ago
        case (
            WindowAggregate(window=CountWindow() | Sessions() | CalendarWindow())
            | WindowRanks()
            | Situations()
            | EndRows()
        ):
            return None  # which rows a window or situation has hangs on all before it
        case MatchRecognize() if why_whole(plan):
            return None
        case TemporalPattern(within_us=within_us):
            # One event before that is read as well: see engines/history/situations/slices.py.
            return None if why_undivided(plan) else Halo(within_us)
        case WindowAggregate() | SlidingAggregate() | MatchRecognize() if situations_of(plan):
            return None  # each would own something else
    halos = [halo_of(source) for source in plan.children]
    if len(halos) != 1 or halos[0] is None:
        return None
    halo = halos[0]
    match plan:
        case SlidingAggregate(frame=RangeFrame(preceding_us)):
            return Halo(halo.before_us + preceding_us)
        case WindowAggregate(window=Window() as window):
            # Windows above frames own starts while frames own events: cut neither.
            if halo != Halo():
                return None
            # Cut where windows start, and the last one owned starts a slide before the cut.
            ahead_us = max(0, window.size_us - window.slide_us)
            return Halo(0, ahead_us, window.slide_us)
        case MatchRecognize(within_us=int(within_us)):
            # Rows before the slice tell where to begin: see engines/history/patterns/slices.py.
            return Halo(SEARCHED_BACK * within_us, within_us) if halo == Halo() else None
    # What other nodes remember may be of any age.
    return halo if plan.state_keys is None else None


def why_undivided(node: TemporalPattern | Situations) -> str | None:
    """Return why situations cannot be followed slice by slice, or None."""
    if node.keys:
        return "each key has its own situations"
    if isinstance(node, Situations):
        return "a situation can last any time"
    reasons = {
        "a match is confirmed any time later": node.confirm,
        "matches are counted for LIMIT": node.limit is not None,
        "what is below remembers rows": remembers(node.source),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def slices_of(plan: Plan, scan: Scan, source: EventSource, target_rows: int) -> list[Slice]:
    """Cut a plan over one scan into slices of about `target_rows`, in order of time."""
    whole = Slice(TimeRange(), scan.time_range, source.row_count)
    halo = halo_of(plan)
    if halo is None or scan.time_range.is_empty:
        return [whole]
    cuts = cut_points(source, scan.time_range, target_rows, halo)
    if not cuts:
        return [whole]
    bounds = [START_OF_TIME_US, *cuts, END_OF_TIME_US]
    rows = source.row_count // (len(bounds) - 1)
    return [
        Slice(TimeRange(start, end), widened(TimeRange(start, end), halo, scan.time_range), rows)
        for start, end in pairwise(bounds)
    ]


def slices_within(
    plan: Plan, scan: Scan, source: EventSource, owned: Sequence[TimeRange], target_rows: int
) -> list[Slice]:
    """Cut periods into slices that together own them; the plan can be cut in time."""
    halo = halo_of(plan)
    assert halo is not None
    slices = []
    for each in owned:
        cuts = [each.start_us, *cut_points(source, each, target_rows, halo), each.end_us]
        slices += [
            Slice(part, widened(part, halo, scan.time_range), target_rows)
            for part in (TimeRange(start, end) for start, end in pairwise(cuts))
        ]
    return slices


def cut_points(
    source: EventSource, time_range: TimeRange, target_rows: int, halo: Halo
) -> list[int]:
    """Return the instants to cut at: two halos apart, so that not much is read twice."""
    cuts = [source.time_range.intersect(time_range).start_us]
    for part in source.slices(time_range, target_rows)[1:]:
        cut = part.time_range.start_us // halo.align_us * halo.align_us
        if cut - cuts[-1] >= max(1, 2 * halo.total_us):
            cuts.append(cut)
    return cuts[1:]


def widened(owned: TimeRange, halo: Halo, scanned: TimeRange) -> TimeRange:
    """Return the period that a slice reads."""
    start = max(owned.start_us - halo.before_us, START_OF_TIME_US)
    end = min(owned.end_us + halo.after_us, END_OF_TIME_US)
    return TimeRange(start, end).intersect(scanned)
