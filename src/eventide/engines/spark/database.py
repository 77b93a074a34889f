"""A query becomes a DataFrame: over the store, over other DataFrames, over a stream of rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from eventide.batch import ALL_TIME
from eventide.engines.build import build_pipeline
from eventide.engines.choice import ways
from eventide.engines.count_index import CountIndex
from eventide.engines.intervals.ways import IntervalAccess
from eventide.engines.placement import describe_spark
from eventide.engines.slices import halo_of
from eventide.engines.spark.aggregate import IndexAnswers
from eventide.engines.spark.frames import over_frame, over_store_by_key
from eventide.engines.spark.history import over_store
from eventide.engines.spark.joined import joined_frame
from eventide.engines.spark.maintenance import TaskJobs
from eventide.engines.spark.source import EventideSource
from eventide.engines.spark.spans import over_spans
from eventide.engines.spark.stream import BUCKETS, over_stream
from eventide.engines.spark.stream_source import CLOCK, ROWS_PER_BATCH
from eventide.engines.spark.types import schema_of, spark_schema
from eventide.engines.spark.work import no_database
from eventide.engines.weights import DEFAULTS
from eventide.engines.window_index import WindowIndex
from eventide.errors import BindError, UnsupportedError
from eventide.lang.sql import plan_sql
from eventide.lang.sql.statement import require_tpstream
from eventide.matching import Query
from eventide.pace import Speed
from eventide.plan.explain import explain
from eventide.plan.nodes import PeriodJoin, Plan, Relational, scans_of
from eventide.plan.times import Duration, duration_us
from eventide.result import Result
from eventide.schema import SEQ, TS, Schema
from eventide.store import Store, StoredStream
from eventide.stream import Stream, Time, forward_range, instant

MOST_ON_DRIVER = 200_000
"""So many slices the driver asks of the index itself; more are left to tasks."""


class SparkDatabase:
    """The queries of Eventide on a Spark session. `eventide.spark` makes it.

    Streams are those of the database, and the DataFrames that are given by name. Maintenance of
    stored streams is the embedded one, with a Spark task for each piece of work.
    """

    def __init__(self, session: SparkSession, path: str | Path | None = None) -> None:
        self.session = session
        self.store = None if path is None else Store.open(path, create=False)
        self.weights = DEFAULTS
        session.dataSource.register(EventideSource)

    def stored(self, name: str) -> StoredStream:
        """Return a stream of the database."""
        if self.store is None:
            raise no_database()
        return self.store.stream(name)

    def aggregate(
        self,
        stream: str,
        *calls: str,
        start: Time | None = None,
        end: Time | None = None,
        every: Duration | None = None,
        by: str | None = None,
        zone: str = "UTC",
    ) -> Result:
        """Answer aggregates such as `avg(speed)` or `count(*)` of a stored stream.

        Arguments and answers are those of `Stream.aggregate`. The driver answers from the index,
        and starts no Spark job, for segments and index entries that lie wholly in a span, and
        for leaves at the ends of spans while they are few. Tasks run only where over 4 million
        rows have to be read: leaves that many short spans cut, or segments that do not keep the
        aggregate.
        """
        answer = IndexAnswers(self.session)
        asked = Stream(self.stored(stream), lambda _name, _events: None, answer)
        return asked.aggregate(*calls, start=start, end=end, every=every, by=by, zone=zone)

    def compact(self, stream: str) -> int:
        """Merge small and overlapping segments, a task for each group; return how many."""
        return self.stored(stream).compact(run=TaskJobs(self.session))

    def rebuild_indexes(self, stream: str) -> int:
        """Build the secondary indexes that segments lack, a task each; return how many."""
        return self.stored(stream).rebuild_indexes(run=TaskJobs(self.session))

    def backfill(self, stream: str) -> int:
        """Rewrite the segments whose index lacks aggregates, a task each; return how many."""
        return self.stored(stream).backfill(run=TaskJobs(self.session))

    def thin(self, stream: str, before: Time, *, level: int = 1) -> int:
        """Reduce the segments that end before a time to aggregates, a task each; return how many.

        Level 1 keeps those of every leaf, some 16,000 events; each further level those of 64
        times as many.
        """
        return self.stored(stream).thin(instant(before), level, run=TaskJobs(self.session))

    def catalog(self, frames: dict[str, DataFrame]) -> dict[str, Schema]:
        """Return the schema of every stream a query may name."""
        names = self.store.streams() if self.store else ()
        stored = {name: self.store.stream(name).schema for name in names} if self.store else {}
        return stored | {name: schema_of(frame) for name, frame in frames.items()}

    def sql(self, query: Query, /, **frames: DataFrame) -> DataFrame:
        """Return the answer to a query over history, as a DataFrame."""
        text = str(query)
        plan = plan_sql(text, self.catalog(frames))
        if not isinstance(plan, Relational):
            return self.block(plan, frames)
        inputs = [(name, self.input(source, frames)) for name, source in plan.inputs]
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

    def tpstream(self, text: str, /, **frames: DataFrame) -> DataFrame:
        """Return the matches of a TPStream statement over history, as a DataFrame."""
        require_tpstream(text)
        return self.sql(text, **frames)

    def input(self, plan: Plan, frames: dict[str, DataFrame]) -> DataFrame:
        """Return the rows of an input of the rest: of a block, or of several that are joined."""
        if not isinstance(plan, PeriodJoin):
            return self.block(plan, frames)
        return joined_frame(plan, self.input(plan.left, frames), self.input(plan.right, frames))

    def block(self, plan: Plan, frames: dict[str, DataFrame]) -> DataFrame:
        """Return the rows of a plan over one scan."""
        (scan,) = scans_of(plan)
        if scan.stream in frames:
            frame = frames[scan.stream]
            return over_frame(plan, frame, schema_of(frame))
        source = self.stored(scan.stream).snapshot()
        # Spans by key are found on one machine only: the next best way is taken then.
        best = next(
            each
            for each in ways(plan, source, self.weights).accesses
            if not (isinstance(each, IntervalAccess) and each.question.by_key)
        )
        if isinstance(best, WindowIndex | CountIndex) and best.estimate.intervals <= MOST_ON_DRIVER:
            rows, _ = best.run()
            table = pa.Table.from_batches(rows, build_pipeline(plan).output_schema)
            return self.session.createDataFrame(table, spark_schema(table.schema))
        if isinstance(best, IntervalAccess):
            return over_spans(self.session, best)
        if halo_of(plan) is None:
            return over_store_by_key(self.session, plan, source)
        return over_store(self.session, plan, source)

    def stream(
        self,
        query: Query,
        /,
        *,
        lateness: Duration = "0 s",
        buckets: int = BUCKETS,
        **frames: DataFrame,
    ) -> DataFrame:
        """Return the answer to a query over a streaming DataFrame, as a streaming DataFrame.

        A row leaves once the watermark, the newest time seen less `lateness`, has passed it.
        Events behind the watermark are left out and counted: the query's progress shows them as
        `observedMetrics["eventide"]`. Keys are spread over `buckets`, a number that stays the
        same for the life of a checkpoint.
        """
        # The clock of a replay is no attribute of its events.
        events = {name: frame.drop(CLOCK) for name, frame in frames.items()}
        plan = plan_sql(str(query), {name: schema_of(frame) for name, frame in events.items()})
        build_pipeline(plan)  # says what cannot run live before anything is asked of Spark
        (scan,) = scans_of(plan)
        frame = frames[scan.stream]
        if not frame.isStreaming:
            message = f"the DataFrame {scan.stream!r} is not a stream"
            raise UnsupportedError(message, hint="use sql(text, name=df), or spark.readStream")
        schema = schema_of(events[scan.stream])
        return over_stream(plan, frame, schema, duration_us(lateness), buckets)

    def replay(  # noqa: PLR0913 - those of `stream`, and those of `Database.replay`
        self,
        query: Query,
        /,
        *,
        start: Time | None = None,
        end: Time | None = None,
        speed: Speed | None = None,
        rows_per_batch: int = ROWS_PER_BATCH,
        lateness: Duration = "0 s",
        buckets: int = BUCKETS,
    ) -> DataFrame:
        """Return the answer to a query over stored events that come again, as a stream.

        The stored events of [start, end) arrive in order of time, in micro-batches of
        `rows_per_batch`, or with `speed`, such as "10x", of what has become due since the last.
        What is appended after the query has begun is not replayed, not even after a restart.
        The end of the range completes what is still open.
        """
        if self.store is None:
            raise no_database()
        plan = plan_sql(str(query), self.catalog({}))
        build_pipeline(plan)  # says what cannot run live before anything is asked of Spark
        (scan,) = scans_of(plan)
        times = forward_range(start, end).intersect(scan.time_range)
        names = dict.fromkeys([TS, SEQ, *(name for name, _ in scan.columns)])
        options = {"stream": scan.stream, "columns": ",".join(names), "clock": "true"}
        options |= {"rows_per_batch": str(rows_per_batch)}
        options |= {} if speed is None else {"speed": str(speed)}
        options |= {} if times.start_us == ALL_TIME.start_us else {"from": str(times.start_us)}
        options |= {} if times.end_us == ALL_TIME.end_us else {"to": str(times.end_us)}
        source = self.session.readStream.format("eventide").options(**options)
        frame = source.load(str(self.store.path))
        return self.stream(query, lateness=lateness, buckets=buckets, **{scan.stream: frame})

    def explain(self, query: Query, /, **frames: DataFrame) -> str:
        """Return how a query would be answered: its plan, and where it would run."""
        plan = plan_sql(str(query), self.catalog(frames))
        cores = self.session.sparkContext.defaultParallelism
        return f"{explain(plan)}\n\n{describe_spark(plan, frozenset(frames), cores)}"


def spark_database(session: SparkSession, path: str | Path | None = None) -> SparkDatabase:
    """Return the queries of Eventide on a Spark session, over a database if a path is given."""
    return SparkDatabase(session, path)
