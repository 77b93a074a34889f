"""How many events came too late, among the metrics of a streaming query."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

METRIC = "eventide"
"""The name under which a streaming query's progress reports late events."""
RESULTS: WeakKeyDictionary[SparkSession, int] = WeakKeyDictionary()
"""How many results of streams a session has."""


def counting_late(completed: DataFrame) -> DataFrame:
    """Report late events under a unique name: Spark refuses a union of two with the same name."""
    session = completed.sparkSession
    number = RESULTS[session] = RESULTS.get(session, 0) + 1
    late = f.coalesce(f.sum("late_events"), f.lit(0)).alias("late_events")
    return completed.observe(METRIC if number == 1 else f"{METRIC}_{number}", late)
