"""Windows that take late events as long as they are open.

    size 10, slide 5             watermark 12
    [0 ──────── 10)              closed and reported
         [5 ──────── 15)         open: takes an event at 7
              [10 ─────── 20)    open

Late events lie between events of earlier steps, so partial results have to be merged in order of
time again. If an aggregate depends on the order of events, as FIRST and ARRAY_AGG do, the partials
of single events are kept until their windows close; otherwise one for each pane, or session, and
key.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide.kernels.compiled import Int64s
from eventide.plan.aggregates import AGGREGATES
from eventide.plan.expressions import NamedAggregate

Bools = npt.NDArray[np.bool_]


@runtime_checkable
class TakesLate(Protocol):
    """An operator that takes events behind the watermark while a window of theirs is open."""

    def is_open(self, ts: Int64s, watermark_us: int) -> Bools:
        """Return whether events of these times, each alone, belong to a window that is open."""
        ...

    def joins(self, state: Any, rows: pa.RecordBatch, watermark_us: int) -> Bools:  # noqa: ANN401
        """Return whether events belong to a window that is open, among all others."""
        ...


def needs_order(aggregates: Iterable[NamedAggregate]) -> bool:
    """Whether an aggregate depends on the order of events."""
    return any(AGGREGATES[item.aggregate.function].needs_order for item in aggregates)
