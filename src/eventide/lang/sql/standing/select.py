"""A SELECT over windows of streams, or several with UNION or EXCEPT between them → plan nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from eventide.errors import BindError, Span
from eventide.lang.sql.block import refuse_aggregates
from eventide.lang.sql.names.columns import fresh, identifier, item_name
from eventide.lang.sql.names.qualifiers import check_left_out
from eventide.lang.sql.names.scope import Scope, refuse
from eventide.lang.sql.ordering import output_column
from eventide.lang.sql.spans import span_of, union
from eventide.lang.sql.standing.clause import report_of
from eventide.lang.sql.standing.exists import ExistenceReader, ExistenceTest, existence_test
from eventide.lang.sql.standing.find import conjuncts_of
from eventide.lang.sql.standing.first_rows import KEYS, read_first_rows
from eventide.lang.sql.standing.from_clause import From, FromReader, Negation
from eventide.lang.sql.standing.group import Grouping, grouped_by, has_aggregate
from eventide.lang.sql.standing.join import join_all
from eventide.lang.sql.standing.scalar import join_scalars
from eventide.lang.sql.standing.scope import JoinedScope, Merged, Source, StandingTranslator
from eventide.lang.sql.standing.sets import combined, renamed
from eventide.plan.bind import bind, bind_condition
from eventide.plan.column_names import unique_names
from eventide.plan.expressions import Column, Expression, Named, OrderKey, conjuncts
from eventide.plan.nodes import Filter, Project
from eventide.plan.standing.nodes import ANSWER_EXP, Distinct, Top
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

    `order`, `limit` and `offset` have to stand around it as SQL: an order without a limit, or a
    limit without an order, cannot be part of a standing query.
    """

    plan: Plan
    names: list[str]
    order: list[tuple[exp.Ordered, str]] = field(default_factory=list)
    limit: exp.Expr | None = None
    offset: exp.Expr | None = None

    @property
    def is_whole(self) -> bool:
        """Whether no SQL has to stand around it."""
        return not (self.order or self.limit or self.offset)


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
        return bind(renamed(planned.plan, planned.names, alias), self.catalog), planned.names

    def whole(self, query: exp.Expr) -> Planned:
        """Return the plan of a query that can have no SQL around it."""
        planned = self.plan(query)
        if not planned.is_whole:
            what, hint = "ORDER BY without LIMIT", "add LIMIT 10 for the first ten, or leave it out"
            if planned.limit is not None:
                what, hint = "LIMIT without ORDER BY", "say which rows come first: ORDER BY … LIMIT"
            if planned.limit is not None and planned.order:
                what, hint = "a LIMIT that is no positive number", "write LIMIT 10"
            if planned.offset is not None:
                what, hint = "OFFSET", "leave it out, and skip rows when you read the result"
            culprit = planned.offset or planned.limit or planned.order[0][0]
            refuse(f"{what} inside a standing query", culprit, hint)
        return planned

    def _combined(self, query: exp.SetOperation) -> Planned:
        _refuse_args(query, _SET_ARGS | _ORDER_ARGS)
        arms = [self.whole(query.this), self.whole(query.expression)]
        distinct = bool(query.args.get("distinct"))
        plan = bind(combined(query, [(each.plan, each.names) for each in arms]), self.catalog)
        union_all = isinstance(query, exp.Union) and not distinct
        if not union_all:
            word = "UNION without ALL" if isinstance(query, exp.Union) else query.key.upper()
            self.reader.negations.append(Negation(word, span_of(query.expression)))
        names = arms[0].names
        order = [(item, output_column(item.this, names)) for item in _ordered(query)]
        for item, name in order:
            if name is None:
                message = "rows of several queries are ordered by a column of the first"
                raise BindError(message, span=span_of(item), hint=f"it has {', '.join(names)}")
        named = [(item, name) for item, name in order if name is not None]
        return self._cut(query, plan, names, named)

    def _select(self, select: exp.Select) -> Planned:
        read_first_rows(select)
        join_scalars(select)
        _refuse_args(select, _SELECT_ARGS | _ORDER_ARGS)
        read = self.reader.read(select)
        scope = read.scope.of_select(select)
        assert isinstance(scope, JoinedScope)
        translator = StandingTranslator(scope, self.text)
        plan = self._filtered(select, read, translator)
        nodes = expand_stars(select.expressions, scope)
        given = [item_name(node, [scope]) for node in nodes]
        named = list(zip(unique_names(given), nodes, strict=True))
        _refuse_answer_exp(named)
        items = [Named(name, translator.translate(node.unalias())) for name, node in named]
        names = [item.name for item in items]
        ordered = [(item, output_column(item.this, given)) for item in _ordered(select)]
        hidden = [translator.translate(item.this) for item, name in ordered if name is None]
        items, order = _with_hidden(items, ordered, hidden)
        plan, items = self._grouped(select, plan, items, translator)
        plan = bind(Project(plan, tuple(items)), self.catalog)
        distinct = select.args.get("distinct")
        if distinct is not None:
            if distinct.args.get("on"):
                refuse("DISTINCT ON", select, "take the last row of each key: [LATEST BY key]")
            if len(items) > len(names):
                message = "SELECT DISTINCT can be ordered by its own columns only"
                place = next(item for item, name in ordered if name is None)
                raise BindError(message, span=span_of(place), hint="add it to the SELECT list")
            self.reader.negations.append(Negation("DISTINCT", _distinct_span(select)))
            plan = Distinct(plan)
        return self._cut(select, plan, names, order)

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
        self, select: exp.Select, plan: Plan, items: list[Named], translator: StandingTranslator
    ) -> tuple[Plan, list[Named]]:
        """Return the groups, if there are any, and the items over their columns."""
        having = select.args.get("having")
        keys = grouped_by(select, translator)
        condition = None if having is None else translator.translate(having.this)
        if not (keys or condition or any(has_aggregate(item.expression) for item in items)):
            return plan, items
        groups = Grouping.by(keys, items)
        lifted = [Named(item.name, groups.lift(item.expression, item.name)) for item in items]
        kept = None if condition is None else groups.lift(condition)
        plan = groups.over(plan, select.args.get("group"))
        return (plan if kept is None else Filter(plan, kept)), lifted

    def _cut(
        self, query: exp.Expr, plan: Plan, names: list[str], order: list[tuple[exp.Ordered, str]]
    ) -> Planned:
        """Return ORDER BY … LIMIT n as the first rows; other orders and limits stand around."""
        limit, offset = query.args.get("limit"), query.args.get("offset")
        count = None if limit is None else limit.args.get("expression")
        plain = isinstance(count, exp.Literal) and count.is_int and int(count.name) > 0
        if not (order and plain and offset is None):
            return Planned(plan, names, order, limit, offset)
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


