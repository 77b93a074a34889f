"""Work items: what a task has to do is in a row of its own, sent only to that task.

A function that Spark ships goes to every task with everything it refers to. So what differs from
task to task (segments, events that are only in the log, a slice) is not part of the function, but
pickled into a row, one row a partition.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from eventide.errors import StoreError
from eventide.store.index.aggregates import UserAggregate, find_registered, register_aggregate

SHARED_HINT = "keep the database where the driver and all workers see it under the same path"
ITEMS = pa.schema([("item", pa.int32()), ("payload", pa.binary())])


def work_frame(spark: SparkSession, items: Sequence[object]) -> DataFrame:
    """Return a DataFrame with an item in each partition, for `mapInArrow` and `items_in`."""
    payloads = [pickled(item) for item in items]
    numbers = pa.array(range(len(payloads)), pa.int32())
    table = pa.Table.from_arrays([numbers, pa.array(payloads, pa.binary())], schema=ITEMS)
    frame = spark.createDataFrame(table, "item int, payload binary")
    return frame.repartitionById(max(1, len(payloads)), f.col("item"))


def pickled(value: object) -> bytes:
    """Pickle a value, functions of the main program as well."""
    content: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
    return content


def items_in(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Any]]:
    """Yield the items of a partition, with their numbers."""
    for batch in batches:
        for number, payload in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            # The driver pickled it just before, as it did this function.
            yield number, pickle.loads(payload)  # noqa: S301


def aggregates_named(names: Iterable[str]) -> tuple[UserAggregate, ...]:
    """Return registered aggregates with those they need, what is needed first."""
    found: dict[str, UserAggregate] = {}
    for name in names:
        aggregate = find_registered(name)
        if aggregate is not None and name not in found:
            found |= {each.name: each for each in aggregates_named(aggregate.needs)}
            found[name] = aggregate
    return tuple(found.values())


def register_here(aggregates: Iterable[UserAggregate]) -> None:
    """Make the driver's aggregates known to a worker that does not know them yet."""
    for aggregate in aggregates:
        if find_registered(aggregate.name) is None:
            register_aggregate(aggregate)


def no_database() -> StoreError:
    """Return the error for a query over a stored stream without a store."""
    message = "no database was given, only a session"
    return StoreError(message, hint='eventide.spark(session, "folder.ev")')
