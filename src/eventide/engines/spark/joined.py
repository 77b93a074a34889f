"""Periods joined by relation on Spark: one shuffle brings the rows of a bucket of keys together.

left ─ mapInArrow: pack by bucket ┐
                                  ├ union ─ shuffle ─ mapInArrow: unpack, join
right ─ mapInArrow: pack by bucket ┘
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from eventide.engines.buckets import from_bytes
from eventide.engines.spark.frames import shuffle_partitions
from eventide.engines.spark.spread import BLOCK_ROWS, Batches, blocks
from eventide.engines.spark.types import from_the_border, mapped
from eventide.operators.columns import in_blocks
from eventide.operators.situations.period_join import join_periods
from eventide.plan.situations.nodes import PeriodJoin
from eventide.schema import row_schema

PACKED = "bucket int, payload binary, side int"
LEFT, RIGHT = 0, 1


def joined_frame(
    node: PeriodJoin, left: DataFrame, right: DataFrame, zoneless: Collection[str]
) -> DataFrame:
    """Return the pairs of the rows of two DataFrames; without keys, one worker has all rows."""
    count = shuffle_partitions(left.sparkSession) if node.keys else 1
    schemas = row_schema(node.left.row), row_schema(node.right.row)
    schema = row_schema(node.row)
    one = packed(left, schemas[LEFT], [name for name, _ in node.keys], LEFT, count)
    other = packed(right, schemas[RIGHT], [name for _, name in node.keys], RIGHT, count)

    def join(batches: Batches) -> Batches:
        payloads: tuple[list[bytes], list[bytes]] = ([], [])
        for batch in batches:
            _, values, sides = (column.to_pylist() for column in batch.columns)
            for value, side in zip(values, sides, strict=True):
                payloads[side].append(value)
        if payloads[LEFT]:
            rows, partners = (
                pa.Table.from_batches(from_bytes(held), own)
                for held, own in zip(payloads, schemas, strict=True)
            )
            yield from join_periods(node, rows, partners, schema)

    together = one.unionAll(other).repartitionById(count, f.col("bucket"))
    return mapped(together, join, schema, zoneless)


def packed(
    frame: DataFrame, schema: pa.Schema, keys: list[str], side: int, count: int
) -> DataFrame:
    """Return the rows of one side as blocks, each of one bucket of keys."""

    def pack(batches: Batches) -> Batches:
        for rows in in_blocks(batches, BLOCK_ROWS):
            own = from_the_border(rows, schema)
            found = blocks(own, [own.column(name) for name in keys], count)
            yield found.append_column("side", pa.array(np.full(found.num_rows, side, np.int32)))

    return frame.mapInArrow(pack, PACKED)
