"""How the tuples of an edge of a standing plan come and go, derived from the plan alone.

monotonic   none ever goes
weakest     each goes a constant time after it came, so in the order of coming
weak        each knows when it will go when it comes; some live longer than others
strict      when some go depends on what comes later

The pattern decides how tuples are kept: those that go in the order of coming wait in a queue, those
that know their time in a calendar queue, and those that may be taken back at any time are found by
their id.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Literal, assert_never

from eventide.plan.aggregates import (
    BY_PANE,
    DECAYED,
    LONGEST_WORD,
    MERGED_WITH_SKETCHES,
    MOST_AGGREGATES,
    MOST_LISTED,
    SKETCHED,
    TAKEN_BACK,
)
from eventide.plan.expressions import Aggregate
from eventide.plan.nodes import Filter, Project
from eventide.plan.standing.nodes import (
    AsOfJoin,
    Difference,
    Distinct,
    Existence,
    GroupAggregate,
    Merge,
    OuterJoin,
    PeriodWindow,
    RangeWindow,
    RowsWindow,
    SessionWindow,
    SinceWindow,
    Standing,
    StreamWindow,
    Top,
    Unbounded,
    Windowed,
    WindowJoin,
)
from eventide.plan.tree import Plan


class UpdatePattern(IntEnum):
    """How tuples leave, from the easiest to the hardest to follow."""

    MONOTONIC = 0
    WEAKEST = 1
    WEAK = 2
    STRICT = 3

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Edge:
    """What is known of the tuples that go from one node of a plan to the next.

    `lifetime_us` is how long each lives if the pattern is weakest, otherwise the longest possible
    life; None if there is no such bound. `internal` says that all windows below are internal.
    `in_order` says that tuples expire in the order in which they come, as those of one time window
    always do, even if their lifetimes differ.
    """

    pattern: UpdatePattern
    lifetime_us: int | None
    internal: bool = False
    in_order: bool = False

    @property
    def strict(self) -> bool:
        """Whether tuples may go before they expire."""
        return self.pattern == UpdatePattern.STRICT


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the patterns of a plan depend on beside its nodes.

    `slide_us` is the multiple to which windows round the coming and going of tuples. With
    `strict_distinct` a value that stays is not emitted again. With `kept`, edges are as operators
    keep them: internal windows count as the others, because they bound the state just as much.
    `all_internal` is set below an output window, which makes all windows internal.
    """

    slide_us: int | None = None
    strict_distinct: bool = False
    kept: bool = False
    all_internal: bool = False

    @classmethod
    def of(cls, plan: Standing, *, kept: bool = False) -> Circumstances:
        """Return the circumstances of the edges inside a standing query."""
        return cls(
            # To restore rows that a refresh would miss, the plan has to run on true times.
            slide_us=None if plan.restore else plan.slide_us,
            strict_distinct=plan.report != "current",
            kept=kept,
            all_internal=plan.output_window is not None,
        )


FREE = Circumstances()
_FOREVER = Edge(UpdatePattern.MONOTONIC, None, in_order=True)


def pattern_of(plan: Plan, circumstances: Circumstances = FREE) -> Edge:
    """Return the edge that comes out of a node; that of a whole query is its answer."""
    if isinstance(plan, Standing):
        return _answer(plan, kept=circumstances.kept)
    if _all_internal(plan, circumstances) and not circumstances.kept:
        return replace(_FOREVER, internal=True)
    return _of_node(plan, circumstances)


def edges(plan: Plan, *, kept: bool = False) -> list[tuple[int, Plan, Edge]]:
    """Return all edges of a plan with their depths, each above its sources."""
    if isinstance(plan, Standing):
        return list(_edges(plan, 0, Circumstances.of(plan, kept=kept)))
    return list(_edges(plan, 0, Circumstances(kept=kept)))


Structure = Literal[
    "queue",
    "calendar queue",
    "calendar queue with id map",
    "id map",
    "none",
]


def structure_of(edge: Edge) -> Structure:
    """Return the structure in which operators keep the tuples of an edge until they go.

    A calendar with an id map finds what goes early as soon as what goes in time, so strict edges
    need nothing else however many of their tuples go early. Where none expires there is no need
    for a calendar.
    """
    match edge.pattern:
        case UpdatePattern.MONOTONIC:
            return "none"
        case UpdatePattern.STRICT:
            return "id map" if edge.lifetime_us is None else "calendar queue with id map"
        case _:
            return "queue" if edge.in_order else "calendar queue"


