"""Events as blocks of bytes, by leaf of the tree and bucket of keys.

    rows ─ mapInArrow: filter, pack by leaf and bucket ─ shuffle ─ mapInArrow: unpack, sort, run

A block holds the rows of one leaf and one bucket, so the shuffle moves a few large values instead
of many small rows. Conditions right above the only scan are applied before the shuffle, and windows
whose aggregates do not depend on order are reduced to partials there too. Where windows in brackets
have to be looked at in the same instant, every partition sends every bucket the newest time it has
seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.engines.buckets import buckets_of, from_bytes, split_by_bucket, to_bytes
from eventide.engines.build import build_tree
from eventide.engines.derived import numbered
from eventide.engines.history.merged import STEP_ROWS, cut, merged_steps
from eventide.engines.history.replay import chain_steps
from eventide.engines.live.feeds import within
from eventide.engines.partitioning import Keys, leaf_keys
from eventide.engines.standing.reach import needed_ranges
from eventide.ingest.merging import EventCursor
from eventide.ingest.ordering import in_order, in_order_by_block, times
from eventide.instants import END_OF_TIME_US, TimeRange
from eventide.operators.columns import BLOCK_BYTES, concat_batches, in_blocks
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.tree import OperatorTree, TreeStep
from eventide.operators.windows.by_time import AggregateWindows
from eventide.plan.nodes import scans_of
from eventide.plan.standing.update_patterns import windows_of
from eventide.plan.tree import Plan
from eventide.schema import SEQ, TS, DataType

BLOCK_ROWS = 1_000_000
PACKED = "bucket int, leaf int, newest_us bigint, payload binary"
PACKED_ARROW = pa.schema(
    [
        ("bucket", pa.int32()),
        ("leaf", pa.int32()),
        ("newest_us", pa.int64()),
        ("payload", pa.binary()),
    ]
)

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Spread:
    """How the events of a plan's scans are distributed over buckets, and run there."""

    plan: Plan
    tree: OperatorTree
    keys: tuple[Keys, ...]
    """The keys of each leaf."""
    buckets: int

    @classmethod
    def of(cls, plan: Plan, buckets: int) -> Spread:
        """Return how a plan is spread; rows that belong together go into one bucket."""
        keys, tree = leaf_keys(plan), build_tree(plan)
        return cls(plan, tree, keys or ((),) * len(tree.leaves), buckets if keys else 1)

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that are read."""
        return tuple(dict.fromkeys(leaf.scan.stream for leaf in self.tree.leaves))

    @property
    def in_one_instant(self) -> bool:
        """Whether all buckets answer as of the newest event of all."""
        return bool(windows_of(self.plan))

    @property
    def filters(self) -> int:
        """The number of operators right above the only leaf that only filter rows."""
        return len(self.tree.filters) if len(self.tree.leaves) == 1 else 0

    @property
    def windows(self) -> AggregateWindows | None:
        """The window operator above these filters, if it can be fed with partials."""
        match self.tree.operators[self.filters :]:
            case (AggregateWindows(merges_in_any_order=True) as windows, *_):
                return windows if len(self.tree.leaves) == 1 else None
        return None

    def leaves_over(self, stream: str) -> tuple[int, ...]:
        """Return the numbers of the leaves over a stream."""
        leaves = enumerate(self.tree.leaves)
        return tuple(number for number, leaf in leaves if leaf.scan.stream == stream)

    def columns(self, leaves: Iterable[int]) -> list[str]:
        """Return the columns that some leaves read of their stream, and the order of its rows."""
        names = [name for leaf in leaves for name in self.tree.leaves[leaf].schema.names]
        return list(dict.fromkeys((TS, SEQ, *names)))

    def periods(self, newest_us: int | None) -> tuple[TimeRange, ...]:
        """Return what has to be read of each scan, if this much is known of how far streams are."""
        if newest_us is not None:
            return needed_ranges(self.plan, newest_us)
        return tuple(scan.time_range for scan in scans_of(self.plan))

    def pack(
        self, batches: Batches, leaves: tuple[int, ...], periods: Mapping[int, TimeRange]
    ) -> Batches:
        """Yield blocks of rows that come in any order, by leaf and bucket."""
        newest_us: int | None = None
        for rows in in_blocks(batches, BLOCK_ROWS):
            if not rows.num_rows:
                continue
            newest = int(times(rows).max())
            newest_us = newest if newest_us is None else max(newest_us, newest)
            for leaf in leaves:
                own = rows.select(self.columns([leaf]))
                packed = self.reduced(within(in_order(own), periods[leaf]), leaf)
                yield labelled(packed.column(0), leaf, newest, packed.column(1))
        if newest_us is not None and self.in_one_instant:
            yield self.to_everyone(newest_us)

    def reduced(self, rows: pa.RecordBatch, leaf: int) -> pa.RecordBatch:
        """Return what has to be shuffled of the events of one leaf, as blocks by bucket."""
        rows, windows = self.passing(rows), self.windows
        if windows is None:
            return self.blocks_of(rows, leaf)
        partials = windows.lift(rows)
        keys = partials.columns[: len(windows.node.keys)]
        return blocks(partials, keys, self.buckets)

    def packed(self, rows: pa.RecordBatch, leaf: int) -> Iterator[pa.RecordBatch]:
        """Yield the events of one leaf as blocks, with their buckets."""
        yield self.blocks_of(rows, leaf)

    def blocks_of(self, rows: pa.RecordBatch, leaf: int) -> pa.RecordBatch:
        """Return the events of one leaf as blocks by bucket."""
        return blocks(rows, [evaluate(key, rows) for key in self.keys[leaf]], self.buckets)

    def to_everyone(self, newest_us: int) -> pa.RecordBatch:
        """Return the newest time, for every bucket."""
        everyone = pa.array(np.arange(self.buckets, dtype=np.int32))
        return labelled(everyone, 0, newest_us, pa.nulls(self.buckets, pa.binary()))

    def passing(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that pass the conditions right above the scan."""
        for operator in self.tree.operators[: self.filters]:
            _, rows = operator.step(None, (rows,), END_OF_TIME_US)
        return rows

    def own(self, batches: Batches, bucket: int) -> Batches:
        """Yield the rows of one bucket of the only leaf, after conditions."""
        for block in batches:
            rows = self.passing(block)
            if self.buckets > 1:
                keys = [evaluate(key, rows) for key in self.keys[0]]
                mine = buckets_of(keys, rows.num_rows, self.buckets) == bucket
                rows = rows.filter(pa.array(mine))
            if rows.num_rows:
                yield rows

    @property
    def above(self) -> OperatorTree:
        """What runs behind the shuffle."""
        return self.tree.above(self.filters) if self.filters else self.tree

    def unpack(self, batches: Batches, newest_us: int | None = None) -> Batches:
        """Yield the results of the blocks of one bucket; `newest_us` is known of other streams."""
        payloads: dict[int, list[bytes]] = {}
        for batch in batches:
            _, leaves, newest, values = (column.to_pylist() for column in batch.columns)
            newest_us = max([*newest, *([] if newest_us is None else [newest_us])])
            for leaf, value in zip(leaves, values, strict=True):
                if value is not None:
                    payloads.setdefault(leaf, []).append(value)
        if not payloads or newest_us is None:
            return
        if self.windows is not None:
            yield from self.combined(self.windows, payloads[0])
            return
        for rows in self.above.run(self.steps(payloads, newest_us)):
            yield plain(rows)

    def combined(self, windows: AggregateWindows, payloads: list[bytes]) -> Batches:
        """Yield the results of partials."""
        rest = self.tree.above(self.filters + 1)
        parts = from_bytes(payloads)
        rows = windows.combine(concat_batches(parts, parts[0].schema))
        _, results = rest.step(rest.initial_state(), (rows,), END_OF_TIME_US)
        if results.num_rows:
            yield results

    def steps(self, payloads: Mapping[int, list[bytes]], newest_us: int) -> Iterator[TreeStep]:
        """Return the steps over the events of one bucket, in order."""
        periods = self.periods(newest_us)
        ordered = {
            number: self.in_order(number, payloads.get(number, []), periods[number])
            for number in range(len(self.tree.leaves))
        }
        if len(ordered) == 1 and not self.in_one_instant:
            return chain_steps(self.above, ordered[0])
        cursors = [
            ((number,), EventCursor(cut(rows, STEP_ROWS), self.tree.leaves[number].schema))
            for number, rows in ordered.items()
        ]
        until_us = newest_us + 1 if self.in_one_instant else END_OF_TIME_US
        return merged_steps(self.tree, cursors, until_us)

    def in_order(self, number: int, payloads: list[bytes], period: TimeRange) -> Batches:
        """Yield the events of a leaf that came as blocks, in order."""
        leaf = self.tree.leaves[number]
        parts = numbered(from_bytes(payloads), leaf.scan)
        for rows in in_order_by_block(parts, BLOCK_BYTES):
            wanted = within(rows, period).select(leaf.schema.names)
            if wanted.num_rows:
                yield wanted


