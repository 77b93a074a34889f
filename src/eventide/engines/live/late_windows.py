"""Late events by window: an event behind the clock is taken while a window of its own is open.

For that, the way from each scan to its windows must have nothing in between that relies on the
order of events: only filters and projections. What is above the windows gets their rows when they
close, and notices nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pyarrow as pa

from eventide.engines.live.feeds import within
from eventide.errors import PlanError, UnsupportedError
from eventide.ingest.ordering import times
from eventide.operators.filter_project import FilterRows, ProjectRows
from eventide.operators.order_events import OrderEvents
from eventide.operators.order_rows import OrderRows
from eventide.operators.patterns.match import MatchRows
from eventide.operators.situations.derive import DeriveSituations
from eventide.operators.situations.match import MatchSituations
from eventide.operators.tree import OperatorTree, States
from eventide.operators.union_rows import UnionRows
from eventide.operators.windows.by_count import AggregateCountWindows
from eventide.operators.windows.frames import AggregateFrames
from eventide.operators.windows.late import Bools, TakesLate
from eventide.schema import SEQ

Late = Literal["watermark", "window"]
"""Which events are late: those behind the watermark, or of them those whose windows are closed."""

KINDS: dict[type, str] = {
    AggregateCountWindows: "a window by count: they would move the events behind them",
    AggregateFrames: "the frames of OVER: rows behind them have been reported",
    MatchRows: "a row pattern: it goes from row to row",
    OrderRows: "a row pattern: it goes from row to row",
    DeriveSituations: "situations: they go from event to event",
    MatchSituations: "a temporal pattern: it goes from event to event",
    UnionRows: "UNION ALL: the rows of all streams come in one order",
    OrderEvents: "a query over the rows of another: these come in order",
}
NO_WINDOW = "a query without a window: rows behind them have been reported"
IN_BRACKETS = "windows in brackets: their answer was right at every instant"
HINT = (
    "late='window' is for GROUP BY TUMBLE, HOP or SESSION of ts over a stream; "
    'lateness="10 s" waits for late events of every query'
)


@dataclass(frozen=True, slots=True)
class LateWay:
    """The way from a scan to its windows, by the numbers of operators."""

    between: tuple[int, ...]
    """Filters and projections."""
    windows: int


def checked_late(late: str) -> Late:
    """Return which events are late, if that is one of the choices."""
    for known in get_args(Late):
        if late == known:
            found: Late = known
            return found
    message = f"late={late!r} is none of 'watermark' and 'window'"
    raise PlanError(message, hint=HINT)


def late_ways(tree: OperatorTree) -> tuple[LateWay, ...]:
    """Return the way from each leaf to its windows; an error if it does not lead to such."""
    return tuple(late_way(tree, leaf) for leaf in range(len(tree.leaves)))


def late_way(tree: OperatorTree, leaf: int) -> LateWay:
    """Return the way from a leaf to its windows."""
    between: list[int] = []
    edge = leaf
    while True:
        above = [n for n, placed in enumerate(tree.placed) if edge in placed.inputs]
        if not above:
            raise refused(NO_WINDOW)
        number = above[0]
        operator = tree.operators[number]
        if isinstance(operator, TakesLate):
            return LateWay(tuple(between), number)
        if not isinstance(operator, FilterRows | ProjectRows):
            raise refused(kind_of(tree, number))
        between.append(number)
        edge = len(tree.leaves) + number


def kind_of(tree: OperatorTree, number: int) -> str:
    """Return what late events cannot join, and why."""
    if tree.reporter is not None:
        return IN_BRACKETS
    return KINDS.get(type(tree.operators[number]), NO_WINDOW)


def refused(kind: str) -> UnsupportedError:
    """Return the error for a query that late events cannot join."""
    message = f"late events cannot join {kind}"
    return UnsupportedError(message, hint=HINT)


def split_late(
    tree: OperatorTree,
    ways: Sequence[tuple[int, LateWay]],
    states: States,
    late: pa.RecordBatch,
    clock_us: int,
) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Return the late events that a window takes, in order, and the others as they came.

    `ways` are those of all leaves over the stream of the events. An event that a filter leaves out
    is late when one like it would be that passes.
    """
    order = np.lexsort((late.column(SEQ).to_numpy(), times(late)))
    in_order = late.take(pa.array(order))
    taken = np.zeros(late.num_rows, np.bool_)
    for leaf, way in ways:
        taken |= takes(tree, leaf, way, states, in_order, clock_us)
    left_out = np.empty(late.num_rows, np.bool_)
    left_out[order] = ~taken
    return in_order.filter(pa.array(taken)), late.filter(pa.array(left_out))


def takes(
    tree: OperatorTree,
    leaf: int,
    way: LateWay,
    states: States,
    late: pa.RecordBatch,
    clock_us: int,
) -> Bools:
    """Return which late events, in order, the windows over a leaf take."""
    windows = tree.operators[way.windows]
    assert isinstance(windows, TakesLate)
    taken = windows.is_open(times(late), clock_us)
    scan = tree.leaves[leaf]
    first = int(np.searchsorted(times(late), scan.scan.time_range.start_us))
    rows = within(late, scan.scan.time_range).select(scan.schema.names)
    places = first + np.arange(rows.num_rows)
    for number in way.between:
        operator = tree.operators[number]
        if isinstance(operator, FilterRows):
            passing = operator.passing(rows)
            places = places[passing.to_numpy(zero_copy_only=False)]
        _, rows = operator.step(None, (rows,), clock_us)
    if rows.num_rows:
        taken[places] |= windows.joins(states[way.windows], rows, clock_us)
    return taken
