"""A plan becomes a tree of operators, from its scans to its results.

`operators_of` has an entry for each kind of node that reads one edge and makes another: a new node
adds its own. `add_plan` has one for each kind that reads several, or none. What a standing query
consists of is placed by standing/build.py.

An operator is imported with the first node that needs it: a process that only averages windows
does without row patterns, situations and standing queries.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial, singledispatch
from typing import Any

from eventide.engines.live.refusals import out_of_time, refusal
from eventide.engines.standing.options import DEFAULT, StandingOptions
from eventide.instants import ALL_TIME, TimeRange
from eventide.operators.filter_project import FilterRows, ProjectRows
from eventide.operators.operator import Operator
from eventide.operators.order_events import OrderEvents
from eventide.operators.order_rows import OrderRows, begins_with_time
from eventide.operators.tree import OperatorTree, TreeBuilder
from eventide.operators.union_rows import UnionRows
from eventide.plan.algebra.nodes import Follows, InstantAggregate
from eventide.plan.events.time_order import follows_time
from eventide.plan.expressions import Column, Expression, Named
from eventide.plan.nodes import DerivedStream, Filter, Project, Scan
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.render import render
from eventide.plan.situations.nodes import Situations, TemporalPattern
from eventide.plan.standing.execution import Execution
from eventide.plan.standing.nodes import Merge, Standing
from eventide.plan.tree import Names, Plan
from eventide.plan.windows.nodes import (
    CalendarWindow,
    CountWindow,
    Sessions,
    SlidingAggregate,
    WindowAggregate,
    WindowRanks,
)
from eventide.plan.xml.nodes import Witnesses
from eventide.schema import TIMESTAMP, TS, row_schema


@dataclass(frozen=True, slots=True)
class Building:
    """What the operators of a plan are for.

    Only the highest operator with state keeps to what is `owned`: those below it report all they
    read, because its own frames reach back into the halo.
    """

    owned: TimeRange = ALL_TIME
    threads: int = 1
    standing: StandingOptions = DEFAULT
    inside: bool = False
    """Whether the rows of the plan go into another query."""
    late_windows: bool = False
    """Whether windows right above a stream take late events."""
    narrows: bool = False
    """Whether a filter drops what only its condition reads."""
    wanted: Names | None = None
    """The columns that the node above reads, if it is known."""


WHOLE = Building()


def build_tree(
    plan: Plan,
    owned: TimeRange = ALL_TIME,
    threads: int = 1,
    standing: StandingOptions = DEFAULT,
) -> OperatorTree:
    """Return the operators of a plan over history; some may use several threads.

    With `owned`, the highest operator with state reports only what starts or stands there; see
    slices.py.
    """
    return built(plan, Building(owned, threads, standing, narrows=True))


def built(plan: Plan, how: Building) -> OperatorTree:
    """Return the operators of a plan."""
    builder = TreeBuilder()
    add_plan(plan, builder, how)
    if len(builder.leaves) > 1:
        from eventide.engines.standing.build import share_end

        share_end(builder)
    return builder.tree()


def build_live_tree(
    plan: Plan,
    execution: Execution = "aware",
    *,
    reports_only: bool = False,
    late_windows: bool = False,
) -> OperatorTree:
    """Return the operators of a plan that can run without an end; an error says why it cannot.

    With `reports_only` the answer of a standing query cannot be asked for. With `late_windows`,
    windows right above a stream take late events while they are open.
    """
    options = StandingOptions(execution, "never" if reports_only else "if it goes")
    tree = built(plan, Building(standing=options, late_windows=late_windows))
    for placed in tree.placed:
        if isinstance(placed.operator, OrderRows) and not placed.operator.in_time:
            raise out_of_time(placed.operator.order[0].expression.span)
        if is_over_all_time(placed.node):
            raise refusal(placed.node)
    return tree


def is_over_all_time(node: Plan) -> bool:
    """Whether a node aggregates all rows of a key, which are complete when there are no more."""
    return isinstance(node, WindowAggregate) and node.window == CalendarWindow("all")


@singledispatch
def add_plan(plan: Plan, builder: TreeBuilder, how: Building = WHOLE) -> int:
    """Place the operators of a plan; return the number of the uppermost."""
    follows = followed_by(plan)
    if follows is not None:
        return add_follows(builder, plan, follows, how)
    operators = operators_of(plan, how)
    (source,) = plan.children
    owned = how.owned if plan.state_keys is None else ALL_TIME
    wanted = plan.needed(frozenset(plan.row))[0] if isinstance(plan, Project) else None
    number = add_plan(source, builder, replace(how, owned=owned, inside=True, wanted=wanted))
    for operator in operators:
        number = builder.place(operator, plan, (number,), line=line_of(operator))
    return number


@add_plan.register
def _(plan: Scan, builder: TreeBuilder, how: Building = WHOLE) -> int:  # noqa: ARG001
    return builder.leaf(plan, row_schema(plan.row))


@add_plan.register
def _(plan: Standing, builder: TreeBuilder, how: Building = WHOLE) -> int:

    from eventide.engines.standing.build import add_standing

    add = partial(add_events, how=how)
    return add_standing(builder, plan, add, how.standing, inside=how.inside)


@add_plan.register
def _(plan: Merge, builder: TreeBuilder, how: Building = WHOLE) -> int:
    within = replace(how, owned=ALL_TIME, inside=True)
    numbers = tuple(add_plan(each, builder, within) for each in plan.sources)
    return builder.place(UnionRows(row_schema(plan.row)), plan, numbers)


@add_plan.register
def _(plan: DerivedStream, builder: TreeBuilder, how: Building = WHOLE) -> int:
    return add_derived(builder, plan, how)


@dataclass(frozen=True, slots=True)
class FollowsBelow:
    """A sequence, and what is right above it: filters, the lowest first, then a projection."""

    node: Follows
    kept: tuple[Expression, ...]
    items: tuple[Named, ...] | None


def followed_by(plan: Plan) -> FollowsBelow | None:
    """Return the sequence of a plan that has nothing above it but what can be done in one go."""
    items, kept = None, []
    if isinstance(plan, Project):
        items, plan = plan.items, plan.source
    while isinstance(plan, Filter):
        kept.append(plan.condition)
        plan = plan.source
    return FollowsBelow(plan, tuple(reversed(kept)), items) if isinstance(plan, Follows) else None


def add_follows(builder: TreeBuilder, plan: Plan, found: FollowsBelow, how: Building) -> int:
    """Place a sequence with all that is right above it."""
    from eventide.operators.algebra.follow import FollowEvents
    from eventide.operators.algebra.keyed import KeyEvents

    node, within = found.node, replace(how, owned=ALL_TIME, inside=True)
    left, right = (add_plan(each, builder, within) for each in node.children)
    keyed = KeyEvents(node.right_keys, row_schema(node.right.row))
    right = builder.place(keyed, node.right, (right,), name="Keys", line=line_of_keys(node))
    operator = FollowEvents(node, row_schema(plan.row), found.kept, found.items)
    return builder.place(operator, node, (left, right))


def line_of_keys(node: Follows) -> str:
    """Return the line of what puts events by key."""
    return f"Keys {', '.join(map(render, node.right_keys))}".rstrip()


def line_of(operator: Operator[Any]) -> str:
    """Return the line of an operator that has another than its node; else nothing."""
    if isinstance(operator, OrderRows):
        return f"Order by {', '.join(render(key.expression) for key in operator.order)}"
    return ""


def add_derived(
    builder: TreeBuilder, plan: DerivedStream, how: Building, *, numbered: bool = False
) -> int:
    """Place the operators of a query whose rows are events."""
    if not plan.in_time:
        raise out_of_time(plan.span)
    inner = Building(inside=True, late_windows=how.late_windows)
    source = add_plan(plan.source, builder, inner)
    operator = OrderEvents(plan.order, row_schema(plan.row), numbered)
    return builder.place(operator, plan, (source,))


def add_events(builder: TreeBuilder, plan: Plan, how: Building) -> int:
    """Place the operators of a query whose rows are events that have to be numbered."""
    assert isinstance(plan, DerivedStream), "what a window reads is a stream"
    return add_derived(builder, plan, how, numbered=True)


@singledispatch
def operators_of(node: Plan, how: Building) -> tuple[Operator[Any], ...]:  # noqa: ARG001
    """Return the operators of one node, bottom first."""
    raise refusal(node)


@operators_of.register
def _(node: Filter, how: Building) -> tuple[Operator[Any], ...]:
    row = node.row
    if how.narrows and how.wanted is not None:
        # An answer of `SELECT 1` has as many rows as pass: one column has to tell.
        row = {name: row[name] for name in row if name in how.wanted} or row
    return (FilterRows(node.condition, row_schema(row), narrows=len(row) < len(node.row)),)


@operators_of.register
def _(node: Project, how: Building) -> tuple[Operator[Any], ...]:  # noqa: ARG001
    return (ProjectRows(node.items, row_schema(node.row)),)


@operators_of.register
def _(node: Witnesses, how: Building) -> tuple[Operator[Any], ...]:  # noqa: ARG001
    from eventide.operators.xml.witnesses import FindWitnesses

    return (FindWitnesses(node, row_schema(node.row)),)


@operators_of.register
def _(node: InstantAggregate, how: Building) -> tuple[Operator[Any], ...]:  # noqa: ARG001
    from eventide.operators.algebra.instants import AggregateInstants

    return (AggregateInstants(node, row_schema(node.row)),)


@operators_of.register
def _(node: WindowAggregate, how: Building) -> tuple[Operator[Any], ...]:
    schema = row_schema(node.row)
    takes_late = how.late_windows and is_over_stream(node.source)
    match node.window:
        case CountWindow():
            from eventide.operators.windows.by_count import AggregateCountWindows

            return (AggregateCountWindows(node, schema),)
        case Sessions():
            from eventide.operators.windows.sessions import AggregateSessions

            sessions = AggregateSessions(node, schema)
            if not takes_late:
                return (sessions,)
            from eventide.operators.windows.late_sessions import AggregateLateSessions

            return (AggregateLateSessions(sessions),)
        case CalendarWindow(unit="all"):
            from eventide.operators.windows.all_time import AggregateAllTime

            return (AggregateAllTime(node, schema),)
        case CalendarWindow():
            raise refusal(node)
    if not takes_late:
        from eventide.operators.windows.by_time import AggregateWindows

        return (AggregateWindows(node, schema, how.owned),)
    from eventide.operators.windows.late_by_time import AggregateLateWindows

    return (AggregateLateWindows(node, schema, how.owned),)


def is_over_stream(plan: Plan) -> bool:
    """Whether rows are events of a stream with their own times, filtered or not."""
    match plan:
        case Filter(source=source):
            return is_over_stream(source)
        case Project(items=items, source=source):
            times = [item.expression for item in items if item.name == TS]
            return times == [Column(TS, TIMESTAMP)] and is_over_stream(source)
    return isinstance(plan, Scan)


@operators_of.register
def _(node: SlidingAggregate, how: Building) -> tuple[Operator[Any], ...]:
    from eventide.operators.windows.frames import AggregateFrames

    return (AggregateFrames(node, row_schema(node.row), how.owned, how.threads),)


@operators_of.register
def _(node: WindowRanks, how: Building) -> tuple[Operator[Any], ...]:  # noqa: ARG001
    from eventide.operators.windows.ranks import RankWindowRows

    return (RankWindowRows(node, row_schema(node.row)),)


@operators_of.register
def _(node: MatchRecognize, how: Building) -> tuple[Operator[Any], ...]:
    from eventide.operators.patterns.match import MatchRows

    matcher = MatchRows(node, row_schema(node.row), how.owned, how.threads)
    if not node.order:
        return (matcher,)
    in_time = begins_with_time(node.order) and follows_time(node.source)
    return (OrderRows(node.order, row_schema(node.source.row), in_time), matcher)


@operators_of.register
def _(node: Situations, how: Building) -> tuple[Operator[Any], ...]:
    from eventide.operators.situations.derive import DeriveSituations

    return (DeriveSituations(node, row_schema(node.row), how.threads),)


@operators_of.register
def _(node: TemporalPattern, how: Building) -> tuple[Operator[Any], ...]:
    from eventide.operators.situations.match import MatchSituations

    return (MatchSituations(node, row_schema(node.row), how.owned, threads=how.threads),)
