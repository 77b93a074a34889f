"""A SELECT over windows of streams, or several with UNION or EXCEPT between them → plan nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from eventide.errors import BindError, Span
from eventide.lang.sql.names.scope import Scope, refuse
from eventide.lang.sql.ordering import OuterClauses
from eventide.lang.sql.select_list import (
    Grouping,
    SelectList,
    has_aggregate,
    ordered_by,
    output_column,
    read_list,
    refuse_aggregates,
)
from eventide.lang.sql.spans import span_of, union
from eventide.lang.sql.standing.clause import report_of
from eventide.lang.sql.standing.exists import ExistenceReader, ExistenceTest, existence_test
from eventide.lang.sql.standing.find import conjuncts_of
from eventide.lang.sql.standing.first_rows import KEYS, read_first_rows
from eventide.lang.sql.standing.frequent import list_bounds
from eventide.lang.sql.standing.from_clause import From, FromReader, Negation
from eventide.lang.sql.standing.join import join_all
from eventide.lang.sql.standing.scalar import join_scalars
from eventide.lang.sql.standing.scope import JoinedScope, StandingTranslator
from eventide.lang.sql.standing.sets import combined, renamed
from eventide.lang.sql.windows.group_by import is_window, meant_key
from eventide.plan.bind import bind, bind_condition
from eventide.plan.expressions import Column, Expression, Named, OrderKey, conjuncts
from eventide.plan.nodes import Project
from eventide.plan.standing.nodes import ANSWER_EXP, Distinct, GroupAggregate, Top
from eventide.plan.tree import Plan
from eventide.schema import Schema

_SELECT_ARGS = {"expressions", "from_", "joins", "where", "group", "having", "distinct", "with_"}
_ORDER_ARGS = {"order", "limit", "offset"}
_MOST_TOP = 1_000_000
"""The largest LIMIT: the first rows are kept in order."""
_SET_ARGS = {"this", "expression", "distinct", "with_"}
_HINTS = {
    "laterals": "leave it out, or use it in a SELECT around this one",
    "qualify": "put the condition in a SELECT around this one",
}


@dataclass(frozen=True)
class Planned:
    """A planned query: `names` are its columns; those behind them are only there to order by.

    What is `around` it stays SQL: an order without a limit, or a limit without an order, cannot be
    part of a standing query.
    """

    plan: Plan
    names: tuple[str, ...]
    around: OuterClauses = field(default_factory=OuterClauses)


class StandingPlanner:
    """Plans the parts of one standing query, and collects what has to be checked at the end."""

    def __init__(
        self,
        catalog: Mapping[str, Schema],
        ctes: frozenset[str],
        text: str,
        events: Callable[[exp.Expr], Scope | None],
    ) -> None:
        self.catalog = catalog
        self.text = text
        self.reader = FromReader(catalog, ctes, text, self._subquery, events)

    def plan(self, query: exp.Expr) -> Planned:
        """Return the plan of a query, bound."""
        if isinstance(query, exp.Subquery):
            report = report_of(query)
            if report is not None:
                refuse(f"{report.word} inside a standing query", query, "leave one of them out")
            return self.plan(query.this)
        if isinstance(query, exp.SetOperation):
            return self._combined(query)
        if not isinstance(query, exp.Select):
            refuse(f"{query.key.upper()} beside windows of streams", query, "write a SELECT")
        return self._select(query)

    def _subquery(self, query: exp.Expr, alias: str) -> tuple[Plan, list[str]]:
        planned = self.whole(query)
        names = list(planned.names)
        return bind(renamed(planned.plan, names, alias), self.catalog), names

    def whole(self, query: exp.Expr) -> Planned:
        """Return the plan of a query that can have no SQL around it."""
        planned = self.plan(query)
        around = planned.around
        if not around.is_empty:
            limit, offset = around.clauses.get("limit"), around.clauses.get("offset")
            what, hint = "ORDER BY without LIMIT", "add LIMIT 10 for the first ten, or leave it out"
            if limit is not None:
                what, hint = "LIMIT without ORDER BY", "say which rows come first: ORDER BY … LIMIT"
            if limit is not None and around.order:
                what, hint = "a LIMIT that is no positive number", "write LIMIT 10"
            if offset is not None:
                what, hint = "OFFSET", "leave it out, and skip rows when you read the result"
            culprit = offset or limit or around.order[0][0]
            refuse(f"{what} inside a standing query", culprit, hint)
        return planned

    def _combined(self, query: exp.SetOperation) -> Planned:
        _refuse_args(query, _SET_ARGS | _ORDER_ARGS)
        arms = [self.whole(query.this), self.whole(query.expression)]
        distinct = bool(query.args.get("distinct"))
        sides = [(each.plan, list(each.names)) for each in arms]
        plan = bind(combined(query, sides), self.catalog)
        union_all = isinstance(query, exp.Union) and not distinct
        if not union_all:
            word = "UNION without ALL" if isinstance(query, exp.Union) else query.key.upper()
            self.reader.negations.append(Negation(word, span_of(query.expression)))
        names = arms[0].names
        order = [(item, output_column(item.this, names)) for item in ordered_by(query)]
        for item, name in order:
            if name is None:
                message = "rows of several queries are ordered by a column of the first"
                raise BindError(message, span=span_of(item), hint=f"it has {', '.join(names)}")
        named = [(item, name) for item, name in order if name is not None]
        return self._cut(query, plan, names, named)

    def _select(self, select: exp.Select) -> Planned:
        read_first_rows(select)
        list_bounds(select)
        join_scalars(select)
        _refuse_args(select, _SELECT_ARGS | _ORDER_ARGS)
        read = self.reader.read(select)
        scope = read.scope.of_select(select)
        assert isinstance(scope, JoinedScope)
        translator = StandingTranslator(scope, self.text)
        plan = self._filtered(select, read, translator)
        columns = read_list(select, translator)
        _refuse_answer_exp(select, columns)
        plan = bind(self._grouped(select, plan, columns, translator), self.catalog)
        distinct = select.args.get("distinct")
        if distinct is not None:
            if distinct.args.get("on"):
                refuse("DISTINCT ON", select, "take the last row of each key: [LATEST BY key]")
            columns.check_distinct()
            self.reader.negations.append(Negation("DISTINCT", _distinct_span(select)))
            plan = Distinct(plan)
        return self._cut(select, plan, columns.names, columns.order)

    def _filtered(self, select: exp.Select, read: From, translator: StandingTranslator) -> Plan:
        """Return the joined rows on which WHERE is true."""
        where = select.args.get("where")
        conditions, tests = list(read.conditions), list[ExistenceTest]()
        for part in conjuncts_of(None if where is None else where.this):
            test = existence_test(part)
            if test is not None:
                tests.append(test)
                continue
            condition = translator.translate(part)
            refuse_aggregates(condition, "WHERE")
            conditions += conjuncts(bind_condition(condition, read.scope.row))
        plan = join_all(read.parts, conditions)
        existence = ExistenceReader(self.reader.read, self.text)
        for test in tests:
            self.reader.negations.append(Negation(test.word, span_of(test.node)))
            plan = existence.around(plan, read.scope, test)
        return plan

    def _grouped(
        self, select: exp.Select, plan: Plan, columns: SelectList, translator: StandingTranslator
    ) -> Project:
        """Return the columns over the rows, or over groups of them if there are any."""
        items, having = columns.items, select.args.get("having")
        keys = _grouped_by(select, translator)
        condition = None if having is None else translator.translate(having.this)
        if not (keys or condition or any(has_aggregate(item.expression) for item in items)):
            return Project(plan, items)
        group = select.args.get("group")
        span = None if group is None else span_of(group)
        return Grouping.by(keys, items, translator.scope).plan(
            items,
            condition,
            lambda keys, aggregates: GroupAggregate(plan, keys, aggregates, span),
        )

    def _cut(
        self,
        query: exp.Expr,
        plan: Plan,
        names: tuple[str, ...],
        order: Sequence[tuple[exp.Ordered, str]],
    ) -> Planned:
        """Return ORDER BY … LIMIT n as the first rows; other orders and limits stand around."""
        limit, offset = query.args.get("limit"), query.args.get("offset")
        count = None if limit is None else limit.args.get("expression")
        plain = isinstance(count, exp.Literal) and count.is_int and int(count.name) > 0
        if not (order and plain and offset is None):
            clauses = {"limit": limit, "offset": offset}
            kept = {key: clause for key, clause in clauses.items() if clause is not None}
            return Planned(plan, names, OuterClauses(kept, order))
        assert isinstance(count, exp.Literal)
        if int(count.name) > _MOST_TOP:
            message = f"LIMIT of more than {_MOST_TOP:,} rows in a standing query"
            raise BindError(message, span=span_of(count), hint="leave it out: all rows are told")
        by = query.meta.get(KEYS, 0)
        keys = tuple(Column(name, span=span_of(item)) for item, name in order[:by])
        ordered = tuple(_order_key(item, name) for item, name in order[by:])
        span = union(span_of(item) for item, _ in order)
        plan = Top(plan, ordered, int(count.name), span, keys)
        if len(plan.row) > len(names):
            plan = Project(plan, tuple(Named(name, Column(name)) for name in names))
        return Planned(bind(plan, self.catalog), names)


def _grouped_by(select: exp.Select, translator: StandingTranslator) -> list[Expression]:
    """Return what GROUP BY names; a number means an item of the SELECT list."""
    group = select.args.get("group")
    if group is None:
        return []
    for extension in ("all", "rollup", "cube", "grouping_sets", "totals"):
        if group.args.get(extension):
            refuse("groups of a standing query have plain keys", group, "list them one by one")
    keys = []
    for node in group.expressions:
        if is_window(node):
            name = node.name.upper()
            hint = "put the window behind the stream: FROM cars [TUMBLE 1 HOUR]"
            message = f"{name}(…) groups a stream without a window in brackets"
            raise BindError(message, span=span_of(node), hint=hint)
        keys.append(translator.translate(meant_key(node, select)))
    return keys


def _refuse_answer_exp(select: exp.Select, columns: SelectList) -> None:
    """Refuse the name of a column that internal windows add to rows."""
    for item in columns.shown:
        if item.name.lower() == ANSWER_EXP:
            places = (each for each in select.expressions if each.alias_or_name == item.name)
            message = f"a column of a standing query cannot be called {item.name!r}"
            hint = "INTERNAL windows use that name: write AS shown, or another name"
            span = union(span_of(each) for each in places) or item.expression.span
            raise BindError(message, span=span, hint=hint)


def _order_key(item: exp.Ordered, name: str) -> OrderKey:
    descending, nulls_first = bool(item.args.get("desc")), bool(item.args.get("nulls_first"))
    return OrderKey(Column(name, span=span_of(item)), descending, nulls_first)


def _refuse_args(query: exp.Expr, known: set[str]) -> None:
    extras = {key for key, value in query.args.items() if value} - known
    if extras:
        word = min(extras)
        hint = _HINTS.get(word, "put it in a SELECT around this one")
        refuse(f"{word.strip('_').upper()} in a standing query", query, hint)


def _distinct_span(select: exp.Select) -> Span | None:
    return union(span_of(each) for each in select.expressions)