def labelled(buckets: pa.Array, leaf: int, newest_us: int, payloads: pa.Array) -> pa.RecordBatch:
    """Return blocks with the leaf they are for, and the newest time."""
    count = len(buckets)
    arrays = [
        buckets,
        pa.array(np.full(count, leaf, np.int32)),
        pa.array(np.full(count, newest_us, np.int64)),
        payloads,
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=PACKED_ARROW)


def blocks(rows: pa.RecordBatch, keys: list[pa.Array], count: int) -> pa.RecordBatch:
    """Return one block of bytes for each bucket that has rows."""
    parts = split_by_bucket(rows, buckets_of(keys, rows.num_rows, count), count)
    arrays = [
        pa.array([bucket for bucket, _ in parts], pa.int32()),
        pa.array([to_bytes(part) for _, part in parts], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=["bucket", "payload"])


def plain(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows in the types that Spark expects: without short integers."""
    columns = []
    for field, column in zip(rows.schema, rows.columns, strict=True):
        kind = DataType.from_arrow(field.type)
        columns.append(column if kind is None else column.cast(kind.arrow))
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)


def to_every_bucket(rows: pa.RecordBatch, buckets: Iterable[int]) -> Batches:
    """Yield one block of bytes for each of some buckets; several may not fit into a column."""
    if rows.num_rows:
        block = pa.array([to_bytes(rows)], pa.binary())
        for bucket in buckets:
            columns = [pa.array([bucket], pa.int32()), block]
            yield pa.RecordBatch.from_arrays(columns, names=["bucket", "payload"])
