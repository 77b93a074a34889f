"""SELECTs that the index of a stored stream answers: aggregates without a key, rows at its ends.

`SELECT COUNT(*), MAX(speed) FROM cars WHERE ts >= …`, also by `date_trunc('month', ts)`, becomes a
window aggregate; `SELECT * FROM cars ORDER BY ts DESC LIMIT 5` the rows at one end of time. What
has more to it is left to the SQL around the stream.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from sqlglot import exp

from eventide.errors import EventideError, UnsupportedError
from eventide.lang.sql.block import Block, filtered_scan
from eventide.lang.sql.expressions import Translator
from eventide.lang.sql.names.scope import Scope
from eventide.lang.sql.ordering import OuterClauses, around_of
from eventide.lang.sql.select_list import Grouping, has_aggregate, read_list
from eventide.lang.sql.windows.group_by import meant_key
from eventide.plan.bind import bind
from eventide.plan.expressions import (
    Aggregate,
    Call,
    Column,
    Expression,
    Literal,
    Named,
)
from eventide.plan.nodes import EndRows, Filter, Project, Scan, scans_of
from eventide.plan.passes import narrowed
from eventide.plan.render import render
from eventide.plan.times import UNIT_US
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import (
    WINDOW_END,
    WINDOW_START,
    CalendarUnit,
    CalendarWindow,
    Window,
    WindowAggregate,
)
from eventide.schema import SEQ, TS, Schema

EXACT = ("count", "sum", "avg", "min", "max")
"""The aggregates that every entry of the index has, and to the last bit."""
OF_TIME = ("count", "min", "max")
"""Those of them that it has of `ts`."""
MOST_ROWS = 100_000
"""More rows than these are read and sorted like all others."""

_CALENDAR: tuple[CalendarUnit, ...] = get_args(CalendarUnit)
_ARGS = {"expressions", "from_", "where", "group", "having", "with_"}
_ARGS |= {"order", "limit", "offset", "distinct"}
_EXTENSIONS = ("rollup", "cube", "grouping_sets", "totals")


@dataclass(frozen=True, slots=True)
class IndexReader:
    """Recognises the SELECTs that the index answers; `indexed` are the streams that have one.

    Live, streams come in order of time, so parts of time are windows as well.
    """

    catalog: Mapping[str, Schema]
    text: str
    indexed: Collection[str]

    def aggregates(self, select: exp.Select, scope: Scope) -> tuple[Block, OuterClauses] | None:
        """Return the aggregates without a key that a SELECT asks of an index, or None."""
        others = {key for key, value in select.args.items() if value} - _ARGS
        if others or not self._has_index(scope.source):
            return None
        try:
            block = aggregate_block(select, scope, self.text)
            around = around_of(select, block.columns)
        except EventideError:
            return None  # SQL may do it, or has a better message
        return (block, in_order_of_time(block, around)) if self._is_of_time(block) else None

    def over_all(self, select: exp.Select, scope: Scope) -> tuple[Block, OuterClauses] | None:
        """Return aggregates over all events that only our operators compute, or None."""
        others = {key for key, value in select.args.items() if value} - _ARGS
        if others or not self._is_stream(scope.source):
            return None
        try:
            block = whole_block(select, scope, self.text)
            around = around_of(select, block.columns)
            plan = bind(block.plan, self.catalog)
        except EventideError:
            return None  # SQL may do it, or has a better message
        while isinstance(plan, Filter | Project):
            plan = plan.source
        assert isinstance(plan, WindowAggregate)
        ours = any(means_something_else(item.aggregate) for item in plan.aggregates)
        return (block, around) if ours else None

    def ended(self, block: Block, around: OuterClauses) -> tuple[Block, OuterClauses]:
        """Return a block and what is around it; rows at one end of time are all of it."""
        if not self._has_index(block.plan):
            return block, around
        found = end_block(block, around)
        return (block, around) if found is None else (found, OuterClauses())

    def _is_stream(self, plan: Plan) -> bool:
        """Whether a plan chooses and computes with events of a stream, not with rows that go."""
        while isinstance(plan, Filter | Project):
            plan = plan.source
        if not isinstance(plan, Scan) or plan.written is not None:
            return False
        known = self.catalog[plan.stream]
        return known.timed and not known.key

    def _has_index(self, plan: Plan) -> bool:
        """Whether a plan chooses and computes with events of a stream that has an index."""
        return self._is_stream(plan) and all(scan.stream in self.indexed for scan in scans_of(plan))

    def _is_of_time(self, block: Block) -> bool:
        """Whether a block needs nothing of its stream but a period."""
        try:
            plan = bind(block.plan, self.catalog)
        except EventideError:
            return False
        return reads_only_time(plan) or reads_only_time(narrowed(plan))


def whole_block(select: exp.Select, scope: Scope, text: str) -> Block:
    """Return the plan of aggregates by any keys over all events."""
    translator = Translator(scope, text)
    columns = read_list(select, translator)
    having = select.args.get("having")
    keys = _keys(select, translator, [item.expression for item in columns.shown])
    grouping = Grouping.by(keys, columns.items, scope)
    grouping = replace(grouping, taken=(WINDOW_START, WINDOW_END))
    source = filtered_scan(select, scope, text)
    plan = grouping.plan(
        columns.items,
        None if having is None else translator.translate(having.this),
        lambda named, found: WindowAggregate(source, named, CalendarWindow("all"), found),
    )
    if not grouping.aggregates:
        message = "there is no aggregate"
        raise UnsupportedError(message)
    return Block(plan, columns)


def means_something_else(aggregate: Aggregate) -> bool:
    """Whether the SQL around the streams would compute another value than our operators.

    It lacks some aggregates of ours, sums floats with an error, and takes values in any order.
    """
    argument = aggregate.argument
    if argument is None or aggregate.function in ("count", "min", "max", "bool_and", "bool_or"):
        return False
    match aggregate.function:
        case "sum":
            return argument.type.kind == "float64"
        case "avg" | "median" | "quantile_cont":
            return argument.type.kind != "int64"
    return aggregate.function != "quantile_disc"


def aggregate_block(select: exp.Select, scope: Scope, text: str) -> Block:
    """Return the plan of aggregates without a key; `UnsupportedError` says that it is no such."""
    translator = Translator(scope, text)
    columns = read_list(select, translator)
    key = _key(select, translator, [item.expression for item in columns.shown])
    having = select.args.get("having")
    source = filtered_scan(select, scope, text)
    # The windows are the key.
    keys = () if key is None else (Named(WINDOW_START, key),)
    grouping = Grouping(keys, taken=(WINDOW_START, WINDOW_END))
    plan = grouping.plan(
        columns.items,
        None if having is None else translator.translate(having.this),
        lambda _, aggregates: WindowAggregate(source, (), _window(key), aggregates),
    )
    if key is None and not grouping.aggregates:
        message = "there is no aggregate"
        raise UnsupportedError(message)
    for each in grouping.aggregates:
        _check_indexed(each.aggregate, key)
    return Block(plan, columns)


def _keys(
    select: exp.Select, translator: Translator, items: Sequence[Expression]
) -> list[Expression]:
    """Return the keys of GROUP BY; `UnsupportedError` for sets of keys."""
    group = select.args.get("group")
    if group is None:
        return []
    if any(group.args.get(each) for each in _EXTENSIONS):
        message = "there are several sets of keys"
        raise UnsupportedError(message)
    if group.args.get("all"):
        return [item for item in items if not has_aggregate(item)]
    return [translator.translate(meant_key(each, select)) for each in group.expressions]


def _key(
    select: exp.Select, translator: Translator, items: Sequence[Expression]
) -> Expression | None:
    """Return the only key of GROUP BY, or None if there is no GROUP BY."""
    if select.args.get("group") is None:
        return None
    keys = _keys(select, translator, items)
    if len(keys) != 1:
        message = "there is a key beside the time"
        raise UnsupportedError(message)
    return keys[0]


def _window(key: Expression | None) -> Window | CalendarWindow:
    """Return the windows that a key means: those of `date_trunc` of the events' time."""
    match key:
        case None:
            return CalendarWindow("all")
        case Call("date_trunc", (Literal(value=unit), Column(name="ts"))):
            for each in _CALENDAR:
                if each == unit:
                    return CalendarWindow(each)
            if isinstance(unit, str) and unit in UNIT_US:
                return Window(UNIT_US[unit], UNIT_US[unit])
    message = f"{render(key)} is not a part of time"
    raise UnsupportedError(message, span=key.span)


