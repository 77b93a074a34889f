"""The operator of each kind of window over a stream."""

from __future__ import annotations

from typing import assert_never

from eventide.operators.standing.windows.keyed import LastRows, SessionRows
from eventide.operators.standing.windows.time import TimeWindowRows
from eventide.plan.standing.execution import Execution
from eventide.plan.standing.windows import (
    PeriodWindow,
    RangeWindow,
    RowsWindow,
    SessionWindow,
    SinceWindow,
    Unbounded,
    Windowed,
)

WindowOperator = TimeWindowRows | LastRows | SessionRows
"""Take the events of a stream, and make tuples of them that come and go."""


def window_operator(
    node: Windowed, number: int, slide_us: int | None, execution: Execution, answer_exp: bool
) -> WindowOperator:
    """Return the operator of a window, the leaf `number` of a query."""
    match node.window:
        case RowsWindow():
            return LastRows(node, number, slide_us, execution, answer_exp)
        case SessionWindow():
            return SessionRows(node, number, slide_us, execution, answer_exp)
        case RangeWindow() | PeriodWindow() | SinceWindow() | Unbounded():
            return TimeWindowRows(node, number, slide_us, execution, answer_exp)
    assert_never(node.window)
