"""Answers for shorter windows than those of a query, from the state it has anyway."""

from __future__ import annotations

from eventide.errors import UnsupportedError
from eventide.plan.nodes import Filter, Project
from eventide.plan.standing.joins import WindowJoin
from eventide.plan.standing.nodes import Merge, Standing
from eventide.plan.standing.update_patterns import windows_of
from eventide.plan.standing.windows import RangeWindow, Windowed
from eventide.plan.times import format_duration
from eventide.plan.tree import Plan

_HINT = "current(last=…) is for selections, joins and UNION ALL of windows [RANGE …] of one length"


def shortened_by(plan: Plan, last_us: int) -> int:
    """Return by how much all windows of a query would be shorter if they were `last_us` long.

    A row that is made of events of windows of one length expires with the oldest event. In shorter
    windows it expires earlier by the difference, and nothing else changes.
    """
    standing = plan.standing
    assert standing is not None, "only a standing query has an answer"
    length = _common_length(standing)
    if not 0 < last_us <= length:
        message = f"the windows of the query hold {format_duration(length)}"
        hint = "ask for the last part of that"
        raise UnsupportedError(message, span=standing.span, hint=hint)
    if standing.slide_us is not None and (length - last_us) % standing.slide_us:
        message = f"the query slides by {format_duration(standing.slide_us)}"
        hint = f"take multiples of that away from {format_duration(length)}"
        raise UnsupportedError(message, span=standing.span, hint=hint)
    return length - last_us


def _common_length(plan: Standing) -> int:
    """Return the length of all windows; refuse a query without answers for shorter ones."""
    lengths = {_length(each) for each in windows_of(plan)}
    length = None if None in lengths else next(iter(lengths))
    reason = ""
    if plan.report in ("rstream", "dstream") or plan.output_window is not None or plan.restore:
        reason = "it is not kept how long rows of this report last"
    elif len(lengths) > 1 and length is not None:
        reason = "the windows have different lengths"
    elif not _is_made_of_events(plan.source):
        reason = "a row may be of events that a shorter window does not have"
    if reason or length is None:
        message = f"no answer for shorter windows: {reason or 'not all windows are [RANGE …]'}"
        raise UnsupportedError(message, span=plan.span, hint=_HINT)
    return length


def _length(leaf: Windowed) -> int | None:
    """Return how long each event of a window stays in it, if that is the same for all."""
    window = leaf.window
    if not isinstance(window, RangeWindow) or window.jump_us is not None or leaf.internal:
        return None
    return window.size_us


def _is_made_of_events(plan: Plan) -> bool:
    if isinstance(plan, Windowed):
        return True
    simple = isinstance(plan, Filter | Project | Merge | WindowJoin)
    return simple and all(map(_is_made_of_events, plan.children))
