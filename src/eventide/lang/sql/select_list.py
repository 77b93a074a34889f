"""A SELECT list → named expressions, and over groups the keys and aggregates that they need.

Every SELECT that our operators do is read here: over events, windows, matches, standing queries and
the index. Its scope says what names and stars mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from eventide.errors import BindError, EventideError, UnsupportedError
from eventide.lang.sql.expressions import Translator
from eventide.lang.sql.names.columns import fresh, identifier, item_name, unique_names
from eventide.lang.sql.names.qualifiers import check_left_out
from eventide.lang.sql.names.scope import Scope, refuse
from eventide.lang.sql.spans import span_of
from eventide.plan.expressions import (
    Aggregate,
    Column,
    Expression,
    Named,
    NamedAggregate,
    Over,
    rebuild,
    walk,
)
from eventide.plan.nodes import Filter, Project
from eventide.plan.render import render
from eventide.plan.tree import Plan

_AROUND_HINT = "use HAVING after GROUP BY, or filter in a SELECT around this one"


@dataclass(frozen=True, slots=True)
class SelectList:
    """The columns of a SELECT: those it shows, and behind them those it is only ordered by.

    `order` has the column of each item of ORDER BY.
    """

    shown: tuple[Named, ...]
    hidden: tuple[Named, ...]
    order: tuple[tuple[exp.Ordered, str], ...]

    @property
    def items(self) -> tuple[Named, ...]:
        """All columns."""
        return (*self.shown, *self.hidden)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns that are shown."""
        return tuple(item.name for item in self.shown)

    def check_distinct(self) -> None:
        """Refuse to order distinct rows by columns that they do not have."""
        for item, name in self.order:
            if name in (each.name for each in self.hidden):
                message = "SELECT DISTINCT can be ordered by its own columns only"
                raise BindError(message, span=span_of(item), hint="add it to the SELECT list")


def read_list(select: exp.Select, translator: Translator) -> SelectList:
    """Return the columns of a SELECT, with those of its ORDER BY."""
    scope = translator.scope
    nodes = _expand_stars(select.expressions, scope)
    given = [item_name(node, [scope]) for node in nodes]
    shown = [
        Named(name, translator.translate(node.unalias()))
        for name, node in zip(unique_names(given), nodes, strict=True)
    ]
    hidden: list[Named] = []
    order: list[tuple[exp.Ordered, str]] = []
    for item in ordered_by(select):
        name = output_column(item.this, given)
        if name is None:
            known = [*shown, *hidden]
            expression = translator.translate(item.this)
            name = next((each.name for each in known if each.expression == expression), None)
            if name is None:
                name = fresh("order_by", [each.name for each in known])
                hidden.append(Named(name, expression))
        order.append((item, name))
    return SelectList(tuple(shown), tuple(hidden), tuple(order))


def ordered_by(query: exp.Expr) -> list[exp.Ordered]:
    """Return the items of ORDER BY."""
    order = query.args.get("order")
    return [] if order is None else list(order.expressions)


def output_column(node: exp.Expr, names: Sequence[str]) -> str | None:
    """Return the output column that an item of ORDER BY means, or None.

    `names` are the names that the SELECT list gives; several items may have the same.
    """
    if isinstance(node, exp.Literal) and node.is_int:
        place = int(node.name)
        if not 1 <= place <= len(names):
            message = f"ORDER BY {place} points outside the SELECT list"
            raise BindError(message, span=span_of(node), hint=f"it has {len(names)} columns")
        return unique_names(names)[place - 1]
    if isinstance(node, exp.Column) and not node.table:
        # The first of several columns with the same name keeps it.
        return next((name for name in names if name.lower() == node.name.lower()), None)
    return None


def _expand_stars(nodes: Sequence[exp.Expr], scope: Scope) -> list[exp.Expr]:
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
        if scope.pseudo:
            message = "* cannot stand beside GROUP BY"
            raise BindError(message, span=span_of(node), hint="name the columns")
        if star.args.get("replace") or star.args.get("rename"):
            refuse("* REPLACE and * RENAME are beyond our operators", node, "name the columns")
        columns = scope.star(node.table if isinstance(node, exp.Column) else "")
        check_left_out(star, [each.name for each in columns])
        left_out = {each.name.lower() for each in star.args.get("except_") or ()}
        columns = [each for each in columns if each.name.lower() not in left_out]
        for column in columns:
            column.this.meta.update(star.meta)
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


