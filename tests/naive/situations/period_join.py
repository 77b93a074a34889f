"""The twin of the join of periods: every left row is tried with every right row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from eventide.plan.situations.allen import relation_between
from eventide.plan.situations.nodes import PeriodJoin
from eventide.plan.situations.parts import RowPeriod

Row = Mapping[str, Any]
LATER = 1 << 50
"""Later than every end that is known."""


def join_periods(node: PeriodJoin, left: Sequence[Row], right: Sequence[Row]) -> Iterator[Row]:
    """Yield the joined rows, in no particular order."""
    nothing = dict.fromkeys(name for _, name in node.keys)
    nothing |= dict.fromkeys((node.second.start, node.second.end))
    for one in left:
        partners: Sequence[Row]
        partners = [other for other in right if belong_together(node, one, other)]
        if node.kind in ("semi", "anti"):
            partners = [nothing] if bool(partners) == (node.kind == "semi") else []
        elif node.kind == "left" and not partners:
            partners = [nothing]
        for other in partners:
            both = {**one, **other}
            yield {name: both.get(name) for name in node.columns}


def belong_together(node: PeriodJoin, one: Row, other: Row) -> bool:
    """Whether two rows are a pair."""
    for left, right in node.keys:
        if one[left] is None or other[right] is None or one[left] != other[right]:
            return False
    a, b = (futures(*each, node.open_ends) for each in ((one, node.first), (other, node.second)))
    relations = [relation_between(x, y) for x, y in product(a, b)]
    return bool(relations) and all(each & node.mask for each in relations)


def futures(row: Row, period: RowPeriod, open_ends: bool) -> list[tuple[int, int]]:
    """Return the periods that a row may come to have: none, one, or several if it goes on."""
    start, end = row[period.start], row[period.end]
    if start is None or (end is None and not open_ends):
        return []
    if end is None:
        return [(start, LATER), (start, LATER + 1)]
    return [] if end <= start else [(start, end)]
