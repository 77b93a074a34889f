"""How a matcher ended: the error that it came upon at a start row, if it did."""

from __future__ import annotations

from eventide.errors import EvaluationError
from eventide.kernels.patterns.search import MOST_TAKEN
from eventide.kernels.patterns.tables import (
    MOST_STEPS,
    NO_SKIP_TARGET,
    OK,
    OUT_OF_STEPS,
    PAUSED,
    SKIP_TO_START,
    TOO_MANY_MATCHES,
)
from eventide.operators.patterns.masks import RowsByKey
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.schema import TS


def check_outcome(node: MatchRecognize, status: int, where: int, by_key: RowsByKey) -> None:
    """Raise the error that a matcher found at a start row."""
    if status in (OK, PAUSED):
        return
    skip = node.skip
    at = by_key.column(TS)[where].as_py()
    if status == NO_SKIP_TARGET:
        message = f"the match at {at} has no row of {skip.variable} to skip to"
        hint = "skip PAST LAST ROW or TO NEXT ROW, which every match can"
        raise EvaluationError(message, span=skip.span, hint=hint)
    if status == SKIP_TO_START:
        message = f"the match at {at} begins with {skip.variable}: to skip there finds it again"
        hint = "skip TO NEXT ROW, or to a variable that comes later"
        raise EvaluationError(message, span=skip.span, hint=hint)
    if status == TOO_MANY_MATCHES:
        message = f"the matches up to those from the row at {at} have more than {MOST_TAKEN:,} rows"
        hint = "skip_till_any finds every combination: add WITHIN, or narrow the conditions"
        raise EvaluationError(message, span=node.span, hint=hint)
    assert status == OUT_OF_STEPS
    message = f"the pattern takes more than {MOST_STEPS:,} steps from the row at {at}"
    hint = (
        "its conditions tell too many ways of matching the same rows apart: "
        "add WITHIN, or make the conditions of its parts exclude each other"
    )
    raise EvaluationError(message, span=node.span, hint=hint)
