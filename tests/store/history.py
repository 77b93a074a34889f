"""Streams of every type with a random past, and the lists that they must read like."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from eventide.schema import BINARY, BOOL, FLOAT64, INT64, STRING, TIMESTAMP, DataType, Schema
from eventide.store import Snapshot, StoredStream
from eventide.store.options import StreamOptions
from tests.naive.store import NaiveStream, Row
from tests.store.events import new_stream, reopened, values
from tests.store.values import MONEY, VALUES

TYPES: dict[str, DataType] = {
    "flag": BOOL,
    "lane": INT64,
    "speed": FLOAT64,
    "car": STRING,
    "seen": TIMESTAMP,
    "price": MONEY,
    "mark": BINARY,
}
EVERY_TYPE = Schema.of({name: str(kind) for name, kind in TYPES.items()})
NAMES = ["ts", "_seq", *TYPES]
FIRST_TS, LAST_TS = -30, 130

Pools = Mapping[str, Sequence[object]]
"""The values that rows have, by attribute."""


def unfolded(value: object) -> object:
    """Return a time without a mark of summer time, which is not stored."""
    return value.replace(fold=0) if isinstance(value, datetime) else value


pools: st.SearchStrategy[dict[str, list[object]]] = st.fixed_dictionaries(
    {
        name: st.lists(VALUES[kind].map(unfolded), min_size=1, max_size=5)
        for name, kind in TYPES.items()
    }
)
seeds = st.integers(0, 2**32)
options = st.builds(
    StreamOptions,
    durability=st.sampled_from(["none", "batch"]),
    codec=st.sampled_from(["none", "lz4", "zstd"]),
    split_us=st.sampled_from([None, 25]),
    order=st.sampled_from(["time", "time", "arrival"]),
    summaries=st.sampled_from([None, (), ("lane", "car"), tuple(TYPES)]),
    indexes=st.sampled_from([(), ("speed",), ("car", "lane", "price")]),
    spare=st.sampled_from([0.0, 0.1, 1.0]),
)


def as_table(rows: Sequence[Row], schema: Schema = EVERY_TYPE) -> pa.Table:
    """Return rows as `append` takes them."""
    return pa.Table.from_pylist(list(rows), schema=schema.arrow.remove(1))


def scanned_rows(snapshot: Snapshot, **asked: Any) -> list[str]:  # noqa: ANN401
    """Return a scan of all columns so that NaNs are equal, and the two zeros are not."""
    names = ["ts", "_seq", *snapshot.schema.names]
    found: list[str] = []
    for batch in snapshot.scan(names, **asked):
        assert batch.num_rows
        assert batch.schema.names == names
        columns = [values(batch.column(0)), *(each.to_pylist() for each in batch.columns[1:])]
        found += [repr(row) for row in zip(*columns, strict=True)]
    return found


@dataclass
class History:
    """A stream, its twin, and what chance has done to both."""

    stream: StoredStream
    naive: NaiveStream
    chance: random.Random
    pools: Pools
    now: int = FIRST_TS
    done: list[str] = field(default_factory=list)

    @classmethod
    def new(
        cls, folder: Path, chosen: StreamOptions, found: Pools, seed: int, steps: int
    ) -> History:
        """Create a stream, and live through some steps."""
        stream = new_stream(folder, options=chosen, schema=EVERY_TYPE)
        history = cls(stream, NaiveStream(), random.Random(seed), found)
        for _ in range(steps):
            history.step()
        return history

    def rows(self, count: int) -> list[Row]:
        """Return events about now, some of them late, some of their values null."""
        found: list[Row] = []
        for _ in range(count):
            self.now = min(LAST_TS - 1, self.now + self.chance.choice([0, 0, 1, 1, 2]))
            late = self.chance.random() < 0.2
            ts = self.chance.randint(FIRST_TS, self.now) if late else self.now
            attributes = {
                name: None if self.chance.random() < 0.2 else self.chance.choice(pool)
                for name, pool in self.pools.items()
            }
            found.append({"ts": ts, **attributes})
        return found

    def step(self) -> None:
        """Do one more thing."""
        kinds = ["append"] * 5 + ["bulk", "commit", "flush", "flush", "seal", "compact", "reopen"]
        kind = self.chance.choice(kinds)
        self.done.append(kind)
        match kind:
            case "append" | "bulk":
                rows = self.rows(self.chance.randint(0, 6 if kind == "append" else 25))
                self.stream.append(as_table(rows))
                self.naive.append(rows)
            case "commit":
                parts = [self.rows(self.chance.randint(0, 8)) for _ in range(2)]
                staged = [
                    self.stream.stage(as_table(part).to_batches(max_chunksize=5)) for part in parts
                ]
                self.stream.commit(staged)
                self.naive.append([row for part in parts for row in part])
            case "flush" | "seal":
                self.stream.flush(seal=kind == "seal")
            case "compact":
                self.stream.compact()
            case "reopen":
                self.stream = reopened(self.stream)

    def expected(self, **asked: Any) -> list[str]:  # noqa: ANN401
        """Return what `scanned_rows` must return."""
        return [repr(row) for row in self.naive.scan(NAMES, **asked)]
