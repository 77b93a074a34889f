"""What is known of a plan with a pattern before any event is: found once while the plan is kept.

Plans of texts that were seen before are the same objects (lang/seen.py). To compile a pattern takes
longer than to find its few matches.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from threading import Lock

from eventide.engines.build import build_tree
from eventide.engines.history.patterns.conditions import Shape, shape_of
from eventide.operators.tree import OperatorTree
from eventide.plan.meaning import digest_of
from eventide.plan.patterns.gaps import has_only_gaps
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.tree import Plan

MOST_PLANS = 64


@dataclass(frozen=True)
class AskedPlan:
    """A plan, and its pattern."""

    plan: Plan
    node: MatchRecognize

    @cached_property
    def shape(self) -> Shape:
        """The rows that every match has."""
        return shape_of(self.node)

    @cached_property
    def tree(self) -> OperatorTree:
        """The operators of the plan."""
        return build_tree(self.plan)

    @cached_property
    def digest(self) -> str:
        """A short name for what the plan means."""
        return digest_of(self.plan)

    @cached_property
    def has_only_gaps(self) -> bool:
        """Whether only rows that meet a condition matter."""
        return has_only_gaps(self.node)


class AskedPlans:
    """Plans that were asked lately, each with itself, so that no other has its identity."""

    def __init__(self) -> None:
        self.known: OrderedDict[int, AskedPlan] = OrderedDict()
        self.changing = Lock()

    def find(self, plan: Plan, node: MatchRecognize) -> AskedPlan:
        """Return what is known of a plan."""
        with self.changing:
            found = self.known.setdefault(id(plan), AskedPlan(plan, node))
            self.known.move_to_end(id(plan))
            if len(self.known) > MOST_PLANS:
                self.known.popitem(last=False)
            return found


ASKED = AskedPlans()
