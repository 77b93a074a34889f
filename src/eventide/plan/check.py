"""Check a plan: every pass relies on these properties and must preserve them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import assert_never

from eventide.errors import PlanError
from eventide.plan.aggregates import AGGREGATES, DECAYED
from eventide.plan.expressions import (
    Aggregate,
    At,
    Call,
    Classifier,
    Column,
    Expression,
    MatchAggregate,
    MatchNumber,
    Named,
    NamedAggregate,
    Over,
    PeriodPart,
    walk,
)
from eventide.plan.functions import FUNCTIONS
from eventide.plan.nodes import DerivedStream, EndRows, Filter, Project, Relational, Scan, node_of
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.render import render
from eventide.plan.situations.allen import ANY
from eventide.plan.situations.nodes import (
    CONFIRMED,
    END_TS,
    SITUATION,
    START_TS,
    PeriodJoin,
    Situations,
    TemporalPattern,
)
from eventide.plan.situations.parts import Situation
from eventide.plan.standing.nodes import (
    AsOfJoin,
    Difference,
    Distinct,
    Existence,
    GroupAggregate,
    Merge,
    OuterJoin,
    RowsWindow,
    SessionWindow,
    Standing,
    StandingNode,
    Top,
    Windowed,
    WindowJoin,
)
from eventide.plan.tree import Plan, Row
from eventide.plan.windows.nodes import WINDOW_END, WINDOW_START, SlidingAggregate, WindowAggregate
from eventide.schema import BOOL, NULL, TIMESTAMP, TS

MOST_SITUATIONS = 32
"""Each is a bit, and an order of joining them has to be found."""


def check_plan(plan: Plan, *, after: str) -> Plan:
    """Return the plan, or raise `PlanError` naming the pass that broke it."""
    try:
        _check(plan)
    except PlanError as error:
        message = f"after {after}: {error.message}"
        raise PlanError(message, span=error.span) from error
    return plan


def _check(plan: Plan) -> None:  # noqa: PLR0912 - a case for each kind of node
    for source in plan.children:
        _check(source)
    plan = node_of(plan)
    match plan:
        case Scan():
            _check_names(name for name, _ in plan.columns)
            _check_present(plan, plan.row, TS)
        case Filter(source=source, condition=condition):
            _check_expression(condition, source.row)
            _require(condition.type == BOOL, f"{render(condition)} is no condition")
        case Project(source=source, items=items):
            _check_items(items, source.row)
        case WindowAggregate(source=source, keys=keys, aggregates=aggregates):
            _check_present(plan, source.row, TS)
            _check_items(keys, source.row)
            _check_aggregates(aggregates, source.row)
            names = [key.name for key in keys] + [item.name for item in aggregates]
            _check_names([*names, WINDOW_START, WINDOW_END])
        case SlidingAggregate(source=source, keys=keys, aggregates=aggregates):
            _check_present(plan, source.row, TS)
            for key in keys:
                _check_expression(key, source.row)
            _check_aggregates(aggregates, source.row)
            _check_names([*source.row, *(item.name for item in aggregates)])
        case MatchRecognize(source=source, keys=keys, measures=measures):
            _check_present(plan, source.row, TS)
            _check_items(keys, source.row)
            for item in plan.order:
                _check_expression(item.expression, source.row)
            _check_match(plan, source.row)
            _check_names(named.name for named in (*keys, *measures))
        case Situations(source=source) | TemporalPattern(source=source):
            _check_present(plan, source.row, TS)
            _check_items(plan.keys, source.row)
            _check_situations(plan.situations, source.row)
            _check_found(plan, source.row)
        case PeriodJoin(left=left, right=right):
            _check_names([*left.row, *right.row])
            _check_join(plan, left.row, right.row)
        case DerivedStream(source=source, order=order):
            _check_present(plan, source.row, TS, *order)
            _require(source.row[TS] == TIMESTAMP, f"{TS} is {source.row[TS]}, not a time")
        case Relational(inputs=inputs):
            _check_names(name for name, _ in inputs)
        case EndRows():
            pass
        case _:
            _check_standing(plan)


def _check_standing(plan: StandingNode) -> None:
    match plan:
        case Windowed(source=source):
            is_stream = isinstance(source, Scan | DerivedStream)
            _require(is_stream, "a window over something that is no stream")
            _check_window(plan)
        case Merge(sources=sources):
            _check_alike(*sources)
        case WindowJoin() | OuterJoin():
            _check_window_join(plan)
        case AsOfJoin(left=left, right=right):
            _check_names([*left.row, *right.row])
            _check_keys([(left, plan.left_keys), (right, plan.right_keys)])
        case Existence(left=left, right=right):
            _check_keys([(left, plan.left_keys), (right, plan.right_keys)])
        case Difference(left=left, right=right):
            _check_alike(left, right)
        case GroupAggregate(source=source, keys=keys, aggregates=aggregates):
            _check_items(keys, source.row)
            _check_aggregates(aggregates, source.row, ages=True)
            _check_names([*(key.name for key in keys), *(item.name for item in aggregates)])
        case Top(source=source, order=order, count=count, keys=keys):
            _require(bool(order) and count > 0, "the first rows in no order")
            for expression in (*keys, *(item.expression for item in order)):
                _check_expression(expression, source.row)
        case Distinct() | Standing():
            pass
        case _:
            assert_never(plan)


def _check_window(plan: Windowed) -> None:
    row, window = plan.source.row, plan.window
    if isinstance(window, RowsWindow | SessionWindow):
        _check_present(plan, row, *window.keys)
    if isinstance(window, RowsWindow) and window.deleted is not None:
        _check_present(plan, row, window.deleted)
        _require(row[window.deleted] == BOOL, f"{window.deleted} is no condition")


def _check_window_join(node: WindowJoin | OuterJoin) -> None:
    sources, condition, band = node.sources, node.condition, node.band
    _require(len(sources) >= 2 and len(node.keys) == len(sources), "a join of one source")
    _check_names(name for source in sources for name in source.row)
    _check_keys(list(zip(sources, node.keys, strict=True)))
    if condition is not None:
        _check_expression(condition, node.row)
        _require(condition.type == BOOL, f"{render(condition)} is no condition")
    if band is not None:
        _require(len(sources) == 2, "a band between more than two sources")
        _check_expression(band.left, sources[0].row)
        _check_expression(band.right, sources[1].row)


def _check_alike(first: Plan, *others: Plan) -> None:
    for other in others:
        same = list(first.row.items()) == list(other.row.items())
        _require(same, f"rows of different columns: {first.row} and {other.row}")


def _check_keys(sides: list[tuple[Plan, tuple[Expression, ...]]]) -> None:
    for source, keys in sides:
        for key in keys:
            _check_expression(key, source.row)
    kinds = [[key.type for key in keys] for _, keys in sides]
    _require(all(each == kinds[0] for each in kinds), f"keys of different types: {kinds}")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise PlanError(message)


def _check_present(plan: Plan, row: Row, *names: str) -> None:
    for name in names:
        _require(name in row, f"{type(plan).__name__} needs {name}")


def _check_names(names: Iterable[str]) -> None:
    for name, count in Counter(names).items():
        _require(count == 1, f"the name {name!r} appears {count} times")


def _check_items(items: tuple[Named, ...], row: Row) -> None:
    _check_names(item.name for item in items)
    for item in items:
        _check_expression(item.expression, row)


def _check_aggregates(items: tuple[NamedAggregate, ...], row: Row, *, ages: bool = False) -> None:
    _check_names(item.name for item in items)
    for item in items:
        name = item.aggregate.function
        function = AGGREGATES.get(name)
        known = function is not None and (ages or name not in DECAYED)
        _require(known, f"{name} has no place here")
        wanted = function is not None and function.parameter is not None
        given = item.aggregate.parameter is not None
        _require(given == wanted, f"{render(item.aggregate)} has a wrong parameter")
        _require(item.aggregate.type != NULL, f"{render(item.aggregate)} has no type")
        for part in item.aggregate.parts:
            _check_expression(part, row)


def _check_match(node: MatchRecognize, row: Row) -> None:
    known = {*node.variables, *(name for name, _ in node.subsets), None}
    defined = tuple(item.name for item in node.defines)
    _require(defined == node.variables, f"conditions of {defined}, variables {node.variables}")
    for item in node.defines:
        _require(item.type == BOOL, f"{render(item.expression)} is no condition")
    for item in (*node.defines, *node.measures):
        for part in walk(item.expression):
            match part:
                case At(argument=argument, variable=variable):
                    _require(variable in known, f"no pattern variable {variable!r}")
                    _check_of_match(argument, row)
                case MatchAggregate(variable=variable):
                    _require(variable in known, f"no pattern variable {variable!r}")
                    _require(part.type != NULL, f"{render(part)} has no type")
                    for inner in part.plain.parts:
                        _check_of_match(inner, row, numbered=True)
                case Call() if part.type == NULL:
                    message = f"{render(part)} has no type"
                    raise PlanError(message)


def _check_found(plan: Situations | TemporalPattern, row: Row) -> None:
    """Check what is reported of situations or of their matches."""
    keys = [key.name for key in plan.keys]
    if isinstance(plan, Situations):
        _check_aggregates(plan.aggregates, row)
        computed = [item.name for item in plan.aggregates]
        _check_names([*keys, SITUATION, START_TS, END_TS, *computed])
        return
    _check_temporal(plan, row)
    own = [CONFIRMED] if plan.confirm else []
    _check_names([*keys, *(item.name for item in plan.returns), TS, *own])


def _check_situations(situations: tuple[Situation, ...], row: Row) -> None:
    _check_names(item.name for item in situations)
    _require(0 < len(situations) <= MOST_SITUATIONS, f"{len(situations)} situations")
    for item in situations:
        _check_expression(item.condition, row)
        _require(item.type == BOOL, f"{render(item.condition)} is no condition")
        longest = item.least_us if item.most_us is None else item.most_us
        _require(0 <= item.least_us <= longest, f"{item.name} lasts at least more than at most")


def _check_temporal(node: TemporalPattern, row: Row) -> None:
    _require(node.within_us > 0, "a pattern fits into no time")
    _require(not (node.is_summary and node.limit), "a limit on matches that are only summed up")
    _require(not (node.is_summary and node.confirm), "matches that are only summed up, confirmed")
    pairs = [(each.first, each.second) for each in node.constraints]
    _require(len(pairs) == len(set(pairs)), "two constraints on one pair")
    for each in node.constraints:
        _require(0 <= each.first < each.second < len(node.situations), f"no such pair: {each}")
        _require(0 < each.mask <= ANY, f"no such relations: {each}")
    known = {item.name for item in node.situations}
    for item in node.returns:
        for part in walk(item.expression):
            match part:
                case PeriodPart(variable=variable):
                    _require(variable in known, f"no situation {variable!r}")
                case MatchAggregate(variable=variable):
                    _require(variable in known, f"no situation {variable!r}")
                    _require(part.type != NULL, f"{render(part)} has no type")
                    for inner in part.plain.parts:
                        _check_expression(inner, row)


def _check_join(node: PeriodJoin, left: Row, right: Row) -> None:
    _require(0 < node.mask <= ANY, f"no such relations: {node.mask}")
    for row, period in ((left, node.first), (right, node.second)):
        _check_present(node, row, period.start, period.end)
        for name in (period.start, period.end):
            _require(row[name] == TIMESTAMP, f"{name} is {row[name]}, not a time")
    for one, other in node.keys:
        _check_present(node, left, one)
        _check_present(node, right, other)
        _require(left[one] == right[other], f"{one} and {other} differ in type")
    shown = left if node.kind in ("semi", "anti") else {**left, **right}
    _check_present(node, shown, *node.columns)
    _check_names(node.columns)


def _check_of_match(expression: Expression, row: Row, *, numbered: bool = False) -> None:
    """Check an expression over one row of a match, where only its variable is known too."""
    for part in walk(expression):
        nested = isinstance(part, At | MatchAggregate)
        nested = nested or (isinstance(part, MatchNumber) and not numbered)
        _require(not nested, f"{type(part).__name__} inside another")
        if isinstance(part, Column):
            _check_expression(part, row)


def _check_expression(expression: Expression, row: Row) -> None:
    """Check a row-local expression."""
    for part in walk(expression):
        match part:
            case Column(name=name, type=data_type):
                _require(name in row, f"no column {name!r}")
                _require(row[name] == data_type, f"{name} is {row[name]}, not {data_type}")
            case Call(function=function):
                _require(function in FUNCTIONS, f"no function {function!r}")
                # Text is made only for errors: rendering every part would take quadratic time.
                if part.type == NULL:
                    message = f"{render(part)} has no type"
                    raise PlanError(message)
            case (
                Aggregate()
                | Over()
                | At()
                | MatchAggregate()
                | Classifier()
                | MatchNumber()
                | PeriodPart()
            ):
                message = f"{render(part)} stands where only row-local expressions may"
                raise PlanError(message)
