"""Store event streams, query them, find patterns in them.

    schema.py      what an event looks like       instants.py    instants and periods of time
    errors.py      all errors, one class a stage  local_path.py  paths and `file:` addresses
    interrupts.py  Ctrl-C during long work        visible.py     control characters made visible
    threads.py     threads that share work        arrays.py      Arrow columns from NumPy arrays
    api/           what users work with: databases, streams, results, live queries
    ingest/        bring events in, in time order
    store/         keep them in time-ordered segments
    lang/          query text to plan nodes
    plan/          a query as a checked, optimised plan; decides everything, runs nothing
    operators/     the steps a plan is made of; kernels/ are their inner loops
    accumulators/  partial results that merge: shared by operators and the index
    engines/       run a plan here over history, here live, or on Spark
    sinks/         hand results over              drawing/   pictures of periods and plans
    rules/         detection rules, written in Sigma, as queries
    cli/           the same from a shell          demo/      the product in two minutes

lang/sql, plan, operators, kernels and engines have the same rooms: windows, patterns, situations,
standing. Reading it for the first time? Start at engines/history/answer.py, which is short and
touches all of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eventide import rules
    from eventide.api.builder import Match, match
    from eventide.api.database import Database
    from eventide.api.database import open_database as open
    from eventide.api.in_memory import cel, sql, tpstream
    from eventide.api.lifetimes import plot_lifetimes
    from eventide.api.live.clocks.clock import ManualClock
    from eventide.api.live.query import LiveQuery
    from eventide.api.matches import Matches, plot_situations
    from eventide.api.relation import Relation
    from eventide.api.replay.run import Replay, Replayed, ReplayProgress
    from eventide.api.result import Result
    from eventide.api.steps import (
        Step,
        absent,
        exclude,
        no_row,
        partition_end,
        partition_start,
        permute,
        variable,
        variables,
    )
    from eventide.api.stream import Stream
    from eventide.engines.spark.database import SparkDatabase
    from eventide.engines.spark.database import spark_database as spark
    from eventide.errors import EventideError
    from eventide.plan.user_functions import UserFunction, register_function
    from eventide.schema import Schema
    from eventide.store.index.aggregates import UserAggregate, register_aggregate
    from eventide.store.options import StreamOptions

__version__ = "0.1.0"

# Names are looked up when they are used: a Spark worker, or `eventide --help`, needs few of them.
HOMES = {
    "Database": ("eventide.api.database", "Database"),
    "EventideError": ("eventide.errors", "EventideError"),
    "Match": ("eventide.api.builder", "Match"),
    "Matches": ("eventide.api.matches", "Matches"),
    "Relation": ("eventide.api.relation", "Relation"),
    "Replay": ("eventide.api.replay.run", "Replay"),
    "ReplayProgress": ("eventide.api.replay.run", "ReplayProgress"),
    "Replayed": ("eventide.api.replay.run", "Replayed"),
    "Result": ("eventide.api.result", "Result"),
    "Schema": ("eventide.schema", "Schema"),
    "SparkDatabase": ("eventide.engines.spark.database", "SparkDatabase"),
    "Step": ("eventide.api.steps", "Step"),
    "Stream": ("eventide.api.stream", "Stream"),
    "StreamOptions": ("eventide.store", "StreamOptions"),
    "LiveQuery": ("eventide.api.live.query", "LiveQuery"),
    "ManualClock": ("eventide.api.live.clocks.clock", "ManualClock"),
    "UserAggregate": ("eventide.store.index.aggregates", "UserAggregate"),
    "UserFunction": ("eventide.plan.user_functions", "UserFunction"),
    "absent": ("eventide.api.steps", "absent"),
    "cel": ("eventide.api.in_memory", "cel"),
    "exclude": ("eventide.api.steps", "exclude"),
    "match": ("eventide.api.builder", "match"),
    "no_row": ("eventide.api.steps", "no_row"),
    "open": ("eventide.api.database", "open_database"),
    "partition_end": ("eventide.api.steps", "partition_end"),
    "partition_start": ("eventide.api.steps", "partition_start"),
    "permute": ("eventide.api.steps", "permute"),
    "plot_lifetimes": ("eventide.api.lifetimes", "plot_lifetimes"),
    "plot_situations": ("eventide.api.matches", "plot_situations"),
    "register_aggregate": ("eventide.store.index.aggregates", "register_aggregate"),
    "register_function": ("eventide.plan.user_functions", "register_function"),
    "spark": ("eventide.engines.spark.database", "spark_database"),
    "sql": ("eventide.api.in_memory", "sql"),
    "tpstream": ("eventide.api.in_memory", "tpstream"),
    "variable": ("eventide.api.steps", "variable"),
    "variables": ("eventide.api.steps", "variables"),
}

__all__ = [
    "Database",
    "EventideError",
    "LiveQuery",
    "ManualClock",
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
    "UserAggregate",
    "UserFunction",
    "absent",
    "cel",
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
    "register_function",
    "rules",
    "spark",
    "sql",
    "tpstream",
    "variable",
    "variables",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name == "rules":
        return import_module("eventide.rules")
    if name not in HOMES:
        message = f"module 'eventide' has no attribute {name!r}"
        raise AttributeError(message)
    module, attribute = HOMES[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return __all__
