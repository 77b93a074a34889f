"""What `eventide.spark(…)` offers to those who ask many queries at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame, SparkSession

from eventide.api.live.shared.asked import Texts, asked
from eventide.engines.spark.answer import Given
from eventide.engines.spark.sharing.asked import ManyAsked
from eventide.engines.spark.sharing.batch import over_history
from eventide.lang.sql.statement import Statement, read_statement
from eventide.plan.tree import Plan
from eventide.schema import Schema


class ManyCalls(ABC):
    """The calls with many queries; each runs as the call with one query would run it."""

    session: SparkSession

    @abstractmethod
    def check_workers(self) -> None:
        """Refuse a session whose workers cannot run what they are to be sent."""

    @abstractmethod
    def catalog(self, frames: dict[str, DataFrame]) -> dict[str, Schema]:
        """Return the schema of every stream a query may name."""

    @abstractmethod
    def plan(
        self, query: str | Statement, frames: dict[str, DataFrame], params: object = None
    ) -> Plan:
        """Return the plan of a query over history."""

    @abstractmethod
    def given_streams(self, names: Iterable[str], frames: Mapping[str, DataFrame]) -> Given:
        """Return what some streams are, every stored one as it is at this moment."""

    @abstractmethod
    def answer(
        self, statement: Statement, frames: dict[str, DataFrame], params: object
    ) -> DataFrame:
        """Return the rows of a statement over history."""

    def sql_many(
        self, queries: Texts, parameters: object = None, /, **frames: DataFrame
    ) -> DataFrame:
        """Return the rows of many queries over history, as one DataFrame: one job.

        `queries` and `parameters` are those of `Database.sql_many`. All queries have the same
        columns; a first one, `query`, says whose a row is. Those that share read each stream once:
        their events are distributed by key, or where queries have none, the queries are.
        `explain_many` says which. A query that has no value for an event ends the job.
        """
        many = self.asked(queries, parameters, frames)
        given = self.given_streams(many.streams, frames)
        self.check_workers()

        def alone(text: str, params: Mapping[str, object] | None) -> DataFrame:
            return self.answer(read_statement(text), frames, params)

        zoneless = many.zoneless(given.zoneless)
        shared = over_history(self.session, many, given, zoneless) if many.portions else None
        return many.together(shared, zoneless, alone)

    def explain_many(
        self, queries: Texts, parameters: object = None, /, **frames: DataFrame
    ) -> str:
        """Return how many queries would be distributed: by key, by query, or each by itself."""
        return self.asked(queries, parameters, frames).explained

    def asked(self, queries: Texts, parameters: object, frames: dict[str, DataFrame]) -> ManyAsked:
        """Plan many queries over history."""

        def plan(text: str, params: Mapping[str, object] | None) -> Plan:
            return self.plan(text, frames, params)

        return ManyAsked.of(asked(queries, parameters), plan, self.catalog(frames).keys())
