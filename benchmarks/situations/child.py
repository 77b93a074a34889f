"""A process that counts matches live, and says how much memory it has had at most."""

from __future__ import annotations

import json
import resource
import sys

import numpy as np
import pyarrow as pa

from benchmarks.situations.data import ALIKE, in_chunks
from benchmarks.situations.queries import BEFORE_OVERLAPS
from benchmarks.situations.setting import matches_in, standing

CHUNK_ROWS = 100_000


def main(events: int, within_s: int) -> None:
    """Push events that are made as they come; only the query remembers any."""
    query, matches, seq = None, 0, 0
    for chunk in in_chunks(events, [ALIKE] * 3, CHUNK_ROWS):
        query = query or standing(BEFORE_OVERLAPS.within(within_s), chunk.schema)
        numbers = pa.array(np.arange(seq, seq + chunk.num_rows))
        seq += chunk.num_rows
        (batch,) = chunk.append_column("_seq", numbers).combine_chunks().to_batches()
        matches += matches_in(query.push(batch).to_arrow())
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"peak_mb": peak_mb, "matches": matches}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
