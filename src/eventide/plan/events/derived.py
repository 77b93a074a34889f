"""The rows of an append-only query as events: their time `ts`, their start `start_ts`, their order.

Every node knows when its rows are certain and where they began. `as_events` adds both as columns,
with those that decide the order of rows of the same time, and puts a `DerivedStream` above. Columns
that nothing reads are dropped again by `prune_columns`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from eventide.errors import BindError, Span
from eventide.plan.events.time_order import in_order
from eventide.plan.expressions import (
    Aggregate,
    At,
    Call,
    Column,
    Expression,
    Literal,
    MatchAggregate,
    MatchNumber,
    Named,
    PeriodPart,
)
from eventide.plan.nodes import DerivedStream, Filter, Project, Scan
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.patterns.tree import can_be_empty
from eventide.plan.situations.nodes import (
    END_TS,
    SITUATION,
    START_TS,
    Situations,
    TemporalPattern,
)
from eventide.plan.standing.nodes import AT, Merge, Standing
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import (
    WINDOW_END,
    WINDOW_START,
    SlidingAggregate,
    WindowAggregate,
)
from eventide.schema import INT64, NULL, SEQ, TIMESTAMP, TS

_ARM = "_arm"


@dataclass(frozen=True, slots=True)
class Timed:
    """A plan, and the expressions over its rows for their time, their start and their order."""

    plan: Plan
    ts: Expression
    start: Expression
    order: tuple[Expression, ...]
    in_time: bool = True
    """Whether `ts` is the instant at which a row is certain."""


def as_events(plan: Plan, span: Span | None = None, *, always: bool = False) -> Plan:
    """Return a bound plan of an append-only query as a plan whose rows are events.

    Its columns are those of the plan, then `ts` and `start_ts` if the plan has none of that name,
    then those of the order. Rows that are in order of their events need no `DerivedStream`; with
    `always` they get one too.
    """
    found = _timed(_projected(plan))
    shown = _checked(found, span).plan
    assert isinstance(shown, Project)
    if in_order(shown) and not always:
        names = {*plan.row, TS, START_TS}
        return Project(shown.source, tuple(item for item in shown.items if item.name in names))
    _refuse_numbers(shown, span)
    order = dict.fromkeys(map(_name_of, found.order))
    ordered_by = tuple(name for name in order if name != TS)
    return DerivedStream(shown, ordered_by, span, found.in_time)


def merged_events(plans: Sequence[Plan], span: Span | None = None) -> DerivedStream:
    """Return UNION ALL of plans as events; the plans are bound and have the same columns.

    Rows of the same time are in the order of the plans, then in that of their own plan. So the rows
    have the number of their plan, and the columns of the order of all plans.
    """
    arms = [_checked(_timed(_projected(each)), span) for each in plans]
    names = dict.fromkeys((*(_time_name(name) for name in plans[0].row), TS, START_TS))
    orders = [(number, part) for number, arm in enumerate(arms) for part in arm.order]
    merged = []
    for number, arm in enumerate(arms):
        row = arm.plan.row
        items = [Named(name, Column(name, row[name])) for name in names]
        items.append(Named(_ARM, Literal(number, INT64)))
        for place, (owner, part) in enumerate(orders):
            own = part if owner == number else Literal(None, part.type)
            items.append(Named(f"{_ARM}_{place}", own))
        merged.append(Project(arm.plan, tuple(items)))
    _refuse_numbers(merged[0], span)
    order = (_ARM, *(f"{_ARM}_{place}" for place in range(len(orders))))
    in_time = all(arm.in_time for arm in arms)
    return DerivedStream(Merge(tuple(merged)), order, span, in_time)


def _projected(plan: Plan) -> Project:
    """Return the plan below a projection of all its columns, unless it is one itself."""
    if isinstance(plan, Project):
        return plan
    return Project(plan, tuple(Named(name, Column(name, kind)) for name, kind in plan.row.items()))


def _name_of(expression: Expression) -> str:
    assert isinstance(expression, Column)
    return expression.name


def _checked(found: Timed, span: Span | None) -> Timed:
    """Refuse rows whose time is none."""
    kind = found.plan.row[TS]
    if kind != TIMESTAMP:
        message = f"the column {TS} of this query is {kind}, and rows are in order of it"
        hint = f"give the column another name: then {TS} is the time at which a row is certain"
        raise BindError(message, span=span, hint=hint)
    return found


def _refuse_numbers(plan: Plan, span: Span | None) -> None:
    if SEQ in plan.row:
        message = f"the rows of this query have no {SEQ}: they have not arrived"
        raise BindError(message, span=span, hint=f"give it another name, as in {SEQ} AS number")


def _timed(plan: Plan) -> Timed:
    match plan:
        case Scan():
            time = Column(TS, TIMESTAMP)
            return Timed(plan, time, time, (Column(SEQ, INT64),))
        case DerivedStream(order=order):
            time = Column(TS, TIMESTAMP)
            start = Column(START_TS, plan.row.get(START_TS, NULL))
            start = start if start.type == TIMESTAMP else time
            return Timed(plan, time, start, _columns(plan, *order))
        case Filter(source=source) | SlidingAggregate(source=source):
            below = _timed(source)
            return replace(below, plan=replace(plan, source=below.plan))
        case Project():
            return _of_project(plan)
        case WindowAggregate(keys=keys):
            start = Column(WINDOW_START, TIMESTAMP)
            parts = _columns(plan, WINDOW_START, *(key.name for key in keys))
            return Timed(plan, Column(WINDOW_END, TIMESTAMP), start, parts)
        case MatchRecognize():
            return _of_matches(plan)
        case Situations(keys=keys):
            start = Column(START_TS, TIMESTAMP)
            parts = _columns(plan, START_TS, *(key.name for key in keys), SITUATION)
            return Timed(plan, Column(END_TS, TIMESTAMP), start, parts)
        case TemporalPattern():
            return _of_situations(plan)
        case Standing(source=source):
            # The rows of an answer have no order but that of their values.
            at = Column(AT, TIMESTAMP)
            return Timed(plan, at, at, _columns(plan, *source.row))
    message = f"the rows of {type(plan).__name__} are no events"
    raise AssertionError(message)


def _columns(plan: Plan, *names: str) -> tuple[Column, ...]:
    """Return columns of a plan that have an order."""
    row = plan.row
    return tuple(Column(name, row[name]) for name in names if row[name] != NULL)


def _of_project(plan: Project) -> Timed:
    below = _timed(plan.source)
    items = [Named(_time_name(item.name), item.expression) for item in plan.items]
    ts = _shown(items, TS, below.ts)
    start = _shown(items, START_TS, below.start)
    order = tuple(_kept(items, part) for part in below.order)
    named = next(item.expression for item in items if item.name == TS)
    in_time = below.in_time and named == below.ts
    return Timed(Project(below.plan, tuple(items)), ts, start, order, in_time)


def _time_name(name: str) -> str:
    """Return a name; that of a time, in any case, under that very name."""
    folded = name.lower()
    return folded if folded in (TS, START_TS) else name


def _shown(items: list[Named], name: str, meaning: Expression) -> Expression:
    """Return the column of a name, adding it as an item if the query has none of that name."""
    found = next((item for item in items if item.name == name), None)
    if found is None:
        found = Named(name, meaning)
        items.append(found)
    return Column(name, found.type)


def _kept(items: list[Named], meaning: Expression) -> Expression:
    """Return the column that has a value of the rows below, adding it as a hidden item."""
    found = next((item for item in items if item.expression == meaning), None)
    if found is None:
        found = Named(_fresh("_order", [item.name for item in items]), meaning)
        items.append(found)
    return Column(found.name, found.type)


def _of_matches(plan: MatchRecognize) -> Timed:
    """Return the matches of a row pattern with their times and their order as hidden measures.

    Of one key, a start row has one match at most, so matches are in the order of their start rows,
    except where every match is wanted: there they are numbered.
    """
    below = _timed(plan.source)
    taken = list(plan.row)
    hidden: list[Named] = []

    def measured(expression: Expression) -> Column:
        name = _fresh("_of_match", [*taken, *(item.name for item in hidden)])
        hidden.append(Named(name, expression))
        return Column(name, expression.type)

    def start_of(part: Expression) -> Expression:
        return At(part, edge="start")

    started = start_of(below.ts)
    start = measured(started)
    ts: Expression = below.ts
    if not plan.all_rows:
        ts = At(below.ts, edge="last", final=True)
        if can_be_empty(plan.pattern):
            ts = Call("coalesce", (ts, started), TIMESTAMP)
        ts = measured(ts)
    if plan.all_rows:
        # A row in no match is its own beginning.
        began: Expression = Call("coalesce", (start, below.ts), TIMESTAMP)
    else:
        began = start
    parts: list[Expression] = [began, *(Column(key.name, key.type) for key in plan.keys)]
    parts += [measured(start_of(part)) for part in below.order]
    if plan.strategy == "skip_till_any":
        parts.append(measured(MatchNumber()))
    if plan.all_rows:
        parts.append(measured(MatchAggregate("count", None, type=INT64)))
        parts += below.order
    node = replace(plan, source=below.plan, measures=(*plan.measures, *hidden))
    return Timed(node, ts, began, tuple(parts))


def _of_situations(plan: TemporalPattern) -> Timed:
    """Return the matches of a temporal pattern, with their earliest start as a hidden item."""
    starts = tuple(PeriodPart(each.name, "start") for each in plan.situations)
    earliest: Expression = starts[0]
    if len(starts) > 1:
        earliest = Call("least", starts, TIMESTAMP)
    if plan.is_summary:
        earliest = Aggregate("min", earliest, TIMESTAMP)
    name = _fresh("_start", plan.row)
    start = Column(name, TIMESTAMP)
    shown = _columns(plan, *(item.name for item in (*plan.keys, *plan.returns)))
    node = replace(plan, returns=(*plan.returns, Named(name, earliest)))
    return Timed(node, Column(TS, TIMESTAMP), start, (start, *shown))


def _fresh(name: str, taken: Iterable[str]) -> str:
    """Return a name that is not taken; case does not matter."""
    used = {each.lower() for each in taken}
    number = 0
    while f"{name}_{number}" in used:
        number += 1
    return f"{name}_{number}"
