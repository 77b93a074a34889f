"""One query text on Spark: over the store, over a DataFrame, as a stream; and the store itself."""

from __future__ import annotations

import tempfile
from pathlib import Path

import eventide as ev
from eventide.engines.spark.session import local_session

TEXT = """
    SELECT car, window_start, AVG(speed) AS mean
    FROM cars GROUP BY car, TUMBLE(ts, INTERVAL '10' SECOND)
"""


def main() -> None:
    """Store some readings by Spark, then ask about them three ways."""
    session = local_session("eventide example")
    folder = Path(tempfile.mkdtemp())
    readings = session.sql("""
        SELECT id * 1000000 AS ts, concat('car-', id % 3) AS car, 40.0D + id % 20 AS speed
        FROM range(60)
    """)

    # A batch write; the stream is created from the DataFrame's schema.
    writer = readings.write.format("eventide").option("stream", "cars")
    writer.mode("append").save(str(folder / "traffic.ev"))

    stored = ev.spark(session, folder / "traffic.ev").sql(TEXT)
    framed = ev.spark(session).sql(TEXT, cars=readings)
    print("the same rows:", sorted(stored.collect()) == sorted(framed.collect()))

    # Aggregates come from the index, and start no Spark job; maintenance is a task a segment.
    database = ev.spark(session, folder / "traffic.ev")
    print(database.aggregate("cars", "avg(speed)", "max(speed)", every="30 s"))
    print("segments merged:", database.compact("cars"))

    # The same rows as they would arrive, file by file.
    readings.coalesce(1).write.parquet(str(folder / "arriving"))
    arriving = session.readStream.schema(readings.schema).parquet(str(folder / "arriving"))
    live = ev.spark(session).stream(TEXT, cars=arriving, lateness="5 s")
    query = live.writeStream.format("memory").queryName("means").trigger(availableNow=True).start()
    query.awaitTermination()
    # The newest time is second 59, and events may be 5 s late: windows up to second 50 are closed.
    print("windows complete so far:", session.table("means").count(), "of", stored.count())


if __name__ == "__main__":
    main()
