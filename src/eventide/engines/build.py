"""A plan becomes a pipeline: the operators from the scan to the result, with their states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any, assert_never

import pyarrow as pa

from eventide.batch import ALL_TIME, Batch, TimeRange
from eventide.errors import PlanError, Span, UnsupportedError
from eventide.operators.columns import results_that_fit
from eventide.operators.envelope import QUERY, Owner
from eventide.operators.filter_project import FilterRows, ProjectRows, Stateless
from eventide.operators.operator import Operator
from eventide.operators.order_rows import OrderRows, begins_with_time
from eventide.operators.patterns.match import MatchRows
from eventide.operators.situations.derive import DeriveSituations
from eventide.operators.situations.match import MatchSituations
from eventide.operators.state import join_parts, parts_of
from eventide.operators.stateful import Stateful
from eventide.operators.windows.by_count import AggregateCountWindows
from eventide.operators.windows.by_time import AggregateWindows
from eventide.operators.windows.frames import AggregateFrames
from eventide.operators.windows.sessions import AggregateSessions
from eventide.plan.events.time_order import follows_time
from eventide.plan.explain import describe
from eventide.plan.expressions import Column, Expression, rebuild
from eventide.plan.meaning import digest_of
from eventide.plan.nodes import DerivedStream, EndRows, Filter, Project, Relational, Scan, scans_of
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.render import render
from eventide.plan.situations.nodes import PeriodJoin, Situations, TemporalPattern
from eventide.plan.standing.nodes import Standing
from eventide.plan.tree import Plan, Row
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
    | DerivedStream
)
"""The operators of a pipeline above its scan."""

States = tuple[Any, ...]
"""The state of each operator of a pipeline, in order."""


@dataclass(frozen=True, slots=True)
class Pipeline(Stateful[States]):
    """A scan and the operators above it, bottom first."""

    scan: Scan
    operators: tuple[Operator[Any], ...]
    entered: pa.Schema | None = None
    """The input columns, if they are not those of the scan."""

    @cached_property
    def owner(self) -> Owner:
        """The owner of the state: what the state depends on."""
        lines = [self.line_of(operator) for operator in reversed(self.operators)]
        shown = "\n".join([*lines, describe(self.scan)])
        return Owner("Pipeline", digest_of(self.scan, self.operators, self.entered), {QUERY: shown})

    def line_of(self, operator: Operator[Any]) -> str:
        """Return the line of an operator, as `explain` has it."""
        match operator:
            case FilterRows(condition=condition):
                return describe(Filter(self.scan, condition))
            case ProjectRows(items=items):
                return describe(Project(self.scan, items))
            case OrderRows(order=order):
                return f"Order by {', '.join(render(key.expression) for key in order)}"
        return describe(getattr(operator, "node"))  # noqa: B009 - all others have one

    @property
    def filters(self) -> tuple[Operator[None], ...]:
        """The operators right above the scan that only filter rows."""
        return tuple(takewhile(lambda each: isinstance(each, FilterRows), self.operators))

    @property
    def stateless(self) -> tuple[Operator[None], ...]:
        """The operators below the first one with state."""
        kept: list[Operator[None]] = []
        for operator in self.operators:
            if not isinstance(operator, Stateless):
                break
            kept.append(operator)
        return tuple(kept)

    def above(self, operators: int) -> Pipeline:
        """Return the pipeline without its lowest operators: their output is its input."""
        entered = self.operators[operators - 1].output_schema if operators else self.entered
        return Pipeline(self.scan, self.operators[operators:], entered)

    def lowest(self, operators: int) -> Pipeline:
        """Return the pipeline of only the lowest operators."""
        return Pipeline(self.scan, self.operators[:operators], self.entered)

    @property
    def input_schema(self) -> pa.Schema:
        """The columns of the scan, or of what is below this pipeline."""
        return self.entered or arrow_schema(self.scan.row)

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of the results."""
        return self.operators[-1].output_schema if self.operators else self.input_schema

    def initial_state(self) -> States:
        """Return the states before the first batch."""
        return tuple(operator.initial_state() for operator in self.operators)

    def step(self, states: States, batch: Batch) -> tuple[States, Batch]:
        """Send a batch through all operators."""
        after: list[Any] = []
        with results_that_fit():
            for operator, state in zip(self.operators, states, strict=True):
                state_after, batch = operator.step(state, batch)
                after.append(state_after)
        return tuple(after), batch

    def write(self, state: States) -> bytes:
        """Write all states out."""
        return join_parts(
            [operator.write(each) for operator, each in zip(self.operators, state, strict=True)]
        )

    def read(self, written: bytes) -> States:
        """Read back what `write` wrote."""
        parts = parts_of("the pipeline", written, len(self.operators))
        return tuple(
            operator.read(part) for operator, part in zip(self.operators, parts, strict=True)
        )


