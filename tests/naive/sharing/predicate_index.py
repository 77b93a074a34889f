"""Each condition alone on each batch."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from eventide.operators.expressions.evaluate import evaluate_predicate
from eventide.plan.expressions import Expression

Pair = tuple[int, int]


def matches(
    conditions: Mapping[int, Expression], rows: pa.RecordBatch
) -> tuple[list[Pair], set[int]]:
    """Return the pairs of events and numbers in order, and the numbers that fail."""
    pairs, failed = [], set()
    for number, condition in conditions.items():
        try:
            passes = evaluate_predicate(condition, rows).to_pylist()
        except Exception:
            failed.add(number)
            continue
        pairs += [(event, number) for event, passed in enumerate(passes) if passed]
    return sorted(pairs), failed
