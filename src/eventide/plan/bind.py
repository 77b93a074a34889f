"""Bind: names become columns of the source's rows, and every expression gets its type.

A parser leaves types out. `bind` returns the same plan with every `type` set, implicit casts
written out, and literals converted to the type they are compared with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import assert_never, cast

from eventide.errors import BindError, Span, listed
from eventide.plan.aggregates import AGGREGATES, DECAYED
from eventide.plan.bind_hints import (
    cast_advice,
    cast_hint,
    compare_hint,
    interval_hint,
    joined_hint,
    text_hint,
)
from eventide.plan.constants import cast_constant
from eventide.plan.expressions import (
    Aggregate,
    At,
    Call,
    Cast,
    Classifier,
    Column,
    Expression,
    Literal,
    MatchAggregate,
    MatchNumber,
    Named,
    NamedAggregate,
    Over,
    PeriodPart,
    rebuild,
)
from eventide.plan.functions import FUNCTIONS, Function
from eventide.plan.nodes import DerivedStream, EndRows, Filter, Project, Relational, Scan, node_of
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.render import render
from eventide.plan.situations.nodes import PeriodJoin, Situations, TemporalPattern
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
    StreamWindow,
    Top,
    Windowed,
    WindowJoin,
)
from eventide.plan.times import parse_duration, parse_timestamp
from eventide.plan.tree import Plan, Row
from eventide.plan.types import can_cast
from eventide.plan.windows.nodes import SlidingAggregate, WindowAggregate
from eventide.schema import BOOL, FLOAT64, INT64, NULL, STRING, TIMESTAMP, DataType, Schema


def bind(plan: Plan, catalog: Mapping[str, Schema]) -> Plan:
    """Return the plan with every name resolved and every type set."""
    plan = node_of(plan)
    match plan:
        case Scan():
            return bind_scan(plan, catalog)
        case Filter(source=source, condition=condition):
            below = bind(source, catalog)
            return Filter(below, bind_condition(condition, below.row))
        case Project(source=source, items=items):
            below = bind(source, catalog)
            return Project(below, tuple(_bind_named(item, below.row) for item in items))
        case WindowAggregate(source=source, keys=keys):
            below = bind(source, catalog)
            bound = tuple(_bind_named(key, below.row) for key in keys)
            return replace(
                plan, source=below, keys=bound, aggregates=_bind_all(plan.aggregates, below.row)
            )
        case SlidingAggregate(source=source, keys=keys):
            below = bind(source, catalog)
            parts = tuple(bind_expression(key, below.row) for key in keys)
            return replace(
                plan, source=below, keys=parts, aggregates=_bind_all(plan.aggregates, below.row)
            )
        case MatchRecognize(source=source):
            below = bind(source, catalog)
            return bind_match(replace(plan, source=below), below.row)
        case Situations(source=source):
            below = bind(source, catalog)
            return replace(
                plan,
                source=below,
                keys=tuple(_bind_named(key, below.row) for key in plan.keys),
                situations=_bind_situations(plan.situations, below.row),
                aggregates=_bind_all(plan.aggregates, below.row),
            )
        case TemporalPattern(source=source):
            below = bind(source, catalog)
            return replace(
                plan,
                source=below,
                keys=tuple(_bind_named(key, below.row) for key in plan.keys),
                situations=_bind_situations(plan.situations, below.row),
                returns=tuple(_bind_named(item, below.row) for item in plan.returns),
            )
        case PeriodJoin() | DerivedStream() | EndRows() | Relational():
            return plan.with_children(lambda each: bind(each, catalog))
        case _:
            below = plan.with_children(lambda each: bind(each, catalog))
            return bind_standing(cast("StandingNode", below))


def bind_standing(plan: StandingNode) -> Plan:
    """Return a node of a standing query, whose sources are bound, with its own names resolved."""
    match plan:
        case Windowed(source=source):
            return replace(plan, window=_bind_window(plan.window, source.row, plan.span))
        case (
            WindowJoin(sources=sources, keys=keys, condition=condition, band=band)
            | OuterJoin(sources=sources, keys=keys, condition=condition, band=band)
        ):
            rows = [source.row for source in sources]
            bound = [_bind_each(each, row) for each, row in zip(keys, rows, strict=True)]
            if band is not None:
                left, right = rows
                band = replace(
                    band,
                    left=bind_expression(band.left, left),
                    right=bind_expression(band.right, right),
                )
            return replace(
                plan,
                keys=_alike(bound),
                condition=None if condition is None else bind_condition(condition, plan.row),
                band=band,
            )
        case (
            AsOfJoin(left=left_source, right=right_source)
            | Existence(left=left_source, right=right_source)
        ):
            one, other = _alike(
                [
                    _bind_each(plan.left_keys, left_source.row),
                    _bind_each(plan.right_keys, right_source.row),
                ]
            )
            return replace(plan, left_keys=one, right_keys=other)
        case GroupAggregate(source=source, keys=named):
            return replace(
                plan,
                keys=tuple(_bind_named(key, source.row) for key in named),
                aggregates=_bind_all(plan.aggregates, source.row),
            )
        case Top(source=source, order=order, keys=keys):
            return replace(
                plan,
                keys=tuple(bind_expression(key, source.row) for key in keys),
                order=tuple(
                    replace(item, expression=bind_expression(item.expression, source.row))
                    for item in order
                ),
            )
        case Merge() | Distinct() | Difference() | Standing():
            return plan
    assert_never(plan)


def _bind_window(window: StreamWindow, row: Row, span: Span | None) -> StreamWindow:
    """Return the window with its columns spelled as in the stream."""
    if not isinstance(window, RowsWindow | SessionWindow):
        return window
    keys = tuple(resolve(name, row, span=span, what="column") for name in window.keys)
    if isinstance(window, SessionWindow) or window.deleted is None:
        return replace(window, keys=keys)
    deleted = resolve(window.deleted, row, span=span, what="column")
    return replace(window, keys=keys, deleted=deleted)


def _bind_each(expressions: tuple[Expression, ...], row: Row) -> tuple[Expression, ...]:
    return tuple(bind_expression(each, row) for each in expressions)


def _alike(keys: list[tuple[Expression, ...]]) -> tuple[tuple[Expression, ...], ...]:
    """Return the keys of several sources with casts to the types that they have in common."""
    columns = []
    for parts in zip(*keys, strict=True):
        call = bind_call(Call("in", parts))
        assert isinstance(call, Call)
        columns.append(call.arguments)
    return tuple(tuple(column[place] for column in columns) for place in range(len(keys)))


def bind_match(node: MatchRecognize, row: Row) -> MatchRecognize:
    """Return the node with its keys, order, conditions and measures bound."""
    return replace(
        node,
        keys=tuple(_bind_named(key, row) for key in node.keys),
        order=tuple(
            replace(item, expression=bind_expression(item.expression, row)) for item in node.order
        ),
        defines=tuple(
            Named(item.name, bind_condition(item.expression, row)) for item in node.defines
        ),
        measures=tuple(_bind_named(item, row) for item in node.measures),
    )


def _bind_situations(items: tuple[Situation, ...], row: Row) -> tuple[Situation, ...]:
    return tuple(replace(item, condition=bind_condition(item.condition, row)) for item in items)


def bind_scan(scan: Scan, catalog: Mapping[str, Schema]) -> Scan:
    """Return the scan with the requested fields of its stream, or all if it requests none."""
    if scan.written is not None:
        return scan
    stream = resolve(scan.stream, catalog, span=scan.span, what="stream")
    fields = dict(catalog[stream].fields())
    if not scan.columns:
        return replace(scan, stream=stream, columns=tuple(fields.items()))
    names = [resolve(name, fields, span=scan.span, what="column") for name, _ in scan.columns]
    return replace(scan, stream=stream, columns=tuple((name, fields[name]) for name in names))


def resolve(name: str, known: Iterable[str], *, span: Span | None, what: str) -> str:
    """Return the spelling of `name` among the known ones; case does not matter.

    >>> resolve("SPEED", ["car", "speed"], span=None, what="column")
    'speed'
    """
    candidates = list(known)
    if name in candidates:
        return name
    folded = {candidate.lower(): candidate for candidate in candidates}
    found = folded.get(name.lower())
    if found is not None:
        return found
    message = f"no {what} {name!r}"
    raise BindError(message, span=span, hint=suggestion(name, candidates, what))


def suggestion(name: str, candidates: list[str], what: str) -> str:
    """Return a hint: the nearest known name, else all of them."""
    folded = {candidate.lower(): candidate for candidate in candidates}
    near = get_close_matches(name.lower(), folded, n=1)
    if near:
        return f"did you mean {folded[near[0]]!r}?"
    return f"there are {listed(candidates)}" if candidates else f"there is no {what} yet"


def bind_condition(condition: Expression, row: Row) -> Expression:
    """Return a bound condition, which has to be boolean."""
    bound = bind_expression(condition, row)
    if bound.type == NULL:
        return cast_implicitly(bound, BOOL)
    if bound.type != BOOL:
        message = f"{render(condition)} is {bound.type}, not a condition"
        raise BindError(message, span=condition.span, hint=compare_hint(condition, bound.type))
    return bound


def bind_expression(expression: Expression, row: Row) -> Expression:
    """Return the expression with its types, over rows of the given columns."""
    match expression:
        case Column(name=name, span=span):
            found = resolve(name, row, span=span, what="column")
            return Column(found, row[found], span)
        case Literal():
            return expression
        case Call():
            return bind_call(rebuild(expression, lambda part: bind_expression(part, row)))
        case Cast():
            return _bind_cast(
                replace(expression, argument=bind_expression(expression.argument, row))
            )
        case Aggregate():
            return bind_aggregate(expression, row)
        case Over(aggregate=aggregate, keys=keys):
            parts = tuple(bind_expression(key, row) for key in keys)
            return replace(expression, aggregate=bind_aggregate(aggregate, row), keys=parts)
        case At(argument=argument):
            return replace(expression, argument=bind_expression(argument, row))
        case MatchAggregate():
            return expression.over(bind_aggregate(expression.plain, row))
        case Classifier() | MatchNumber() | PeriodPart():
            return expression
    assert_never(expression)


def bind_call(call: Expression) -> Expression:
    """Return a call whose arguments are bound with its own type and the casts it implies."""
    assert isinstance(call, Call)
    function = _function(call)
    arguments = _read_times(call) if function.reads_times else call.arguments
    _check_options(call, function)
    signature = function.rule(tuple(argument.type for argument in arguments))
    if signature is None:
        types = [str(argument.type) for argument in arguments]
        message = f"{_shown(function)} takes {function.takes}, not {' and '.join(types)}"
        hint = text_hint(arguments)
        if function.takes != "strings":
            hint = joined_hint(arguments) or interval_hint(call, arguments)
            hint = hint or cast_hint(arguments)
        raise BindError(message, span=call.span, hint=hint)
    cast = tuple(map(cast_implicitly, arguments, signature.arguments))
    return replace(call, arguments=cast, type=signature.result)


def bind_aggregate(aggregate: Aggregate, row: Row) -> Aggregate:
    """Return an aggregate with its arguments bound and its type set."""
    name, span = aggregate.function, aggregate.span
    function = AGGREGATES.get(name)
    if function is None:
        message = f"no aggregate {name!r}"
        known = [each for each in AGGREGATES if each not in DECAYED]
        raise BindError(message, span=span, hint=suggestion(name, known, "aggregate"))
    if aggregate.time is not None:
        aggregate = replace(aggregate, time=bind_expression(aggregate.time, row))
    if aggregate.condition is not None:
        aggregate = replace(aggregate, condition=bind_condition(aggregate.condition, row))
    if aggregate.argument is None:
        if name == "decayed_count":
            return replace(aggregate, type=FLOAT64)
        if name != "count":
            message = f"{name} takes {function.takes}, not *"
            raise BindError(message, span=span, hint=f"name a column, as in {name}(x)")
        return replace(aggregate, type=INT64)
    given = [bind_expression(aggregate.argument, row)]
    if aggregate.second is not None:
        given.append(bind_expression(aggregate.second, row))
    null = STRING if function.takes == "text" else BOOL if "truth" in function.takes else INT64
    arguments = [cast_implicitly(each, null) if each.type == NULL else each for each in given]
    result = function.result(*(each.type for each in arguments))
    if result is None:
        shown = " and ".join(str(each.type) for each in arguments)
        message = f"{name} takes {function.takes}, not {shown}"
        raise BindError(message, span=span, hint=cast_hint(tuple(arguments)))
    second = arguments[1] if len(arguments) > 1 else None
    distinct = aggregate.distinct and function.distinct == "counts"
    return replace(aggregate, argument=arguments[0], second=second, distinct=distinct, type=result)


def cast_implicitly(expression: Expression, target: DataType) -> Expression:
    """Return the expression as the target type; constants are converted now."""
    if expression.type == target:
        return expression
    if isinstance(expression, Literal):
        constant = cast_constant(expression, target)
        if constant is not None:
            return constant
    return Cast(expression, target, expression.span)


def _bind_named(item: Named, row: Row) -> Named:
    bound = bind_expression(item.expression, row)
    # A column that is all null needs some type; DuckDB chooses an integer too.
    return Named(item.name, cast_implicitly(bound, INT64) if bound.type == NULL else bound)


def _bind_all(items: tuple[NamedAggregate, ...], row: Row) -> tuple[NamedAggregate, ...]:
    return tuple(NamedAggregate(item.name, bind_aggregate(item.aggregate, row)) for item in items)


def _bind_cast(cast: Cast) -> Expression:
    source = cast.argument.type
    if not can_cast(source, cast.type):
        message = f"a {source} cannot be cast to {cast.type}"
        raise BindError(message, span=cast.span, hint=cast_advice(source, cast.type))
    return cast


def _function(call: Call) -> Function:
    function = FUNCTIONS.get(call.function)
    if function is None:
        names = [name for name, each in FUNCTIONS.items() if each.form == "call"]
        message = f"no function {call.function!r}"
        hint = suggestion(call.function, names, "function")
        raise BindError(message, span=call.span, hint=hint)
    count, most = len(call.arguments), function.at_most
    if count < function.at_least or (most is not None and count > most):
        message = f"{_shown(function)} takes {_arity(function)}, got {count}"
        raise BindError(message, span=call.span, hint=f"it takes {function.takes}")
    return function


def _arity(function: Function) -> str:
    least, most = function.at_least, function.at_most
    if most is None:
        return f"{least} or more arguments"
    plural = "" if most == 1 else "s"
    return f"{least} argument{plural}" if least == most else f"{least} to {most} arguments"


def _shown(function: Function) -> str:
    names: Mapping[str, str] = {"negate": "-"}
    return names.get(function.name, function.name.upper())


def _read_times(call: Call) -> tuple[Expression, ...]:
    """Read string literals that stand beside a timestamp as timestamps."""
    if not any(argument.type == TIMESTAMP for argument in call.arguments):
        return call.arguments
    subtracted = call.function == "-"
    return tuple(_read_time(argument, subtracted=subtracted) for argument in call.arguments)


def _read_time(argument: Expression, *, subtracted: bool) -> Expression:
    if not (isinstance(argument, Literal) and argument.type == STRING):
        return argument
    us = parse_timestamp(str(argument.value))
    if us is None:
        message = f"{argument.value!r} is not a timestamp"
        hint = "write it as '2026-01-31 12:00:00'"
        if subtracted and parse_duration(str(argument.value)) is not None:
            hint = f"write INTERVAL {render(argument)}"
        raise BindError(message, span=argument.span, hint=hint)
    return Literal(us, TIMESTAMP, argument.span)


def _check_options(call: Call, function: Function) -> None:
    if not function.options:
        return
    option = call.arguments[0]
    if not (isinstance(option, Literal) and option.value in function.options):
        message = f"{_shown(function)} does not know {render(option)}"
        raise BindError(message, span=option.span or call.span, hint=listed(function.options, 20))
