"""The same queries on Spark. Adapters that distribute work; the embedded operators compute.

database.py     a query becomes a DataFrame: over the store, over other DataFrames, over a stream
session.py      a local session with good settings
types.py        Spark's types and ours, and how columns cross the border
zones.py        which times of a result have no zone
rest.py         the SQL around our operators, in which all times are in UTC
work.py         work items: what a task has to do, sent only to that task
history.py      over the store: a task opens it by itself and runs the operators there
periods.py      row patterns from the index: the driver finds periods, tasks replay them
aggregate.py    aggregates from the index, by the driver; tasks where rows have to be read
maintenance.py  compaction, index rebuild, backfill and thinning as tasks
frames.py       over DataFrames and several streams: shuffled once, by bucket of keys
joined.py       periods joined by relation
prefilter.py    filter rows in the JVM that a query does not need
spread.py       events as blocks by leaf and bucket; labels.py: the numbers of buckets
stream.py       over streaming DataFrames: the live engine as a stateful processor
late_events.py  how many events came too late, as a metric
workers.py      whether the workers of a session can do the work
source/         the store as a data source: `format("eventide")`
"""

from __future__ import annotations

from eventide.errors import UnsupportedError

try:
    import pyspark as pyspark
except ModuleNotFoundError as error:
    if error.name != "pyspark":
        raise
    message = "Spark is not installed: there is no package pyspark"
    hint = "pip install 'eventide[spark]', and a Java of version 17 or newer"
    raise UnsupportedError(message, hint=hint) from error
