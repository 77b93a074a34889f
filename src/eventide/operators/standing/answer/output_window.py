"""Windows over the births of results: the answer is the last births, even of results now gone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.kernels.compiled import Int64s
from eventide.operators.changes import NEVER, Changes
from eventide.operators.standing.row_log import RowLog


def lasting(births: Changes, exp: Int64s) -> Changes:
    """Return births of rows that last until `exp`, no matter when their parts expire."""
    return Changes(births.rows, births.at, exp, births.sign, births.id)


@dataclass(frozen=True, slots=True)
class LastBirths:
    """The last `count` births. Among those of one instant, the later in order stay."""

    count: int

    def living(self, log: RowLog) -> Int64s:
        """Return the numbers of the rows in the window."""
        return np.arange(max(0, log.end - self.count), log.end)

    def step(self, log: RowLog, births: Changes) -> tuple[RowLog, Changes]:
        """Take births; return also the rows that come into the window and leave it."""
        end = log.end
        log = log.append(births.rows)
        numbers = np.arange(end, log.end)
        leaving = np.arange(max(0, end - self.count), max(0, log.end - self.count))
        left_at = births.at[leaving + self.count - end]
        # A row that leaves at the instant at which it came is never seen.
        came_at = np.full(len(leaving), -NEVER, np.int64)
        came_at[leaving >= end] = births.at[leaving[leaving >= end] - end]
        unseen = leaving[came_at == left_at]
        seen = ~np.isin(numbers, unseen)
        leaving, left_at = leaving[came_at < left_at], left_at[came_at < left_at]
        rows = pa.concat_batches([births.rows.filter(to_arrow(seen)), log.take(leaving)])
        at = np.concatenate([births.at[seen], left_at])
        ids = np.concatenate([numbers[seen], leaving])
        sign = np.ones(len(ids), np.int8)
        sign[np.count_nonzero(seen) :] = -1
        changes = Changes(rows, at, np.full(len(ids), NEVER, np.int64), sign, ids)
        log = log.drop_before(max(0, log.end - self.count))
        return log, changes.take(np.lexsort((sign, at)))
