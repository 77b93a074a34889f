"""What all nodes of a plan have in common: what generic passes need to know of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace

from eventide.plan.expressions import Expression
from eventide.schema import DataType

Row = Mapping[str, DataType]
"""The columns of a node's output, in order."""
ChangePlan = Callable[["Plan"], "Plan"]
ChangeExpression = Callable[[Expression], Expression]


class Plan(ABC):
    """A node of a plan, with everything below it: a frozen value.

    `plan/nodes.py` lists all nodes. Those of a room are in its own `nodes.py`. A node without
    sources and expressions of its own needs only its columns.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def row(self) -> Row:
        """The columns of the output."""

    @property
    def children(self) -> tuple[Plan, ...]:
        """The plans directly below."""
        return ()

    def with_children(self, change: ChangePlan) -> Plan:  # noqa: ARG002 - there are none
        """Return the node with `change` applied to each plan directly below it."""
        return self

    def with_expressions(self, change: ChangeExpression) -> Plan:  # noqa: ARG002 - there are none
        """Return the node with `change` applied to each of its own expressions."""
        return self


class OverOne(Plan):
    """A node with one source."""

    __slots__ = ()
    source: Plan

    @property
    def children(self) -> tuple[Plan, ...]:
        """The plans directly below."""
        return (self.source,)

    def with_children(self, change: ChangePlan) -> Plan:
        """Return the node over a changed source."""
        return _replaced(self, source=change(self.source))


class OverTwo(Plan):
    """A node with a left and a right source."""

    __slots__ = ()
    left: Plan
    right: Plan

    @property
    def children(self) -> tuple[Plan, ...]:
        """The plans directly below."""
        return (self.left, self.right)

    def with_children(self, change: ChangePlan) -> Plan:
        """Return the node over changed sources."""
        return _replaced(self, left=change(self.left), right=change(self.right))


def _replaced(plan: Plan, **changes: object) -> Plan:
    """Return a node with other values; all nodes are dataclasses."""
    changed: Plan = replace(plan, **changes)  # type: ignore[type-var]
    return changed
