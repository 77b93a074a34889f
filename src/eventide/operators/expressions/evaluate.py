"""Expressions over the columns of a batch: SQL's three-valued logic, vectorised.

A constant stays one value until a column is needed. `CASE`, `COALESCE`, `AND` and `OR` compute an
argument that may fail only on the rows where its value is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.arrays import to_arrow, to_scalar
from eventide.errors import EvaluationError, PlanError
from eventide.operators.expressions.casts import cast_column, cast_or_null
from eventide.operators.expressions.datum import Datum, Implementation, as_array, scatter
from eventide.operators.expressions.logic import LOGIC
from eventide.operators.expressions.numbers import NUMBERS
from eventide.operators.expressions.strings import STRINGS
from eventide.operators.expressions.times import TIMES
from eventide.operators.expressions.users import computed
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
)
from eventide.plan.failing import can_fail
from eventide.plan.render import render

IMPLEMENTATIONS: Mapping[str, Implementation] = {**LOGIC, **NUMBERS, **STRINGS, **TIMES}
"""The implementation of every function of plan/functions.py."""


FALSE = to_scalar(False, pa.bool_())


def evaluate(expression: Expression, rows: pa.RecordBatch) -> pa.Array:
    """Return the value of a bound expression for every row, of exactly its type.

    >>> from eventide.plan.expressions import integer
    >>> from eventide.schema import INT64
    >>> rows = pa.RecordBatch.from_pydict({"x": [1, None]})
    >>> evaluate(Call("+", (Column("x", INT64), integer(1)), INT64), rows).to_pylist()
    [2, None]
    """
    found = _compute(expression, rows)
    return found if isinstance(found, pa.Array) else as_array(found, rows.num_rows)


def evaluate_predicate(condition: Expression, rows: pa.RecordBatch) -> pa.BooleanArray:
    """Return, for every row, whether a condition is true; null counts as false."""
    return pc.fill_null(evaluate(condition, rows), FALSE)


def _compute(expression: Expression, rows: pa.RecordBatch) -> Datum:
    match expression:
        case Column(name=name):
            return rows.column(name)
        case Literal(value=value, type=data_type):
            return to_scalar(value, data_type.arrow)
        case Call():
            return _call(expression, rows)
        case Cast():
            return _cast(expression, rows)
        case (
            Aggregate()
            | Over()
            | At()
            | MatchAggregate()
            | Classifier()
            | MatchNumber()
            | PeriodPart()
        ):
            message = f"{render(expression)} is not computed from one row"
            raise PlanError(message, span=expression.span)
    assert_never(expression)


def _call(call: Call, rows: pa.RecordBatch) -> Datum:
    if call.user is not None:
        return computed(call, [evaluate(each, rows) for each in call.arguments], rows.num_rows)
    if call.function in ("case", "coalesce", "and", "or") and any(
        map(can_fail, call.arguments[1:])
    ):
        return _choose(_as_branches(call), rows)
    arguments = [_compute(argument, rows) for argument in call.arguments]
    constant = bool(arguments) and all(isinstance(each, pa.Scalar) for each in arguments)
    if constant:
        # Options such as the part of a date come first; the last argument is always a value.
        arguments[-1] = as_array(arguments[-1], 1)
    try:
        found = IMPLEMENTATIONS[call.function](arguments, call.type)
    except pa.ArrowInvalid:
        message = f"{render(call)} overflows {call.type}"
        hint = "cast to double, which is not exact but has room"
        raise EvaluationError(message, span=call.span, hint=hint) from None
    except EvaluationError as error:
        error.span = error.span or call.span
        raise
    return found[0] if constant else found


def _cast(cast: Cast, rows: pa.RecordBatch) -> Datum:
    argument = _compute(cast.argument, rows)
    column = as_array(argument, 1)
    convert = cast_or_null if cast.or_null else cast_column
    try:
        found = convert(column, cast.argument.type, cast.type)
    except EvaluationError as error:
        error.span = error.span or cast.span
        raise
    return found[0] if isinstance(argument, pa.Scalar) else found


def _as_branches(call: Call) -> Call:
    """Return the CASE that a lazy function abbreviates."""
    true, false = Literal(True, call.type), Literal(False, call.type)
    match call.function, call.arguments:
        case "and", (left, right):
            fails = Call("is not distinct from", (left, false), call.type)
            # If the left is null, the right decides between null and false.
            undecided = Call("and", (left, right), call.type)
            return _case(call, fails, false, undecided)
        case "or", (left, right):
            holds = Call("is not distinct from", (left, true), call.type)
            return _case(call, holds, true, Call("or", (left, right), call.type))
        case "coalesce", (*firsts, last):
            parts: list[Expression] = []
            for first in firsts:
                is_null = Call("is null", (first,), call.type)
                parts += [Call("not", (is_null,), call.type), first]
            return _case(call, *parts, last)
    return call


def _case(call: Call, *parts: Expression) -> Call:
    return Call("case", parts, call.type, call.span)


def _choose(case: Call, rows: pa.RecordBatch) -> pa.Array:
    """Compute each branch of a CASE on the rows that reach it."""
    *branches, otherwise = case.arguments
    places, parts = [], []
    place = to_arrow(np.arange(rows.num_rows))
    for condition, value in zip(branches[::2], branches[1::2], strict=True):
        taken = evaluate_predicate(condition, rows)
        parts.append(evaluate(value, rows.filter(taken)))
        places.append(place.filter(taken))
        left = pc.invert(taken)
        rows, place = rows.filter(left), place.filter(left)
    parts.append(_strictly(otherwise, rows))
    places.append(place)
    return scatter(parts, places)


def _strictly(expression: Expression, rows: pa.RecordBatch) -> pa.Array:
    """Compute AND and OR on all rows; the rows that need care are already excluded."""
    match expression:
        case Call(function="and" | "or" as name, arguments=arguments, type=data_type):
            parts = [evaluate(argument, rows) for argument in arguments]
            return IMPLEMENTATIONS[name](parts, data_type)
    return evaluate(expression, rows)
