"""How many tuples go along each edge of a standing plan, as far as statistics tell.

Streams are taken to be steady, values to be equally frequent and independent of each other, and
those of one stream to be among those of another that has more of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import exp, prod

from eventide.plan.expressions import Call, Column, Expression, Literal, columns_of
from eventide.plan.join_order import JoinInput
from eventide.plan.nodes import Filter, Plan, Project, sources_of
from eventide.plan.standing import (
    AsOfJoin,
    Difference,
    Distinct,
    Existence,
    GroupAggregate,
    Merge,
    PeriodWindow,
    RangeWindow,
    RowsWindow,
    SessionWindow,
    StreamWindow,
    Top,
    Windowed,
    WindowJoin,
)

DEFAULT_RATE = 100.0
DEFAULT_DISTINCT = 1000.0
LONG_S = 86_400.0
"""How many seconds of a stream a window is taken to hold that never loses anything."""

_SOME = 1 / 3
"""The share of rows on which a condition is true of which nothing more is known."""
_FEW = 0.1
_MOST_COVERED = 0.9
"""Of more values than that, it is not believed that the other side has them all."""


@dataclass(frozen=True, slots=True)
class LeafStatistics:
    """What is known of the events of a window: how many a second, and how many different values.

    `distinct` is by the name of the column in its stream.
    """

    rate: float = DEFAULT_RATE
    distinct: Mapping[str, float] = field(default_factory=dict)


Statistics = Mapping[str, LeafStatistics]
"""By the alias of the window; of what is missing the usual is assumed."""


@dataclass(frozen=True, slots=True)
class Flow:
    """The tuples of an edge.

    How many come a second, how many there are at a time, how many different values each column
    has, and which share goes before its time.
    """

    rate: float
    living: float
    distinct: Mapping[str, float]
    premature: float = 0.0

    @property
    def lifetime(self) -> float:
        """How many seconds a tuple lives."""
        return self.living / self.rate if self.rate > 0 else 0.0

    def keys(self, expressions: Iterable[Expression]) -> float:
        """Return how many different values expressions have together."""
        columns = frozenset[str]().union(*map(columns_of, expressions))
        values = prod(self.distinct.get(name, DEFAULT_DISTINCT) for name in columns)
        return max(1.0, min(values, self.living))

    @property
    def different_rows(self) -> float:
        """How many different rows there are at a time."""
        return max(1.0, min(prod(self.distinct.values()), self.living))

    def scaled(self, share: float) -> Flow:
        """Return the flow of a share of the tuples."""
        living = self.living * share
        distinct = {name: max(1.0, min(count, living)) for name, count in self.distinct.items()}
        return Flow(self.rate * share, living, distinct, self.premature)

    def as_input(self, keys: Iterable[Expression]) -> JoinInput:
        """Return what the order of a join depends on, for tuples that are found by key."""
        distinct = self.keys(keys)
        return JoinInput(self.rate, self.lifetime, distinct, buckets=distinct)


def flow_of(plan: Plan, statistics: Statistics) -> Flow:
    """Return how many tuples come out of a node."""
    match plan:
        case Windowed(alias=alias, window=window):
            return _windowed(plan, window, statistics.get(alias, LeafStatistics()))
        case Filter(source=source, condition=condition):
            flow = flow_of(source, statistics)
            return flow.scaled(share_of(condition, flow.distinct))
        case Project(source=source, items=items):
            flow = flow_of(source, statistics)
            distinct = {item.name: flow.keys([item.expression]) for item in items}
            return Flow(flow.rate, flow.living, distinct, flow.premature)
        case Merge(sources=sources):
            return _merged([flow_of(each, statistics) for each in sources])
        case WindowJoin(sources=sources):
            return joined(plan, [flow_of(each, statistics) for each in sources])
        case AsOfJoin(left=left, right=right):
            flow, other = flow_of(left, statistics), flow_of(right, statistics)
            distinct = {**flow.distinct, **other.distinct}
            return Flow(flow.rate, flow.living, distinct, flow.premature)
        case Distinct(source=source):
            flow = flow_of(source, statistics)
            return flow.scaled(flow.different_rows / max(flow.living, 1.0))
        case Difference(left=left, right=right):
            flow, other = flow_of(left, statistics), flow_of(right, statistics)
            return _negated(flow, other, flow.different_rows, other.different_rows)
        case Existence(left=left, right=right, left_keys=left_keys, right_keys=right_keys):
            flow, other = flow_of(left, statistics), flow_of(right, statistics)
            values, others = flow.keys(left_keys), other.keys(right_keys)
            return (_negated if plan.negated else _required)(flow, other, values, others)
        case GroupAggregate(source=source, keys=keys):
            return _grouped(plan, flow_of(source, statistics), [key.expression for key in keys])
        case Top(source=source, count=count):
            flow = flow_of(source, statistics)
            first = flow.scaled(min(1.0, count / max(flow.living, 1.0)))
            return Flow(first.rate, first.living, first.distinct, premature=1.0)
        case _:
            return flow_of(sources_of(plan)[0], statistics)


def joined(join: WindowJoin, flows: list[Flow]) -> Flow:
    """Return how many combinations come of sources."""
    keys = [flow.keys(each) for flow, each in zip(flows, join.keys, strict=True)]
    # Keys are among those of the source that has most: all but the fewest divide what is left.
    matched = max(prod(keys) / min(keys), 1.0)
    living = prod(flow.living for flow in flows) / matched
    rate = sum(
        flow.rate * prod(each.living for each in flows if each is not flow) / matched
        for flow in flows
    )
    distinct = {name: count for flow in flows for name, count in flow.distinct.items()}
    premature = 1.0 - prod(1.0 - flow.premature for flow in flows)
    whole = Flow(rate, living, distinct, premature)
    return whole.scaled(1.0 if join.condition is None else share_of(join.condition, distinct))


def share_of(condition: Expression, distinct: Mapping[str, float]) -> float:
    """Return on which share of the rows a condition is true, as far as can be guessed."""
    match condition:
        case Literal(value=value):
            return 1.0 if value is True else 0.0
        case Call(function="and", arguments=(left, right)):
            return share_of(left, distinct) * share_of(right, distinct)
        case Call(function="or", arguments=(left, right)):
            one, other = share_of(left, distinct), share_of(right, distinct)
            return one + other - one * other
        case Call(function="not", arguments=(inner,)):
            return 1.0 - share_of(inner, distinct)
        case Call(function="=" | "is not distinct from", arguments=arguments):
            return 1.0 / _most_values(arguments, distinct)
        case Call(function="<>" | "is distinct from", arguments=arguments):
            return 1.0 - 1.0 / _most_values(arguments, distinct)
        case Call(function="in", arguments=(value, *others)):
            return min(1.0, len(others) / _most_values((value,), distinct))
        case Call(function="is null"):
            return _FEW
    return _SOME


def _most_values(arguments: Iterable[Expression], distinct: Mapping[str, float]) -> float:
    counts = [
        distinct.get(argument.name, DEFAULT_DISTINCT)
        for argument in arguments
        if isinstance(argument, Column)
    ]
    return max(counts, default=1.0 / _SOME)


def _windowed(plan: Windowed, window: StreamWindow, leaf: LeafStatistics) -> Flow:
    stream = {name: leaf.distinct.get(name, DEFAULT_DISTINCT) for name in plan.source.row}
    premature = 0.0
    match window:
        case RangeWindow(size_us=size, jump_us=jump):
            living = leaf.rate * (size + (jump or 0) / 2) / 1e6
        case PeriodWindow(period_us=period):
            living = leaf.rate * period / 2e6
        case SessionWindow(gap_us=gap):
            living, premature = leaf.rate * 2 * gap / 1e6, 1.0
        case RowsWindow(count=count, keys=keys):
            living, premature = count * prod(stream.get(key, DEFAULT_DISTINCT) for key in keys), 1.0
        case _:
            living = leaf.rate * LONG_S
    # A window may hold less than one event most of the time; the events it has have a value.
    most = max(1.0, living)
    distinct = {f"{plan.alias}.{name}": min(each, most) for name, each in stream.items()}
    return Flow(leaf.rate, living, distinct, premature)


def _merged(flows: list[Flow]) -> Flow:
    rate = sum(flow.rate for flow in flows)
    distinct = {
        name: max(flow.distinct.get(name, 1.0) for flow in flows) for name in flows[0].distinct
    }
    premature = sum(flow.premature * flow.rate for flow in flows) / rate if rate else 0.0
    return Flow(rate, sum(flow.living for flow in flows), distinct, premature)


def _negated(flow: Flow, other: Flow, values: float, others: float) -> Flow:
    """Return what is left of a flow by another that takes its values back.

    Of a value that the other side has at all, it has `held` tuples at a time, so none for a share
    e^-held of the time; as often as it comes to have the first or loses the last, all tuples of
    the value go or come again.
    """
    covered = min(_MOST_COVERED, others / values)
    held = other.living / others
    absent = exp(-held)
    returns = other.rate * flow.lifetime / others * absent
    left = flow.scaled(1.0 - covered + covered * absent)
    return _with_returns(left, flow, covered * returns)


def _required(flow: Flow, other: Flow, values: float, others: float) -> Flow:
    """Return what is left of a flow that needs a partner: it goes when the last of them does."""
    covered = min(_MOST_COVERED, others / values)
    absent = exp(-other.living / others)
    returns = other.rate * flow.lifetime / others * absent
    return _with_returns(flow.scaled(covered * (1.0 - absent)), flow, covered * returns)


def _with_returns(left: Flow, flow: Flow, returns: float) -> Flow:
    """Return what is left of a flow, each tuple of which comes again so often in its life."""
    rate = left.rate + flow.rate * returns
    taken = flow.rate * returns / max(rate, 1e-9)
    premature = taken + (1.0 - taken) * flow.premature
    return Flow(rate, left.living, left.distinct, premature)


def _grouped(plan: GroupAggregate, flow: Flow, keys: list[Expression]) -> Flow:
    """Return the values of groups: each tuple that comes or goes replaces one."""
    groups = flow.keys(keys)
    distinct = dict.fromkeys(plan.row, groups)
    return Flow(2.0 * flow.rate, groups, distinct, premature=1.0)
