"""A query becomes a DataFrame: over the store, over other DataFrames, over a stream of rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from eventide.api.builder import Query
from eventide.api.named import Named, NamedQueries
from eventide.api.published import publish
from eventide.api.replay.pace import Speed
from eventide.api.result import Result
from eventide.api.stream import Stream, Time, forward_range, instant
from eventide.engines.build import build_live_tree
from eventide.engines.explain.placement import describe_spark
from eventide.engines.history.weights import DEFAULTS
from eventide.engines.spark.aggregate import IndexAnswers
from eventide.engines.spark.answer import Given, SparkAnswer
from eventide.engines.spark.maintenance import TaskJobs
from eventide.engines.spark.session import cores
from eventide.engines.spark.sharing.calls import ManyCalls
from eventide.engines.spark.source.batch import EventideSource
from eventide.engines.spark.source.stream import CLOCK, ROWS_PER_BATCH
from eventide.engines.spark.stream import BUCKETS, Going, over_streams
from eventide.engines.spark.types import schema_of, spark_schema, zoneless_in
from eventide.engines.spark.work import no_database
from eventide.engines.spark.workers import check_workers
from eventide.engines.spark.zones import zoneless_columns
from eventide.errors import BindError, UnsupportedError, pointing_into
from eventide.instants import ALL_TIME
from eventide.lang.parameters import Parameters
from eventide.lang.sql import plan_sql
from eventide.lang.sql.named.head import CreateRequest, DropRequest, named_request
from eventide.lang.sql.named.texts import NamedTexts
from eventide.lang.sql.statement import Statement, read_statement, read_tpstream
from eventide.plan.events.written import refuse_written, written_tables
from eventide.plan.explain import explain
from eventide.plan.nodes import scans_of
from eventide.plan.sizes import Bytes, size_bytes
from eventide.plan.standing.choose import steady_plan
from eventide.plan.times import Duration, duration_us
from eventide.plan.tree import Plan
from eventide.schema import SEQ, TS, Schema
from eventide.store import Store, StoredStream


class SparkDatabase(ManyCalls):
    """The queries of Eventide on a Spark session. `eventide.spark` makes it.

    Streams are those of the database, and the DataFrames that are given by name; named queries are
    those of the database. Maintenance of stored streams is the embedded one, with a Spark task for
    each part of the work.
    """

    def __init__(self, session: SparkSession, path: str | Path | None = None) -> None:
        self.session = session
        self.store = None if path is None else Store.open(path, create=False)
        self.named = None if self.store is None else NamedQueries(self.store)
        self.weights = DEFAULTS
        session.dataSource.register(EventideSource)

    def check_workers(self) -> None:
        """Refuse a session whose workers cannot run what they are to be sent; ask but once."""
        check_workers(self.session, None if self.store is None else self.store.path)

    def tasks(self) -> TaskJobs:
        """Return what runs the jobs of maintenance as tasks."""
        self.check_workers()
        return TaskJobs(self.session)

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
        and starts no Spark job, for segments and index entries that lie wholly in a period, and
        for leaves at the ends of periods while they are few. Tasks run only where over 4 million
        rows have to be read: leaves that many short periods cut, or segments that do not keep the
        aggregate.
        """
        answer = IndexAnswers(self.session)
        asked = Stream(self.stored(stream), lambda *_: None, answer)
        return asked.aggregate(*calls, start=start, end=end, every=every, by=by, zone=zone)

    def compact(self, stream: str) -> int:
        """Merge small and overlapping segments, a task for each group; return how many."""
        return self.stored(stream).compact(run=self.tasks())

    def rebuild_indexes(self, stream: str) -> int:
        """Build the secondary indexes that segments lack, a task each; return how many."""
        return self.stored(stream).rebuild_indexes(run=self.tasks())

    def backfill(self, stream: str) -> int:
        """Rewrite the segments whose index lacks aggregates, a task each; return how many."""
        return self.stored(stream).backfill(run=self.tasks())

    def thin(self, stream: str, before: Time, *, level: int = 1) -> int:
        """Reduce the segments that end before a time to aggregates, a task each; return how many.

        Level 1 keeps those of every leaf, some 16,000 events; each further level those of 64
        times as many.
        """
        return self.stored(stream).thin(instant(before), level, run=self.tasks())

    def catalog(self, frames: dict[str, DataFrame]) -> dict[str, Schema]:
        """Return the schema of every stream a query may name."""
        names = self.store.streams() if self.store else ()
        stored = {name: self.store.stream(name).schema for name in names} if self.store else {}
        return stored | {name: schema_of(frame) for name, frame in frames.items()}

    def plan(
        self, query: str | Statement, frames: dict[str, DataFrame], params: object = None
    ) -> Plan:
        """Return the plan of a query over history; the index answers for stored streams only."""
        catalog = self.catalog(frames)
        stored = catalog.keys() - frames.keys()
        return plan_sql(query, catalog, params, indexed=stored, named=self.inlined(frames))

    def inlined(self, frames: Mapping[str, DataFrame]) -> Named:
        """Return the queries that take the place of their names; DataFrames hide them."""
        return {} if self.named is None else self.named.inlined(frames)

    def define(self, wanted: CreateRequest | DropRequest) -> DataFrame:
        """Create or drop a named query of the database."""
        if self.named is None:
            raise no_database()
        if isinstance(wanted, CreateRequest):
            if wanted.kind == "stored stream":
                message = "Spark does not run the query of a stored stream"
                hint = "create it with ev.open(path).sql(...): Spark then reads its rows"
                raise UnsupportedError(message, span=wanted.span, hint=hint).located_in(wanted.text)
            said = self.named.create(wanted)
        else:
            said = self.named.drop(wanted)
        rows = [tuple(row.values()) for row in said.rows()]
        return self.session.createDataFrame(rows, "name string, kind string, done string")

    def sql(self, query: Query, /, *, params: object = None, **frames: DataFrame) -> DataFrame:
        """Return the answer to a query over history, as a DataFrame.

        `CREATE STREAM name AS …`, `CREATE VIEW name AS …` and `DROP` define queries by name in the
        database.

        `params` are the values of parameters in the query: a list for `?`, a dict for `$name`.
        """
        statement = read_statement(str(query))
        if statement.kind in ("create", "drop"):
            return self.define(named_request(statement))
        self.publish(statement, params)
        return self.answer(statement, frames, params)

    def publish(self, statement: Statement, params: object) -> None:
        """Define the streams that a CEL text publishes in the database."""
        if self.named is not None:
            publish(self.named, statement, params)
        elif statement.cel:
            from eventide.lang.sql.cel.publish import refuse_published

            hint = "leave it out, or name a folder: ev.spark(spark, path)"
            refuse_published(statement, "there is no database to publish in", hint)

    def answer(
        self, statement: Statement, frames: dict[str, DataFrame], params: object
    ) -> DataFrame:
        """Return the rows of a statement over history."""
        plan = self.plan(statement, frames, params)
        frames = {**frames, **written_frames(self.session, plan)}
        given = self.given(plan, frames)
        self.check_workers()
        try:
            return SparkAnswer.of(self.session, plan, given, self.weights).rows(plan)
        except BindError as error:
            NamedTexts.of(statement.text, self.inlined(frames)).locate(error)
            raise error from error.__cause__

    def tpstream(self, text: str, /, *, params: object = None, **frames: DataFrame) -> DataFrame:
        """Return the matches of a TPStream statement over history, as a DataFrame."""
        statement = read_tpstream(text)
        return self.answer(statement, frames, params)

    def given(self, plan: Plan, frames: Mapping[str, DataFrame]) -> Given:
        """Return what the streams of a query are, every stored one as it is at this moment."""
        return self.given_streams(dict.fromkeys(scan.stream for scan in scans_of(plan)), frames)

    def given_streams(self, names: Iterable[str], frames: Mapping[str, DataFrame]) -> Given:
        """Return what some streams are, every stored one as it is at this moment."""
        stored = {name: self.stored(name).snapshot() for name in names if name not in frames}
        zoneless: dict[str, Collection[str]] = {
            name: source.manifest.options.zoneless for name, source in stored.items()
        }
        zoneless |= {name: zoneless_in(frame.schema) for name, frame in frames.items()}
        schemas = {name: schema_of(frame) for name, frame in frames.items()}
        return Given(dict(frames), schemas, stored, zoneless)

    def stream(  # noqa: PLR0913 - an option each
        self,
        first: Query | Mapping[str, DataFrame],
        query: Query | None = None,
        /,
        *,
        params: Parameters = None,
        lateness: Duration = "0 s",
        buckets: int = BUCKETS,
        max_lag: Duration | None = None,
        max_state_bytes: Bytes | None = None,
        **frames: DataFrame,
    ) -> DataFrame:
        """Return the answer to a query over streaming DataFrames, as a streaming DataFrame.

        `stream(text, cars=df)` or `stream({"cars": df}, text)`. A query over windows that slide
        may read several: its clock is the least of their watermarks, and what comes out is its
        changes, rows with the instant `exp` at which they expire, and where that cannot be known
        with a `sign`, -1 to take a row back.

        A row leaves once the watermark, the newest time seen less `lateness`, has passed it.
        Events behind the watermark are left out and counted: the query's progress shows them under
        `observedMetrics`, for the first result of a session as "eventide", then as "eventide_2" and
        so on, for a query may have several. Keys are spread over `buckets`, a number that stays the
        same for the life of a checkpoint.

        A stream that is more than `max_lag` of event time behind another is not waited for, and a
        bucket that would remember more than `max_state_bytes`, such as "1 GB", ends the query.
        """
        text = str(first)
        if isinstance(first, Mapping):
            frames, text = {**first, **frames}, str(query)
        self.publish(read_statement(text), params)
        catalog = {name: schema_of(frame.drop(CLOCK)) for name, frame in frames.items()}
        named = self.inlined(frames)
        plan = plan_sql(text, catalog, params, indexed=catalog, named=named)
        with NamedTexts.of(text, named).pointing():
            refuse_written(plan)
        build_live_tree(plan)  # says what cannot run live before anything is asked of Spark
        for scan in scans_of(plan):
            if not frames[scan.stream].isStreaming:
                message = f"the DataFrame {scan.stream!r} is not a stream"
                raise UnsupportedError(message, hint="use sql(text, name=df), or spark.readStream")
        max_lag_us = None if max_lag is None else duration_us(max_lag)
        limit = None if max_state_bytes is None else size_bytes(max_state_bytes, "max_state_bytes")
        going = Going(duration_us(lateness), max_lag_us, limit)
        return self.streamed(plan, frames, catalog, going, buckets)

    def streamed(
        self,
        plan: Plan,
        frames: Mapping[str, DataFrame],
        catalog: Mapping[str, Schema],
        going: Going,
        buckets: int,
    ) -> DataFrame:
        """Return the rows of a plan over streaming DataFrames."""
        check_workers(self.session)
        # The clock of a replay is no attribute of its events.
        events = {name: frame.drop(CLOCK) for name, frame in frames.items()}
        without = {name: zoneless_in(frame.schema) for name, frame in events.items()}
        zoneless = zoneless_columns(plan, without)
        # A checkpoint outlives this plan: nothing it depends on may change.
        return over_streams(steady_plan(plan), frames, catalog, going, zoneless, buckets)

    def replay(  # noqa: PLR0913 - those of `stream`, and those of `Database.replay`
        self,
        query: Query,
        /,
        *,
        params: Parameters = None,
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
        plan = self.plan(str(query), {}, params)
        with pointing_into(str(query)):
            refuse_written(plan)
        # This says what cannot run live before anything is asked of Spark.
        goes_on = build_live_tree(plan).reporter is not None or len(scans_of(plan)) > 1
        frames = {}
        for name in dict.fromkeys(scan.stream for scan in scans_of(plan)):
            scans = [scan for scan in scans_of(plan) if scan.stream == name]
            # The clock of a standing query goes with all events of its streams.
            period = ALL_TIME if goes_on else scans[0].time_range
            times = forward_range(start, end).intersect(period)
            columns = dict.fromkeys(
                [TS, SEQ, *(each for scan in scans for each, _ in scan.columns)]
            )
            options = {"stream": name, "columns": ",".join(columns), "clock": "true"}
            options |= {"rows_per_batch": str(rows_per_batch)}
            options |= {} if speed is None else {"speed": str(speed)}
            options |= {} if times.start_us == ALL_TIME.start_us else {"from": str(times.start_us)}
            options |= {} if times.end_us == ALL_TIME.end_us else {"to": str(times.end_us)}
            source = self.session.readStream.format("eventide").options(**options)
            frames[name] = source.load(str(self.store.path))
        going = Going(duration_us(lateness))
        return self.streamed(plan, frames, self.catalog({}), going, buckets)

    def explain(self, query: Query, /, *, params: object = None, **frames: DataFrame) -> str:
        """Return how a query would be answered: its plan, and where it would run."""
        plan = self.plan(str(query), frames, params)
        placed = describe_spark(plan, frozenset(frames), cores(self.session))
        named = "" if self.named is None else self.named.explained(str(query), params)
        return "\n\n".join(part for part in (explain(plan), named, placed) if part)


def written_frames(session: SparkSession, plan: Plan) -> dict[str, DataFrame]:
    """Return the rows that a query writes down itself; their times have no zone."""
    return {
        name: session.createDataFrame(
            [tuple(row.values()) for row in table.to_pylist()],
            spark_schema(table.schema, table.column_names),
        )
        for name, table in written_tables(plan).items()
    }


def spark_database(session: SparkSession, path: str | Path | None = None) -> SparkDatabase:
    """Return the queries of Eventide on a Spark session, over a database if a path is given."""
    return SparkDatabase(session, path)
