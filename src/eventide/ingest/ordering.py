"""Put events in order of time as they arrive, and find the late ones.

    arrives     a@10  c@30  b@20 | d@27  e@40 | f@24      lateness 5
    watermark                 25 |         35 |   35      the newest time less the lateness
    leaves                   a b |        d c |           events before the watermark
    late                         |            |    f      events behind the earlier watermark

The watermark moves between batches, never inside one: events that arrive together do not make each
other late, in any order. Events at the watermark itself wait, because equal ones may follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.batch import END_OF_TIME_US, START_OF_TIME_US, Batch
from eventide.errors import PlanError
from eventide.kernels.ordering import sorting_order
from eventide.schema import SEQ, TS


@dataclass(frozen=True, slots=True)
class OrderingState:
    """Events that wait for the watermark, in order, and the watermark."""

    waiting: pa.RecordBatch
    watermark_us: int = START_OF_TIME_US


@dataclass(frozen=True, slots=True)
class Ordering:
    """Holds events back for `lateness_us`; events later than that are late."""

    schema: pa.Schema
    lateness_us: int = 0

    def __post_init__(self) -> None:
        if self.lateness_us < 0:
            message = f"lateness must not be negative, got {self.lateness_us} us"
            raise PlanError(message)

    def initial_state(self) -> OrderingState:
        """Return the state before the first event."""
        return OrderingState(pa.RecordBatch.from_pylist([], schema=self.schema))

    def step(
        self, state: OrderingState, arrived: pa.RecordBatch, newest_us: int | None = None
    ) -> tuple[OrderingState, Batch, pa.RecordBatch]:
        """Take arrivals; return (state, events that leave in order, late events).

        `newest_us` is the newest time seen anywhere, if these arrivals are only a part of what
        arrived together.
        """
        ts = times(arrived)
        late, accepted = arrived.slice(arrived.num_rows), arrived
        if len(ts) and ts.min() < state.watermark_us:
            on_time = ts >= state.watermark_us
            late, accepted = arrived.filter(pa.array(~on_time)), arrived.filter(pa.array(on_time))
        if newest_us is None and len(ts):
            newest_us = int(ts.max())
        watermark_us = state.watermark_us
        if newest_us is not None:
            watermark_us = max(watermark_us, newest_us - self.lateness_us)
        state, batch = self.release(state, accepted, watermark_us)
        return state, batch, late

    def finish(self, state: OrderingState) -> tuple[OrderingState, Batch]:
        """Return all events that wait: no event will follow."""
        nothing = pa.RecordBatch.from_pylist([], schema=self.schema)
        return self.release(state, nothing, END_OF_TIME_US)

    def release(
        self, state: OrderingState, accepted: pa.RecordBatch, watermark_us: int
    ) -> tuple[OrderingState, Batch]:
        """Merge the accepted events, and release those before the watermark."""
        waiting = in_order(pa.concat_batches([state.waiting, accepted]))
        ready = waiting.num_rows
        if watermark_us != END_OF_TIME_US:
            ready = int(np.searchsorted(times(waiting), watermark_us))
        state = OrderingState(waiting.slice(ready), watermark_us)
        return state, Batch(waiting.slice(0, ready), watermark_us)


def in_order(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows in order of (ts, _seq)."""
    order = sorting_order(times(rows), rows.column(SEQ).to_numpy())
    return rows if order is None else rows.take(pa.array(order))


def in_order_by_block(parts: Sequence[pa.RecordBatch], most_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all parts in order of (ts, _seq), in blocks of about `most_bytes`.

    The parts together may have more text than one column can hold.
    """
    runs = [in_order(part) for part in parts if part.num_rows]
    if sum(run.nbytes for run in runs) <= most_bytes:
        if runs:
            yield runs[0] if len(runs) == 1 else in_order(pa.concat_batches(runs))
        return
    ts = np.concatenate([times(run) for run in runs])
    seq = np.concatenate([run.column(SEQ).to_numpy() for run in runs])
    order = np.lexsort((seq, ts))
    # Each run is in order, so the rows of a block lie side by side in it.
    block = np.empty(len(order), np.int64)
    sizes = np.concatenate([row_bytes(run) for run in runs])
    block[order] = np.cumsum(sizes[order]) // most_bytes
    starts = np.cumsum([0, *(run.num_rows for run in runs)])
    numbers = np.unique(block)
    bounds = [
        np.searchsorted(block[first:last], [*numbers, numbers[-1] + 1])
        for first, last in pairwise(starts)
    ]
    for place in range(len(numbers)):
        yield in_order(
            pa.concat_batches(
                [
                    run.slice(bound[place], bound[place + 1] - bound[place])
                    for run, bound in zip(runs, bounds, strict=True)
                ]
            )
        )


def row_bytes(rows: pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return about how many bytes each row takes."""
    size = np.full(rows.num_rows, 8 * rows.num_columns, np.int64)
    for column in rows.columns:
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            size += pc.binary_length(column).fill_null(0).to_numpy(zero_copy_only=False)
    return size


def times(rows: pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the times of rows in microseconds."""
    times: np.ndarray[tuple[int], np.dtype[np.int64]] = (
        rows.column(TS).view(pa.int64()).to_numpy(zero_copy_only=False)
    )
    return times
