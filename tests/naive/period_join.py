"""The twin of the join of periods: every left row is tried with every right row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eventide.plan.allen import relation_between
from eventide.plan.nodes import PeriodJoin
from eventide.plan.situations import Period

Row = Mapping[str, Any]


def join_periods(node: PeriodJoin, left: Sequence[Row], right: Sequence[Row]) -> Iterator[Row]:
    """Yield the joined rows, in no particular order."""
    nothing = dict.fromkeys(name for _, name in node.keys)
    nothing |= dict.fromkeys((node.second.start, node.second.end))
    for one in left:
        partners = [other for other in right if belong_together(node, one, other)]
        if node.outer and not partners:
            partners = [nothing]
        for other in partners:
            both = {**one, **other}
            yield {name: both.get(name) for name in node.columns}


def belong_together(node: PeriodJoin, one: Row, other: Row) -> bool:
    """Whether two rows are a pair."""
    for left, right in node.keys:
        if one[left] is None or other[right] is None or one[left] != other[right]:
            return False
    a, b = period_of(one, node.first), period_of(other, node.second)
    return a is not None and b is not None and bool(relation_between(a, b) & node.mask)


def period_of(row: Row, period: Period) -> tuple[int, int] | None:
    """Return the period of a row, or None if it has none."""
    start, end = row[period.start], row[period.end]
    return None if start is None or end is None or end <= start else (start, end)