def _refuse_answer_exp(named: list[tuple[str, exp.Expr]]) -> None:
    """Refuse the name of a column that internal windows add to rows."""
    for name, node in named:
        if name.lower() == ANSWER_EXP:
            message = f"a column of a standing query cannot be called {name!r}"
            hint = "INTERNAL windows use that name: write AS shown, or another name"
            raise BindError(message, span=span_of(node), hint=hint)


def _order_key(item: exp.Ordered, name: str) -> OrderKey:
    descending, nulls_first = bool(item.args.get("desc")), bool(item.args.get("nulls_first"))
    return OrderKey(Column(name, span=span_of(item)), descending, nulls_first)


def _ordered(query: exp.Expr) -> list[exp.Ordered]:
    order = query.args.get("order")
    return [] if order is None else list(order.expressions)


def _with_hidden(
    items: list[Named], ordered: list[tuple[exp.Ordered, str | None]], hidden: list[Expression]
) -> tuple[list[Named], list[tuple[exp.Ordered, str]]]:
    """Return the items with those only ordered by, and the name of each item of ORDER BY."""
    found = list(items)
    waiting = iter(hidden)
    order: list[tuple[exp.Ordered, str]] = []
    for item, known in ordered:
        name = known
        if name is None:
            expression = next(waiting)
            same = (each.name for each in found if each.expression == expression)
            name = next(same, None)
            if name is None:
                name = fresh("order_by", [each.name for each in found])
                found.append(Named(name, expression))
        order.append((item, name))
    return found, order


def expand_stars(nodes: Sequence[exp.Expr], scope: JoinedScope) -> list[exp.Expr]:
    """Return the SELECT list with each `*` replaced by the columns it means.

    A name that several sources have gets the name of its source in front: `a_ts` and `b_ts`.
    """
    expanded: list[exp.Expr] = []
    starred: list[exp.Column] = []
    for node in nodes:
        star = node.this if isinstance(node, exp.Column) else node
        if not isinstance(star, exp.Star):
            expanded.append(node)
            continue
        if star.args.get("replace") or star.args.get("rename"):
            refuse("* REPLACE and * RENAME are beyond our operators", node, "name the columns")
        table = node.table if isinstance(node, exp.Column) else ""
        meant = [each for each in scope.sources if table.lower() in ("", each.alias.lower())]
        check_left_out(star, [name for each in meant for name in each.starred])
        left_out = {each.name.lower() for each in star.args.get("except_") or ()}
        columns = list(_meant(star, meant, {} if table else scope.merged, left_out))
        starred += columns
        expanded += columns
    tables: dict[str, set[str]] = {}
    for column in starred:
        tables.setdefault(column.name.lower(), set()).add(column.table)
    shared = {id(each) for each in starred if len(tables[each.name.lower()]) > 1}
    return [_prefixed(each) if id(each) in shared else each for each in expanded]


def _prefixed(column: exp.Expr) -> exp.Expr:
    assert isinstance(column, exp.Column)
    if not column.table:
        return column
    return exp.alias_(column, identifier(f"{column.table}_{column.name}"))


def _meant(
    star: exp.Expr, sources: list[Source], merged: Mapping[str, Merged], left_out: set[str]
) -> Iterator[exp.Column]:
    """Yield the columns a star means; those that USING merges come once, with the first source."""
    for source in sources:
        for name in source.starred:
            own = source.column(name)
            one = merged.get(name.lower(), Merged(own, (own,)))
            if own in one.columns[1:] or name.lower() in left_out:
                continue
            # A column that USING merges has no source.
            table = source.alias if own == one.meaning or own not in one.columns else None
            column = exp.column(name, table=table, quoted=True)
            column.this.meta.update(star.meta)
            yield column


def _refuse_args(query: exp.Expr, known: set[str]) -> None:
    extras = {key for key, value in query.args.items() if value} - known
    if extras:
        word = min(extras)
        hint = _HINTS.get(word, "put it in a SELECT around this one")
        refuse(f"{word.strip('_').upper()} in a standing query", query, hint)


def _distinct_span(select: exp.Select) -> Span | None:
    return union(span_of(each) for each in select.expressions)
