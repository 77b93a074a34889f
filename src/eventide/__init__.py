"""Store event streams, query them, find patterns in them.

    schema.py      what an event looks like       batch.py   what travels between operators
    errors.py      what can go wrong, one class a stage
    ingest/        bring events in, in time order
    store/         keep them in time-ordered segments
    lang/          query text to plan nodes
    plan/          a query as a checked, optimised plan; decides everything, runs nothing
    operators/     the steps a plan is made of; kernels/ are their inner loops
    engines/       run a plan here over history, here live, or on Spark
    sinks/         hand results over
    database.py    the door for users             cli.py     the same from a shell

Reading it for the first time? Start at engines/history.py, which is short and touches all of it.
"""

from eventide.database import Database, Stream, sql
from eventide.database import open_database as open
from eventide.errors import EventideError
from eventide.result import Result
from eventide.schema import Schema
from eventide.subscription import Subscription

__version__ = "0.1.0"

__all__ = [
    "Database",
    "EventideError",
    "Result",
    "Schema",
    "Stream",
    "Subscription",
    "open",
    "sql",
]