def build_pipeline(plan: Plan, owned: TimeRange = ALL_TIME, threads: int = 1) -> Pipeline:
    """Return the pipeline of a plan over one scan; its operators may use some threads.

    With `owned`, the highest window, frame or pattern reports only what starts or stands there; see
    slices.py. Those below it report all they read, because its own frames reach back into the halo.
    """
    match plan:
        case Scan():
            return Pipeline(plan, ())
        case DerivedStream(source=source) if not follows_time(source):
            raise not_live_yet(plan)
        case Relational(inputs=inputs) if any(isinstance(each, PeriodJoin) for _, each in inputs):
            raise _joins_no_stream()
        case PeriodJoin():
            raise _joins_no_stream()
        case Relational(inputs=inputs):
            if plan.reason is not None and len(inputs) == 1:
                raise _not_live(plan.reason)
            raise _needs_an_end([each for _, each in inputs])
        case EndRows() | WindowAggregate(window=CalendarWindow()):
            message = "this query needs all events, and a stream has no end"
            hint = "LIMIT, and GROUP BY without a window need an end; ask it over history"
            raise UnsupportedError(message, hint=hint)
    if isinstance(plan, OneSource):
        highest = not isinstance(plan, Filter | Project)
        below = build_pipeline(plan.source, ALL_TIME if highest else owned, threads)
        return Pipeline(below.scan, (*below.operators, *build_operators(plan, owned, threads)))
    message = f"{type(plan).__name__} is part of a standing query, and runs in its tree"
    raise PlanError(message)


def not_live_yet(stream: DerivedStream) -> UnsupportedError:
    """Return the error for a live query over rows that do not come with the watermark."""
    below = stream.source
    while isinstance(below, Filter | Project | SlidingAggregate):
        below = below.source
    if isinstance(below, Scan | WindowAggregate):
        return _out_of_time(stream.span)
    message = "a live query cannot read the rows of this query as events yet"
    hint = "ask it over history; live, the rows of TUMBLE and HOP can be read"
    return UnsupportedError(message, span=stream.span, hint=hint)


def _out_of_time(span: Span | None) -> UnsupportedError:
    message = "a live query goes with time: its rows have to be in order of the events' ts"
    hint = "ask it over history, or order by ts (or window_end AS ts) as it is"
    return UnsupportedError(message, span=span, hint=hint)


def _not_live(reason: UnsupportedError) -> UnsupportedError:
    """Return the error for a query that could run live but for one expression."""
    message = f"{reason.message}, so this query does not run live"
    hint = "docs/sql.md lists the functions that are ours; ask it over history"
    error = UnsupportedError(message, span=reason.span, hint=hint)
    return error if reason.text is None else error.located_in(reason.text)


def _needs_an_end(inputs: Sequence[Plan]) -> UnsupportedError:
    message = "this query needs ordinary SQL around Eventide's own operators"
    hint = "ORDER BY, LIMIT, DISTINCT, joins and GROUP BY without a window need an end;"
    endless = [each for each in inputs if not isinstance(each, Standing)]
    if endless and len(inputs) > 1:
        streams = dict.fromkeys(scan.stream for each in endless for scan in scans_of(each))
        windows = " and ".join(f"{stream} [RANGE 1 MINUTE]" for stream in streams)
        hint = f"put a window behind each stream: {windows}; or"
    elif not endless:
        hint = "leave out the SQL around the standing query (ORDER BY with LIMIT may stay), or"
    return UnsupportedError(message, hint=f"{hint} ask it over history")


def _joins_no_stream() -> UnsupportedError:
    message = "a join of periods needs all of them, and a stream has no end"
    hint = "write it as FROM stream TPSTREAM (… PATTERN fast overlaps brake WITHIN …)"
    return UnsupportedError(message, hint=f"{hint}, or ask it over history")


def build_live_pipeline(plan: Plan) -> Pipeline:
    """Return the pipeline of a plan that can run without an end; an error says why it cannot."""
    pipeline = build_pipeline(plan)
    for operator in pipeline.operators:
        if isinstance(operator, OrderRows) and not operator.in_time:
            raise _out_of_time(operator.order[0].expression.span)
    return pipeline


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
        case DerivedStream():
            return (OrderRows(node.order_keys, schema),)
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


def arrow_schema(row: Row) -> pa.Schema:
    """Return the Arrow schema of a node's rows."""
    return pa.schema([(name, kind.arrow) for name, kind in row.items()])
