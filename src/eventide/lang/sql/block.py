"""A block: a SELECT over one stream that our operators can do completely → a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from eventide.errors import BindError, Span, UnsupportedError
from eventide.lang.sql.expressions import Translator
from eventide.lang.sql.names.columns import fresh, item_name
from eventide.lang.sql.names.qualifiers import check_left_out
from eventide.lang.sql.names.scope import Scope, refuse
from eventide.lang.sql.spans import span_of
from eventide.lang.sql.windows.group_by import is_windowed, window_and_keys
from eventide.plan.column_names import unique_names
from eventide.plan.events.time_order import in_order
from eventide.plan.expressions import (
    Aggregate,
    Cast,
    Column,
    Expression,
    Frame,
    Literal,
    Named,
    NamedAggregate,
    Over,
    rebuild,
    walk,
)
from eventide.plan.nodes import Filter, Project, Scan
from eventide.plan.render import render
from eventide.plan.situations.nodes import START_TS
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import (
    WINDOW_END,
    WINDOW_START,
    CountWindow,
    Sessions,
    SlidingAggregate,
    Window,
    WindowAggregate,
)
from eventide.schema import STRING, TS

_WINDOW_COLUMNS = frozenset({WINDOW_START, WINDOW_END})


@dataclass(frozen=True, slots=True)
class Block:
    """A planned block: `names` are its columns, `extra` the columns of the extra expressions."""

    plan: Plan
    names: tuple[str, ...]
    extra: tuple[str, ...]


def plan_block(
    select: exp.Select, scope: Scope, text: str, extras: Sequence[exp.Expr] = ()
) -> Block:
    """Return the plan of a SELECT over one stream, or over the matches of a row pattern.

    `extras` are further expressions that the SQL around the block needs; they become hidden columns
    unless an item already computes the same. `UnsupportedError` says that our operators cannot do
    the SELECT.
    """
    windowed = is_windowed(select)
    scope = replace(scope, pseudo=_WINDOW_COLUMNS) if windowed else scope
    translator = Translator(scope, text)
    nodes = expand_stars(select.expressions, scope)
    names = unique_names([item_name(node, [scope]) for node in nodes])
    items = [
        Named(name, translator.translate(node.unalias()))
        for name, node in zip(names, nodes, strict=True)
    ]
    hidden, extra = hidden_items([translator.translate(each) for each in extras], items)
    source = filtered_scan(select, scope, text)
    build = _windowed_plan if windowed else _row_plan
    plan = build(_Parts(select, translator, source, [*items, *hidden]))
    return Block(plan, tuple(item.name for item in items), extra)


def stream_below(plan: Plan) -> Scan | None:
    """Return the scan of a plan that only chooses events of a stream, else None."""
    while isinstance(plan, Filter):
        plan = plan.source
    return plan if isinstance(plan, Scan) else None


def scope_over(alias: str, block: Block) -> Scope | None:
    """Return the scope of a query that reads a block which computes with each event by itself."""
    assert isinstance(block.plan, Project)
    if stream_below(block.plan.source) is None:
        return None
    meanings = {item.name: _typed(item.expression) for item in block.plan.items}
    folded = {name.lower() for name in meanings}
    hidden = {name: Column(TS) for name in (TS, START_TS) if name not in folded}
    shown = alias or "the subquery"
    return Scope(
        shown,
        alias,
        [*block.names, *hidden],
        block.plan.source,
        meanings=meanings | hidden,
        hidden=frozenset(hidden),
    )


def _typed(expression: Expression) -> Expression:
    """Return a text literal cast to text, so that it is not taken for a time."""
    if isinstance(expression, Literal) and expression.type == STRING:
        return Cast(expression, STRING, expression.span)
    return expression


def expand_stars(nodes: list[exp.Expr], scope: Scope) -> list[exp.Expr]:
    """Return the SELECT list with each `*` replaced by the columns it means."""
    expanded: list[exp.Expr] = []
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
        check_left_out(star, scope.starred)
        left_out = {each.name.lower() for each in star.args.get("except_") or ()}
        kept = [name for name in scope.starred if name.lower() not in left_out]
        for name in kept:
            column = exp.column(name, quoted=True)
            column.this.meta.update(star.meta)
            expanded.append(column)
    return expanded


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts from which both kinds of block are built."""

    select: exp.Select
    translator: Translator
    source: Plan
    items: list[Named]


def hidden_items(
    extras: list[Expression], items: list[Named]
) -> tuple[list[Named], tuple[str, ...]]:
    """Return the hidden columns that are needed, and the column that holds each extra."""
    hidden: list[Named] = []
    names = []
    for extra in extras:
        same = (item.name for item in [*items, *hidden] if item.expression == extra)
        name = next(same, None)
        if name is None:
            name = fresh("order_by", [item.name for item in [*items, *hidden]])
            hidden.append(Named(name, extra))
        names.append(name)
    return hidden, tuple(names)


def filtered_scan(select: exp.Select, scope: Scope, text: str) -> Plan:
    """Return the source of a SELECT below its WHERE."""
    where = select.args.get("where")
    if where is None:
        return scope.source
    # The bounds of a window do not exist yet when WHERE is evaluated.
    condition = Translator(replace(scope, pseudo=frozenset()), text).translate(where.this)
    refuse_aggregates(condition, "WHERE")
    return Filter(scope.source, condition)


def refuse_aggregates(expression: Expression, place: str) -> None:
    """Refuse aggregates in conditions on single rows."""
    for part in walk(expression):
        if isinstance(part, Aggregate | Over):
            message = f"{render(part)} stands in {place}, where no aggregate may"
            hint = "use HAVING after GROUP BY, or filter in a SELECT around this one"
            raise BindError(message, span=part.span, hint=hint)


