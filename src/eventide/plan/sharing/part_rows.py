"""Streams inside a set of queries: the rows of a part that several of them have in common."""

from __future__ import annotations

from eventide.plan.nodes import Scan, scans_of
from eventide.plan.tree import Plan

PARTS_FROM = 1 << 32
"""Numbers from here on are those of parts, smaller ones those of queries."""
PART_NUMBER = "$part"
"""The constant of a query that is the number of its part."""
PART = "$part "
"""What the name of such a stream begins with; the rest is the short name of what it means."""


def is_part(scan: Scan) -> bool:
    """Whether a scan reads the rows of a part: each row is of one query for the part."""
    return scan.stream.startswith(PART)


def reads_parts(plan: Plan) -> bool:
    """Whether rows of parts are anywhere below."""
    return any(map(is_part, scans_of(plan)))


class PartNumbers:
    """The numbers of parts, which are larger than those of queries: none is given twice."""

    def __init__(self) -> None:
        self.following = PARTS_FROM

    def __iter__(self) -> PartNumbers:
        return self

    def __next__(self) -> int:
        self.following += 1
        return self.following - 1
