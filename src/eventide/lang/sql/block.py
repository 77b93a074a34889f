"""A block: a SELECT over one stream that our operators can do completely → a plan."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from eventide.errors import UnsupportedError
from eventide.lang.sql.expressions import Translator
from eventide.lang.sql.names.columns import fresh
from eventide.lang.sql.names.scope import Scope
from eventide.lang.sql.numbering import (
    NUMBERING,
    RANKING,
    Ranked,
    numbered_rows,
    ranked_in_time,
    ranked_rows,
)
from eventide.lang.sql.select_list import (
    Grouping,
    SelectList,
    read_list,
    refuse_aggregates,
)
from eventide.lang.sql.windows.group_by import is_windowed, window_and_keys
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
    columns_of,
    rebuild,
    walk,
)
from eventide.plan.nodes import Filter, Project, Scan
from eventide.plan.render import render
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import (
    WINDOW_END,
    WINDOW_START,
    SlidingAggregate,
    WindowAggregate,
)
from eventide.schema import SEQ, START_TS, STRING, TS

_WINDOW_COLUMNS = frozenset({WINDOW_START, WINDOW_END})


@dataclass(frozen=True, slots=True)
class Block:
    """A planned block, and its columns."""

    plan: Plan
    columns: SelectList


def plan_block(select: exp.Select, scope: Scope, text: str) -> Block:
    """Return the plan of a SELECT over one stream, or over the matches of a row pattern.

    What only ORDER BY needs becomes hidden columns. `UnsupportedError` says that our operators
    cannot do the SELECT.
    """
    windowed = is_windowed(select)
    scope = replace(scope, pseudo=_WINDOW_COLUMNS) if windowed else scope
    translator = Translator(scope, text)
    columns = read_list(select, translator)
    source = filtered_scan(select, scope, text)
    build = _windowed_plan if windowed else _row_plan
    return Block(build(_Parts(select, translator, source, columns.items)), columns)


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
        [*block.columns.names, *hidden],
        block.plan.source,
        meanings=meanings | hidden,
        hidden=frozenset(hidden),
    )


def _typed(expression: Expression) -> Expression:
    """Return a text literal cast to text, so that it is not taken for a time."""
    if isinstance(expression, Literal) and expression.type == STRING:
        return Cast(expression, STRING, expression.span)
    return expression


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts from which both kinds of block are built."""

    select: exp.Select
    translator: Translator
    source: Plan
    items: tuple[Named, ...]


def filtered_scan(select: exp.Select, scope: Scope, text: str) -> Plan:
    """Return the source of a SELECT below its WHERE."""
    where = select.args.get("where")
    if where is None:
        return scope.source
    # The bounds of a window do not exist yet when WHERE is evaluated.
    condition = Translator(replace(scope, pseudo=frozenset()), text).translate(where.this)
    refuse_aggregates(condition, "WHERE")
    return Filter(scope.source, condition)


def _row_plan(parts: _Parts) -> Plan:
    scope = parts.translator.scope
    read = (part for each in scope.meanings.values() for part in walk(each))
    hidden = [part.name for part in read if isinstance(part, Column)]
    columns = hidden if scope.meanings else scope.fields
    below = dict.fromkeys((TS, *(name for name in columns if name != SEQ)))
    sliding = _Sliding([], [*scope.fields, *hidden], tuple(below))
    items = tuple(Named(item.name, sliding.lift(item.expression)) for item in parts.items)
    if sliding.found and not scope.source.in_order:
        over = sliding.found[0][0]
        message = "a frame goes over the events of a stream"
        raise UnsupportedError(message, span=over.span, hint="put it in a SELECT around this one")
    if sliding.levels and any(SEQ in columns_of(item.expression) for item in items):
        message = f"a rank beside {SEQ}"
        hint = f"live, rank by it as well, ORDER BY {TS}, {SEQ}"
        raise UnsupportedError(message, span=sliding.levels[0][0].span, hint=hint)
    return Project(sliding.stack(parts.source), items)


@dataclass(frozen=True, slots=True)
class _Sliding:
    """The aggregates over frames met so far."""

    found: list[tuple[Over, str]]
    taken: list[str]
    columns: tuple[str, ...]
    """Those of the rows below that a query may read."""

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

    @property
    def levels(self) -> list[tuple[Over, str]]:
        """The ranks in order of time."""
        over = (each for each in self.found if not isinstance(each[0], Ranked))
        return [each for each in over if each[0].aggregate.function in RANKING]

    def stack(self, source: Plan) -> Plan:
        """Return the source below one node for each set of keys and frame."""
        groups: dict[tuple[tuple[Expression, ...], Frame], list[NamedAggregate]] = {}
        ranked = [each for each in self.found if isinstance(each[0], Ranked)]
        levels = self.levels
        ahead = [
            each
            for each in self.found
            if each[0].aggregate.function in NUMBERING and each not in ranked
        ]
        for over, name in self.found:
            if (over, name) in (*ahead, *levels, *ranked):
                continue
            group = groups.setdefault((over.keys, over.frame), [])
            group.append(NamedAggregate(name, over.aggregate))
        for (keys, frame), aggregates in groups.items():
            source = SlidingAggregate(source, keys, frame, tuple(aggregates))
        taken = [*self.taken, *(name for _, name in self.found)]
        if ranked and (ahead or levels):
            message = "ranks in order of time and in another one in one SELECT"
            hint = "live, put one of them in a SELECT around the other"
            raise UnsupportedError(message, span=ranked[0][0].span, hint=hint)
        if ranked:
            source = ranked_rows(source, ranked)
        if levels:
            frames = [each.name for group in groups.values() for each in group]
            source = ranked_in_time(source, levels, [*self.columns, *frames])
        if ahead:
            source = numbered_rows(source, ahead, taken)
        return source


def _windowed_plan(parts: _Parts) -> Plan:
    translator = parts.translator
    window, nodes = window_and_keys(parts.select, translator.scope)
    keys = [translator.translate(node) for node in nodes]
    having = parts.select.args.get("having")
    return Grouping.by(keys, parts.items, translator.scope).plan(
        parts.items,
        None if having is None else translator.translate(having.this),
        lambda keys, aggregates: WindowAggregate(parts.source, keys, window, aggregates),
    )
