"""A plan becomes a tree of operators, from its scans to its results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

from eventide.engines.live.refusals import out_of_time, refusal
from eventide.engines.placing import TreeBuilder, arrow_schema
from eventide.engines.standing.build import StandingOptions, add_standing
from eventide.instants import ALL_TIME, TimeRange
from eventide.operators.filter_project import FilterRows, ProjectRows
from eventide.operators.operator import Operator
from eventide.operators.order_events import OrderEvents
from eventide.operators.order_rows import OrderRows, begins_with_time
from eventide.operators.patterns.match import MatchRows
from eventide.operators.situations.derive import DeriveSituations
from eventide.operators.situations.match import MatchSituations
from eventide.operators.tree import OperatorTree
from eventide.operators.union_rows import UnionRows
from eventide.operators.windows.by_count import AggregateCountWindows
from eventide.operators.windows.by_time import AggregateWindows
from eventide.operators.windows.frames import AggregateFrames
from eventide.operators.windows.sessions import AggregateSessions
from eventide.plan.events.time_order import follows_time
from eventide.plan.explain import describe
from eventide.plan.expressions import Column, Expression, rebuild
from eventide.plan.nodes import DerivedStream, Filter, Project, Scan
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.render import render
from eventide.plan.situations.nodes import Situations, TemporalPattern
from eventide.plan.standing.execution import Execution
from eventide.plan.standing.nodes import Merge, Standing
from eventide.plan.standing.update_patterns import keeps_answer
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import (
    CalendarWindow,
    CountWindow,
    Sessions,
    SlidingAggregate,
    WindowAggregate,
)

OneSource = (
    Filter
    | Project
    | WindowAggregate
    | SlidingAggregate
    | MatchRecognize
    | Situations
    | TemporalPattern
)
"""Nodes with one source, whose rows never go."""

REPORTS_ONLY = StandingOptions(keeps_answer=False)


def add_plan(
    builder: TreeBuilder, plan: Plan, owned: TimeRange = ALL_TIME, threads: int = 1
) -> int:
    """Place the operators of a plan whose rows never go; return the number of the uppermost.

    Only the highest window, frame or pattern keeps to what is `owned`: those below it report all
    they read, because its own frames reach back into the halo.
    """
    match plan:
        case Scan():
            return builder.leaf(plan, arrow_schema(plan.row))
        case Standing():
            return add_standing(builder, plan, add_events, REPORTS_ONLY, inside=True)
        case Merge(sources=sources):
            numbers = tuple(add_plan(builder, each) for each in sources)
            return builder.place(UnionRows(arrow_schema(plan.row)), describe(plan), numbers)
        case DerivedStream():
            return add_derived(builder, plan)
    endless = isinstance(plan, WindowAggregate) and isinstance(plan.window, CalendarWindow)
    if not isinstance(plan, OneSource) or endless:
        raise refusal(plan)
    highest = not isinstance(plan, Filter | Project)
    number = add_plan(builder, plan.source, ALL_TIME if highest else owned, threads)
    for operator in build_operators(plan, owned, threads):
        number = builder.place(operator, line_of(plan, operator), (number,))
    return number


def line_of(plan: Plan, operator: Operator[Any]) -> str:
    """Return the line of an operator, as `explain` has it."""
    if isinstance(operator, OrderRows):
        return f"Order by {', '.join(render(key.expression) for key in operator.order)}"
    return describe(plan)


def add_derived(builder: TreeBuilder, plan: DerivedStream, *, numbered: bool = False) -> int:
    """Place the operators of a query whose rows are events."""
    if not plan.in_time:
        raise out_of_time(plan.span)
    source = add_plan(builder, plan.source)
    operator = OrderEvents(plan.order, arrow_schema(plan.row), numbered)
    return builder.place(operator, describe(plan), (source,))


def add_events(builder: TreeBuilder, plan: Plan) -> int:
    """Place the operators of a query whose rows are events that have to be numbered."""
    assert isinstance(plan, DerivedStream), "what a window reads is a stream"
    return add_derived(builder, plan, numbered=True)


def build_tree(plan: Plan, owned: TimeRange = ALL_TIME, threads: int = 1) -> OperatorTree:
    """Return the operators of a plan over history; some may use several threads.

    With `owned`, the highest window, frame or pattern reports only what starts or stands there; see
    slices.py.
    """
    if isinstance(plan, Standing):
        return build_standing(plan)
    builder = TreeBuilder()
    add_plan(builder, plan, owned, threads)
    return builder.tree()


def build_standing(
    plan: Standing,
    execution: Execution = "aware",
    *,
    partitions: int | None = None,
    keeps_answer: bool = True,
) -> OperatorTree:
    """Return the operators of a standing query, with its answer."""
    builder = TreeBuilder()
    options = StandingOptions(execution, keeps_answer, partitions)
    add_standing(builder, plan, add_events, options)
    return builder.tree()


def build_live_tree(
    plan: Plan, execution: Execution = "aware", *, reports_only: bool = False
) -> OperatorTree:
    """Return the operators of a plan that can run without an end; an error says why it cannot.

    With `reports_only` the answer of a standing query cannot be asked for.
    """
    kept = isinstance(plan, Standing) and not reports_only and keeps_answer(plan)
    tree = (
        build_standing(plan, execution, keeps_answer=kept)
        if isinstance(plan, Standing)
        else build_tree(plan)
    )
    for operator in tree.operators:
        if isinstance(operator, OrderRows) and not operator.in_time:
            raise out_of_time(operator.order[0].expression.span)
    return tree


def build_operators(
    node: OneSource,
    owned: TimeRange,
    threads: int,
) -> tuple[Operator[Any], ...]:
    """Return the operators of one node, bottom first."""
    schema = arrow_schema(node.row)
    match node:
        case Filter(condition=condition):
            return (FilterRows(condition, schema),)
        case Project(items=items):
            return (ProjectRows(items, schema),)
        case WindowAggregate(window=CountWindow()):
            return (AggregateCountWindows(node, schema),)
        case WindowAggregate(window=Sessions()):
            return (AggregateSessions(node, schema),)
        case WindowAggregate():
            return (AggregateWindows(node, schema, owned),)
        case SlidingAggregate():
            return (AggregateFrames(node, schema, owned),)
        case MatchRecognize(source=source, order=order):
            matcher = MatchRows(node, schema, owned, threads)
            if not order:
                return (matcher,)
            in_time = begins_with_time(order) and follows_time(source)
            return (OrderRows(order, arrow_schema(source.row), in_time), matcher)
        case Situations():
            return (DeriveSituations(node, schema),)
        case TemporalPattern():
            return (MatchSituations(node, schema, owned),)
    assert_never(node)


def common_keys(plan: Plan) -> tuple[Expression, ...]:
    """Return the keys by which a plan's rows may be distributed: those all its operators share.

    They are expressions over the input rows of the lowest operator with state. If there are none,
    all rows belong together.
    """
    match plan:
        case (
            WindowAggregate(keys=named, source=source)
            | MatchRecognize(keys=named, source=source)
            | Situations(keys=named, source=source)
            | TemporalPattern(keys=named, source=source)
        ):
            own = tuple(key.expression for key in named)
        case SlidingAggregate(keys=own, source=source):
            pass
        case Filter(source=source) | Project(source=source) | DerivedStream(source=source):
            return common_keys(source)
        case _:
            return ()
    if not keeps_state(source):
        return own
    return tuple(key for key in common_keys(source) if key in own)


def keys_over_scan(plan: Plan) -> tuple[Expression, ...]:
    """Return the common keys as expressions over the scan's columns."""
    keys = common_keys(plan)
    below = plan
    stateful = False
    while isinstance(below, OneSource):
        stateful = stateful or not keeps_state(below.source)
        if stateful and isinstance(below, Project):
            items = {item.name: item.expression for item in below.items}
            keys = tuple(substituted(key, items) for key in keys)
        below = below.source
    return keys


def substituted(expression: Expression, items: Mapping[str, Expression]) -> Expression:
    """Return the expression with columns replaced by their expressions."""
    if isinstance(expression, Column):
        return items[expression.name]
    return rebuild(expression, lambda part: substituted(part, items))


def keeps_state(plan: Plan) -> bool:
    """Whether an operator of a plan over one scan has state."""
    match plan:
        case Scan():
            return False
        case Filter(source=source) | Project(source=source):
            return keeps_state(source)
        case _:
            return True
