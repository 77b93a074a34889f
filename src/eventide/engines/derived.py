"""Plans over derived streams, answered from the inside.

The plan below each `DerivedStream` is a query of its own. Its rows, in order, are a source of a
made-up name, and the plan above reads them as it reads a stream.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from eventide.plan.nodes import DerivedStream, Filter, Project, Scan, rebuild_sources, scans_of
from eventide.plan.standing.nodes import Merge, Standing
from eventide.plan.tree import Plan

_NAME = "derived"


def parts_of(plan: Plan) -> tuple[Plan, ...]:
    """Return the queries whose rows are those below a derived stream."""
    if isinstance(plan, Merge):
        return tuple(part for each in plan.sources for part in parts_of(each))
    if isinstance(plan, Project | Filter) and is_over_standing(plan):
        return parts_of(plan.source)
    return (plan,)


def is_over_standing(plan: Plan) -> bool:
    """Whether a plan computes with the rows of a standing query one by one."""
    while isinstance(plan, Project | Filter):
        plan = plan.source
    return isinstance(plan, Standing)


@dataclass(frozen=True, slots=True)
class Opened:
    """A plan over scans alone, and the derived streams that some of them stand for, by name."""

    plan: Plan
    below: dict[str, DerivedStream]


@dataclass
class Opener:
    """Gives derived streams names: equal ones the same name, no one that of a stream."""

    taken: Collection[str]
    known: dict[DerivedStream, str] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan) -> Opener:
        """Return what opens a plan and the plans below its derived streams."""
        return cls({scan.stream.lower() for scan in scans_of(plan)})

    def open(self, plan: Plan) -> Opened:
        """Replace the highest derived streams of a plan by scans."""
        below: dict[str, DerivedStream] = {}

        def opened(node: Plan) -> Plan:
            if not isinstance(node, DerivedStream):
                return rebuild_sources(node, opened)
            name = self.name_of(node)
            below[name] = node
            return Scan(name, tuple(node.row.items()), span=node.span)

        return Opened(opened(plan), below)

    def name_of(self, stream: DerivedStream) -> str:
        """Return the name of a derived stream."""
        if stream not in self.known:
            number = len(self.known)
            while f"{_NAME}_{number}" in self.taken:
                number += 1
            self.taken = {*self.taken, f"{_NAME}_{number}"}
            self.known[stream] = f"{_NAME}_{number}"
        return self.known[stream]
