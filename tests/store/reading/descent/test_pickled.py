"""What was read of the index stays in the process that read it."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa

import eventide as ev

TEXT = "SELECT MAX(x) AS top, COUNT(*) AS n FROM s"


def test_a_snapshot_is_pickled_without_the_index_that_was_read(tmp_path: Path) -> None:
    db = ev.open(tmp_path)
    stream = db.create_stream("s", {"x": "float64"})
    ts = pa.array(np.arange(50_000) * 1_000_000).view(pa.timestamp("us"))
    stream.append(pa.table({"ts": ts, "x": np.random.default_rng(1).random(50_000)}))
    db.store.stream("s").flush()
    snapshot = db.store.stream("s").snapshot()
    size = len(pickle.dumps(snapshot))
    assert db.sql(TEXT).rows()[0]["n"] == 50_000
    assert snapshot.view.directories
    assert len(pickle.dumps(snapshot)) == size
    assert not pickle.loads(pickle.dumps(snapshot)).view.directories
