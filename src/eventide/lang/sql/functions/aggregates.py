"""Aggregates as queries write them: which node is which aggregate of ours, and its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from eventide.errors import BindError, Span
from eventide.lang.sql.functions.arguments import unread
from eventide.lang.sql.names.scope import refuse
from eventide.lang.sql.spans import span_of, written
from eventide.plan.aggregates import AGGREGATES
from eventide.plan.expressions import Aggregate, Call, Expression, Literal
from eventide.schema import INT64, NULL, SEQ, TS

NTH_HINT = (
    "FIRST and LAST take one expression; FIRST(x, n) is for MATCH_RECOGNIZE, and elsewhere "
    "nth_value(x, n) OVER (ORDER BY ts) gives the n-th"
)
_MOST_TOP = 100_000


@dataclass(frozen=True, slots=True)
class _Spelling:
    """The aggregate that a node is, and under which keys its other parts are."""

    name: str
    second: str | None = None
    parameter: str | None = None


_NODES: Mapping[type[exp.Expr], _Spelling] = {
    exp.Count: _Spelling("count"),
    exp.CountIf: _Spelling("count"),
    exp.Sum: _Spelling("sum"),
    exp.Avg: _Spelling("avg"),
    exp.Min: _Spelling("min"),
    exp.Max: _Spelling("max"),
    exp.Stddev: _Spelling("stddev"),
    exp.StddevSamp: _Spelling("stddev"),
    exp.StddevPop: _Spelling("stddev_pop"),
    exp.Variance: _Spelling("variance"),
    exp.VariancePop: _Spelling("var_pop"),
    exp.First: _Spelling("first"),
    exp.Last: _Spelling("last"),
    exp.Median: _Spelling("median"),
    exp.Quantile: _Spelling("quantile_cont", parameter="quantile"),
    exp.PercentileCont: _Spelling("quantile_cont", parameter="expression"),
    exp.PercentileDisc: _Spelling("quantile_disc", parameter="expression"),
    exp.Mode: _Spelling("mode"),
    exp.ApproxDistinct: _Spelling("approx_count_distinct"),
    exp.ApproxQuantile: _Spelling("approx_quantile", parameter="quantile"),
    exp.ApproxTopK: _Spelling("approx_top_k", parameter="expression"),
    exp.GroupConcat: _Spelling("string_agg", parameter="separator"),
    exp.ArrayAgg: _Spelling("array_agg"),
    exp.ArgMin: _Spelling("arg_min", second="expression"),
    exp.ArgMax: _Spelling("arg_max", second="expression"),
    exp.LogicalAnd: _Spelling("bool_and"),
    exp.LogicalOr: _Spelling("bool_or"),
    exp.Corr: _Spelling("corr", second="expression"),
    exp.CovarPop: _Spelling("covar_pop", second="expression"),
    exp.CovarSamp: _Spelling("covar_samp", second="expression"),
    exp.RegrSlope: _Spelling("regr_slope", second="expression"),
}
_FUNCTIONS: Mapping[str, str] = {"every": "bool_and", "top_k": "top_k"}
"""Functions that sqlglot does not know; a parameter is their second argument."""
_ORDERED_SETS = (exp.PercentileCont, exp.PercentileDisc, exp.Mode)
"""Aggregates that may take their value from WITHIN GROUP (ORDER BY …)."""


@dataclass(frozen=True, slots=True)
class WrittenAggregate:
    """An aggregate in a query: its name with us, and its parts, which are not translated yet."""

    name: str
    argument: exp.Expr | None
    second: exp.Expr | None = None
    parameter: float | int | str | None = None
    distinct: bool = False
    conditions: tuple[exp.Expr, ...] = ()

    @property
    def parts(self) -> list[exp.Expr]:
        """What has to be translated."""
        found = (self.argument, self.second, *self.conditions)
        return [each for each in found if each is not None]

    def translated(
        self,
        value: Expression | None,
        translate: Callable[[exp.Expr], Expression],
        span: Span | None,
    ) -> Aggregate:
        """Return the aggregate over a value; `translate` is for its other parts.

        agg(x) FILTER (WHERE c) -> agg(CASE WHEN c THEN x END), if nulls do not count.
        """
        second = None if self.second is None else translate(self.second)
        conditions = [translate(each) for each in self.conditions]
        condition: Expression | None = None
        for each in conditions:
            if AGGREGATES[self.name].keeps_nulls:
                condition = each if condition is None else Call("and", (condition, each), span=span)
            else:
                chosen = value or Literal(1, INT64)
                value = Call("case", (each, chosen, Literal(None, NULL)), span=span)
        return Aggregate(
            self.name,
            value,
            span=span,
            parameter=self.parameter,
            second=second,
            distinct=self.distinct,
            condition=condition,
        )


def aggregate_name(node: exp.Expr) -> str | None:
    """Return the name of an aggregate of ours, or None; FILTER and WITHIN GROUP do not matter."""
    call = _call_of(node)
    if isinstance(call, exp.Anonymous):
        return _FUNCTIONS.get(call.name.lower())
    spelling = _NODES.get(type(call))
    return None if spelling is None else spelling.name


def _call_of(node: exp.Expr) -> exp.Expr:
    call = node.this if isinstance(node, exp.Filter) else node
    if isinstance(call, exp.WithinGroup) and isinstance(call.this, _ORDERED_SETS):
        return call.this
    return call if isinstance(call, exp.Expr) else node


def read_aggregate(node: exp.Expr) -> WrittenAggregate:
    """Return the parts of an aggregate; `UnsupportedError` for a form that ours do not have."""
    conditions: list[exp.Expr] = []
    call = node
    if isinstance(node, exp.Filter):
        call, conditions = node.this, [node.expression.this]
    if isinstance(call, exp.WithinGroup):
        found = _within_group(call)
    elif isinstance(call, exp.Anonymous):
        found = _function(call)
    else:
        found = _known(call)
    if isinstance(call, exp.CountIf):
        conditions, found = [*conditions, call.this], replace(found, argument=None)
    argument = found.argument
    if isinstance(argument, exp.Order):
        _refuse_other_order(argument, node)
        argument = argument.this
    distinct = isinstance(argument, exp.Distinct)
    if isinstance(argument, exp.Distinct):
        argument = _distinct(argument, found.name, node)
    return replace(found, argument=argument, distinct=distinct, conditions=tuple(conditions))


def _known(call: exp.Expr) -> WrittenAggregate:
    spelling = _NODES[type(call)]
    keys = [key for key in (spelling.second, spelling.parameter) if key is not None]
    if unread(call, "this", *keys) is not None:
        hint = "an aggregate takes one expression, without DISTINCT and ORDER BY"
        if isinstance(call, exp.First | exp.Last) and call.args.get("expression"):
            hint = NTH_HINT
        elif AGGREGATES[spelling.name].arguments == 1:
            hint = f"{_shown(call)} takes one expression"
        refuse(f"{written(call)} is beyond Eventide's own operators", call, hint)
    second = None if spelling.second is None else call.args.get(spelling.second)
    parameter = None if spelling.parameter is None else call.args.get(spelling.parameter)
    constant = None
    if AGGREGATES[spelling.name].parameter is not None:
        constant = _constant(call, spelling.name, parameter)
    return WrittenAggregate(spelling.name, call.this, second, constant)


def _function(call: exp.Anonymous) -> WrittenAggregate:
    name = _FUNCTIONS[call.name.lower()]
    value, parameter, *more = (*call.expressions, None, None)
    wanted = AGGREGATES[name].parameter is not None
    if value is None or any(more) or not (wanted or parameter is None):
        message = f"{call.name.upper()} takes a value" + (" and how many of them" if wanted else "")
        hint = f"write {call.name.upper()}(x{', 10' if wanted else ''})"
        raise BindError(message, span=span_of(call), hint=hint)
    constant = _constant(call, name, parameter) if wanted else None
    return WrittenAggregate(name, value, None, constant)


def _within_group(call: exp.WithinGroup) -> WrittenAggregate:
    inner, order = call.this, call.expression
    if not isinstance(inner, _ORDERED_SETS) or not isinstance(order, exp.Order):
        refuse(f"{written(call)} is beyond Eventide's own operators", call, _ORDER_HINT)
    item = order.expressions[0]
    if len(order.expressions) > 1 or item.args.get("desc"):
        hint = (
            "order by one value, from small to large: a share of 0.9 is that of 0.1 the other way"
        )
        refuse(f"{written(order)} in WITHIN GROUP", call, hint)
    name = _NODES[type(inner)].name
    constant = None if name == "mode" else _constant(inner, name, inner.this)
    return WrittenAggregate(name, item.this, None, constant)


_ORDER_HINT = "values are taken in order of time"


def _refuse_other_order(order: exp.Order, node: exp.Expr) -> None:
    """Refuse an order inside of an aggregate, unless it is that of time."""
    for item in order.expressions:
        column = item.this if isinstance(item, exp.Ordered) else item
        plain = isinstance(column, exp.Column) and not item.args.get("desc")
        if not plain or column.name.lower() not in (TS, SEQ):
            refuse(f"ORDER BY inside {written(node)}", node, _ORDER_HINT)


def _distinct(distinct: exp.Distinct, name: str, node: exp.Expr) -> exp.Expr:
    values = distinct.expressions
    if len(values) != 1 or distinct.args.get("on") or AGGREGATES[name].distinct == "refused":
        hint = "DISTINCT goes with an aggregate of one value"
        refuse(f"{written(node)} is beyond Eventide's own operators", node, hint)
    value: exp.Expr = values[0]
    return value


def _shown(call: exp.Expr) -> str:
    """Return the name of an aggregate as the query spells it, as far as that is known."""
    return written(call).partition("(")[0].upper()


def _constant(node: exp.Expr, name: str, given: exp.Expr | None) -> float | int | str:
    """Return the constant behind the argument of an aggregate."""
    place = span_of(given) if given is not None else span_of(node)
    literal = given if isinstance(given, exp.Literal) else None
    if given is not None and literal is None and not isinstance(given, exp.Neg):
        hint = "write the number itself" if name != "string_agg" else "write the text itself"
        refuse(f"{written(given)} is no constant", node, hint)
    shown = _shown(node)
    match AGGREGATES[name].parameter:
        case "separator":
            if literal is not None and not literal.is_string:
                message = f"{shown} takes a text and what to put between two of them"
                raise BindError(message, span=place, hint=f"write {shown}(x, ', ')")
            return "," if literal is None else str(literal.this)
        case "fraction":
            is_number = literal is not None and not literal.is_string
            value = float(literal.name) if is_number and literal is not None else -1.0
            if not 0 <= value <= 1:
                message = f"{shown} takes a value and a number from 0 to 1"
                raise BindError(message, span=place, hint=f"write {shown}(x, 0.9)")
            return value
    count = int(literal.name) if literal is not None and literal.is_int else 0
    if not 0 < count <= _MOST_TOP:
        message = f"{shown} takes a value and how many, from 1 to {_MOST_TOP:,}"
        raise BindError(message, span=place, hint=f"write {shown}(x, 10)")
    return count
