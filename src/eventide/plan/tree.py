"""What all nodes of a plan have in common: what generic passes need to know of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar
from typing import Literal as Choice

from eventide.instants import ALL_TIME, TimeRange
from eventide.plan.expressions import (
    Aggregate,
    Column,
    Expression,
    Named,
    NamedAggregate,
    OrderKey,
    columns_of,
    substituted,
)
from eventide.plan.standing.edges import FOREVER, Circumstances, Edge, UpdatePattern
from eventide.schema import INT64, TS, DataType, Schema

if TYPE_CHECKING:
    from eventide.plan.standing.nodes import Standing

Row = Mapping[str, DataType]
"""The columns of a node's output, in order."""
Names = frozenset[str]
Keys = tuple[Expression, ...]
Role = Choice["value", "item", "order", "condition", "aggregate", "aging aggregate"]


@dataclass(frozen=True, slots=True)
class Use:
    """How a node uses an expression: over which rows, and as what.

    An item is a column of the output. Aggregates whose values age have a role of their own: most
    nodes cannot compute them.
    """

    role: Role = "value"
    child: int | None = 0
    """The number of the child whose rows it is over; None for all children side by side."""
    local: bool = True
    """Whether it is over one row, not over several."""


VALUE, ITEM, ORDER = Use(), Use("item"), Use("order")
CONDITION, AGGREGATE = Use("condition"), Use("aggregate")
ChangePlan = Callable[["Plan"], "Plan"]
ChangeExpression = Callable[[Expression, Use], Expression]
P = TypeVar("P", bound="Plan")