def structure_below(node: Plan, source: Plan, circumstances: Circumstances) -> Structure:
    """Return the structure in which the tuples of a source wait at the operator of a node.

    Joins and groups make use of tuples that go in order; the others have one calendar for all.
    """
    structure = structure_of(pattern_of(source, circumstances))
    in_order = isinstance(node, WindowJoin | GroupAggregate)
    return "calendar queue" if structure == "queue" and not in_order else structure


MOST_PANES = 16_384
"""The largest number of panes of a group that are kept in order where tuples expire in any order:
inserting a pane moves those behind it."""


def by_pane(node: GroupAggregate, source: Edge, slide_us: int | None) -> bool:
    """Whether a GROUP BY keeps partial results of panes in place of tuples.

    All tuples that expire at the same refresh go as one; only those that may go early have to be
    kept apart. Values that fade can only be kept by pane.
    """
    functions = {item.aggregate.function for item in node.aggregates}
    if slide_us is None or source.strict or not functions <= {*BY_PANE}:
        return False
    if any(item.aggregate.distinct for item in node.aggregates):
        return False
    few = (source.lifetime_us or 0) <= MOST_PANES * slide_us
    return few or source.in_order or bool(functions & {*DECAYED})


def by_sketch(node: GroupAggregate, source: Edge, slide_us: int | None) -> bool:
    """Whether a GROUP BY keeps sketches of panes: no tuple may go early, and all else merges."""
    functions = {item.aggregate.function for item in node.aggregates}
    known = functions <= {*SKETCHED, *MERGED_WITH_SKETCHES} and bool(functions & {*SKETCHED})
    distinct = any(item.aggregate.distinct for item in node.aggregates)
    return slide_us is not None and known and not distinct and not source.strict


def is_taken_back(node: GroupAggregate) -> bool:
    """Whether a value that goes can be taken back from each aggregate of a GROUP BY."""
    aggregates = [item.aggregate for item in node.aggregates]
    return len(aggregates) <= MOST_AGGREGATES and all(map(_is_taken_back, aggregates))


def _is_taken_back(aggregate: Aggregate) -> bool:
    function, argument = aggregate.function, aggregate.argument
    if function not in TAKEN_BACK or (aggregate.distinct and function != "count"):
        return False
    if argument is None or (function == "count" and not aggregate.distinct):
        return True
    kind = argument.type
    if kind.kind == "decimal" and kind.precision > LONGEST_WORD:
        return False
    if function == "top_k":
        return kind.kind != "binary" and int(aggregate.parameter or 0) <= MOST_LISTED
    return function == "count" or kind.kind not in ("string", "binary")


def windows_of(plan: Plan) -> tuple[Windowed, ...]:
    """Return all windows of a plan, left to right."""
    if isinstance(plan, Windowed):
        return (plan,)
    return tuple(window for source in plan.children for window in windows_of(source))


def feeds_strict_to_as_of(plan: Plan) -> bool:
    """Whether a join as of a time would have to take back results that it joined with the past."""
    circumstances = Circumstances.of(plan, kept=True) if isinstance(plan, Standing) else FREE
    return any(
        isinstance(node, AsOfJoin)
        and pattern_of(node.left, circumstances).pattern == UpdatePattern.STRICT
        for node in nodes_of(plan)
    )


def only_grows(plan: Standing) -> bool:
    """Whether the answer has more and more rows: those that come never go."""
    edge = pattern_of(plan.source, Circumstances.of(plan))
    return edge.pattern == UpdatePattern.MONOTONIC and plan.output_window is None


def keeps_answer(plan: Standing) -> bool:
    """Whether a live run keeps the answer: not where it only grows and reports do without it."""
    return plan.report not in ("istream", "dstream") or not only_grows(plan)


def nodes_of(plan: Plan) -> Iterator[Plan]:
    """Yield all nodes of a plan, each before its sources."""
    yield plan
    for source in plan.children:
        yield from nodes_of(source)


def _edges(
    plan: Plan, depth: int, circumstances: Circumstances
) -> Iterator[tuple[int, Plan, Edge]]:
    yield depth, plan, pattern_of(plan, circumstances)
    if not isinstance(plan, Windowed):
        for source in plan.children:
            yield from _edges(source, depth + 1, circumstances)


def _all_internal(plan: Plan, circumstances: Circumstances) -> bool:
    windows = windows_of(plan)
    return bool(windows) and (
        circumstances.all_internal or all(window.internal for window in windows)
    )


def _answer(plan: Standing, *, kept: bool) -> Edge:
    if plan.output_window is not None:
        return _of_window(plan.output_window, None)
    edge = pattern_of(plan.source, Circumstances.of(plan, kept=kept))
    return _slid(edge, plan.slide_us) if plan.restore else edge


