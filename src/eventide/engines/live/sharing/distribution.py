"""How many queries are distributed over a cluster: their events by key, or else the queries.

    by key      an event goes to the bucket of its key      each bucket has all of the queries
    by query    every event goes to each bucket             each bucket has some of the queries

Queries go by key where all that their operators remember is about single values of it, and where
no event would be needed under two values. A query that remembers nothing goes with any others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from eventide.engines.partitioning import Keys, leaf_keys
from eventide.plan.expressions import Column, Expression, columns_of
from eventide.plan.nodes import scans_of
from eventide.plan.render import render
from eventide.plan.sharing.portion import Portion
from eventide.plan.sharing.template import Template
from eventide.plan.tree import remembers
from eventide.schema import INT64, SEQ

SharedKey = Mapping[str, Expression]
"""One key: what it is over the events of each stream."""


@dataclass(frozen=True, slots=True)
class QueryShare:
    """Queries that are distributed alike."""

    portions: tuple[Portion, ...]
    keys: tuple[SharedKey, ...] | None
    """The keys by which events are distributed, none if any will do; None if queries are."""

    @property
    def streams(self) -> frozenset[str]:
        """The streams that the queries read."""
        return frozenset().union(*(each.template.streams for each in self.portions))

    @property
    def count(self) -> int:
        """How many queries there are."""
        return sum(len(each.numbers) for each in self.portions)

    def keys_of(self, stream: str) -> Keys | None:
        """Return the keys that distribute the events of a stream; None if all go everywhere."""
        if self.keys is None:
            return None
        found = tuple(key[stream] for key in self.keys if stream in key)
        return found or (Column(SEQ, INT64),)

    def part(self, bucket: int, buckets: int) -> tuple[Portion, ...]:
        """Return the queries of one of some buckets."""
        if self.keys is not None:
            return self.portions
        parts = (each.only(each.numbers % buckets == bucket) for each in self.portions)
        return tuple(each for each in parts if len(each.numbers))

    @property
    def line(self) -> str:
        """How they are distributed, for people."""
        streams = ", ".join(sorted(self.streams))
        if self.keys is None:
            how = "by query: each bucket takes all events, for some queries"
        elif not self.keys:
            how = "event by event: nothing is remembered"
        else:
            shown = "; ".join(
                f"{name} by {', '.join(map(render, self.keys_of(name) or ()))}"
                for name in sorted(self.streams)
            )
            how = f"by key: {shown}"
        return f"{streams}: {self.count:,} {'query' if self.count == 1 else 'queries'} {how}"


def shares_of(portions: Sequence[Portion]) -> list[QueryShare]:
    """Return queries by how they are distributed, as few ways as are found at once."""
    keyed: list[tuple[list[Portion], tuple[SharedKey, ...]]] = []
    anywhere: list[Portion] = []
    by_query: list[Portion] = []
    for portion in portions:
        if not remembers(portion.template.whole):
            anywhere.append(portion)
            continue
        keys = keys_of_template(portion.template)
        if not keys:
            by_query.append(portion)
            continue
        for place, (held, own) in enumerate(keyed):
            both = in_both(own, keys)
            if both:
                keyed[place] = ([*held, portion], both)
                break
        else:
            keyed.append(([portion], keys))
    if anywhere and keyed:
        keyed[0][0].extend(anywhere)
    elif anywhere:
        keyed.append((anywhere, ()))
    found = [QueryShare(tuple(own), keys) for own, keys in keyed]
    return found + ([QueryShare(tuple(by_query), None)] if by_query else [])


def keys_of_template(template: Template) -> tuple[SharedKey, ...]:
    """Return the keys that all queries of a template have for each stream, and for all its leaves.

    A stream that is read twice, by different keys, has none: both rows of a pair would meet in two
    buckets.
    """
    keys = leaf_keys(template.whole)
    if keys is None or len(set(map(len, keys))) != 1:
        return ()
    streams = [leaf.stream for leaf in scans_of(template.whole)]
    found = []
    for place in zip(*keys, strict=True):
        key = dict(zip(streams, place, strict=True))
        same = all(key[stream] == own for stream, own in zip(streams, place, strict=True))
        if same and not any(map(is_own, place)):
            found.append(key)
    return tuple(found)


def is_own(key: Expression) -> bool:
    """Whether a key has the number of a query, or one of its constants."""
    return any(name.startswith("$") for name in columns_of(key))


def in_both(some: Iterable[SharedKey], others: Iterable[SharedKey]) -> tuple[SharedKey, ...]:
    """Return the keys that agree on the streams that both are about, over the streams of both."""
    return tuple(
        {**one, **other}
        for one, other in product(some, others)
        if all(one[stream] == other[stream] for stream in one.keys() & other.keys())
    )
