"""A local Spark session that is set up well for Eventide."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from shutil import which
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from eventide.errors import UnsupportedError

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

CONFIGURATION = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Fewer, larger batches: a kernel call has a fixed cost.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.driver.memory": "4g",
}


def check_java() -> None:
    """Say in one sentence what is missing; Spark's own message has forty lines."""
    home = os.environ.get("JAVA_HOME")
    found = Path(home, "bin", "java").exists() if home else which("java") is not None
    if not found:
        message = "Spark needs Java 17 or newer, and none was found"
        hint = "install a JDK 17 (Debian, Ubuntu: apt-get install openjdk-17-jre-headless)"
        raise UnsupportedError(message, hint=hint)


def local_session(name: str = "eventide", cores: int | None = None) -> SparkSession:
    """Return a session on this machine's cores, quiet and ready for `eventide.spark`."""
    check_java()
    cores = cores or os.cpu_count() or 1
    # Workers run the python3 on the PATH otherwise, which may lack this package. The setting
    # spark.pyspark.python comes too late once a context is made from Python.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{cores}]").appName(name)
    for key, value in CONFIGURATION.items():
        builder = builder.config(key, value)
    session = builder.config("spark.sql.shuffle.partitions", str(cores)).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


CORES: WeakKeyDictionary[SparkSession, int] = WeakKeyDictionary()
"""What `cores` has found."""


def cores(session: SparkSession) -> int:
    """Return how many tasks of a session run at a time."""
    if session not in CORES:
        CORES[session] = (
            parallelism(session) if is_connect(session) else session.sparkContext.defaultParallelism
        )
    return CORES[session]


def parallelism(session: SparkSession) -> int:
    """Return into how many partitions Spark cuts a range, which a remote client can ask too."""
    parts = session.range(1_000_000).select(f.spark_partition_id().alias("part"))
    return int(parts.agg(f.max("part")).collect()[0][0]) + 1


def is_connect(session: SparkSession) -> bool:
    """Whether a session is one of Spark Connect: a client, with no JVM beside it."""
    return type(session).__module__.startswith("pyspark.sql.connect.")
