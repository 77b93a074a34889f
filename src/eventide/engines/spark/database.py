"""A query becomes a DataFrame: over the store, over other DataFrames, over a stream of rows."""

from __future__ import annotations

from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from eventide.engines.build import build_pipeline
from eventide.engines.placement import describe_spark
from eventide.engines.slices import halo_of
from eventide.engines.spark.frames import over_frame, over_store_by_key
from eventide.engines.spark.history import over_store
from eventide.engines.spark.source import EventideSource
from eventide.engines.spark.stream import BUCKETS, over_stream
from eventide.engines.spark.types import schema_of
from eventide.errors import BindError, UnsupportedError
from eventide.lang.sql import plan_sql
from eventide.plan.explain import explain
from eventide.plan.nodes import Plan, Relational, scans_of
from eventide.plan.times import Duration, duration_us
from eventide.schema import Schema
from eventide.store import Store


class SparkDatabase:
    """The queries of Eventide on a Spark session. `eventide.spark` makes it.

    Streams are those of the database, and the DataFrames that are given by name.
    """

    def __init__(self, session: SparkSession, path: str | Path | None = None) -> None:
        self.session = session
        self.store = None if path is None else Store.open(path, create=False)
        session.dataSource.register(EventideSource)

    def catalog(self, frames: dict[str, DataFrame]) -> dict[str, Schema]:
        """Return the schema of every stream a query may name."""
        names = self.store.streams() if self.store else ()
        stored = {name: self.store.stream(name).schema for name in names} if self.store else {}
        return stored | {name: schema_of(frame) for name, frame in frames.items()}

    def sql(self, text: str, /, **frames: DataFrame) -> DataFrame:
        """Return the answer to a query over history, as a DataFrame."""
        plan = plan_sql(text, self.catalog(frames))
        if not isinstance(plan, Relational):
            return self.block(plan, frames)
        inputs = [(name, self.block(source, frames)) for name, source in plan.inputs]
        # A view is only a name while Spark reads the text; the DataFrame no longer needs it.
        for name, frame in inputs:
            frame.createOrReplaceTempView(name)
        try:
            return self.session.sql(plan.spark_sql)
        except AnalysisException as error:
            said = error.getMessage() or str(error)
            message = f"the SQL around the streams is wrong: {said.splitlines()[0]}"
            hint = f"what remained was: {plan.spark_sql}"
            raise BindError(message, hint=hint).located_in(text) from error
        finally:
            for name, _ in inputs:
                self.session.catalog.dropTempView(name)

    def block(self, plan: Plan, frames: dict[str, DataFrame]) -> DataFrame:
        """Return the rows of a plan over one scan."""
        (scan,) = scans_of(plan)
        if scan.stream in frames:
            frame = frames[scan.stream]
            return over_frame(plan, frame, schema_of(frame))
        assert self.store is not None
        source = self.store.stream(scan.stream).snapshot()
        if halo_of(plan) is None:
            return over_store_by_key(self.session, plan, source)
        return over_store(self.session, plan, source)

    def stream(
        self, text: str, *, lateness: Duration = "0 s", buckets: int = BUCKETS, **frames: DataFrame
    ) -> DataFrame:
        """Return the answer to a query over a streaming DataFrame, as a streaming DataFrame.

        A row leaves once the watermark, the newest time seen less `lateness`, has passed it.
        Events behind the watermark are left out and counted: the query's progress shows them as
        `observedMetrics["eventide"]`. Keys are spread over `buckets`, a number that stays the
        same for the life of a checkpoint.
        """
        plan = plan_sql(text, {name: schema_of(frame) for name, frame in frames.items()})
        build_pipeline(plan)  # says what cannot run live before anything is asked of Spark
        (scan,) = scans_of(plan)
        frame = frames[scan.stream]
        if not frame.isStreaming:
            message = f"the DataFrame {scan.stream!r} is not a stream"
            raise UnsupportedError(message, hint="use sql(text, name=df), or spark.readStream")
        return over_stream(plan, frame, schema_of(frame), duration_us(lateness), buckets)

    def explain(self, text: str, /, **frames: DataFrame) -> str:
        """Return how a query would be answered: its plan, and where it would run."""
        plan = plan_sql(text, self.catalog(frames))
        return f"{explain(plan)}\n\n{describe_spark(plan, frozenset(frames))}"


def spark_database(session: SparkSession, path: str | Path | None = None) -> SparkDatabase:
    """Return the queries of Eventide on a Spark session, over a database if a path is given."""
    return SparkDatabase(session, path)