def refuse_aggregates(expression: Expression, place: str, hint: str = _AROUND_HINT) -> None:
    """Refuse aggregates in expressions over single rows."""
    for part in walk(expression):
        if isinstance(part, Aggregate | Over):
            message = f"{render(part)} stands in {place}, where no aggregate may"
            raise BindError(message, span=part.span, hint=hint)


def has_aggregate(expression: Expression) -> bool:
    """Whether an aggregate is a part of an expression."""
    return any(isinstance(part, Aggregate) for part in walk(expression))


@dataclass(frozen=True, slots=True)
class Grouping:
    """The keys of groups, and the aggregates met so far: both become columns.

    `bounds` are the columns of a window. In an aggregate their names mean the columns `fields` of
    the source, if it has such. `taken` are further names that no column may have.
    """

    keys: tuple[Named, ...] = ()
    bounds: frozenset[str] = frozenset()
    fields: frozenset[str] = frozenset()
    taken: tuple[str, ...] = ()
    aggregates: list[NamedAggregate] = field(default_factory=list)

    @classmethod
    def by(
        cls, expressions: Iterable[Expression], items: Sequence[Named], scope: Scope
    ) -> Grouping:
        """Return groups by some expressions; the SELECT list may name them."""
        keys: list[Named] = []
        for expression in expressions:
            refuse_aggregates(expression, "GROUP BY")
            if any(key.expression == expression for key in keys):
                continue
            aliases = (item.name for item in items if item.expression == expression)
            name = expression.name if isinstance(expression, Column) else next(aliases, None)
            used = [*scope.pseudo, *(key.name for key in keys)]
            keys.append(Named(fresh(name or render(expression), used), expression))
        fields = frozenset(name.lower() for name in scope.fields)
        return cls(tuple(keys), scope.pseudo, fields)

    def plan(
        self,
        items: Iterable[Named],
        having: Expression | None,
        node: Callable[[tuple[Named, ...], tuple[NamedAggregate, ...]], Plan],
    ) -> Project:
        """Return the items over the groups; `node` makes the plan of keys and aggregates."""
        lifted = tuple(Named(item.name, self.lift(item.expression, item.name)) for item in items)
        condition = None if having is None else self.lift(having)
        plan = node(self.keys, tuple(self.aggregates))
        return Project(plan if condition is None else Filter(plan, condition), lifted)

    def lift(self, expression: Expression, name: str | None = None) -> Expression:
        """Return the expression over keys, bounds and aggregates, which become columns."""
        for key in self.keys:
            if key.expression == expression:
                return Column(key.name, span=expression.span)
        match expression:
            case Aggregate():
                return Column(self._name(expression, name), span=expression.span)
            case Column(name=column) if column in self.bounds:
                return expression
            case Column() | Over():
                raise self.alone(expression)
        return rebuild(expression, self.lift)

    def alone(self, expression: Column | Over) -> EventideError:
        """Return the error for a value of a single row."""
        if isinstance(expression, Over):
            message = "OVER cannot stand beside GROUP BY"
            hint = "put one of them in a SELECT around the other"
            return UnsupportedError(message, span=expression.span, hint=hint)
        column = expression.name
        message = f"{column} is neither grouped nor aggregated"
        hint = f"add {column} to GROUP BY, or take first({column}) or max({column})"
        return BindError(message, span=expression.span, hint=hint)

    def _name(self, aggregate: Aggregate, wanted: str | None) -> str:
        for inner in aggregate.parts:
            refuse_aggregates(inner, "an aggregate")
            for part in walk(inner):
                if not isinstance(part, Column) or part.name in self.fields:
                    continue
                if part.name in self.bounds:
                    message = f"{part.name} is not known until the window is complete"
                    raise BindError(message, span=part.span, hint="leave it out of the aggregate")
        for known in self.aggregates:
            if known.aggregate == aggregate:
                return known.name
        used = [*self.taken, *self.bounds, *(key.name for key in self.keys)]
        used += [each.name for each in self.aggregates]
        name = fresh(wanted or render(aggregate), used)
        self.aggregates.append(NamedAggregate(name, aggregate))
        return name
