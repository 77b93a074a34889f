"""INTERVAL '10' SECOND → microseconds."""

from __future__ import annotations

from sqlglot import exp

from eventide.errors import BindError
from eventide.lang.sql.names.scope import refuse
from eventide.lang.sql.spans import span_of, written
from eventide.plan.times import UNIT_US, parse_duration, scaled_duration

_VARIABLE = ("month", "year", "quarter", "decade", "century", "millennium", "mon")
_LONGEST_US = 10_000 * 366 * UNIT_US["day"]
"""Longer than the period that a stream can hold; sums with a time stay inside 64 bits."""
_UNITS_HINT = "use a unit that has one length: days, hours, minutes, seconds, milliseconds"


def interval_us(node: exp.Interval) -> int:
    """Return the length of a constant interval."""
    amount, unit = node.this, node.args.get("unit")
    if not isinstance(amount, exp.Literal):
        what = f"{written(node)} is not a constant interval"
        refuse(what, node, "write it as INTERVAL '10' SECOND")
    text = str(amount.this)
    if isinstance(unit, exp.IntervalSpan):
        message = f"an interval of {written(unit)} has two units"
        hint = "write each amount with its unit: INTERVAL '5 minutes 30 seconds'"
        raise BindError(message, span=span_of(node), hint=hint)
    words = f"{text} {unit.name if unit is not None else ''}".lower().split()
    if any(word.removesuffix("s").startswith(_VARIABLE) for word in words):
        what = "months and years vary in length"
        refuse(what, node, _UNITS_HINT)
    us = parse_duration(text) if unit is None else scaled_duration(text, unit.name)
    if us is None:
        message = f"{text!r} is not an interval"
        hint = "write it as INTERVAL '10' SECOND"
        if unit is None and scaled_duration(text, "second") is not None:
            hint = f"write '{text.strip()} seconds'"
        raise BindError(message, span=span_of(node), hint=hint)
    if abs(us) > _LONGEST_US:
        message = "an interval of more than 10,000 years"
        raise BindError(message, span=span_of(node), hint="no two events are that far apart")
    return us
