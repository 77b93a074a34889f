"""ROW_NUMBER and its like before OVER.

In order of time, ROW_NUMBER and LEAD are a row pattern in which every row is a match of its own. So
a row is numbered when it comes, and has its LEAD when that row has come:

    ROW_NUMBER() OVER (PARTITION BY car ORDER BY ts)    MATCH_NUMBER()
    LEAD(speed, 2) OVER (PARTITION BY car ORDER BY ts)  NEXT(speed, 2)

Rows of the same time have the same rank. It is certain when the watermark has passed that time:

    RANK() OVER (PARTITION BY car ORDER BY ts)          the least row number of these rows
    DENSE_RANK() OVER (PARTITION BY car ORDER BY ts)    MATCH_NUMBER() of PATTERN (A B*), B of the
                                                        same time

In another order, rows have ranks within a window, one that PARTITION BY names:

    RANK() OVER (PARTITION BY window_start, window_end ORDER BY total DESC)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from eventide.errors import UnsupportedError
from eventide.lang.sql.names.columns import fresh
from eventide.plan.expressions import (
    ALWAYS,
    Aggregate,
    At,
    Call,
    Column,
    Expression,
    Literal,
    MatchNumber,
    Named,
    NamedAggregate,
    OrderKey,
    Over,
    RangeFrame,
)
from eventide.plan.nodes import DerivedStream, Filter, Project
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.patterns.tree import Concat, Repeat, Variable
from eventide.plan.render import render
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import (
    WINDOW_END,
    WINDOW_START,
    Rank,
    SlidingAggregate,
    Window,
    WindowAggregate,
    WindowRanks,
)
from eventide.schema import INTERVAL, TS

ROW_NUMBER, LEAD = "row_number", "lead"
NUMBERING = frozenset({ROW_NUMBER, LEAD})
"""What stands where an aggregate does before OVER, and looks at no frame."""
RANK, DENSE_RANK = "rank", "dense_rank"
RANKING = frozenset({RANK, DENSE_RANK})
"""What does so and gives rows of the same time the same number."""
LIVE_HINT = (
    "live, number or rank rows as they come, RANK() OVER (PARTITION BY car ORDER BY ts), or rank "
    "those of complete windows, PARTITION BY window_start, window_end, or keep the first rows of a "
    "window: SELECT … FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY car ORDER BY speed DESC) AS "
    "place FROM cars [RANGE 1 HOUR]) WHERE place <= 10"
)
Names = Sequence[str]
_ROW, _PEER = "A", "B"
_PEERS_US = 1
"""Rows of one time are all known when the watermark is behind it."""


@dataclass(frozen=True, slots=True)
class Ranked(Over):
    """A rank in another order than that of time; the function of its aggregate says which."""

    order: tuple[OrderKey, ...] = ()


def ranked_rows(source: Plan, found: Sequence[tuple[Over, str]]) -> Plan:
    """Return the rows of a source with columns for ranks within windows."""
    groups: dict[tuple[tuple[Expression, ...], tuple[OrderKey, ...]], list[tuple[str, Rank]]] = {}
    for over, name in found:
        assert isinstance(over, Ranked)
        ranks = groups.setdefault((over.keys, over.order), [])
        ranks.append((name, cast("Rank", over.aggregate.function)))
    if len(groups) > 1:
        message = "ranks of different keys or orders in one SELECT"
        hint = "live, put one of them in a SELECT around the other"
        raise UnsupportedError(message, span=found[0][0].span, hint=hint)
    (((keys, order), named),) = groups.items()
    end = next((each for key in keys if (each := _end_of(source, key)) is not None), None)
    if end is None:
        message = "a rank is certain when its window is complete, and PARTITION BY names no window"
        raise UnsupportedError(message, span=found[0][0].span, hint=LIVE_HINT)
    return WindowRanks(source, keys, order, end, tuple(named))


def _end_of(source: Plan, key: Expression) -> Expression | None:
    """Return the instant at which all rows with one value of a key are known, None if never."""
    if _is_end(key):
        return key
    while isinstance(source, Filter | SlidingAggregate):
        source = source.source
    if not (isinstance(key, Column) and isinstance(source, DerivedStream) and source.in_time):
        return None
    if key.name == TS:
        return Column(TS)
    items = {}
    if isinstance(source.source, Project):
        items = {item.name: item.expression for item in source.source.items}
    meant, ts = items.get(key.name), items.get(TS)
    if meant is None or ts is None:
        return None
    starts = isinstance(meant, Column) and meant.name == WINDOW_START
    if starts and isinstance(ts, Column) and ts.name == WINDOW_END:
        return Column(TS) if _has_one_length(source.source) else None
    return Column(TS) if meant == ts else None


def _has_one_length(plan: Plan) -> bool:
    """Whether the rows of a plan are windows of one length: their start says when they end."""
    while isinstance(plan, Filter | Project):
        plan = plan.source
    return isinstance(plan, WindowAggregate) and isinstance(plan.window, Window)


def _is_end(key: Expression) -> bool:
    """Whether a key is the column window_end of TUMBLE as a table function."""
    match key:
        case Call(function="+", arguments=(start, Literal(value=int(size), type=kind))):
            spelled = f"(epoch_us(ts) % {size} + {size}) % {size}"
            bucket = f"make_timestamp(epoch_us(ts) - {spelled})"
            return kind == INTERVAL and render(start) == bucket
    return False


def numbered_rows(source: Plan, found: Sequence[tuple[Over, str]], taken: Iterable[str]) -> Plan:
    """Return the rows of a source with columns for calls of ROW_NUMBER and LEAD."""
    first = found[0][0]
    for over, _ in found:
        if over.keys != first.keys:
            message = "ROW_NUMBER and LEAD of different keys in one SELECT"
            hint = "live, put one of them in a SELECT around the other"
            raise UnsupportedError(message, span=over.span, hint=hint)
    measures = tuple(Named(name, _measure(over)) for over, name in found)
    return _each(source, _named_keys(first.keys, taken), *measures)


def ranked_in_time(source: Plan, found: Sequence[tuple[Over, str]], columns: Names) -> Plan:
    """Return some columns of a source's rows, and those for ranks in order of time, in that order.

    What the order of rows of one time depends on stays as hidden columns.
    """
    below = source.timed()
    names = [*columns, *(name for _, name in found)]
    places: list[Named] = []
    for part in below.order:
        places.append(Named(fresh("_place", [*names, *(each.name for each in places)]), At(part)))
    order, measures = tuple(each.name for each in places), tuple(places)
    source, kept = below.plan, [*columns, *order]
    for over, name in found:
        keys = _named_keys(over.keys, names)
        dense = over.aggregate.function == DENSE_RANK
        number = Named(name if dense else fresh(name, [*names, *order]), MatchNumber())
        matched = (_peers if dense else _each)(source, keys, *measures, number)
        items = tuple(Named(each, Column(each)) for each in (*kept, number.name))
        source, measures = DerivedStream(Project(matched, items), order, over.span), ()
        if not dense:
            least = NamedAggregate(name, Aggregate("min", Column(number.name)))
            source = SlidingAggregate(source, over.keys, RangeFrame(0), (least,))
        kept.append(name)
    return source


def _each(source: Plan, keys: tuple[Named, ...], *measures: Named) -> MatchRecognize:
    """Return a pattern in which every row is a match of its own."""
    condition = (Named(_ROW, ALWAYS),)
    return MatchRecognize(
        source, keys, (), Variable(_ROW), condition, measures, output="show empty"
    )


def _peers(source: Plan, keys: tuple[Named, ...], *measures: Named) -> MatchRecognize:
    """Return a pattern in which all rows of one time are a match."""
    same = Call("=", (At(Column(TS)), At(Column(TS), shift=-1)))
    return replace(
        _each(source, keys, *measures),
        pattern=Concat((Variable(_ROW), Repeat(Variable(_PEER), 0, None))),
        defines=(Named(_ROW, ALWAYS), Named(_PEER, same)),
        within_us=_PEERS_US,
    )


def _named_keys(keys: Iterable[Expression], taken: Iterable[str]) -> tuple[Named, ...]:
    """Return keys with names."""
    names, found = [*taken], list[Named]()
    for key in keys:
        name = key.name if isinstance(key, Column) else fresh("over_key", names)
        names.append(name)
        found.append(Named(name, key))
    return tuple(found)


def _measure(over: Over) -> Expression:
    call = over.aggregate
    if call.function == ROW_NUMBER:
        return MatchNumber()
    assert call.argument is not None
    assert isinstance(call.parameter, int)
    return At(call.argument, shift=call.parameter, span=over.span)
