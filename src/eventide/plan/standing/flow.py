"""Estimate how many tuples go along each edge of a standing plan.

The model assumes that streams are steady, that columns are independent of each other, and that the
values of a stream are among those of another that has more of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod

from eventide.plan.expressions import Column, Expression, columns_of, conjuncts
from eventide.plan.nodes import Filter, Project
from eventide.plan.standing.join_order import JoinInput
from eventide.plan.standing.joins import AsOfJoin, Existence, OuterJoin, WindowJoin
from eventide.plan.standing.nodes import Difference, Distinct, GroupAggregate, Merge, Top
from eventide.plan.standing.statistics import (
    UNKNOWN,
    ColumnValues,
    LeafStatistics,
    Shares,
    Statistics,
    share_of,
)
from eventide.plan.standing.windows import (
    PeriodWindow,
    RangeWindow,
    RowsWindow,
    SessionWindow,
    StreamWindow,
    Windowed,
)
from eventide.plan.tree import Plan

LONG_S = 86_400.0
"""How many seconds of a stream a window is assumed to hold if it never loses anything."""
EVENNESS = 3.0
"""How evenly tuples are distributed over values: the shape of a gamma distribution. With this shape
as many tuples of a negation come and go again as on the traffic of the benchmark R7 with windows of
2,000 and 20,000; the more even, the fewer."""

_MOST_COVERED = 0.9
"""The other side is assumed to have at most this share of the values."""


@dataclass(frozen=True, slots=True)
class Flow:
    """The tuples of an edge.

    How many come in a second, how many live at a time, which values each column has, and which
    share goes early.
    """

    rate: float
    living: float
    values: Mapping[str, ColumnValues]
    premature: float = 0.0

    @property
    def lifetime(self) -> float:
        """How many seconds a tuple lives."""
        return self.living / self.rate if self.rate > 0 else 0.0

    def keys(self, expressions: Iterable[Expression]) -> float:
        """Return how many different values expressions have together."""
        distinct = prod(each.distinct for each in self._read(expressions))
        return max(1.0, min(distinct, self.living))

    def chances(self, expressions: Iterable[Expression]) -> float:
        """Return n such that one in n tuples has the same values of expressions as another."""
        return prod(each.chances for each in self._read(expressions))

    def nulls(self, expressions: Iterable[Expression]) -> float:
        """Return the share of tuples that have a null among their keys."""
        return 1.0 - prod(1.0 - each.nulls for each in self._read(expressions))

    def _read(self, expressions: Iterable[Expression]) -> list[ColumnValues]:
        columns = frozenset[str]().union(*map(columns_of, expressions))
        return [self.values.get(name, UNKNOWN) for name in sorted(columns)]

    @property
    def different_rows(self) -> float:
        """How many different rows there are at a time."""
        return max(1.0, min(prod(each.distinct for each in self.values.values()), self.living))

    def scaled(self, share: float) -> Flow:
        """Return the flow of a share of the tuples, chosen independently of their values."""
        values = {name: each.left(self.living, share) for name, each in self.values.items()}
        return Flow(self.rate * share, self.living * share, values, self.premature)

    def as_input(self, keys: Iterable[Expression]) -> JoinInput:
        """Return the statistics that the order of a join depends on, for tuples found by key."""
        chances = self.chances(keys)
        return JoinInput(self.rate, self.lifetime, chances, buckets=chances)


class Flows:
    """The flows of all edges of plans, each computed once."""

    def __init__(self, statistics: Statistics) -> None:
        self.statistics = statistics
        self.shares = known_shares(statistics)
        # By identity: plans are trees, and are compared as such. A plan is held as long as its
        # flow.
        self.known: dict[int, tuple[Plan, Flow]] = {}

    def of(self, plan: Plan) -> Flow:
        """Return how many tuples come out of a node."""
        if id(plan) not in self.known:
            self.known[id(plan)] = plan, self._found(plan)
        return self.known[id(plan)][1]

    def _found(self, plan: Plan) -> Flow:
        match plan:
            case Windowed(alias=alias, window=window):
                return _windowed(plan, window, self.statistics.get(alias, LeafStatistics()))
            case Filter(source=source, condition=condition):
                return selected(self.of(source), condition, self.shares)
            case Project(source=source, items=items):
                flow = self.of(source)
                values = {item.name: _computed(flow, item.expression) for item in items}
                return replace(flow, values=values)
            case Merge(sources=sources):
                return _merged([self.of(each) for each in sources])
            case WindowJoin() | OuterJoin():
                flows = [self.of(each) for each in plan.sources]
                combined = joined(plan, flows, self.shares)
                return combined if isinstance(plan, WindowJoin) else _outer(plan, flows, combined)
            case AsOfJoin(left=left, right=right):
                flow, other = self.of(left), self.of(right)
                return replace(flow, values={**flow.values, **other.values})
            case Distinct(source=source):
                return _different(self.of(source))
            case Difference(left=left, right=right):
                flow, other = self.of(left), self.of(right)
                others = other.different_rows
                return _negated(flow, other, _covered(flow.different_rows, others), others)
            case Existence(left=left, right=right, left_keys=left_keys, right_keys=right_keys):
                flow, other = self.of(left), self.of(right)
                others = other.keys(right_keys)
                covered = _covered(flow.keys(left_keys), others) * (1.0 - flow.nulls(left_keys))
                return (_negated if plan.negated else _required)(flow, other, covered, others)
            case GroupAggregate(source=source, keys=keys):
                return _grouped(plan, self.of(source), [key.expression for key in keys])
            case Top(source=source, count=count):
                flow = self.of(source)
                first = flow.scaled(min(1.0, count / max(flow.living, 1.0)))
                return replace(first, premature=1.0)
            case _:
                return self.of(plan.children[0])


def selected(flow: Flow, condition: Expression, known: Shares) -> Flow:
    """Return the flow of the tuples on which a condition is true."""
    left = flow.scaled(share_of(condition, flow.values, known))
    values = dict(left.values)
    for part in conjuncts(condition):
        names = columns_of(part) & flow.values.keys()
        if len(names) == 1:
            (name,) = names
            values[name] = flow.values[name].selected(share_of(part, flow.values, known))
    return replace(left, values=values)


def joined(join: WindowJoin | OuterJoin, flows: list[Flow], known: Shares) -> Flow:
    """Return the flow of the combinations of sources."""
    keys = [flow.chances(each) for flow, each in zip(flows, join.keys, strict=True)]
    # Keys are assumed to be among those of the source that has most of them, so the number of
    # combinations is divided by all numbers of keys but the smallest.
    matched = max(prod(keys) / min(keys), 1.0)
    living = prod(flow.living for flow in flows) / matched
    rate = sum(
        flow.rate * prod(each.living for each in flows if each is not flow) / matched
        for flow in flows
    )
    fewest = min(flow.keys(each) for flow, each in zip(flows, join.keys, strict=True))
    compared = {key.name for each in join.keys for key in each if isinstance(key, Column)}
    values = {
        name: each.among(fewest) if name in compared else each
        for flow in flows
        for name, each in flow.values.items()
    }
    premature = 1.0 - prod(1.0 - flow.premature for flow in flows)
    whole = Flow(rate, living, values, premature)
    return whole if join.condition is None else selected(whole, join.condition, known)


def _outer(join: OuterJoin, flows: list[Flow], combined: Flow) -> Flow:
    """Return the flow of an outer join: combinations of two sources, and rows without a partner."""
    merged = [combined]
    for side in (0, 1):
        if join.keeps[side]:
            flow, other = flows[side], flows[1 - side]
            keys, others = join.keys[side], other.keys(join.keys[1 - side])
            covered = _covered(flow.keys(keys), others) * (1.0 - flow.nulls(keys))
            merged.append(_negated(flow, other, covered, others))
    return _merged(merged)


def known_shares(statistics: Statistics) -> Shares:
    """Return the measured selectivity of conditions, each of which reads one window."""
    return {each: share for leaf in statistics.values() for each, share in leaf.shares.items()}


def _windowed(plan: Windowed, window: StreamWindow, leaf: LeafStatistics) -> Flow:
    stream = {name: leaf.values.get(name, UNKNOWN) for name in plan.source.row}
    premature = 0.0
    match window:
        case RangeWindow(size_us=size, jump_us=jump):
            living = leaf.rate * (size + (jump or 0) / 2) / 1e6
        case PeriodWindow(period_us=period):
            living = leaf.rate * period / 2e6
        case SessionWindow(gap_us=gap):
            living, premature = leaf.rate * 2 * gap / 1e6, 1.0
        case RowsWindow(count=count, keys=keys):
            living, premature = count * prod(stream[key].distinct for key in keys), 1.0
        case _:
            living = leaf.rate * LONG_S
    # A window may be empty most of the time; the events it has have a value.
    most = max(1.0, living)
    values = {f"{plan.alias}.{name}": each.among(most) for name, each in stream.items()}
    return Flow(leaf.rate, living, values, premature)


def _computed(flow: Flow, expression: Expression) -> ColumnValues:
    if isinstance(expression, Column):
        return flow.values.get(expression.name, UNKNOWN)
    return ColumnValues(flow.keys([expression]), measured=False)


def _merged(flows: list[Flow]) -> Flow:
    rate = sum(flow.rate for flow in flows)
    values = {
        name: max((flow.values.get(name, UNKNOWN) for flow in flows), key=lambda v: v.distinct)
        for name in flows[0].values
    }
    premature = sum(flow.premature * flow.rate for flow in flows) / rate if rate else 0.0
    return Flow(rate, sum(flow.living for flow in flows), values, premature)


def _different(flow: Flow) -> Flow:
    """Return the flow of DISTINCT: while one tuple of a value lives, others are not passed on."""
    rows = flow.different_rows
    passed = rows / max(flow.living, 1.0)
    return Flow(flow.rate * passed, rows, flow.values, flow.premature)


def _covered(values: float, others: float) -> float:
    """Return the share of values that the other side has, now or later."""
    return min(_MOST_COVERED, others / values)


def _negated(flow: Flow, other: Flow, covered: float, others: float) -> Flow:
    """Return the flow that is left when another flow takes its values back.

    A value that the other side has at all has `held` tuples there at a time, and sometimes none.
    Whenever it gets its first tuple or loses its last, all tuples of the value go or come again.
    """
    absent, returns = _absences(flow, other, others)
    left = flow.scaled(1.0 - covered + covered * absent)
    return _with_returns(left, flow, covered * returns)


def _required(flow: Flow, other: Flow, covered: float, others: float) -> Flow:
    """Return the flow of tuples that need a partner: a tuple goes with the last of them."""
    absent, returns = _absences(flow, other, others)
    return _with_returns(flow.scaled(covered * (1.0 - absent)), flow, covered * returns)


def _absences(flow: Flow, other: Flow, others: float) -> tuple[float, float]:
    """Return the share of time in which a value is absent, and the absences in a lifetime.

    The number of tuples of a value has a gamma distribution (see `EVENNESS`); they come at random
    times.
    """
    absent = (1.0 + other.living / others / EVENNESS) ** -EVENNESS
    return absent, other.rate * flow.lifetime / others * absent


def _with_returns(left: Flow, flow: Flow, returns: float) -> Flow:
    """Return a flow whose tuples come again `returns` times in their life."""
    rate = left.rate + flow.rate * returns
    taken = flow.rate * returns / max(rate, 1e-9)
    premature = taken + (1.0 - taken) * flow.premature
    return Flow(rate, left.living, left.values, premature)


def _grouped(plan: GroupAggregate, flow: Flow, keys: list[Expression]) -> Flow:
    """Return the flow of groups: each tuple that comes or goes replaces one."""
    groups = flow.keys(keys)
    values = dict.fromkeys(plan.row, ColumnValues(groups, measured=False))
    return Flow(2.0 * flow.rate, groups, values, premature=1.0)
