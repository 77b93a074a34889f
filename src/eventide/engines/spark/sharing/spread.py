"""The buckets of many queries: which events go there, and which queries are there.

Queries that are distributed alike have buckets of their own, so an event goes to each such share.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.engines.history.sharing.many import narrowed, periods_of
from eventide.engines.live.sharing.distribution import QueryShare
from eventide.engines.partitioning import Keys
from eventide.engines.spark.spread import blocks, to_every_bucket
from eventide.instants import TimeRange
from eventide.operators.expressions.evaluate import evaluate
from eventide.plan.sharing.portion import Portion
from eventide.schema import Schema


@dataclass(frozen=True, slots=True)
class Route:
    """Where the events of one stream go, for the queries of one share."""

    first: int
    """The first bucket of the share."""
    buckets: int
    keys: Keys | None

    def blocks_of(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield blocks of bytes with the buckets that they are for."""
        if self.keys is None:
            yield from to_every_bucket(rows, range(self.first, self.first + self.buckets))
            return
        packed = blocks(rows, [evaluate(key, rows) for key in self.keys], self.buckets)
        first = pa.array(packed.column(0).to_numpy() + np.int32(self.first))
        yield packed.set_column(0, "bucket", first)


@dataclass(frozen=True, slots=True)
class ManyRoutes:
    """How events of all streams are packed; streams are numbered in their order."""

    schemas: Mapping[str, Schema]
    """The streams, with no more columns than are needed."""
    periods: Mapping[str, TimeRange]
    routes: Mapping[str, tuple[Route, ...]]
    buckets: int

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams, by number."""
        return tuple(self.schemas)

    def columns(self, numbers: Iterable[int]) -> list[str]:
        """Return the columns that are read of streams."""
        names = [name for each in numbers for name in self.schemas[self.streams[each]].arrow.names]
        return list(dict.fromkeys(names))

    def packed(self, rows: pa.RecordBatch, number: int) -> Iterator[pa.RecordBatch]:
        """Yield the events of a stream as blocks, with their buckets."""
        for route in self.routes[self.streams[number]]:
            yield from route.blocks_of(rows)


@dataclass(frozen=True, slots=True)
class ManySpread:
    """Shares, each with some buckets, one behind the other."""

    shares: tuple[QueryShare, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, shares: Sequence[QueryShare], by_key: int, by_query: int) -> ManySpread:
        """Return shares with buckets: no more than they have queries, if these are distributed."""
        sizes = [by_key if each.keys is not None else min(by_query, each.count) for each in shares]
        return cls(tuple(shares), tuple(sizes))

    @property
    def portions(self) -> list[Portion]:
        """All queries."""
        return [portion for share in self.shares for portion in share.portions]

    def routes(self, catalog: Mapping[str, Schema]) -> ManyRoutes:
        """Return how events are packed: without the queries, which need not go there."""
        schemas = narrowed(self.portions, catalog)
        found: dict[str, list[Route]] = {name: [] for name in schemas}
        first = 0
        for share, size in zip(self.shares, self.sizes, strict=True):
            for stream in share.streams:
                found[stream].append(Route(first, size, share.keys_of(stream)))
            first += size
        routes = {name: tuple(own) for name, own in found.items()}
        return ManyRoutes(schemas, periods_of(self.portions), routes, first)

    def portions_of(self, bucket: int) -> tuple[Portion, ...]:
        """Return the queries of a bucket."""
        share, own, size = self.place_of(bucket)
        return share.part(own, size)

    def counted(self, bucket: int) -> Collection[str]:
        """Return the streams whose late events a bucket counts, so that each counts once."""
        share, own, _ = self.place_of(bucket)
        place = self.shares.index(share)
        before = frozenset[str]().union(*(each.streams for each in self.shares[:place]))
        return share.streams - before if share.keys is not None or own == 0 else ()

    def place_of(self, bucket: int) -> tuple[QueryShare, int, int]:
        """Return the share of a bucket, its number there, and how many there are."""
        for share, size in zip(self.shares, self.sizes, strict=True):
            if bucket < size:
                return share, bucket, size
            bucket -= size
        message = f"no bucket {bucket} behind the last one"
        raise IndexError(message)