class Plan(ABC):
    """A node of a plan, with everything below it: a frozen value.

    Passes are written once, over the methods below. A node overrides those whose default does not
    fit it; one without sources and expressions of its own needs only its columns.
    """

    __slots__ = ()

    is_stream: ClassVar[bool] = False
    """Whether the rows are events: each has a time `ts`, and they are in order of it."""
    reads_time: ClassVar[bool] = False
    """Whether the node needs the `ts` of the rows below."""
    passes: ClassVar[bool] = True
    """Whether columns of the children are columns of the output."""
    compares_rows: ClassVar[bool] = False
    """Whether all columns of the children count: rows that differ in any are different rows."""
    keeps_rows: ClassVar[bool] = False
    """Whether rows of the children wait in its state, so that each column takes memory."""
    beside: ClassVar[bool] = False
    """Whether columns of all children stand side by side in the output, under their own names."""
    rows_apart: ClassVar[bool] = False
    """Whether what becomes of a row of the first child depends on no other row of it."""
    in_chain: ClassVar[bool] = True
    """Whether its operator is one of a chain over a scan, if there is one scan below it."""

    @property
    @abstractmethod
    def row(self) -> Row:
        """The columns of the output."""

    @property
    def children(self) -> tuple[Plan, ...]:
        """The plans directly below."""
        return ()

    @property
    def in_order(self) -> bool:
        """Whether rows come in order of (ts, _seq), `ts` being that of the events."""
        return self.is_stream

    @property
    def changes(self) -> bool:
        """Whether its rows may go again: the edge above it is not append-only."""
        return any(source.changes for source in self.children)

    def with_children(self, change: ChangePlan) -> Plan:  # noqa: ARG002 - there are none
        """Return the node with `change` applied to each plan directly below it."""
        return self

    def with_expressions(self, change: ChangeExpression) -> Plan:  # noqa: ARG002 - there are none
        """Return the node with `change` applied to each of its own expressions."""
        return self

    @property
    def expressions(self) -> list[tuple[Expression, Use]]:
        """The node's own expressions, and how it uses them."""
        found: list[tuple[Expression, Use]] = []

        def noted(expression: Expression, use: Use) -> Expression:
            found.append((expression, use))
            return expression

        self.with_expressions(noted)
        return found

    def row_for(self, use: Use) -> Row:
        """Return the columns that an expression may read."""
        if use.child is not None:
            return self.children[use.child].row
        return {name: kind for child in self.children for name, kind in child.row.items()}

    @property
    def compared(self) -> tuple[Keys, ...]:
        """For each child, the expressions whose values have to be equal in all of them."""
        return ()

    def with_compared(self, keys: tuple[Keys, ...]) -> Plan:
        """Return the node with other keys that have to be equal."""
        assert not keys
        return self

    def with_names(self, catalog: Mapping[str, Schema]) -> Plan:  # noqa: ARG002 - there are none
        """Return the node with names outside of expressions spelled as the catalog has them."""
        return self

    @property
    def computed(self) -> tuple[Named | NamedAggregate, ...]:
        """The columns that the node computes from expressions; the others come from below."""
        return ()

    @property
    def read(self) -> tuple[Names, ...]:
        """For each child, the columns that the node's expressions read."""
        found: list[Names] = [frozenset()] * len(self.children)
        for expression, use in self.expressions:
            for child in range(len(found)) if use.child is None else (use.child,):
                found[child] |= columns_of(expression)
        return tuple(found)

    def needed(self, wanted: Names) -> tuple[Names, ...]:
        """Return the columns of each child that are needed for some columns of the output.

        Names that a child does not have count for nothing.
        """
        if self.compares_rows:
            return tuple(frozenset(child.row) for child in self.children)
        own = frozenset({TS} if self.reads_time else ()) | (wanted if self.passes else frozenset())
        return tuple(own | read for read in self.read)

    def only(self, wanted: Names) -> Plan:  # noqa: ARG002 - rows pass as they are
        """Return the node without columns that nothing above wants, as far as it makes them."""
        return self

    def timed(self) -> Timed:
        """Return the node with the time, the start and the order of its rows, which stay."""
        message = f"the rows of {type(self).__name__} are no events"
        raise AssertionError(message)

    @property
    def state_keys(self) -> Keys | None:
        """The keys by which it keeps its state, over its own rows; None if it keeps none.

        Without keys, all rows have to be in one place.
        """
        return self.compared[0] if self.compared else ()

    @property
    def reach_us(self) -> int | None:
        """How old a row below may be and still count for its state; None for any age."""
        return None

    @property
    def why_together(self) -> str | None:
        """Why its rows have to be in one place, if it is not for want of keys."""
        return None

    def period_below(self, period: TimeRange) -> TimeRange:
        """Return the times of rows below on which its rows of a period depend.

        Of a relation the rows in its windows count, whenever they came; of a stream, all rows do
        that a state reaches back to.
        """
        if self.changes and all(source.changes for source in self.children):
            return period
        if self.reach_us is None:
            return ALL_TIME
        return period.reaching_back(self.reach_us)

    @property
    def comes_with_events(self) -> bool:
        """Whether a row comes with the last of its events, independently of earlier ones."""
        return False

    def keys_below(self, key: Expression) -> Keys | None:
        """Return what a key over its rows is in each child, or None if that is not known."""
        return next((equal for equal in zip(*self.compared, strict=True) if key in equal), None)

    @property
    def time_use(self) -> str | None:
        """The part of the query that needs the times of rows, as a user calls it."""
        return None

    def edge(self, below: EdgesBelow) -> Edge:
        """Return how its tuples come and go, given the edges of its children.

        By default they may go at any time, unless none ever goes from a child.
        """
        grows = all(below.of(each).pattern == UpdatePattern.MONOTONIC for each in self.children)
        return FOREVER if grows else Edge(UpdatePattern.STRICT, None)

    @property
    def circumstances(self) -> Circumstances | None:
        """What the edges inside it depend on, if it is a query of its own."""
        return None

    @property
    def standing(self) -> Standing | None:
        """The highest standing query in it, if there is one."""
        return next((each.standing for each in self.children if each.standing), None)

    @property
    def line(self) -> str:
        """Its line in explain, without what is below it."""
        return type(self).__name__

    @property
    def details(self) -> tuple[str, ...]:
        """Further lines of explain, of the node itself."""
        return ()

    @property
    def labelled(self) -> tuple[tuple[str, Plan], ...]:
        """The children that explain shows, each with its label if it has one."""
        return tuple(("", child) for child in self.children)

    def keyed(self, keys: tuple[str, ...], carried: Row) -> Plan | None:  # noqa: ARG002
        """Return the node with one more key: `keys` is the name of an integer column of each child.

        Of children beside the first, the name is empty if their rows are the same for all keys.
        `carried` are further columns of the first child, constant for each value of the key: they
        are columns of the output, too. None if rows of different keys would meet in the node, or
        those of one could end it for all.
        """
        return None

    def filtered(self, condition: Expression) -> Plan | None:  # noqa: ARG002
        """Return the node over rows on which a condition over its own rows holds.

        None if that is not the same as to filter its rows.
        """
        return None

    def check(self) -> None:  # noqa: B027 - most kinds have none
        """Raise `PlanError` if the node breaks a rule of its own kind."""


@dataclass(frozen=True, slots=True)
class EdgesBelow:
    """The edges below a node, and what edges depend on beside the nodes."""

    of: Callable[[Plan], Edge]
    circumstances: Circumstances


@dataclass(frozen=True, slots=True)
class Timed:
    """A plan, and the expressions over its rows for their time, their start and their order."""

    plan: Plan
    ts: Expression
    start: Expression
    order: tuple[Expression, ...]
    in_time: bool = True
    """Whether `ts` is the instant at which a row is certain."""


class OverOne(Plan):
    """A node with one source."""

    __slots__ = ()
    source: Plan

    @property
    def row(self) -> Row:
        """The columns of the source, unless the node says otherwise."""
        return self.source.row

    @property
    def children(self) -> tuple[Plan, ...]:
        """The plans directly below."""
        return (self.source,)

    def with_children(self, change: ChangePlan) -> Self:
        """Return the node over a changed source."""
        return replaced(self, source=change(self.source))


