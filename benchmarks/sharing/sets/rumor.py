"""Sequences of two streams (table 5.3): S and T in turn, ten numbers from 0 to 999 in each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa

from benchmarks.sharing.sets.running import BATCH, Arrived, Asked, QuerySet, numbered, zipf
from eventide.schema import Schema

VALUES, LONGEST, LENGTHS = 1_000, 1_000, 10
SKEW = 1.5
SCHEMA = Schema.of({f"a{k}": "int64" for k in range(10)})
CATALOG = {"s": SCHEMA, "t": SCHEMA}
TEXTS = {
    "W1": "SELECT * FROM FILTER{a0 = $c} s NEXT{DUR <= $long AND $2.a0 = $d} t",
    "W2": "SELECT * FROM FILTER{a2 >= $c} s NEXT{DUR <= $long AND $1.a0 = $2.a0} t",
}


def events() -> Iterator[Arrived]:
    """Yield batches of both streams, one event a second of each."""
    rng = np.random.default_rng(11)
    first = 0
    while True:
        half = BATCH // 2
        both = {name: {f"a{k}": rng.integers(0, VALUES, half) for k in range(10)} for name in "st"}
        yield {name: numbered(columns, first, 1_000_000) for name, columns in both.items()}
        first += half


def subscriptions(name: str, skew: float, length: int | None, count: int) -> list[Asked]:
    """Return so many sequences; all windows are of one length, or of ten, most of them long.

    The document has a thousand lengths. Here each length is a template of its own.
    """
    rng = np.random.default_rng(12)
    seconds = LONGEST - zipf(rng, LENGTHS, SKEW, count) * (LONGEST // LENGTHS)
    if length is not None:
        seconds = np.full(count, length)
    columns = {
        "c": zipf(rng, VALUES, skew, count),
        "d": zipf(rng, VALUES, skew, count),
        "long": pa.array(seconds * 1_000_000).cast(pa.duration("us")),
    }
    return [(TEXTS[name], pa.table(columns).select([k for k in columns if f"${k}" in TEXTS[name]]))]


def sequences(name: str = "W1", skew: float = SKEW, length: int | None = None) -> QuerySet:
    """Return sequences of two streams."""
    asked = partial(subscriptions, name, skew, length)
    return QuerySet(name, "an event of S, then one of T", CATALOG, asked, events)
