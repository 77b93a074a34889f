"""The accumulator of a bound aggregate."""

from __future__ import annotations

from eventide.accumulators import Accumulator, accumulator_for
from eventide.plan.expressions import Aggregate
from eventide.plan.render import render


def accumulator_of(aggregate: Aggregate) -> Accumulator:
    """Return the accumulator of a bound aggregate, with errors that point at it."""
    argument = None if aggregate.argument is None else aggregate.argument.type
    return accumulator_for(aggregate.function, argument, render(aggregate), aggregate.span)