def _of_node(plan: Plan, circumstances: Circumstances) -> Edge:
    """Return the edge of a node with at least one window below it that is not internal."""

    def of(source: Plan) -> Edge:
        return pattern_of(source, circumstances)

    match plan:
        case Windowed(window=window):
            return _of_window(window, circumstances.slide_us)
        case Filter(source=source) | Project(source=source) | AsOfJoin(left=source):
            return of(source)
        case Merge(sources=sources):
            return _merged([of(each) for each in sources])
        case WindowJoin(sources=sources):
            return _joined([of(each) for each in sources])
        case OuterJoin(sources=both, keeps=keeps):
            return _outer([of(each) for each, kept in zip(both, keeps, strict=True) if kept])
        case Distinct(source=source):
            return _distinct(of(source), strict=circumstances.strict_distinct)
        case Difference(left=source) | Existence(left=source) | Top(source=source):
            return Edge(UpdatePattern.STRICT, of(source).lifetime_us)
        case GroupAggregate():
            # Also over windows that lose nothing: a value stays until the next one replaces it.
            return Edge(UpdatePattern.STRICT, None)
        case _:
            # Scans and what is above them before a window: events, which never go.
            return _FOREVER


def _of_window(window: StreamWindow, slide_us: int | None) -> Edge:
    match window:
        case Unbounded() | SinceWindow():
            return _FOREVER
        case RangeWindow(size_us=size, jump_us=jump):
            # Rounding times up to a multiple of the slide gives the same result if they were
            # rounded to a part of it before.
            if jump is None or (slide_us is not None and slide_us % jump == 0):
                return _slid(Edge(UpdatePattern.WEAKEST, size, in_order=True), slide_us)
            return _slid(Edge(UpdatePattern.WEAK, size + jump - 1, in_order=True), slide_us)
        case PeriodWindow(period_us=period):
            return _slid(Edge(UpdatePattern.WEAK, period, in_order=True), slide_us)
        case RowsWindow() | SessionWindow():
            return Edge(UpdatePattern.STRICT, None)
    assert_never(window)


def _slid(edge: Edge, slide_us: int | None) -> Edge:
    """Return the edge with the coming and going of its tuples rounded up to multiples.

    If the lifetime is a multiple itself, both move alike and nothing changes. Otherwise some tuples
    live one slide longer than others: weak. Rounding keeps the order.
    """
    if slide_us is None or edge.lifetime_us is None or edge.lifetime_us % slide_us == 0:
        return edge
    longest = -(-edge.lifetime_us // slide_us) * slide_us
    return replace(edge, pattern=max(edge.pattern, UpdatePattern.WEAK), lifetime_us=longest)


def _merged(sources: list[Edge]) -> Edge:
    """Return the edge of a union: the hardest of its sources, and weak where they differ."""
    hardest = max(edge.pattern for edge in sources)
    lifetimes = [edge.lifetime_us for edge in sources]
    alike = len({(edge.pattern, edge.lifetime_us) for edge in sources}) == 1
    if hardest == UpdatePattern.WEAKEST and not alike:
        hardest = UpdatePattern.WEAK
    known = [lifetime for lifetime in lifetimes if lifetime is not None]
    longest = max(known) if len(known) == len(lifetimes) else None
    orderly = alike and sources[0].in_order and hardest <= UpdatePattern.WEAKEST
    return Edge(hardest, longest, in_order=orderly)


def _joined(sources: list[Edge]) -> Edge:
    """Return the edge of a join: a combination goes with the first of its parts that goes."""
    known = [edge.lifetime_us for edge in sources if edge.lifetime_us is not None]
    shortest = min(known) if known else None
    hardest = max(edge.pattern for edge in sources)
    if hardest == UpdatePattern.MONOTONIC:
        return _FOREVER
    # Also beside internal windows only: new tuples meet old ones, which go soon.
    return Edge(max(hardest, UpdatePattern.WEAK), shortest)


def _outer(kept: list[Edge]) -> Edge:
    """Return the edge of an outer join: a row beside nulls goes when a partner comes."""
    lifetimes = [edge.lifetime_us for edge in kept if edge.lifetime_us is not None]
    return Edge(UpdatePattern.STRICT, max(lifetimes) if len(lifetimes) == len(kept) else None)


def _distinct(source: Edge, *, strict: bool) -> Edge:
    if source.pattern == UpdatePattern.MONOTONIC:
        return source
    if source.pattern == UpdatePattern.STRICT or strict:
        return Edge(UpdatePattern.STRICT, None)
    return Edge(UpdatePattern.WEAK, source.lifetime_us)
