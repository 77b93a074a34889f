"""ROW_NUMBER and its like before OVER.

In order of time, ROW_NUMBER and LEAD are a row pattern in which every row is a match of its own. So
a row is numbered when it comes, and has its LEAD when that row has come:

    ROW_NUMBER() OVER (PARTITION BY car ORDER BY ts)    MATCH_NUMBER()
    LEAD(speed, 2) OVER (PARTITION BY car ORDER BY ts)  NEXT(speed, 2)

In another order, rows have ranks within a window, one that PARTITION BY names:

    RANK() OVER (PARTITION BY window_start, window_end ORDER BY total DESC)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from eventide.errors import UnsupportedError
from eventide.lang.sql.names.columns import fresh
from eventide.plan.expressions import (
    ALWAYS,
    At,
    Call,
    Column,
    Expression,
    Literal,
    MatchNumber,
    Named,
    OrderKey,
    Over,
)
from eventide.plan.nodes import DerivedStream, Filter, Project
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.patterns.tree import Variable
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
LIVE_HINT = (
    "live, number rows as they come, ROW_NUMBER() OVER (PARTITION BY car ORDER BY ts), or rank "
    "those of complete windows, PARTITION BY window_start, window_end, or keep the first rows of a "
    "window: SELECT … FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY car ORDER BY speed DESC) AS "
    "place FROM cars [RANGE 1 HOUR]) WHERE place <= 10"
)
_ROW = "A"


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
    names, keys = [*taken], list[Named]()
    for over, _ in found:
        if over.keys != first.keys:
            message = "ROW_NUMBER and LEAD of different keys in one SELECT"
            hint = "live, put one of them in a SELECT around the other"
            raise UnsupportedError(message, span=over.span, hint=hint)
    for key in first.keys:
        name = key.name if isinstance(key, Column) else fresh("over_key", names)
        names.append(name)
        keys.append(Named(name, key))
    measures = tuple(Named(name, _measure(over)) for over, name in found)
    condition = (Named(_ROW, ALWAYS),)
    return MatchRecognize(
        source, tuple(keys), (), Variable(_ROW), condition, measures, output="show empty"
    )


def _measure(over: Over) -> Expression:
    call = over.aggregate
    if call.function == ROW_NUMBER:
        return MatchNumber()
    assert call.argument is not None
    assert isinstance(call.parameter, int)
    return At(call.argument, shift=call.parameter, span=over.span)
