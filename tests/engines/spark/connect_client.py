"""Run by test_connect.py in a process of its own: a client of a Spark Connect server.

It prints one line of JSON with what each call found.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import eventide as ev
from eventide.engines.spark.session import is_connect

TUMBLED = "SELECT car, COUNT(*) AS n FROM cars GROUP BY car, TUMBLE(ts, INTERVAL '10' SECOND)"
RISING = """SELECT * FROM cars MATCH_RECOGNIZE (PARTITION BY car ORDER BY ts
    MEASURES A.speed AS low, LAST(B.speed) AS high
    PATTERN (A B+) DEFINE B AS speed > PREV(speed))"""
QUERIES = {
    "windows": TUMBLED,
    "pattern": RISING,
    "with SQL around it": f"SELECT car, SUM(n) AS n FROM ({TUMBLED}) x GROUP BY car",
    "standing": "SELECT car, speed FROM cars [RANGE 10 SECONDS] WHERE speed > 55",
}


def rows(frame: DataFrame) -> list[list[str]]:
    return sorted([str(value) for value in row] for row in frame.collect())


def main(folder: Path) -> None:
    session = SparkSession.builder.remote("local[2]").getOrCreate()
    path = str(folder / "db")
    database = ev.spark(session, path)
    frame = session.createDataFrame(
        [
            (datetime(2026, 1, 1, 0, 0, second), car, speed)
            for second, car, speed in [(1, "a", 50.0), (4, "b", 60.0), (8, "a", 70.0)]
        ],
        "ts timestamp, car string, speed double",
    )
    found: dict[str, object] = {
        "is_connect": is_connect(session),
        "read": rows(session.read.format("eventide").option("stream", "cars").load(path)),
        "store": {name: rows(database.sql(text)) for name, text in QUERIES.items()},
        "frames": {name: rows(database.sql(text, cars=frame)) for name, text in QUERIES.items()},
    }
    session.stop()
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
