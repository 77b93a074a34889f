"""Events and chains that wait for others to follow them, by key."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import int64s
from eventide.kernels.compiled import Int64s, frozen
from eventide.operators.columns import encode_keys
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.held_rows import HeldRows
from eventide.operators.key_layer import NEVER
from eventide.plan.algebra.nodes import Follows
from eventide.schema import START_TS

LONGEST_US = 2**61
"""Longer than any two events are apart, and no sum with a time overflows."""


@dataclass(frozen=True)
class WaitingRows(HeldRows):
    """Rows have the columns of the left source and what chains carry; `ts` is the end so far."""

    node: Follows

    @classmethod
    def of(cls, rows: pa.RecordBatch, node: Follows) -> Self:
        """Number the keys of rows."""
        columns = [evaluate(key, rows) for key in node.left_keys]
        codes, keys, count = encode_keys(columns, rows.num_rows)
        return cls(rows, codes, tuple(keys), count, node)

    @cached_property
    def expires(self) -> Int64s:
        """The last instant at which something may follow each row; empty if there is none."""
        node = self.node
        if not node.is_bounded:
            return frozen(np.empty(0, np.int64))
        expires = int64s(self.rows.column(START_TS)) + min(node.within_us or 0, LONGEST_US)
        if node.longest is not None:
            own = int64s(evaluate(node.longest, self.rows))
            expires += np.clip(own, -LONGEST_US, LONGEST_US)
        return frozen(expires)

    @cached_property
    def due(self) -> Int64s:
        """When the last row of each key expires."""
        due = np.full(self.count, NEVER, np.int64)
        if self.node.is_bounded and self.rows.num_rows:
            by_key = self.by_key
            ordered = self.expires[by_key.order]
            has_rows = by_key.offsets[1:] > by_key.offsets[:-1]
            due[has_rows] = np.maximum.reduceat(ordered, by_key.offsets[:-1][has_rows])
        return due
