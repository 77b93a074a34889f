"""Run a plan: here over history, here live, or on Spark. The same operators everywhere.

build.py         a plan becomes a tree of operators; placing.py: how they are put in it
partitioning.py  by which keys the work can be distributed
buckets.py       rows by bucket of keys, to distribute work
history/         over what is stored: by replay, or through the index
live/            over events as they arrive
standing/        standing queries, over history and live
spark/           the same on Spark
explain/         how a query is answered, for explain
"""
