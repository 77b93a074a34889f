"""The store as a Spark data source: `format("eventide")`.

batch.py      reading and writing
stream.py     the events of a time range, replayed as a stream
options.py    its options
agreement.py  one snapshot for all tasks of an execution
"""
