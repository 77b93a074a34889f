"""Bind: names become columns of the source's rows, and every expression gets its type.

A parser leaves types out. `bind` returns the same plan with every `type` set, implicit casts
written out, and literals converted to the type they are compared with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from typing import assert_never

from eventide.errors import BindError, Span, listed
from eventide.plan.aggregates import AGGREGATES, STANDING_ONLY
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
    Over,
    PeriodPart,
    rebuild,
)
from eventide.plan.functions import FUNCTIONS, Function
from eventide.plan.render import render
from eventide.plan.times import parse_duration, parse_timestamp
from eventide.plan.tree import Keys, Plan, Row, Use
from eventide.plan.types import can_cast
from eventide.plan.user_functions import called_like_functions, function_named, user_function
from eventide.schema import BOOL, FLOAT64, INT64, NULL, STRING, TIMESTAMP, DataType, Schema


def bind(plan: Plan, catalog: Mapping[str, Schema]) -> Plan:
    """Return the plan with every name resolved and every type set."""
    below = plan.with_children(lambda each: bind(each, catalog)).with_names(catalog)
    row_for = cache(below.row_for)
    bound = below.with_expressions(lambda each, use: _bind_for(each, use, row_for(use)))
    return bound.with_compared(_alike(bound.compared))


def _bind_for(expression: Expression, use: Use, row: Row) -> Expression:
    """Return an expression of a node as its use demands."""
    if use.role == "condition":
        return bind_condition(expression, row)
    bound = bind_expression(expression, row)
    if use.role == "order" and bound.type.kind == "list":
        message = f"{render(bound)} is a list, which has no order here"
        raise BindError(message, span=bound.span, hint="order by a number, a time or a text")
    # A column that is all null needs some type; DuckDB chooses an integer too.
    untyped = use.role == "item" and bound.type == NULL
    return cast_implicitly(bound, INT64) if untyped else bound


def _alike(keys: tuple[Keys, ...]) -> tuple[Keys, ...]:
    """Return the keys of several sources with casts to the types that they have in common."""
    columns = []
    for parts in zip(*keys, strict=True):
        call = bind_call(Call("in", parts))
        assert isinstance(call, Call)
        columns.append(call.arguments)
    return tuple(tuple(column[place] for column in columns) for place in range(len(keys)))


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
        if call.function == "not":
            hint = compare_hint(call.arguments[0], arguments[0].type)
        elif function.takes != "strings":
            hint = joined_hint(arguments) or interval_hint(call, arguments)
            hint = hint or cast_hint(arguments)
        raise BindError(message, span=call.span, hint=hint)
    cast = tuple(map(cast_implicitly, arguments, signature.arguments))
    user = None if call.function in FUNCTIONS else user_function(call.function)
    return replace(call, arguments=cast, type=signature.result, user=user)


def bind_aggregate(aggregate: Aggregate, row: Row) -> Aggregate:
    """Return an aggregate with its arguments bound and its type set."""
    name, span = aggregate.function, aggregate.span
    function = AGGREGATES.get(name)
    if function is None:
        message = f"no aggregate {name!r}"
        known = [each for each in AGGREGATES if each not in STANDING_ONLY]
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


def _bind_cast(cast: Cast) -> Expression:
    source = cast.argument.type
    if not can_cast(source, cast.type):
        message = f"a {source} cannot be cast to {cast.type}"
        raise BindError(message, span=cast.span, hint=cast_advice(source, cast.type))
    return cast


def _function(call: Call) -> Function:
    function = FUNCTIONS.get(call.function) or function_named(call.function)
    if function is None:
        message = f"no function {call.function!r}"
        hint = suggestion(call.function, called_like_functions(), "function")
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
