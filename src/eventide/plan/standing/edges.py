"""How the tuples of an edge of a standing plan come and go.

monotonic   none ever goes
weakest     each goes a constant time after it came, so in the order of coming
weak        each knows when it will go when it comes; some live longer than others
strict      when some go depends on what comes later

The pattern decides how tuples are kept: those that go in the order of coming wait in a queue, those
that know their time in a calendar queue, and those that may be taken back at any time are found by
their id.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eventide.plan.standing.nodes import Standing


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
FOREVER = Edge(UpdatePattern.MONOTONIC, None, in_order=True)


def slid(edge: Edge, slide_us: int | None) -> Edge:
    """Return the edge with the coming and going of its tuples rounded up to multiples.

    If the lifetime is a multiple itself, both move alike and nothing changes. Otherwise some tuples
    live one slide longer than others: weak. Rounding keeps the order.
    """
    if slide_us is None or edge.lifetime_us is None or edge.lifetime_us % slide_us == 0:
        return edge
    longest = -(-edge.lifetime_us // slide_us) * slide_us
    return replace(edge, pattern=max(edge.pattern, UpdatePattern.WEAK), lifetime_us=longest)


def merged(sources: list[Edge]) -> Edge:
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


def joined(sources: list[Edge]) -> Edge:
    """Return the edge of a join: a combination goes with the first of its parts that goes."""
    known = [edge.lifetime_us for edge in sources if edge.lifetime_us is not None]
    shortest = min(known) if known else None
    hardest = max(edge.pattern for edge in sources)
    if hardest == UpdatePattern.MONOTONIC:
        return FOREVER
    # Also beside internal windows only: new tuples meet old ones, which go soon.
    return Edge(max(hardest, UpdatePattern.WEAK), shortest)


def outer(kept: list[Edge]) -> Edge:
    """Return the edge of an outer join: a row beside nulls goes when a partner comes."""
    lifetimes = [edge.lifetime_us for edge in kept if edge.lifetime_us is not None]
    return Edge(UpdatePattern.STRICT, max(lifetimes) if len(lifetimes) == len(kept) else None)
