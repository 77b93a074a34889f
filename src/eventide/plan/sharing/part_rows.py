"""Streams inside a set of queries: the rows of a part that several of them have in common."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

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


def part_numbers() -> Iterator[int]:
    """Yield the numbers of parts, which are larger than those of queries."""
    return count(PARTS_FROM)
