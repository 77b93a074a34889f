"""Temporal patterns in explain: what sets a match off, what is joined, what is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eventide.operators.situations.match import MatchSituations
from eventide.operators.situations.plan import Statistics
from eventide.plan.situations.nodes import Situations, TemporalPattern
from eventide.plan.times import format_duration

SMALLEST_SHOWN = 1e-4


def matcher_lines(operator: MatchSituations) -> Iterator[str]:
    """Yield how the matches of a pattern are found, as planned before the first event."""
    statistics = operator.initial_state().statistics
    within = format_duration(operator.node.within_us)
    if operator.symbols == 1:
        yield "matcher: every situation is a match"
    else:
        yield f"matcher: one situation sets a match off, the others are of the last {within}"
    yield from (f"  {line}" for line in order_lines(operator, statistics))


def order_lines(operator: MatchSituations, statistics: Statistics) -> Iterator[str]:
    """Yield for each situation when it may set a match off, and in which order others follow."""
    count = operator.symbols
    for symbol, each in enumerate(operator.node.situations):
        order = statistics.orders[symbol * count : (symbol + 1) * count].tolist()
        joined = [joined_text(operator, statistics, order, place) for place in range(1, count)]
        moments = moments_of(operator, symbol)
        if not moments:
            yield f"{each.name} never does"
            continue
        line = f"{each.name} {' or '.join(moments)}"
        yield f"{line}: {', then '.join(joined)}" if joined else line


def moments_of(operator: MatchSituations, symbol: int) -> list[str]:
    """Return when a situation may set a match off: when it can be seen, when it ends."""
    situation = operator.node.situations[symbol]
    if operator.node.detection == "final" or situation.most_us is not None:
        return ["at its end"]
    lasted = f"once it has lasted {format_duration(situation.least_us)}"
    moments = [lasted if situation.least_us else "at its start"]
    if not operator.tables.starts_matter[symbol]:
        moments = []
    return [*moments, "at its end"] if operator.tables.ends_matter[symbol] else moments


def joined_text(
    operator: MatchSituations, statistics: Statistics, order: Sequence[int], place: int
) -> str:
    """Return what is joined at a place of an order: how many there are, and how many fit."""
    count, symbol = operator.symbols, order[place]
    links = [other * count + symbol for other in order[:place]]
    links = [link for link in links if operator.tables.linked[link]]
    share = 1.0
    for link in links:
        share *= float(statistics.shares[link])
    fit = f"{percent(share)} fit" if links else "all fit"
    kept = f"{float(statistics.sizes[symbol]):.3g} kept"
    return f"{operator.node.situations[symbol].name} ({kept}, {fit})"


def percent(share: float) -> str:
    """Return a share of 1 as percent.

    >>> percent(0.0312), percent(0.445), percent(0.0), percent(1e-9)
    ('3.1 %', '44 %', '0 %', '< 0.01 %')
    """
    if 0.0 < share < SMALLEST_SHOWN:
        return f"< {100 * SMALLEST_SHOWN:.2g} %"
    return f"{100 * share:.2g} %" if share < 0.995 else "100 %"


def learnt_lines(learnt: Sequence[tuple[MatchSituations, Statistics]]) -> Iterator[str]:
    """Yield what matchers had learnt at the end: averages, and the resulting orders.

    Every slice learns for itself; the last one is shown.
    """
    operator, statistics = learnt[-1]
    count = operator.symbols
    if count == 1:
        return
    names = [each.name for each in operator.node.situations]
    of = f" in the last of {len(learnt)} slices" if len(learnt) > 1 else ""
    kept = (f"{name} {size:.3g}" for name, size in zip(names, statistics.sizes, strict=True))
    yield f"situations kept{of}, on average: {', '.join(kept)}"
    for each in operator.node.constraints:
        share = float(statistics.shares[each.first * count + each.second])
        yield f"  {names[each.first]} and {names[each.second]} fit: {percent(share)}"
    planned = sum(int(each.counts[1]) for _, each in learnt)
    yield f"  orders of joining, planned anew {planned:,} time{'' if planned == 1 else 's'}"
    yield from (f"    {line}" for line in order_lines(operator, statistics))


def kept_text(node: TemporalPattern | Situations, keys: str) -> str:
    """Return what a live query keeps of situations, and which part of it may stay for ever."""
    parts = ["open situations"]
    if isinstance(node, TemporalPattern):
        parts = [f"the situations of the last {format_duration(node.within_us)}, and open ones"]
        if node.confirm:
            parts.append("the members of reported matches until all of them are over")
        if node.limit is not None:
            every = "for every key that ever had a match" if node.keys else "of all matches"
            parts.append(f"a counter {every}")
    kept = "; ".join(parts)
    if not node.keys:
        return f"{kept}, by no key"
    if node.gap_us is None:
        silent = "one that is open when its key falls silent stays for ever, without GAP"
    else:
        silent = f"a key that falls silent ends them {format_duration(node.gap_us)} later"
    return f"{kept}, by {keys}: {silent}"
