"""Rows written in a query itself: VALUES, where an operator reads them as events."""

from __future__ import annotations

import pyarrow as pa

from eventide.errors import UnsupportedError
from eventide.plan.nodes import scans_of
from eventide.plan.tree import Plan


def written_tables(plan: Plan) -> dict[str, pa.Table]:
    """Return the rows of each scan over VALUES, by the name that the plan gives them."""
    tables = {}
    for scan in scans_of(plan):
        if scan.written is not None:
            columns = zip(*scan.written.rows, strict=True)
            tables[scan.stream] = pa.table(
                {
                    name: pa.array(values, kind.arrow)
                    for (name, kind), values in zip(scan.written.columns, columns, strict=True)
                }
            )
    return tables


def refuse_written(plan: Plan) -> None:
    """Refuse a live query over VALUES: no further events can come."""
    for scan in scans_of(plan):
        if scan.written is not None:
            message = "VALUES are no stream that goes on, so there is nothing to follow live"
            hint = "ask it over history, or append the rows to a stream"
            raise UnsupportedError(message, span=scan.span, hint=hint)
