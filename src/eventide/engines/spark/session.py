"""A local Spark session that is set up well for Eventide."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from shutil import which

from pyspark.sql import SparkSession

from eventide.errors import UnsupportedError

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

CONFIGURATION = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Fewer, larger batches: a kernel call has a price of its own.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.driver.memory": "4g",
}


def check_java() -> None:
    """Say in one sentence what is missing; Spark itself says it in forty lines."""
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
