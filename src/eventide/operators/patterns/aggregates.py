"""Aggregates in conditions: which registers and counts they need, and how their value is read.

Counts, sums, moments and extremes are registers of the match. Quantiles, modes and everything with
DISTINCT count values as rows are taken and given back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eventide.errors import UnsupportedError
from eventide.kernels.patterns import code as op
from eventide.operators.patterns.registers import Sought
from eventide.operators.patterns.values import Form, is_wide
from eventide.plan.expressions import ALWAYS, Call, Cast, Expression, Literal, MatchAggregate
from eventide.plan.render import render
from eventide.schema import BOOL, FLOAT64

if TYPE_CHECKING:
    from eventide.operators.patterns.compiler import Compiler

COUNTS_VALUES = ("median", "quantile_cont", "quantile_disc", "approx_quantile", "mode")
"""Aggregates whose values are counted even without DISTINCT."""

_SPREADS = {
    "stddev": op.STDDEV,
    "stddev_pop": op.STDDEV_POP,
    "variance": op.VARIANCE,
    "var_pop": op.VAR_POP,
}
_RELATIONS = {
    "covar_samp": op.COVAR_SAMP,
    "covar_pop": op.COVAR_POP,
    "corr": op.CORR,
    "regr_slope": op.REGR_SLOPE,
}
_LISTS = {
    "array_agg": "BOOL_OR(x = 1) tells whether a value is there, COUNT(DISTINCT x) how many are",
    "string_agg": "compare the rows themselves: PREV(x) and LAST(x, 1) are earlier ones",
    "top_k": "MODE(x) is the most frequent value",
    "approx_top_k": "MODE(x) is the most frequent value",
}


def emit_aggregate(compiler: Compiler, call: MatchAggregate) -> None:
    """Append instructions that push the value of an aggregate over the rows taken so far."""
    match call.function:
        case "count":
            _count(compiler, call, call.distinct)
        case "approx_count_distinct":
            _count(compiler, call, True)
        case "sum" | "avg":
            _sum(compiler, call)
        # Of truth values, all hold if the smallest does, and some if the largest does.
        case "min" | "max" | "bool_and" | "bool_or":
            _extreme(compiler, call)
        case "arg_min" | "arg_max":
            _picked(compiler, call)
        case function if function in _SPREADS:
            argument = _as_float(call, call.argument)
            variables = compiler.sets.bits[call.variable]
            squares = Sought(op.ADD_SQUARES, variables, argument, (2, 6), call.distinct)
            found = compiler.block(squares)
            compiler.put(call, op.MOMENT, found.register, found.first, 0, _SPREADS[function])
        case function if function in _RELATIONS:
            _relation(compiler, call)
        case function if function in COUNTS_VALUES:
            _counted(compiler, call)
        case _:
            message = f"{render(call)} makes a list, which a condition cannot keep up"
            hint = _LISTS.get(call.function, "ask for it in MEASURES")
            raise UnsupportedError(message, span=call.span, hint=hint)


def _count(compiler: Compiler, call: MatchAggregate, distinct: bool) -> None:
    argument = call.argument
    if argument is not None and not distinct:
        # Only whether there is a value matters, not which.
        missing = Call("is null", (argument,), BOOL)
        argument = Call("case", (missing, Literal(None, BOOL), ALWAYS), BOOL)
    variables = compiler.sets.bits[call.variable]
    found = compiler.block(Sought(op.COUNT, variables, argument, (1, 0), distinct))
    compiler.put(call, op.COUNTED, found.register)


def _sum(compiler: Compiler, call: MatchAggregate) -> None:
    argument, variables = call.argument, compiler.sets.bits[call.variable]
    assert argument is not None
    compiler.calculate(call, argument)
    is_sum = call.function == "sum"
    if argument.type == FLOAT64:
        found = compiler.block(Sought(op.ADD_FLOATS, variables, argument, (2, 2), call.distinct))
        compiler.put(call, op.SUM_F if is_sum else op.AVG_F, found.register, found.first)
        return
    found = compiler.block(Sought(op.ADD_INTS, variables, argument, (3, 0), call.distinct))
    if is_sum:
        compiler.put(call, op.SUM_I, found.register)
    else:
        power = compiler.values.constant(Literal(10.0**argument.type.scale, FLOAT64))
        compiler.put(call, op.AVG_I, found.register, 0, power)


def _best(call: MatchAggregate, variables: int, value: Expression, *, picks: bool) -> Sought:
    """Return the smallest or largest value as registers hold it."""
    least = call.function in ("min", "bool_and", "arg_min")
    if value.type == FLOAT64:
        operation = op.LEAST_F if least else op.GREATEST_F
        return Sought(operation, variables, value, (1, 1), picks=picks)
    operation = op.LEAST_I if least else op.GREATEST_I
    return Sought(operation, variables, value, (2, 0), picks=picks)


def _extreme(compiler: Compiler, call: MatchAggregate) -> None:
    argument, variables = call.argument, compiler.sets.bits[call.variable]
    assert argument is not None
    found = compiler.block(_best(call, variables, argument, picks=False))
    code = op.BEST_F if argument.type == FLOAT64 else op.BEST_I
    compiler.put(call, code, found.register, found.first)


def _picked(compiler: Compiler, call: MatchAggregate) -> None:
    value, by = call.argument, call.second
    assert value is not None
    assert by is not None
    sought = _best(call, compiler.sets.bits[call.variable], _unless_null(value, by), picks=True)
    compiler.load_picked(call, value, compiler.block(sought).picked)


def _relation(compiler: Compiler, call: MatchAggregate) -> None:
    one = _as_float(call, call.argument)
    other = _as_float(call, call.second)
    sought = Sought(
        op.ADD_PRODUCTS,
        compiler.sets.bits[call.variable],
        _unless_null(other, one),
        (2, 16),
        second=other,
    )
    found = compiler.block(sought)
    form = _RELATIONS[call.function]
    compiler.put(call, op.MOMENT, found.register, found.first, 0, form)


def _counted(compiler: Compiler, call: MatchAggregate) -> None:
    """Append a quantile or a mode, which come from a tree of counts."""
    argument, variables = call.argument, compiler.sets.bits[call.variable]
    assert argument is not None
    number = call.function in ("median", "quantile_cont", "approx_quantile")
    if call.function == "approx_quantile" or (number and is_wide(argument.type)):
        argument = _as_float(call, argument)
    update = op.COUNT_EQUALS if call.function == "mode" else op.COUNT_RANKS
    form: Form = "number" if number else "value"
    if call.function == "approx_quantile":
        form = "bucket"
    sought = Sought(update, variables, argument, (1, 0), call.distinct, form)
    found = compiler.block(sought)
    one = op.ONE_FLOAT if argument.type == FLOAT64 else op.ONE_INTEGER
    if call.function == "mode":
        compiler.put(call, op.FREQUENT, found.register, found.tree, 0, one)
        return
    share = 0.5 if call.function == "median" else float(call.parameter or 0.0)
    constant = compiler.values.constant(Literal(share, FLOAT64))
    if number:
        one = op.BUCKET if form == "bucket" else op.BETWEEN
    compiler.put(call, op.SHARE, found.register, found.tree, constant, one)


def _as_float(call: MatchAggregate, argument: Expression | None) -> Expression:
    assert argument is not None
    if argument.type == FLOAT64:
        return argument
    return Cast(argument, FLOAT64, call.span)


def _unless_null(needed: Expression, value: Expression) -> Expression:
    """Return a value that is null where another one is."""
    missing = Call("is null", (needed,), BOOL)
    return Call("case", (missing, Literal(None, value.type), value), value.type)
