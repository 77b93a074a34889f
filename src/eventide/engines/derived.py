"""Plans over derived streams, answered from the inside.

The plan below each `DerivedStream` is a query of its own. Its rows, in order, are a source of a
made-up name, and the plan above reads them as it reads a stream.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from eventide.operators.order_rows import sorted_places
from eventide.plan.expressions import Column, OrderKey
from eventide.plan.nodes import DerivedStream, Scan, scans_of
from eventide.plan.standing.nodes import Merge
from eventide.plan.tree import Plan
from eventide.schema import SEQ, TS

_NAME = "derived"


def parts_of(plan: Plan) -> tuple[Plan, ...]:
    """Return the queries whose rows are those below a derived stream."""
    if isinstance(plan, Merge):
        return tuple(part for each in plan.sources for part in parts_of(each))
    return (plan,)


def numbered(parts: Sequence[pa.RecordBatch], scan: Scan) -> list[pa.RecordBatch]:
    """Return the rows of a scan, each with its place in the order of the scan as its `_seq`.

    The rows of other streams have their `_seq` already.
    """
    if not scan.order or not parts:
        return list(parts)
    names = (TS, *scan.order)
    keys = tuple(OrderKey(Column(name), nulls_first=True) for name in names)
    table = pa.Table.from_batches(parts).select([*names, SEQ])
    arrived = OrderKey(Column(SEQ))
    order = sorted_places([table.column(name) for name in (*names, SEQ)], (*keys, arrived))
    places = np.empty(table.num_rows, np.int64)
    places[order.to_numpy()] = np.arange(table.num_rows)
    found, first = [], 0
    for part in parts:
        seq = pa.array(places[first : first + part.num_rows])
        found.append(part.set_column(part.schema.names.index(SEQ), SEQ, seq))
        first += part.num_rows
    return found


@dataclass(frozen=True, slots=True)
class Opened:
    """A plan over scans alone, and the derived streams that some of them stand for, by name."""

    plan: Plan
    below: dict[str, DerivedStream]


@dataclass
class Opener:
    """Gives derived streams names: equal ones the same name, no one that of a stream."""

    taken: Collection[str]
    known: dict[DerivedStream, str] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan) -> Opener:
        """Return what opens a plan and the plans below its derived streams."""
        return cls({scan.stream.lower() for scan in scans_of(plan)})

    def open(self, plan: Plan) -> Opened:
        """Replace the highest derived streams of a plan by scans."""
        below: dict[str, DerivedStream] = {}

        def opened(node: Plan) -> Plan:
            if not isinstance(node, DerivedStream):
                return node.with_children(opened)
            name = self.name_of(node)
            below[name] = node
            return Scan(name, tuple(node.row.items()), span=node.span, order=node.order)

        return Opened(opened(plan), below)

    def name_of(self, stream: DerivedStream) -> str:
        """Return the name of a derived stream."""
        if stream not in self.known:
            number = len(self.known)
            while f"{_NAME}_{number}" in self.taken:
                number += 1
            self.taken = {*self.taken, f"{_NAME}_{number}"}
            self.known[stream] = f"{_NAME}_{number}"
        return self.known[stream]
