"""Choose which of several plans of a standing query is run: the cheapest with the same answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from itertools import product
from typing import cast

from eventide.errors import PlanError
from eventide.plan.check import check_plan
from eventide.plan.passes.move_negation import moves_of_negation
from eventide.plan.passes.narrow_rows import narrow_rows
from eventide.plan.passes.push_selections import push_selections
from eventide.plan.standing.cost import NOTHING_KNOWN, cost_of, costs_of
from eventide.plan.standing.execution import Execution
from eventide.plan.standing.nodes import Standing
from eventide.plan.standing.statistics import Statistics
from eventide.plan.standing.structures import feeds_strict_to_as_of
from eventide.plan.tree import Plan

MOST_ALTERNATIVES = 32
"""How many places of negations are tried; each join and each negation doubles them."""
CLEARLY = 0.95
"""A plan is taken if none costs less than this share of it: costs are not more exact than that, and
earlier plans are closer to what was written."""

Candidates = tuple[tuple[str, Standing], ...]


@dataclass(frozen=True, slots=True)
class Alternative:
    """A plan that gives the same answers, how it was made, and its cost."""

    name: str
    plan: Standing
    cost: float


@dataclass(frozen=True, slots=True)
class Chosen:
    """The plan to run, what it costs in each execution, what it was chosen from, and by what."""

    plan: Standing
    alternatives: tuple[Alternative, ...]
    costs: Mapping[Execution, float]
    statistics: Statistics

    @property
    def cheapest(self) -> Alternative:
        """The alternative that was chosen; the plan that runs has no unneeded columns."""
        return _cheapest(self.alternatives)


def choose_plan(plan: Standing, statistics: Statistics = NOTHING_KNOWN) -> Chosen:
    """Return the cheapest of the plans that give the same answers as a bound one.

    The plan as written is one of them, if it can run: see `alternatives_of`.
    """
    return choose_among(alternatives_of(plan), statistics)


def steady_plan(plan: Plan) -> Plan:
    """Return the plan that is run where it may not depend on what is stored at the time."""
    return with_choices(plan, lambda candidates: choose_among(candidates, NOTHING_KNOWN).plan)


def with_choices(plan: Plan, choose: Callable[[Candidates], Plan]) -> Plan:
    """Return a plan, each part of which that may run in several ways in the one that is chosen."""
    candidates = alternatives_of(plan)
    chosen = choose(candidates) if candidates else plan
    return chosen.with_children(lambda source: with_choices(source, choose))


def choose_among(candidates: Candidates, statistics: Statistics) -> Chosen:
    """Return the cheapest of the plans that `alternatives_of` found."""
    alternatives = tuple(
        Alternative(name, each, cost_of(each, statistics)) for name, each in candidates
    )
    narrow = _narrowed(_cheapest(alternatives).plan)
    return Chosen(narrow, alternatives, costs_of(narrow, statistics), statistics)


@singledispatch
def alternatives_of(plan: Plan) -> Candidates:  # noqa: ARG001 - most nodes run as they are
    """Return the plans that may be run in place of one, and how they were made, if any.

    The one as written comes first. What its windows read has alternatives of its own.
    """
    return ()


@alternatives_of.register
def _(plan: Standing) -> Candidates:
    # A join as of a time cannot take rows back: plans in which it would have to are left out.
    found = tuple((name, each) for name, each in _rewrites(plan) if not feeds_strict_to_as_of(each))
    if not found:
        message = "a join as of a time would have to take back what it joined with the past"
        hint = "join first, and use ROWS, NOT EXISTS, EXCEPT, GROUP BY or LIMIT on the result"
        raise PlanError(message, hint=hint, span=plan.span)
    return found


def variants_of(plan: Plan) -> Iterator[Plan]:
    """Yield all plans that may be run for a bound one, for any statistics."""
    candidates = alternatives_of(plan)
    for each in (_narrowed(found) for _, found in candidates) if candidates else (plan,):
        yield from (_over(each, below) for below in product(*map(variants_of, each.children)))


def _over(plan: Plan, sources: Sequence[Plan]) -> Plan:
    below = iter(sources)
    return plan.with_children(lambda _: next(below))


def _narrowed(plan: Standing) -> Standing:
    return cast("Standing", check_plan(narrow_rows(plan), after="choose_plan"))


def _pushed(plan: Plan) -> Standing:
    return cast("Standing", push_selections(plan))


def _cheapest(alternatives: tuple[Alternative, ...]) -> Alternative:
    least = min(each.cost for each in alternatives)
    return next(each for each in alternatives if each.cost * CLEARLY <= least)


def _rewrites(plan: Standing) -> Iterator[tuple[str, Standing]]:
    """Yield plans with the same answers; no rewrite changes what is reported of the answer."""
    yield "as written", plan
    pushed = _pushed(plan)
    known = {plan, pushed}
    waiting = [("", pushed)]
    if pushed != plan:
        yield "selections below", pushed
    while waiting and len(known) < MOST_ALTERNATIVES:
        done, current = waiting.pop(0)
        for move, moved in moves_of_negation(current):
            rewritten = _pushed(moved)
            if rewritten not in known and len(known) < MOST_ALTERNATIVES:
                known.add(rewritten)
                name = f"{done}, {move}" if done else move
                yield name, rewritten
                waiting.append((name, rewritten))
