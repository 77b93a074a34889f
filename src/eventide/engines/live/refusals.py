"""Why a plan cannot run live."""

from __future__ import annotations

from collections.abc import Sequence

from eventide.errors import EventideError, PlanError, Span, UnsupportedError
from eventide.plan.nodes import EndRows, Relational, scans_of
from eventide.plan.situations.nodes import PeriodJoin
from eventide.plan.standing.update_patterns import windows_of
from eventide.plan.tree import Plan
from eventide.plan.windows.nodes import CalendarWindow, WindowAggregate


def refusal(plan: Plan) -> EventideError:
    """Return why a plan has no operators."""
    match plan:
        case Relational(inputs=inputs) if any(isinstance(each, PeriodJoin) for _, each in inputs):
            return _joins_no_stream()
        case PeriodJoin():
            return _joins_no_stream()
        case Relational(inputs=inputs):
            if plan.reason is not None and len(inputs) == 1:
                return _not_live(plan.reason)
            return _needs_an_end([each for _, each in inputs])
        case EndRows() | WindowAggregate(window=CalendarWindow()):
            message = "this query needs all events, and a stream has no end"
            hint = "LIMIT, and GROUP BY without a window need an end; ask it over history"
            return UnsupportedError(message, hint=hint)
    message = f"{type(plan).__name__} is part of a standing query, and stands inside it"
    return PlanError(message)


def _not_live(reason: UnsupportedError) -> UnsupportedError:
    """Return the error for a query that could run live but for one expression."""
    message = f"{reason.message}, so this query does not run live"
    hint = "docs/sql.md lists the functions that are ours; ask it over history"
    if reason.hint is not None and reason.hint.startswith("live, "):
        hint = f"{reason.hint.removeprefix('live, ')}; or ask it over history"
    error = UnsupportedError(message, span=reason.span, hint=hint)
    return error if reason.text is None else error.located_in(reason.text)


def _needs_an_end(inputs: Sequence[Plan]) -> UnsupportedError:
    message = "this query needs ordinary SQL around Eventide's own operators"
    hint = "ORDER BY, LIMIT, DISTINCT, joins and GROUP BY without a window need an end;"
    endless = [each for each in inputs if not windows_of(each)]
    if endless and len(inputs) > 1:
        streams = dict.fromkeys(scan.stream for each in endless for scan in scans_of(each))
        windows = " and ".join(f"{stream} [RANGE 1 MINUTE]" for stream in streams)
        hint = f"put a window behind each stream: {windows}; or"
    elif not endless:
        hint = "leave out the SQL around the standing query (ORDER BY with LIMIT may stay), or"
    return UnsupportedError(message, hint=f"{hint} ask it over history")


def _joins_no_stream() -> UnsupportedError:
    message = "a join of periods needs all of them, and a stream has no end"
    hint = "write it as FROM stream TPSTREAM (… PATTERN fast overlaps brake WITHIN …)"
    return UnsupportedError(message, hint=f"{hint}, or ask it over history")


def out_of_time(span: Span | None) -> UnsupportedError:
    """Return the error for rows whose order is not that in which they are certain."""
    message = "a live query goes with time: its rows have to be in order of the events' ts"
    hint = "ask it over history, or order by ts (or window_end AS ts) as it is"
    return UnsupportedError(message, span=span, hint=hint)
