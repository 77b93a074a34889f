"""Which share of a join's results is never seen, because no refresh falls into their life."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from eventide.plan.nodes import Filter, Project, Scan
from eventide.plan.standing.joins import WindowJoin
from eventide.plan.standing.windows import RangeWindow, Windowed
from eventide.plan.tree import Plan

_MOMENTS = 64
"""The number of ages of a result, up to one slide, at which its survival is computed."""


def unseen_share(join: WindowJoin, slide_us: int) -> float | None:
    """Return the share of results that come and go between two refreshes, None if unknown.

    It is known for windows of constant length over different streams, whose events come steadily
    and independently. For two windows of one length it is slide / (2 length).
    """
    leaves = [_leaf(source) for source in join.sources]
    lengths = [_length(leaf) for leaf in leaves]
    streams = {leaf.source.stream for leaf in leaves if leaf and isinstance(leaf.source, Scan)}
    known = [length for length in lengths if length is not None]
    if len(known) < len(lengths) or len(streams) < len(lengths):
        return None
    return _share(known, slide_us)


def _share(lengths: Sequence[int], slide_us: int) -> float:
    """Return the share of combinations that live through no refresh.

    The last event of a combination meets others of any age, so each has any time left up to its
    window's length; the first to expire ends the result. It is seen if it lives longer than the
    time to the next refresh, which is anything up to the slide. The number of combinations that an
    event of a window makes is proportional to the lengths of the others.

    >>> _share([60, 60], 10)
    0.08333333333333337
    """
    ages = [slide_us * (number + 0.5) / _MOMENTS for number in range(_MOMENTS)]
    made, seen = 0.0, 0.0
    for place in range(len(lengths)):
        others = [length for number, length in enumerate(lengths) if number != place]
        outlived = sum(prod(1.0 - age / length for length in others) for age in ages) / _MOMENTS
        made += prod(others)
        seen += prod(others) * outlived
    return 1.0 - seen / made


def _leaf(source: Plan) -> Windowed | None:
    while isinstance(source, Filter | Project):
        source = source.children[0]
    return source if isinstance(source, Windowed) else None


def _length(leaf: Windowed | None) -> int | None:
    match leaf:
        case Windowed(window=RangeWindow(size_us=size, jump_us=None)):
            return size
    return None
