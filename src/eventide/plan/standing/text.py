"""The text of explain for a standing plan: how tuples leave each edge, and where they wait."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from eventide.plan.aggregates import DECAYED
from eventide.plan.nodes import Filter, Project, scans_of
from eventide.plan.render import render
from eventide.plan.standing.choose import Chosen
from eventide.plan.standing.edges import Circumstances, Edge, UpdatePattern
from eventide.plan.standing.joins import AsOfJoin, Existence, OuterJoin, WindowJoin
from eventide.plan.standing.nodes import Difference, Distinct, GroupAggregate, Standing, Top
from eventide.plan.standing.statistics import (
    DEFAULT_DISTINCT,
    DEFAULT_RATE,
    EQUAL,
    Statistics,
)
from eventide.plan.standing.structures import by_pane, by_sketch, is_taken_back, structure_below
from eventide.plan.standing.unseen import unseen_share
from eventide.plan.standing.update_patterns import edges, nodes_of, pattern_of, windows_of
from eventide.plan.standing.windows import RowsWindow, SessionWindow, Windowed
from eventide.plan.times import format_duration
from eventide.plan.tree import Plan


def described_edges(plan: Standing, chosen: Chosen) -> list[str]:
    """Return a line for each node of the plan that runs, and then the alternatives."""
    # True times run below a join as of a time: nothing waits for a refresh there.
    as_of = [node for node in nodes_of(plan) if isinstance(node, AsOfJoin)]
    unrounded = frozenset(id(window) for node in as_of for window in windows_of(node))
    remembered = _Remembered(Circumstances.of(plan, kept=True), unrounded)
    return [
        *(_line(depth, node, edge, remembered) for depth, node, edge in edges(plan)),
        *_choice(chosen),
    ]


def _line(depth: int, node: Plan, edge: Edge, remembered: _Remembered) -> str:
    parts = remembered.state(node)
    state = f"; state: {', '.join(parts)}" if parts else ""
    return f"{'  ' * depth}{node.line}: {pattern_text(edge)}{remembered.unseen(node)}{state}"


def pattern_text(edge: Edge) -> str:
    """Return how the tuples of an edge leave.

    >>> pattern_text(Edge(UpdatePattern.WEAKEST, 60_000_000))
    'weakest, lives 1 min'
    """
    text = str(edge.pattern)
    if edge.internal:
        return f"{text}, internal"
    if edge.lifetime_us is None:
        return text
    about = "lives" if edge.pattern == UpdatePattern.WEAKEST else "lives up to"
    return f"{text}, {about} {format_duration(edge.lifetime_us)}"


@dataclass(frozen=True, slots=True)
class _Remembered:
    """What operators keep, as engines/standing/build.py builds them."""

    kept: Circumstances
    unrounded: frozenset[int]
    """The windows, by identity, whose tuples are not rounded to refreshes."""

    def state(self, node: Plan) -> list[str]:
        """Return what the operator of a node remembers, in which structures."""
        match node:
            case Windowed():
                return self._window(node)
            case WindowJoin():
                return self._join(node)
            case OuterJoin():
                return self._outer(node)
            case Existence(left=left, right=right):
                return [self._waits(node, each, " by key") for each in (left, right)]
            case Difference(left=left, right=right):
                return [self._waits(node, each, " by value") for each in (left, right)]
            case AsOfJoin(right=right):
                waiting = ["what waits for a refresh"] if self.kept.slide_us is not None else []
                return [f"newest by key ({_names(right)})", *waiting]
            case GroupAggregate():
                return self._group(node)
            case Distinct():
                return self._distinct(node)
            case Top(source=source):
                return ["all rows in order", self._waits(node, source)]
            case _:
                return []

    def unseen(self, node: Plan) -> str:
        """Return the share of the results of a join that no refresh sees, if it is known."""
        if not isinstance(node, WindowJoin) or self.kept.slide_us is None:
            return ""
        share = unseen_share(node, self.kept.slide_us)
        return "" if share is None else f", about {share:.1%} unseen between refreshes"

    def _window(self, node: Windowed) -> list[str]:
        match node.window:
            case RowsWindow(keys=keys):
                return [f"the last rows{' by key' if keys else ''}"]
            case SessionWindow(keys=keys):
                return [f"the rows of sessions{' by key' if keys else ''}"]
        waits = self.kept.slide_us is not None and id(node) not in self.unrounded
        return ["what waits for a refresh"] if waits else []

    def _join(self, node: WindowJoin) -> list[str]:
        # A calendar needs an upper bound of lifetimes.
        return [
            f"list by key ({_names(source)})"
            if pattern_of(source, self.kept).lifetime_us is None
            and structure_below(node, source, self.kept) == "calendar queue"
            else self._waits(node, source, " by key")
            for source in node.sources
        ]

    def _outer(self, node: OuterJoin) -> list[str]:
        """Return the state of the join, and of what finds rows without a partner."""
        join = self._join(WindowJoin(node.sources, node.keys))
        found = " by key" if node.condition is None else " by id"
        alone = [
            self._waits(node, source, found)
            for source, kept in zip(node.sources, node.keeps, strict=True)
            if kept or node.condition is None
        ]
        alone += [] if node.condition is None else ["results by id"]
        return [f"{', '.join(join)}; alone: {', '.join(alone)}"]

    def _group(self, node: GroupAggregate) -> list[str]:
        functions = {item.aggregate.function for item in node.aggregates}
        edge = pattern_of(node.source, self.kept)
        if by_sketch(node, edge, self.kept.slide_us):
            return ["panes by group"]
        if not functions & {*DECAYED} and not is_taken_back(node):
            return [f"rows, computed again ({_names(node.source)})"]
        if by_pane(node, edge, self.kept.slide_us):
            return [f"partial results by pane ({', '.join(_synopses(functions))})"]
        if structure_below(node, node.source, self.kept) == "none":
            return ["array by group"]
        return ["array by group", self._waits(node, node.source)]

    def _distinct(self, node: Distinct) -> list[str]:
        """Return where values wait: with their successors, or with counts of their tuples."""
        edge = pattern_of(node, self.kept)
        if edge.strict:
            return ["counts by value", self._waits(node, node.source)]
        if edge.pattern == UpdatePattern.MONOTONIC:
            return ["values"]
        return ["calendar queue of values and successors"]

    def _waits(self, node: Plan, source: Plan, found: str = "") -> str:
        structure = structure_below(node, source, self.kept)
        shown = "all, none expires" if structure == "none" else structure
        return f"{shown}{found} ({_names(source)})"


def _synopses(functions: set[str]) -> Iterator[str]:
    """Yield how partial results of panes are kept: totals, staircases, sums computed anew."""
    if not functions or functions - {"min", "max", *DECAYED}:
        yield "running"
    if functions & {"min", "max"}:
        yield "staircase"
    if functions & {*DECAYED}:
        yield "fading"


def _names(source: Plan) -> str:
    """Return the windows that a source is made of."""
    while isinstance(source, Filter | Project):
        source = source.children[0]
    return ", ".join(window.alias for window in windows_of(source))


def _choice(chosen: Chosen) -> Iterator[str]:
    costs = ", ".join(f"{name} {cost_text(cost)}" for name, cost in chosen.costs.items())
    yield f"cost a second by execution: {costs} (tuples touched for a second of events, not time)"
    if len(chosen.alternatives) > 1:
        for each in chosen.alternatives:
            mark = ", chosen" if each is chosen.cheapest else ""
            yield f"plan {each.name}: {cost_text(each.cost)}{mark}"
        for leaf in windows_of(chosen.plan):
            yield f"assumed of {_assumed(leaf, chosen.statistics)}"


def _assumed(leaf: Windowed, statistics: Statistics) -> str:
    """Return the statistics of one window that the choice was based on; guesses are marked."""
    (scan,) = scans_of(leaf)
    name = f"{scan.stream} ({leaf.alias})"
    if leaf.alias not in statistics:
        return (
            f"{name}: a guess, for nothing is stored: {cost_text(DEFAULT_RATE)} a second, "
            f"{DEFAULT_DISTINCT:,.0f} different values, = true on {percent(EQUAL)}"
        )
    known = statistics[leaf.alias]
    values = [f"about {each.distinct:,.0f} different {of}" for of, each in known.values.items()]
    nulls = [
        f"{of} null on {percent(each.nulls)}" for of, each in known.values.items() if each.nulls
    ]
    in_window = [f"{' and '.join(values)} in the window"] if values else []
    shares = [f"{render(each)} on {percent(share)}" for each, share in known.shares.items()]
    parts = [f"{cost_text(known.rate)} a second", *in_window, *nulls, *shares]
    return f"{name}: {', '.join(parts)}"


def percent(share: float) -> str:
    """Return a share as text.

    >>> [percent(share) for share in (0.0004, 0.041, 0.5, 1.0)]
    ['0.04 %', '4.1 %', '50 %', '100 %']
    """
    return f"{cost_text(100.0 * share)} %"


def cost_text(cost: float) -> str:
    """Return a cost with at least two significant digits.

    >>> [cost_text(cost) for cost in (0.0, 0.0123, 1.26, 37.4, 1234.5)]
    ['0', '0.012', '1.3', '37', '1,234']
    """
    return f"{cost:,.0f}" if cost >= 10 else f"{cost:.2g}"
