"""The events of the pattern cases: prices of 100 keys, made from a seed and kept as Parquet."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

KEYS = 100
STREAM = "ticks"
# A millisecond: Flink's event time has no finer parts.
GAP_US = 1_000
START_US = 1_760_000_000_000_000
GROUP_ROWS = 1_000_000
SIZES = pa.array(["small", "middle", "large"])


def ticks(count: int, keys: int = KEYS) -> pa.Table:
    """Return `count` events in order of time, no two at the same; a price walks at random.

    >>> ticks(3).column_names
    ['ts', 'k', 'price', 'volume', 'size']
    """
    random = np.random.default_rng(20_160_101)
    key = random.integers(0, keys, count)
    step = random.normal(0.0, 1.0, count)
    volume = random.integers(1, 1_000, count)
    # A stable sort puts each key's steps together, in order of time: there its price is a sum.
    order = np.argsort(key, kind="stable")
    price = np.empty(count)
    for rows in np.split(order, np.cumsum(np.bincount(key, minlength=keys))[:-1]):
        price[rows] = 100.0 + np.cumsum(step[rows])
    ts = START_US + GAP_US * np.arange(count, dtype=np.int64)
    names = pa.array([f"k{number:02}" for number in range(keys)])
    return pa.table(
        {
            "ts": pa.array(ts).cast(pa.timestamp("us")),
            "k": names.take(pa.array(key)),
            "price": price,
            "volume": volume,
            "size": SIZES.take(pa.array(volume * len(SIZES) // 1_000)),
        }
    )


def kept(folder: Path, count: int) -> Path:
    """Return the events as a Parquet file, written when first asked for."""
    path = folder / f"{STREAM}-{count}.parquet"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        pq.write_table(ticks(count), unfinished, row_group_size=GROUP_ROWS)
        unfinished.rename(path)
    return path