def _row_plan(parts: _Parts) -> Plan:
    scope = parts.translator.scope
    read = (part for each in scope.meanings.values() for part in walk(each))
    hidden = [part.name for part in read if isinstance(part, Column)]
    sliding = _Sliding([], [*scope.fields, *hidden])
    items = tuple(Named(item.name, sliding.lift(item.expression)) for item in parts.items)
    if sliding.found and not in_order(scope.source):
        over = sliding.found[0][0]
        message = "a frame goes over the events of a stream"
        raise UnsupportedError(message, span=over.span, hint="put it in a SELECT around this one")
    return Project(sliding.stack(parts.source), items)


@dataclass(frozen=True, slots=True)
class _Sliding:
    """The aggregates over frames met so far."""

    found: list[tuple[Over, str]]
    taken: list[str]

    def lift(self, expression: Expression) -> Expression:
        """Return the expression with every OVER replaced by the column it is computed in."""
        match expression:
            case Over(aggregate=aggregate, keys=keys, span=span):
                for inner in (*aggregate.parts, *keys):
                    refuse_aggregates(inner, "OVER")
                return Column(self._name(expression), span=span)
            case Aggregate(span=span):
                message = f"{render(expression)} needs a window"
                raise UnsupportedError(message, span=span, hint="GROUP BY TUMBLE(ts, …)")
        return rebuild(expression, self.lift)

    def _name(self, over: Over) -> str:
        for known, name in self.found:
            if known == over:
                return name
        name = fresh(f"over_{len(self.found)}", self.taken)
        self.found.append((over, name))
        return name

    def stack(self, source: Plan) -> Plan:
        """Return the source below one node for each set of keys and frame."""
        groups: dict[tuple[tuple[Expression, ...], Frame], list[NamedAggregate]] = {}
        for over, name in self.found:
            group = groups.setdefault((over.keys, over.frame), [])
            group.append(NamedAggregate(name, over.aggregate))
        for (keys, frame), aggregates in groups.items():
            source = SlidingAggregate(source, keys, frame, tuple(aggregates))
        return source


def _windowed_plan(parts: _Parts) -> Plan:
    window, key_nodes = window_and_keys(parts.select, parts.translator.scope)
    grouping = _Grouping.of(parts, [parts.translator.translate(node) for node in key_nodes])
    items = [Named(item.name, grouping.lift(item.expression, item.name)) for item in parts.items]
    having = parts.select.args.get("having")
    condition = None
    if having is not None:
        condition = grouping.lift(parts.translator.translate(having.this))
    plan: Plan = grouping.aggregate(parts.source, window)
    if condition is not None:
        plan = Filter(plan, condition)
    return Project(plan, tuple(items))


@dataclass(frozen=True, slots=True)
class _Grouping:
    """The keys of a GROUP BY and the aggregates met so far."""

    keys: list[Named]
    aggregates: list[NamedAggregate]
    fields: frozenset[str]
    """The names of a stream's columns, in lower case: in an aggregate a name means these, not a
    bound.
    """

    @classmethod
    def of(cls, parts: _Parts, expressions: list[Expression]) -> _Grouping:
        keys: list[Named] = []
        for expression in expressions:
            refuse_aggregates(expression, "GROUP BY")
            if any(key.expression == expression for key in keys):
                continue
            aliases = (item.name for item in parts.items if item.expression == expression)
            name = expression.name if isinstance(expression, Column) else next(aliases, None)
            used = [*_WINDOW_COLUMNS, *(key.name for key in keys)]
            keys.append(Named(fresh(name or render(expression), used), expression))
        fields = frozenset(name.lower() for name in parts.translator.scope.fields)
        return cls(keys, [], fields)

    def lift(self, expression: Expression, name: str | None = None) -> Expression:
        """Return the expression over keys, window bounds and aggregates, which become columns."""
        for key in self.keys:
            if key.expression == expression:
                return Column(key.name, span=expression.span)
        match expression:
            case Aggregate():
                return Column(self._name(expression, name), span=expression.span)
            case Column(name=column, span=span):
                if column not in _WINDOW_COLUMNS:
                    raise _ungrouped(column, span)
                return expression
            case Over(span=span):
                message = "OVER cannot stand beside GROUP BY"
                hint = "put one of them in a SELECT around the other"
                raise UnsupportedError(message, span=span, hint=hint)
        return rebuild(expression, self.lift)

    def _name(self, aggregate: Aggregate, wanted: str | None) -> str:
        for inner in aggregate.parts:
            refuse_aggregates(inner, "an aggregate")
            for part in walk(inner):
                if not isinstance(part, Column) or part.name in self.fields:
                    continue
                if part.name in _WINDOW_COLUMNS:
                    message = f"{part.name} is not known until the window is complete"
                    raise BindError(message, span=part.span, hint="leave it out of the aggregate")
        for known in self.aggregates:
            if known.aggregate == aggregate:
                return known.name
        used = [key.name for key in self.keys] + [item.name for item in self.aggregates]
        name = fresh(wanted or render(aggregate), [*used, *_WINDOW_COLUMNS])
        self.aggregates.append(NamedAggregate(name, aggregate))
        return name

    def aggregate(self, source: Plan, window: Window | CountWindow | Sessions) -> WindowAggregate:
        """Return the node that computes the keys and aggregates."""
        return WindowAggregate(source, tuple(self.keys), window, tuple(self.aggregates))


def _ungrouped(column: str, span: Span | None) -> BindError:
    message = f"{column} is neither grouped nor aggregated"
    hint = f"add {column} to GROUP BY, or take first({column}) or max({column})"
    return BindError(message, span=span, hint=hint)
