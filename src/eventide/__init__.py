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
    accumulators/  partial results that merge: shared by operators and the index
    database.py    the door for users             cli/       the same from a shell
    matches.py     matches of temporal patterns, as rows and drawn
    lifetimes.py   when rows of standing queries came and went, drawn
    matching.py    row patterns in Python, as query text
    explanation/   how a query is answered, as text and as a picture
    stream.py      one stream, for users          calendars.py  days and months as spans of time
    replay/        stored events once more         pace.py   how fast they come
    demo/          the product in two minutes

Reading it for the first time? Start at engines/answer.py, which is short and touches all of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eventide.database import Database, sql, tpstream
    from eventide.database import open_database as open
    from eventide.engines.spark.database import SparkDatabase
    from eventide.engines.spark.database import spark_database as spark
    from eventide.errors import EventideError
    from eventide.lifetimes import plot_lifetimes
    from eventide.matches import Matches, plot_situations
    from eventide.matching import (
        Match,
        Step,
        absent,
        exclude,
        match,
        no_row,
        partition_end,
        partition_start,
        permute,
        variable,
        variables,
    )
    from eventide.relation import Relation
    from eventide.replay import Replay, Replayed, ReplayProgress
    from eventide.result import Result
    from eventide.schema import Schema
    from eventide.store.index.aggregates import UserAggregate, register_aggregate
    from eventide.store.options import StreamOptions
    from eventide.stream import Stream
    from eventide.subscription import Subscription

__version__ = "0.1.0"

# Names are looked up when they are used: a Spark worker, or `eventide --help`, needs few of them.
HOMES = {
    "Database": ("eventide.database", "Database"),
    "EventideError": ("eventide.errors", "EventideError"),
    "Match": ("eventide.matching", "Match"),
    "Matches": ("eventide.matches", "Matches"),
    "Relation": ("eventide.relation", "Relation"),
    "Replay": ("eventide.replay", "Replay"),
    "ReplayProgress": ("eventide.replay", "ReplayProgress"),
    "Replayed": ("eventide.replay", "Replayed"),
    "Result": ("eventide.result", "Result"),
    "Schema": ("eventide.schema", "Schema"),
    "SparkDatabase": ("eventide.engines.spark.database", "SparkDatabase"),
    "Step": ("eventide.matching", "Step"),
    "Stream": ("eventide.stream", "Stream"),
    "StreamOptions": ("eventide.store", "StreamOptions"),
    "Subscription": ("eventide.subscription", "Subscription"),
    "UserAggregate": ("eventide.store.index.aggregates", "UserAggregate"),
    "absent": ("eventide.matching", "absent"),
    "exclude": ("eventide.matching", "exclude"),
    "match": ("eventide.matching", "match"),
    "no_row": ("eventide.matching", "no_row"),
    "open": ("eventide.database", "open_database"),
    "partition_end": ("eventide.matching", "partition_end"),
    "partition_start": ("eventide.matching", "partition_start"),
    "permute": ("eventide.matching", "permute"),
    "plot_lifetimes": ("eventide.lifetimes", "plot_lifetimes"),
    "plot_situations": ("eventide.matches", "plot_situations"),
    "register_aggregate": ("eventide.store.index.aggregates", "register_aggregate"),
    "spark": ("eventide.engines.spark.database", "spark_database"),
    "sql": ("eventide.database", "sql"),
    "tpstream": ("eventide.database", "tpstream"),
    "variable": ("eventide.matching", "variable"),
    "variables": ("eventide.matching", "variables"),
}

__all__ = [
    "Database",
    "EventideError",
    "Match",
    "Matches",
    "Relation",
    "Replay",
    "ReplayProgress",
    "Replayed",
    "Result",
    "Schema",
    "SparkDatabase",
    "Step",
    "Stream",
    "StreamOptions",
    "Subscription",
    "UserAggregate",
    "absent",
    "exclude",
    "match",
    "no_row",
    "open",
    "partition_end",
    "partition_start",
    "permute",
    "plot_lifetimes",
    "plot_situations",
    "register_aggregate",
    "spark",
    "sql",
    "tpstream",
    "variable",
    "variables",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name not in HOMES:
        message = f"module 'eventide' has no attribute {name!r}"
        raise AttributeError(message)
    module, attribute = HOMES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return __all__
