"""The obvious twin of a merge by time: put everything in one list and sort it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Row = dict[str, Any]


def merged(streams: Mapping[str, Sequence[Row]]) -> list[tuple[str, Row]]:
    """All rows with the names of their streams, by time, then stream, then arrival."""
    order = list(streams)
    rows = [(name, row) for name, rows in streams.items() for row in rows]
    return sorted(rows, key=lambda each: (each[1]["ts"], order.index(each[0]), each[1]["_seq"]))


def due(rows: Sequence[tuple[str, Row]], since_us: int, until_us: int) -> list[tuple[str, Row]]:
    """Those of a period."""
    return [each for each in rows if since_us <= each[1]["ts"] < until_us]
