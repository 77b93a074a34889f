"""A plan as text: one line a node, its sources indented below it."""

from __future__ import annotations

from collections.abc import Iterator

from eventide.plan.tree import Plan
from eventide.visible import visible


def explain(plan: Plan) -> str:
    """Return the plan as indented text.

    >>> from eventide.plan.expressions import Column
    >>> from eventide.plan.nodes import Filter, Scan
    >>> from eventide.schema import FLOAT64
    >>> print(explain(Filter(Scan("cars", (("speed", FLOAT64),)), Column("fast"))))
    Filter fast
      Scan cars (speed)
    """
    return "\n".join(map(visible, _lines(plan, 0)))


def _lines(plan: Plan, depth: int) -> Iterator[str]:
    yield "  " * depth + plan.line
    for detail in plan.details:
        yield "  " * (depth + 2) + detail
    for label, child in plan.labelled:
        if label:
            yield "  " * (depth + 1) + f"{label}:"
        yield from _lines(child, depth + (2 if label else 1))
