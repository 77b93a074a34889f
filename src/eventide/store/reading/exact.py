"""Exact sums of floats over some of the events, for those that the index cannot prove.

periods     [0]  [1][2]      [3]         of each, the events are summed without rounding
scans       ···········      ···         periods that lie close together are read together
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from eventide.accumulators.contract import Groups
from eventide.accumulators.sums import FLOAT_SUM
from eventide.instants import TimeRange
from eventide.kernels.compiled import Bools, Int64s, frozen
from eventide.kernels.ordering import ranges
from eventide.schema import TS
from eventide.store.order import int64_view
from eventide.store.segments.segment_writer import LEAF_ROWS
from eventide.store.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class SummedPeriods:
    """The periods [starts[i], ends[i]); each is a part of the sum `owners[i]`. They may overlap."""

    starts: Int64s
    ends: Int64s
    owners: Int64s

    def of(self, wanted: Bools) -> SummedPeriods:
        """Return the periods of some of the owners."""
        kept = wanted[self.owners]
        return SummedPeriods(self.starts[kept], self.ends[kept], self.owners[kept])

    @property
    def in_order(self) -> SummedPeriods:
        """The periods that are not empty, in order of their starts."""
        order = np.argsort(self.starts, kind="stable")
        order = order[self.starts[order] < self.ends[order]]
        return SummedPeriods(self.starts[order], self.ends[order], self.owners[order])


@dataclass(frozen=True, slots=True)
class SummedRuns:
    """The runs [low[i], high[i]) of values, each a part of the sum `owners[i]`."""

    values: pa.Array
    low: Int64s
    high: Int64s
    owners: Int64s


def exact_sums(
    snapshot: Snapshot, attribute: str, periods: SummedPeriods, count: int
) -> list[pa.Array]:
    """Return the sums of `count` owners of periods, as partials of exact sums."""
    return summed_runs(_runs_of(snapshot, attribute, periods.in_order), count)


def _runs_of(snapshot: Snapshot, attribute: str, periods: SummedPeriods) -> Iterator[SummedRuns]:
    """Yield the events of periods."""
    starts, reached = periods.starts, np.maximum.accumulate(periods.ends)
    # A scan reads whole leaves, so a gap that is no longer than one is read as well.
    times = snapshot.time_range
    leaf_us = (times.end_us - times.start_us) * LEAF_ROWS // max(1, snapshot.row_count)
    apart = np.flatnonzero(starts[1:] > reached[:-1] + leaf_us) + 1
    for first, last in pairwise([0, *apart.tolist(), len(starts)]):
        if first == last:
            continue
        together = TimeRange(int(starts[first]), int(reached[last - 1]))
        for rows in snapshot.scan([TS, attribute], together):
            ts = int64_view(rows.column(TS))
            here = slice(
                int(np.searchsorted(reached, ts[0], "right")),
                int(np.searchsorted(starts, ts[-1], "right")),
            )
            low = np.searchsorted(ts, starts[here])
            high = np.searchsorted(ts, periods.ends[here])
            yield SummedRuns(rows.column(attribute), low, high, periods.owners[here])


def summed_runs(parts: Iterable[SummedRuns], count: int) -> list[pa.Array]:
    """Return the sum of each of `count` owners of runs, as partials of exact sums."""
    owners: list[Int64s] = [np.empty(0, np.int64)]
    found = [[pa.nulls(0, kind) for kind in FLOAT_SUM.types]]
    for part in parts:
        lengths = np.maximum(part.high - part.low, 0)
        values = part.values.take(pa.array(ranges(part.low, lengths)))
        of_row = np.repeat(np.arange(len(lengths)), lengths)
        runs = Groups(frozen(of_row), len(lengths))
        found.append(FLOAT_SUM.by_group(FLOAT_SUM.lift(values), runs))
        owners.append(part.owners)
    together = [pa.concat_arrays(columns) for columns in zip(*found, strict=True)]
    return FLOAT_SUM.by_group(together, Groups(frozen(np.concatenate(owners)), count))