class OverKeys(OverOne):
    """A node with one source, and state for each of its keys, which are columns of its output."""

    __slots__ = ()
    passes = False
    keys: tuple[Named, ...]

    @property
    def state_keys(self) -> Keys:
        """The columns of the keys."""
        return columns_named(self, *(key.name for key in self.keys))

    def keys_below(self, key: Expression) -> Keys | None:
        """Return the expressions of the keys."""
        return below_items(key, self.keys)

    def keyed(self, keys: tuple[str, ...], carried: Row) -> Plan | None:
        """Return the node with more keys: only keys are columns of the output."""
        more = {keys[0]: INT64, **carried}
        return replaced(self, keys=(*self.keys, *named_columns(more)))


class OverGroups(OverKeys):
    """A node with one source that computes its keys and aggregates over groups of rows."""

    __slots__ = ()
    aggregates: tuple[NamedAggregate, ...]

    def with_expressions(self, change: ChangeExpression) -> Self:
        """Return the node with other keys and aggregates."""
        keys = changed_items(self.keys, change)
        return replaced(self, keys=keys, aggregates=changed_aggregates(self.aggregates, change))

    @property
    def computed(self) -> tuple[Named | NamedAggregate, ...]:
        """The columns that the node computes: keys and aggregates."""
        return (*self.keys, *self.aggregates)


class OverTwo(Plan):
    """A node with a left and a right source."""

    __slots__ = ()
    left: Plan
    right: Plan

    @property
    def row(self) -> Row:
        """The columns of the left source, unless the node says otherwise."""
        return self.left.row

    @property
    def children(self) -> tuple[Plan, ...]:
        """The plans directly below."""
        return (self.left, self.right)

    def with_children(self, change: ChangePlan) -> Self:
        """Return the node over changed sources."""
        return replaced(self, left=change(self.left), right=change(self.right))


class OverSeveral(Plan):
    """A node with any number of sources."""

    __slots__ = ()
    sources: tuple[Plan, ...]

    @property
    def row(self) -> Row:
        """The columns of all sources side by side, unless the node says otherwise."""
        return self.row_for(Use(child=None))

    @property
    def children(self) -> tuple[Plan, ...]:
        """The plans directly below."""
        return self.sources

    def with_children(self, change: ChangePlan) -> Self:
        """Return the node over changed sources."""
        return replaced(self, sources=tuple(map(change, self.sources)))


def replaced(plan: P, **changes: object) -> P:
    """Return a node with other values; all nodes are dataclasses."""
    changed: P = replace(plan, **changes)  # type: ignore[type-var]
    return changed


def columns_named(plan: Plan, *names: str) -> tuple[Column, ...]:
    """Return columns of a plan's rows."""
    row = plan.row
    return tuple(Column(name, row[name]) for name in names)


def named_columns(row: Row) -> tuple[Named, ...]:
    """Return columns as they are, under their own names."""
    return tuple(Named(name, Column(name, kind)) for name, kind in row.items())


def below_items(key: Expression, items: Iterable[Named]) -> Keys | None:
    """Return a key over computed columns as it is below them, or None if it is over others."""
    known = {item.name: item.expression for item in items}
    return (substituted(key, known),) if columns_of(key) <= known.keys() else None


def changed_values(values: Keys, change: ChangeExpression, use: Use = VALUE) -> Keys:
    """Return expressions with `change` applied to each."""
    return tuple(change(each, use) for each in values)


def changed_items(
    items: tuple[Named, ...], change: ChangeExpression, use: Use = ITEM
) -> tuple[Named, ...]:
    """Return named expressions with `change` applied to each."""
    return tuple(Named(item.name, change(item.expression, use)) for item in items)


def changed_aggregates(
    items: tuple[NamedAggregate, ...], change: ChangeExpression, use: Use = AGGREGATE
) -> tuple[NamedAggregate, ...]:
    """Return named aggregates with `change` applied to each."""

    def changed(item: NamedAggregate) -> NamedAggregate:
        aggregate = change(item.aggregate, use)
        assert isinstance(aggregate, Aggregate)
        return NamedAggregate(item.name, aggregate)

    return tuple(map(changed, items))


def changed_order(items: tuple[OrderKey, ...], change: ChangeExpression) -> tuple[OrderKey, ...]:
    """Return the keys of an order with `change` applied to each."""
    return tuple(replace(item, expression=change(item.expression, ORDER)) for item in items)


def remembers(plan: Plan) -> bool:
    """Whether an operator of a plan keeps state by key."""
    if not plan.children:
        return False
    return plan.state_keys is not None or any(map(remembers, plan.children))
