"""Run by the python of PyFlink's environment: answers a query, says how long it took.

It reads a task as JSON from its standard input, and its last line of output is the answer as JSON.
The events are in memory, as Arrow batches that Flink's own source for pandas reads: nothing is
parsed. Every job pays for being started and for that source, so a job with both and no pattern is
timed too: `idle`. Results go to a sink that drops them.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyflink.common import Configuration  # type: ignore[import-not-found]
from pyflink.datastream import StreamExecutionEnvironment  # type: ignore[import-not-found]
from pyflink.java_gateway import get_gateway  # type: ignore[import-not-found]
from pyflink.table import (  # type: ignore[import-not-found]
    DataTypes,
    Schema,
    StreamTableEnvironment,
)
from pyflink.table.types import _to_java_data_type  # type: ignore[import-not-found]
from pyflink.util.java_utils import load_java_class  # type: ignore[import-not-found]

CONFIGURATION = {
    "parallelism.default": "2",
    "taskmanager.numberOfTaskSlots": "2",
    # Faster, and safe: nothing here keeps a row that it was handed.
    "pipeline.object-reuse": "true",
}
# Against -Xmx5g and the default collector, once each over a million events: CPU 14.2 s, not 16.6 s.
JVM = "-Xmx8g -XX:+UseParallelGC"
ARROW = pa.schema(
    {"ts": pa.timestamp("ms"), "k": pa.string(), "price": pa.float64(), "volume": pa.int64()}
)
SQL_TYPES = {"ts": "TIMESTAMP(3)", "k": "STRING", "price": "DOUBLE", "volume": "BIGINT"}
# One window over everything gives one row at the end, where COUNT alone gives one a match.
COUNT = (
    "SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE found, DESCRIPTOR(at_time), INTERVAL '99' DAY)) "
    "GROUP BY window_start, window_end"
)
IDLE = "INSERT INTO nowhere SELECT ts, k, price, volume FROM {stream} WHERE price < -1e300"


def main() -> None:
    task = json.load(sys.stdin)
    os.environ.setdefault("JVM_ARGS", JVM)
    configuration = Configuration()
    for key, value in CONFIGURATION.items():
        configuration.set_string(key, value)
    environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    tables = StreamTableEnvironment.create(environment)
    create_hole(tables, "nowhere", SQL_TYPES)
    create_hole(tables, "hole", task["columns"])
    runs = [run(tables, task, job) for job in task["jobs"]]
    print(json.dumps({"version": version("apache-flink"), "runs": runs}))


def run(
    tables: StreamTableEnvironment, task: dict[str, Any], job: dict[str, Any]
) -> dict[str, Any]:
    """Time one query over one file of events."""
    stream = task["stream"]
    with tempfile.TemporaryDirectory() as folder:
        path = write_arrow(job["events"], Path(folder, "events.arrow"), task["batch"])
        register(tables, stream, path)
    query = f"SELECT {', '.join(task['columns'])} FROM ({task['text']})"
    seconds, idle = [], []
    for _ in range(job["repeats"]):
        idle.append(timed(tables, IDLE.format(stream=stream)))
        seconds.append(timed(tables, f"INSERT INTO hole {query}"))
    if job["rows"]:
        tables.sql_query(query).to_pandas().to_parquet(job["rows"])
    matches = None
    if job["count"]:
        tables.create_temporary_view("found", tables.sql_query(task["text"]))
        with tables.execute_sql(COUNT).collect() as rows:
            matches = sum(row[0] for row in rows)
        tables.drop_temporary_view("found")
    tables.drop_temporary_table(stream)
    return {"seconds": min(seconds), "matches": matches, "idle": min(idle)}


def timed(tables: StreamTableEnvironment, statement: str) -> float:
    """Return the seconds that a job takes."""
    start = time.perf_counter()
    tables.execute_sql(statement).wait()
    return time.perf_counter() - start


def create_hole(tables: StreamTableEnvironment, name: str, columns: dict[str, str]) -> None:
    """Make a sink that drops what it gets."""
    fields = ", ".join(f"{column} {kind}" for column, kind in columns.items())
    tables.execute_sql(f"CREATE TABLE {name} ({fields}) WITH ('connector' = 'blackhole')")


def write_arrow(events: str, path: Path, batch: int) -> Path:
    """Write the events in the form that Flink's source for pandas reads."""
    table = pq.read_table(events).cast(ARROW).combine_chunks()
    with pa.ipc.new_stream(str(path), ARROW) as writer:
        for each in table.to_batches(max_chunksize=batch):
            writer.write_batch(each)
    return path


def register(tables: StreamTableEnvironment, stream: str, path: Path) -> None:
    """Make the events a table with event time.

    `from_pandas` makes the same source, but has no words for a watermark; and a detour by way of
    a DataStream, which has, would convert every row twice.
    """
    kinds = {"ts": DataTypes.TIMESTAMP(3), "k": DataTypes.STRING()}
    kinds |= {"price": DataTypes.DOUBLE(), "volume": DataTypes.BIGINT()}
    row = DataTypes.ROW([DataTypes.FIELD(name, kind) for name, kind in kinds.items()])
    row_data = load_java_class("org.apache.flink.table.data.RowData")
    source = get_gateway().jvm.org.apache.flink.table.runtime.arrow.ArrowUtils
    described = source.createArrowTableSourceDesc(
        _to_java_data_type(row).notNull().bridgedTo(row_data), str(path)
    )
    schema = Schema.new_builder()
    for name, kind in SQL_TYPES.items():
        schema = schema.column(name, kind)
    # The events are in order of time, in each of the source's two tasks as well.
    schema = schema.watermark("ts", "ts").build()
    described = described.toBuilder().schema(schema._j_schema).build()
    tables._j_tenv.createTemporaryTable(stream, described)


if __name__ == "__main__":
    main()
