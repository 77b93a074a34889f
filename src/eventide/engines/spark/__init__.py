"""The same queries on Spark. Adapters that place work; the embedded operators compute.

database.py   a query becomes a DataFrame: over the store, over other DataFrames, over a stream
session.py    a local session that is set up well
types.py      Spark's types and ours, and how columns cross the border
zones.py      which times of a result have no zone
rest.py       the SQL around our operators, in which all times are in UTC
work.py       work items: what a task has to do, sent to that task alone
history.py    a task opens the store itself and runs the operators there
aggregate.py  aggregates from the index, by the driver; tasks where rows have to be read
maintenance.py  compaction, index rebuild, backfill and thinning as tasks
frames.py     any DataFrame: shuffled once, in blocks by bucket of keys
prefilter.py  leave rows behind in the JVM that a query does not want
stream.py     a streaming DataFrame: the live engine as a stateful processor, a state a bucket
source.py     the store as a data source: `format("eventide")`
agreement.py  one snapshot for all tasks of an execution
options.py    the options of the data source
workers.py    whether the workers of a session can do the work
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
