"""Bind: names become columns of the source's rows, and every expression gets its type.

A parser leaves types out; `bind` returns the same plan with every `type` set, implicit casts
written out, and literals turned into the type they are compared with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import TypeGuard, assert_never

from eventide.errors import BindError, Span, listed
from eventide.plan.aggregates import AGGREGATES
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
    Over,
    PeriodPart,
    children,
    rebuild,
)
from eventide.plan.functions import FUNCTIONS, Function
from eventide.plan.nodes import (
    Filter,
    MatchRecognize,
    NamedAggregate,
    PeriodJoin,
    Plan,
    Project,
    Relational,
    Row,
    Scan,
    Situations,
    SlidingAggregate,
    TemporalPattern,
    WindowAggregate,
)
from eventide.plan.render import render
from eventide.plan.situations import Situation
from eventide.plan.times import parse_duration, parse_timestamp
from eventide.plan.types import can_cast
from eventide.schema import BOOL, INT64, NULL, STRING, TIMESTAMP, DataType, Schema

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_OR_HINT = "|| joins texts; conditions are joined with OR"
_SHORT = 30
"""Expressions up to this length are shown in the hint."""


def bind(plan: Plan, catalog: Mapping[str, Schema]) -> Plan:
    """Return the plan with every name resolved and every type set."""
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
        case PeriodJoin(left=left, right=right):
            return replace(plan, left=bind(left, catalog), right=bind(right, catalog))
        case Relational(inputs=inputs):
            return replace(
                plan, inputs=tuple((name, bind(source, catalog)) for name, source in inputs)
            )
    assert_never(plan)


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
    """Return the scan with the fields of its stream; those asked for, if it asks for any."""
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
    """Return a bound condition, which has to be a truth value."""
    bound = bind_expression(condition, row)
    if bound.type == NULL:
        return cast_implicitly(bound, BOOL)
    if bound.type != BOOL:
        message = f"{render(condition)} is {bound.type}, not a condition"
        raise BindError(message, span=condition.span, hint=_compare_hint(condition, bound.type))
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
        case MatchAggregate(function=function, argument=argument, span=span):
            plain = bind_aggregate(Aggregate(function, argument, span=span), row)
            return replace(expression, argument=plain.argument, type=plain.type)
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
        hint = _text_hint(arguments)
        if function.takes != "strings":
            hint = _joined_hint(arguments) or _interval_hint(call, arguments)
            hint = hint or _cast_hint(arguments)
        raise BindError(message, span=call.span, hint=hint)
    cast = tuple(map(cast_implicitly, arguments, signature.arguments))
    return replace(call, arguments=cast, type=signature.result)


def bind_aggregate(aggregate: Aggregate, row: Row) -> Aggregate:
    """Return an aggregate with its argument bound and its type set."""
    name, span = aggregate.function, aggregate.span
    function = AGGREGATES.get(name)
    if function is None:
        message = f"no aggregate {name!r}"
        raise BindError(message, span=span, hint=suggestion(name, list(AGGREGATES), "aggregate"))
    if aggregate.argument is None:
        if name != "count":
            message = f"{name} takes {function.takes}, not *"
            raise BindError(message, span=span, hint=f"name a column, as in {name}(x)")
        return replace(aggregate, type=INT64)
    argument = bind_expression(aggregate.argument, row)
    if argument.type == NULL:
        argument = cast_implicitly(argument, INT64)
    result = function.result(argument.type)
    if result is None:
        message = f"{name} takes {function.takes}, not {argument.type}"
        raise BindError(message, span=span, hint=_cast_hint((argument,)))
    return replace(aggregate, argument=argument, type=result)


def cast_implicitly(expression: Expression, target: DataType) -> Expression:
    """Return the expression as the target type; constants change at once."""
    if expression.type == target:
        return expression
    if isinstance(expression, Literal):
        constant = cast_constant(expression, target)
        if constant is not None:
            return constant
    return Cast(expression, target, expression.span)


def _bind_named(item: Named, row: Row) -> Named:
    bound = bind_expression(item.expression, row)
    # A column of nothing but nulls needs some type; DuckDB chooses an integer too.
    return Named(item.name, cast_implicitly(bound, INT64) if bound.type == NULL else bound)


def _bind_all(items: tuple[NamedAggregate, ...], row: Row) -> tuple[NamedAggregate, ...]:
    return tuple(NamedAggregate(item.name, bind_aggregate(item.aggregate, row)) for item in items)


def _bind_cast(cast: Cast) -> Expression:
    source = cast.argument.type
    if not can_cast(source, cast.type):
        message = f"a {source} cannot be cast to {cast.type}"
        raise BindError(message, span=cast.span, hint=_cast_advice(source, cast.type))
    return cast


def _cast_advice(source: DataType, target: DataType) -> str | None:
    advice: dict[tuple[str, str], str] = {
        ("timestamp", "int64"): "EPOCH_US(…) gives the microseconds since 1970",
        ("timestamp", "float64"): "EPOCH(…) gives the seconds since 1970",
        ("int64", "timestamp"): "MAKE_TIMESTAMP(…) takes microseconds since 1970",
        ("interval", "int64"): "EPOCH_US(…) gives its microseconds",
        ("interval", "float64"): "EPOCH(…) gives its seconds",
        ("interval", "string"): "EPOCH(…) gives its seconds",
    }
    return advice.get((source.kind, target.kind))


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


def _cast_hint(arguments: tuple[Expression, ...]) -> str | None:
    """Suggest the cast that would make the types meet, where there is an obvious one."""
    kinds = {argument.type.kind for argument in arguments}
    texts = [argument for argument in arguments if argument.type == STRING]
    others = [argument.type for argument in arguments if argument.type not in (STRING, NULL)]
    if texts and others and others[0].is_numeric and _is_number(texts[0]):
        return f"write {str(texts[0].value).strip()}"
    if texts and others and can_cast(STRING, others[0]):
        return f"cast one side, as in CAST({render(texts[0])} AS {_sql_name(others[0])})"
    if texts and len(kinds) == 1:
        return f"cast it, as in CAST({render(texts[0])} AS double)"
    return None


def _is_number(expression: Expression) -> TypeGuard[Literal]:
    """Whether it is a text that holds a number."""
    text = expression.value if isinstance(expression, Literal) else None
    return isinstance(text, str) and _NUMBER.fullmatch(text.strip()) is not None


def _interval_hint(call: Call, arguments: tuple[Expression, ...]) -> str | None:
    """Suggest the interval that a number or a text beside a length of time is meant to be."""
    kinds = {argument.type.kind for argument in arguments}
    if "interval" not in kinds and not (call.function in ("+", "-") and "timestamp" in kinds):
        return None
    for argument in arguments:
        shown = render(argument)
        if _is_number(argument):
            return f"write INTERVAL {shown} SECOND"
        if argument.type == STRING:
            known = isinstance(argument, Literal) and parse_duration(str(argument.value))
            return f"write INTERVAL {shown}" if known else "write INTERVAL '30' SECOND"
        if argument.type.is_numeric:
            constant = isinstance(argument, Literal)
            unit = f"INTERVAL '{shown}' SECOND" if constant else f"{shown} * INTERVAL '1' SECOND"
            return f"write {unit}"
    return None


def _joined_hint(arguments: tuple[Expression, ...]) -> str | None:
    """Say what || is where conditions seem to stand around it."""
    inside = [part for each in arguments for part in (each, *children(each))]
    joined = any(isinstance(part, Call) and part.function == "||" for part in inside)
    unlike = any(argument.type not in (STRING, NULL) for argument in arguments)
    return _OR_HINT if joined and unlike else None


def _compare_hint(condition: Expression, data_type: DataType) -> str:
    """Suggest a comparison that makes a condition of a value."""
    if isinstance(condition, Call) and condition.function == "||":
        return _OR_HINT
    endings: Mapping[str, str] = {
        "string": "= '…'",
        "timestamp": "> TIMESTAMP '2026-01-31 12:00:00'",
        "interval": "> INTERVAL '30' SECOND",
    }
    shown = render(condition)
    shown = shown if len(shown) <= _SHORT else "…"
    return f"compare it, as in {shown} {endings.get(data_type.kind, '<> 0')}"


def _text_hint(arguments: tuple[Expression, ...]) -> str | None:
    """Suggest to write the first argument that is not text as text."""
    others = [argument for argument in arguments if argument.type not in (STRING, NULL)]
    return f"cast it, as in CAST({render(others[0])} AS varchar)" if others else None


def _sql_name(data_type: DataType) -> str:
    names: Mapping[str, str] = {"int64": "bigint", "float64": "double", "string": "varchar"}
    return names.get(data_type.kind, str(data_type))
