"""Lets Spark find `format("eventide")` by itself: it looks into packages named `pyspark_…`."""

from eventide.engines.spark.source.batch import EventideSource as DefaultSource

__all__ = ["DefaultSource"]
