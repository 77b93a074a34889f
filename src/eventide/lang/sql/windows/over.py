"""OVER (…): find the window that a name stands for, and the frame that it describes."""

from __future__ import annotations

from sqlglot import exp

from eventide.errors import BindError
from eventide.lang.sql.intervals import interval_us
from eventide.lang.sql.names.scope import Scope, refuse
from eventide.lang.sql.spans import span_of
from eventide.plan.bind import suggestion
from eventide.plan.expressions import Frame, RangeFrame, RowsFrame

_ALL_ROWS = 2**62
"""More rows than a stream can hold."""
_FRAME_HINT = (
    "write RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW, "
    "or ROWS BETWEEN 10 PRECEDING AND CURRENT ROW"
)


def window_of(node: exp.Window, scope: Scope, within: frozenset[str] = frozenset()) -> exp.Window:
    """Return a window with the parts that it takes from the named window it refers to.

    `within` are the windows whose definitions refer to this one; it may not refer to them.
    """
    name = node.args.get("alias")
    if name is None:
        return node
    folded = name.name.lower()
    base = None if folded in within else scope.windows.get(folded)
    if base is None:
        message = f"no window {name.name!r}"
        others = [each for each in scope.windows if each not in within]
        raise BindError(message, span=span_of(name), hint=suggestion(folded, others, "window"))
    merged = window_of(base, scope, within | {folded}).copy()
    for key in ("partition_by", "order", "spec"):
        if node.args.get(key):
            merged.set(key, node.args[key])
    return merged


def order_columns(window: exp.Window) -> list[exp.Column]:
    """Return the columns a window is ordered by, empty if it is not ordered by plain columns."""
    order = window.args.get("order")
    items = order.expressions if order is not None else []
    plain = all(isinstance(item.this, exp.Column) and not item.args.get("desc") for item in items)
    return [item.this for item in items] if plain else []


def frame_of(window: exp.Window) -> Frame:
    """Return the frame of a window, if it ends at the current row."""
    spec = window.args.get("spec")
    if spec is None:
        refuse("an OVER without a frame has no bound in time", window, _FRAME_HINT)
    start, end = spec.args.get("start"), spec.args.get("end")
    ends_here = end is None or str(end).upper() == "CURRENT ROW"
    starts_before = spec.args.get("start_side") == "PRECEDING" or start == "CURRENT ROW"
    kind = str(spec.args.get("kind")).upper()
    if ends_here and starts_before and not spec.args.get("exclude"):
        here = start == "CURRENT ROW"
        if kind == "ROWS" and (here or (isinstance(start, exp.Literal) and start.is_int)):
            return RowsFrame(0 if here else min(int(start.name), _ALL_ROWS))
        if kind == "RANGE" and (here or isinstance(start, exp.Interval)):
            return RangeFrame(0 if here else _preceding(start))
    return refuse("this frame is beyond Eventide's own operators", window, _FRAME_HINT)


def _preceding(start: exp.Interval) -> int:
    us = interval_us(start)
    if us < 0:
        message = "a frame cannot start after its row"
        raise BindError(message, span=span_of(start), hint="use a positive interval")
    return us
