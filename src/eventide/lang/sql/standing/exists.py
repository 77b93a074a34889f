"""EXISTS, NOT EXISTS, IN and NOT IN over a query, in WHERE of a standing SELECT."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from eventide.errors import BindError, UnsupportedError
from eventide.lang.sql.names.scope import refuse
from eventide.lang.sql.select_list import refuse_aggregates
from eventide.lang.sql.spans import span_of
from eventide.lang.sql.standing.find import asked_query, conjuncts_of
from eventide.lang.sql.standing.from_clause import From
from eventide.lang.sql.standing.join import filtered, join_all
from eventide.lang.sql.standing.scope import JoinedScope, StandingTranslator
from eventide.plan.bind import bind_condition, bind_expression
from eventide.plan.expressions import Call, Expression, Literal, columns_of, conjuncts
from eventide.plan.render import render
from eventide.plan.standing.joins import Existence
from eventide.plan.tree import Plan
from eventide.schema import INT64, NULL

_SHAPE = "write EXISTS (SELECT 1 FROM t [RANGE …] WHERE t.k = outer.k AND …)"
_PLAIN = {"expressions", "from_", "joins", "where"}


@dataclass(frozen=True)
class ExistenceTest:
    """A condition of WHERE over another query, as it was written."""

    node: exp.Expr
    query: exp.Select
    negated: bool
    value: exp.Expr | None

    @property
    def word(self) -> str:
        """The words of the test: EXISTS, IN, and so on."""
        kind = "EXISTS" if self.value is None else "IN"
        return f"NOT {kind}" if self.negated else kind


def existence_test(node: exp.Expr) -> ExistenceTest | None:
    """Return the test that a condition is, or None for one over the row alone."""
    query = asked_query(node)
    if query is None:
        return None
    negated, inner = False, node
    while isinstance(inner, exp.Not | exp.Paren):
        negated ^= isinstance(inner, exp.Not)
        inner = inner.this
    value = inner.this if isinstance(inner, exp.In) else None
    extras = {key for key, each in query.args.items() if each} - _PLAIN
    if not isinstance(query, exp.Select) or extras:
        refuse("this query inside EXISTS or IN of a standing query", query, _SHAPE)
    return ExistenceTest(node, query, negated, value)


@dataclass(frozen=True)
class ExistenceReader:
    """Puts tests around a plan. `read` reads the FROM of a query inside another's scope."""

    read: Callable[[exp.Select, JoinedScope], From]
    text: str

    def around(self, plan: Plan, scope: JoinedScope, test: ExistenceTest) -> Plan:
        """Return the rows of a plan for which a test is true; the plan is bound."""
        inner = self.read(test.query, scope)
        translator = StandingTranslator(inner.scope, self.text)
        right, pairs = self._right(test, inner, translator)
        span = span_of(test.node)
        items = [each for each in test.query.expressions if not each.is_star]
        values = [translator.translate(each.unalias()) for each in items]
        for value in values:
            refuse_aggregates(value, "EXISTS or IN")
            bind_expression(value, inner.scope.row)
        if test.value is None:
            return _existence(plan, right, pairs, test)
        if len(test.query.expressions) != 1 or len(values) != 1:
            message = f"the query of {test.word} has one column"
            raise BindError(message, span=span_of(test.query), hint="name it in its SELECT list")
        asked = StandingTranslator(scope, self.text).translate(test.value)
        both = bind_condition(Call("=", (asked, values[0]), span=span), inner.scope.row)
        assert isinstance(both, Call)
        value, wanted = both.arguments
        found = _existence(plan, right, [*pairs, (value, wanted)], test)
        if not test.negated:
            return found
        # NOT IN is true only if no comparison is unknown: neither side may be null.
        unknown = filtered(right, [_is_null(wanted)])
        found = _existence(found, unknown, pairs, test)
        one = Literal(1, INT64)
        missing = bind_expression(
            Call("case", (_is_null(value), one, Literal(None, NULL))), inner.scope.row
        )
        return _existence(found, right, [*pairs, (missing, one)], test)

    def _right(
        self, test: ExistenceTest, inner: From, translator: StandingTranslator
    ) -> tuple[Plan, list[tuple[Expression, Expression]]]:
        """Return the rows that are looked for, and the keys that connect them to the outer rows."""
        where = test.query.args.get("where")
        conditions = list(inner.conditions)
        for part in conjuncts_of(None if where is None else where.this):
            if asked_query(part) is not None:
                refuse(f"a query inside {test.word}", part, "join the streams inside instead")
            condition = translator.translate(part)
            refuse_aggregates(condition, "WHERE")
            conditions += conjuncts(bind_condition(condition, inner.scope.row))
        known = frozenset(name for part in inner.parts for name in part.row)
        own = [each for each in conditions if columns_of(each) <= known]
        tied = [_tie(each, known, test) for each in conditions if not columns_of(each) <= known]
        return join_all(inner.parts, own), tied


def _tie(
    condition: Expression, known: frozenset[str], test: ExistenceTest
) -> tuple[Expression, Expression]:
    """Return both sides of an equality with the SELECT around, the outer side first."""
    match condition:
        case Call(function="=", arguments=(left, right)):
            for outside, inside in ((left, right), (right, left)):
                apart = not columns_of(outside) & known
                if apart and columns_of(inside) and columns_of(inside) <= known:
                    return outside, inside
    message = f"{render(condition)} ties the query of {test.word} by something but an equality"
    raise UnsupportedError(message, span=condition.span, hint=_SHAPE)


def _existence(
    plan: Plan,
    right: Plan,
    pairs: list[tuple[Expression, Expression]],
    test: ExistenceTest,
) -> Existence:
    row = frozenset(plan.row)
    for outside, _ in pairs:
        if not columns_of(outside) <= row:
            message = f"{render(outside)} is not of the SELECT around"
            raise UnsupportedError(message, span=outside.span, hint=_SHAPE)
    left_keys, right_keys = tuple(key for key, _ in pairs), tuple(key for _, key in pairs)
    return Existence(
        plan, right, left_keys, right_keys, negated=test.negated, span=span_of(test.node)
    )


def _is_null(expression: Expression) -> Expression:
    return Call("is null", (expression,))
