"""The picture of docs/explain.md. `python -m tests.golden.explain_picture` draws it anew."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from eventide.api.database import Database

FILE = Path(__file__).parents[2] / "docs" / "explain.svg"
FIRST_US = 1_772_409_600_000_000  # 2026-03-02
EVENTS = 600_000
QUERY = """
SELECT * FROM readings MATCH_RECOGNIZE (
  MEASURES FIRST(ts) AS since, MIN(pressure) AS lowest
  PATTERN (HOT+ DROP) WITHIN INTERVAL '10' SECOND
  DEFINE HOT AS temperature > 88, DROP AS pressure < 0.0002)
"""


def readings(count: int = EVENTS) -> pa.Table:
    """Return a week of a machine that runs by day: two readings a second then, few at night."""
    random = np.random.default_rng(3)
    days = np.linspace(0, 7, count)
    # Time goes faster where the machine rests.
    days = days + 0.13 * np.sin(2 * np.pi * days) / np.pi
    warm = 62 - 24 * np.cos(2 * np.pi * days) + 6 * np.sin(2 * np.pi * days / 7)
    ts = FIRST_US + (np.sort(days) * 86_400_000_000).astype(np.int64)
    return pa.table(
        {
            "ts": pa.array(ts).cast(pa.timestamp("us", "UTC")),
            "temperature": warm + random.normal(0, 0.8, count),
            "pressure": random.random(count),
        }
    )


def drawn(folder: Path, count: int = EVENTS) -> str:
    """Return the picture of a query that has been run."""
    database = Database(folder)
    attributes = {"temperature": "float64", "pressure": "float64"}
    stream = database.create_stream("readings", attributes, index=["pressure"])
    stream.append(readings(count))
    stream.flush()
    database.sql(QUERY)  # what is compiled now is not part of what is measured
    return database.explain(QUERY, analyze=True).svg()


def regenerate() -> None:
    """Draw the picture anew."""
    with tempfile.TemporaryDirectory() as folder:
        FILE.write_text(drawn(Path(folder)) + "\n")
    sys.stdout.write(f"{FILE.name}: {FILE.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    regenerate()