def _check_indexed(aggregate: Aggregate, key: Expression | None) -> None:
    """Refuse an aggregate that no index has."""
    match aggregate.argument:
        case None:
            known = aggregate.function in EXACT
        case Column(name="ts"):
            # Of parts of the calendar the index has no first and last times.
            known = aggregate.function in OF_TIME and key is None
        case Column(name=name):
            known = aggregate.function in EXACT and name != SEQ
        case _:
            known = False
    if not known or aggregate.distinct or aggregate.condition is not None:
        message = f"no index has {render(aggregate)}"
        raise UnsupportedError(message, span=aggregate.span)


def in_order_of_time(block: Block, around: OuterClauses) -> OuterClauses:
    """Return the clauses around windows, without an ORDER BY that only says what they do anyway."""
    if around.clauses or len(around.order) != 1:
        return around
    ((item, name),) = around.order
    if item.args.get("desc") or _item(block, name) != Column(WINDOW_START):
        return around
    return replace(around, order=())


def end_block(block: Block, around: OuterClauses) -> Block | None:
    """Return a block with ORDER BY ts and LIMIT around it as rows at one end of time, if it is."""
    limit, offset = around.clauses.get("limit"), around.clauses.get("offset")
    if not isinstance(limit, exp.Limit) or len(around.order) > 1 or "distinct" in around.clauses:
        return None
    count, skipped = _number(limit), 0 if offset is None else _number(offset)
    if count is None or skipped is None or count + skipped > MOST_ROWS:
        return None
    last = False
    if around.order:
        ((item, name),) = around.order
        if _item(block, name) != Column(TS):
            return None
        last = bool(item.args.get("desc"))
    plan = block.plan
    if not isinstance(plan, Project):
        return None
    shown = plan.items[: len(block.columns.shown)]
    return replace(block, plan=EndRows(replace(plan, items=shown), count, skipped, last))


def _item(block: Block, name: str) -> Expression | None:
    plan = block.plan
    assert isinstance(plan, Project)
    return next((item.expression for item in plan.items if item.name == name), None)


def _number(clause: exp.Expr) -> int | None:
    """Return the number of rows of LIMIT or OFFSET, if there is nothing else in it."""
    more = [key for key, value in clause.args.items() if value and key != "expression"]
    number = clause.args.get("expression")
    plain = isinstance(number, exp.Literal) and number.is_int and not more
    return int(number.name) if plain and number is not None else None


def reads_only_time(plan: Plan) -> bool:
    """Whether the windows of a bound plan go over a period of a stream: no condition is left."""
    while isinstance(plan, Filter | Project):
        plan = plan.source
    return isinstance(plan, WindowAggregate) and isinstance(plan.source, Scan)
