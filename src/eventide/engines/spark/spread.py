"""Events of several streams as blocks of bytes, by leaf of the tree and bucket of keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.engines.build import build_tree
from eventide.engines.live.feeds import within
from eventide.engines.partitioning import Keys, leaf_keys
from eventide.engines.spark.frames import BLOCK_ROWS, Batches, blocks
from eventide.ingest.ordering import in_order, times
from eventide.instants import TimeRange
from eventide.operators.columns import in_blocks
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.tree import TreeLeaf
from eventide.plan.tree import Plan
from eventide.schema import SEQ, TS

PACKED = "bucket int, leaf int, newest_us bigint, payload binary"
PACKED_ARROW = pa.schema(
    [
        ("bucket", pa.int32()),
        ("leaf", pa.int32()),
        ("newest_us", pa.int64()),
        ("payload", pa.binary()),
    ]
)


@dataclass(frozen=True, slots=True)
class LeafSpread:
    """How the events of the leaves of a tree are spread over buckets."""

    leaves: tuple[TreeLeaf, ...]
    keys: tuple[Keys, ...]
    buckets: int

    @classmethod
    def of(cls, plan: Plan, buckets: int) -> LeafSpread:
        """Return how a plan is spread; without common keys, into one bucket."""
        keys, leaves = leaf_keys(plan), build_tree(plan).leaves
        return cls(leaves, keys or ((),) * len(leaves), buckets if keys else 1)

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that are read."""
        return tuple(dict.fromkeys(leaf.scan.stream for leaf in self.leaves))

    def leaves_over(self, stream: str) -> tuple[int, ...]:
        """Return the numbers of the leaves over a stream."""
        leaves = enumerate(self.leaves)
        return tuple(number for number, leaf in leaves if leaf.scan.stream == stream)

    def columns(self, leaves: Iterable[int]) -> list[str]:
        """Return the columns that some leaves read of their stream, and the order of its rows."""
        names = [name for leaf in leaves for name in self.leaves[leaf].schema.names]
        return list(dict.fromkeys((TS, SEQ, *names)))

    def pack(
        self, batches: Batches, leaves: tuple[int, ...], periods: Mapping[int, TimeRange]
    ) -> Batches:
        """Yield blocks by leaf and bucket, and to every bucket the newest time of them all."""
        newest_us: int | None = None
        for rows in in_blocks(batches, BLOCK_ROWS):
            if not rows.num_rows:
                continue
            newest = int(times(rows).max())
            newest_us = newest if newest_us is None else max(newest_us, newest)
            for leaf in leaves:
                own = in_order(rows.select(self.columns([leaf])))
                packed = self.blocks_of(within(own, periods[leaf]), leaf)
                yield labelled(packed.column(0), leaf, newest, packed.column(1))
        if newest_us is not None:
            everyone = pa.array(np.arange(self.buckets, dtype=np.int32))
            yield labelled(everyone, leaves[0], newest_us, pa.nulls(self.buckets, pa.binary()))

    def blocks_of(self, rows: pa.RecordBatch, leaf: int) -> pa.RecordBatch:
        """Return the events of one leaf as blocks by bucket."""
        return blocks(rows, [evaluate(key, rows) for key in self.keys[leaf]], self.buckets)


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
