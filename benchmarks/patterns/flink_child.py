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
    "tree.object-reuse": "true",
}
# Against -Xmx5g and the default collector, once each over a million events: CPU 14.2 s, not 16.6 s.
JVM = "-Xmx8g -XX:+UseParallelGC"
# Of the columns of the events, by their Arrow types: as SQL and as Flink's own.
TYPES = {
    pa.timestamp("us"): ("TIMESTAMP(3)", DataTypes.TIMESTAMP(3)),
    pa.string(): ("STRING", DataTypes.STRING()),
    pa.float64(): ("DOUBLE", DataTypes.DOUBLE()),
    pa.int64(): ("BIGINT", DataTypes.BIGINT()),
    pa.bool_(): ("BOOLEAN", DataTypes.BOOLEAN()),
}
# One window over everything gives one row at the end, where COUNT alone gives one a match.
COUNT = (
    "SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE found, DESCRIPTOR(at_time), INTERVAL '99' DAY)) "
    "GROUP BY window_start, window_end"
)
IDLE = "INSERT INTO nowhere SELECT * FROM {stream} WHERE {nothing}"


def main() -> None:
    task = json.load(sys.stdin)
    os.environ.setdefault("JVM_ARGS", JVM)
    configuration = Configuration()
    for key, value in CONFIGURATION.items():
        configuration.set_string(key, value)
    environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    tables = StreamTableEnvironment.create(environment)
    schema = pq.read_schema(task["jobs"][0]["events"])
    create_hole(tables, "nowhere", {each.name: TYPES[each.type][0] for each in schema})
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
        schema = pq.read_schema(job["events"])
        register(tables, stream, path, schema)
    # A condition that holds nowhere, on a column that has to be read for it.
    idle_text = IDLE.format(stream=stream, nothing=never(schema))
    query = f"SELECT {', '.join(task['columns'])} FROM ({task['text']})"
    seconds, idle = [], []
    for _ in range(job["repeats"]):
        idle.append(timed(tables, idle_text))
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
    table = pq.read_table(events)
    # Flink's event time has milliseconds.
    place = table.column_names.index("ts")
    field = pa.field("ts", pa.timestamp("ms"))
    table = table.set_column(place, field, table.column("ts").cast(field.type)).combine_chunks()
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        for each in table.to_batches(max_chunksize=batch):
            writer.write_batch(each)
    return path


def never(events: pa.Schema) -> str:
    """Return a condition that no event fulfils."""
    names = {each.type: each.name for each in events}
    if pa.float64() in names:
        return f"{names[pa.float64()]} < -1e300"
    return f"{names[pa.int64()]} < -9000000000000000000"


def register(tables: StreamTableEnvironment, stream: str, path: Path, events: pa.Schema) -> None:
    """Make the events a table with event time.

    `from_pandas` makes the same source, but has no words for a watermark; and a detour by way of
    a DataStream, which has, would convert every row twice.
    """
    kinds = {each.name: TYPES[each.type] for each in events}
    row = DataTypes.ROW([DataTypes.FIELD(name, kind) for name, (_, kind) in kinds.items()])
    row_data = load_java_class("org.apache.flink.table.data.RowData")
    source = get_gateway().jvm.org.apache.flink.table.runtime.arrow.ArrowUtils
    described = source.createArrowTableSourceDesc(
        _to_java_data_type(row).notNull().bridgedTo(row_data), str(path)
    )
    schema = Schema.new_builder()
    for name, (kind, _) in kinds.items():
        schema = schema.column(name, kind)
    # The events are in order of time, in each of the source's two tasks as well.
    schema = schema.watermark("ts", "ts").build()
    described = described.toBuilder().schema(schema._j_schema).build()
    tables._j_tenv.createTemporaryTable(stream, described)


if __name__ == "__main__":
    main()
