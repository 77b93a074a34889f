"""The entry point for users: open a database, append events, answer queries, run them live.

What only some calls need is imported by them: a query over history does without live queries,
replay, explanations and drawings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from eventide.api.live.calls import LiveCalls
from eventide.api.live.shown.metrics import QUERIES, queries_source
from eventide.api.live.shown.metrics import SCHEMA as QUERIES_SCHEMA
from eventide.api.named import StreamName, names_of
from eventide.api.replay.calls import ReplayCalls
from eventide.api.result import Result
from eventide.api.tables import (
    uses_of_time,
    written_sources,
)
from eventide.engines.history.answer import Sources, run_history
from eventide.engines.history.weights import Weights
from eventide.errors import (
    BindError,
    EventideError,
    SchemaError,
)
from eventide.interrupts import interruptible
from eventide.lang.parameters import Parameters
from eventide.lang.sql import plan_sql
from eventide.lang.sql.named.head import CreateRequest, DropRequest, named_request
from eventide.lang.sql.named.texts import NamedTexts
from eventide.lang.sql.statement import Statement, read_cel, read_statement, read_tpstream
from eventide.plan.nodes import scans_of, stored_streams
from eventide.plan.tree import Plan
from eventide.schema import BOOL, DELETED, Attribute, DataType, Schema
from eventide.store import Store, StoredStream
from eventide.store.source import EventSource

if TYPE_CHECKING:
    from eventide.api.builder import Query
    from eventide.api.explanation import Explanation
    from eventide.api.live.shared.asked import Texts
    from eventide.api.many.result import ManyResult
    from eventide.api.matches import Matches
    from eventide.api.relation import Relation
    from eventide.api.stream import Stream
    from eventide.engines.history.calibrate import OnStep
    from eventide.plan.sizes import Bytes


class Database(LiveCalls, ReplayCalls):
    """A folder of streams, and the queries over them. `eventide.open` makes it.

    >>> import tempfile
    >>> db = Database(tempfile.mkdtemp())
    >>> cars = db.create_stream("cars", {"car": "string", "speed": "float64"})
    >>> cars.append([{"ts": 0, "car": "a", "speed": 50.0}, {"ts": 1, "car": "a", "speed": 60.0}])
    Appended(rows=2, first_seq=0)
    >>> print(db.sql("SELECT car, speed FROM cars WHERE speed > 55"))
    car │ speed
    ────┼──────
    a   │    60
    1 row
    """

    def __init__(
        self, path: str | Path, *, create: bool = True, max_state_bytes: Bytes | None = None
    ) -> None:
        most = None
        if max_state_bytes is not None:
            from eventide.plan.sizes import size_bytes

            most = size_bytes(max_state_bytes, "max_state_bytes")
        super().__init__(Store.open(path, create=create), most)
        if self.runs:
            self.live_side.stored.go_on()

    @property
    def path(self) -> Path:
        """The database's folder."""
        return self.store.path

    def streams(self) -> tuple[StreamName, ...]:
        """Return the names of the streams, then those of named queries; each has its `kind`.

        The kind is "stream", "relation", "derived stream", "stored derived stream" or "view". The
        `failure` of a stored derived stream says why its query has stopped, if it has.
        """
        return names_of(self.store, self.named.all(), self.failures())

    def failures(self) -> dict[str, str]:
        """Return why queries of stored derived streams have failed, by name in lower case."""
        return self.live_side.stored.failures() if self.runs else {}

    def create_stream(
        self,
        name: str,
        attributes: Mapping[str, str | DataType] | pa.Schema | None = None,
        *,
        format: str | None = None,
        time: str | None = None,
        **options: object,
    ) -> Stream:
        """Create a stream. `attributes` are names and types; every stream also has `ts` and `_seq`.

        A pyarrow schema works as well, such as that of a table that is to be appended. A stream of
        XML documents has `format="xml"` in place of attributes: each event is a document, at its
        time of arrival or at that which a path finds in it, such as `time="//item/pubDate"`.

        durability       "batch" (an append returns when its events are on the disk), "group"
                         (they are there `commit_interval` later), or "none"
        codec            "lz4", "zstd" or "none"
        split            how long a segment is, such as "1 day"; else a segment ends when full
        index            attributes with a secondary index, or "auto"
        aggregates       more aggregates in the index, such as ["max2(speed)"]
        summaries        the attributes whose aggregates are in the index; all without it
        keep, keep_bytes retention by age, such as "90 days", and by size; with the name of a
                         timestamp, each event is gone at the time that it names
        order            "time", or "arrival" to store events as they come and sort when read
        spare            how much leaves may grow by late events; 0.1 is a tenth
        """
        from eventide.api.stream import Stream, options_from

        if format is None:
            if attributes is None:
                message = f"{name!r} has no attributes and no format"
                hint = 'write {"car": "string"}, or format="xml" for a stream of documents'
                raise SchemaError(message, hint=hint)
            if time is not None:
                message = f"{time!r:.80} is the path of a time, and {name!r} has no documents"
                raise SchemaError(message, hint='every event has a ts; write format="xml" for XML')
            schema = Schema.of(attributes)
        else:
            from eventide.api.documents import DOCUMENT_OPTIONS, document_schema

            if attributes is not None:
                message = "documents have no attributes: what is in them is asked for by paths"
                raise SchemaError(message, hint='leave them out: create_stream(name, format="xml")')
            schema, options = document_schema(format, time), {**DOCUMENT_OPTIONS, **options}
        stored = self.store.create_stream(name, schema, options_from(options))
        return Stream(stored, self.publish)

    def drop_stream(self, name: str) -> None:
        """Delete a stream and all its events, for good; refuse one that named queries read."""
        self.named.refuse_drop(name)
        self.store.drop_stream(name)

    def stream(self, name: str) -> Stream:
        """Return a stream by its name."""
        from eventide.api.stream import Stream

        stored = self.store.stream(name)
        named = self.named.all().get(name.lower())
        if named is None or named.kind != "stored stream":
            return Stream(stored, self.publish)
        from eventide.api.live.stored.stream import StoredDerivedStream

        return StoredDerivedStream(stored, self.publish)

    def publish(self, stream: StoredStream, events: pa.RecordBatch, first_seq: int) -> None:
        """Hand events that have been appended to live queries, and to those that store rows."""
        if not self.runs:
            return
        side = self.live_side
        try:
            side.delivery.publish(stream, events, first_seq)
        finally:
            side.stored.follow(stream.name, events, first_seq)

    def create_relation(
        self,
        name: str,
        attributes: Mapping[str, str | DataType] | pa.Schema,
        key: Sequence[str],
        **options: object,
    ) -> Relation:
        """Create a relation: rows by key that can be replaced and deleted in time.

        It is stored as a stream of changes with one more attribute, `deleted`; options are those
        of `create_stream`. Queries over windows use it by its name, without a window.
        """
        from eventide.api.stream import options_from

        rows = Schema.of(attributes)
        named = isinstance(key, list | tuple) and all(isinstance(each, str) for each in key)
        if not named or not key:
            message = f"the key of a relation is a list of attributes, not {key!r:.80}"
            raise SchemaError(message, hint=f'write key=["{next(iter(rows.names), "id")}"]')
        if DELETED in rows.names:
            message = f"{DELETED!r} is kept for the rows that are taken away"
            raise SchemaError(message, hint="call the attribute something else")
        changes = (*rows.attributes, Attribute(DELETED, BOOL))
        schema = Schema(changes, tuple(dict.fromkeys(key)))
        self.store.create_stream(name, schema, options_from(options))
        return self.relation(name)

    def relation(self, name: str) -> Relation:
        """Return a relation by its name."""
        from eventide.api.relation import Relation

        return Relation(self.stream(name), self.newest_us)

    def newest_us(self) -> int:
        """Return the newest time of all events, or that of the clock if there are none."""
        periods = [self.store.stream(name).snapshot().time_range for name in self.store.streams()]
        known = [period.end_us - 1 for period in periods if not period.is_empty]
        return max(known, default=time_ns() // 1000)

    def backup(self, path: str | Path) -> Database:
        """Copy all streams as they are now into a new folder, while writing goes on."""
        return Database(self.store.backup(path).path, create=False)

    def catalog(self) -> dict[str, Schema]:
        """Return the schema of every stored stream."""
        return self.named.catalog()

    def sql(self, query: Query, params: Parameters = None) -> Result:
        """Answer a query over all that is stored. The rows of `EXPLAIN …` are lines of text.

        `CREATE STREAM name AS …`, `CREATE VIEW name AS …` and `DROP` define queries by name, which
        other queries read like streams.

        `params` are the values of parameters in the query: a list for `?`, a dict for `$name`. The
        other calls that take a query take it, too.
        """
        return self.answered(read_statement(str(query)), params)

    def cel(self, text: str, params: Parameters = None) -> Result:
        """Answer a CEL query: events that follow each other, and what they have in common.

        `SELECT car, speed FROM FILTER{speed > 70}(cars) NEXT{$1.car = $2.car AND DUR <= 60 s} cars
        PUBLISH slowed`. Rows are events with `ts` and `start_ts`, in order of both. All other calls
        that take SQL take such a text too. PUBLISH gives events a name that other queries read.
        """
        return self.answered(read_cel(text), params)

    def sql_many(self, queries: Texts, parameters: Any = None) -> ManyResult:  # noqa: ANN401
        """Answer many queries over all that is stored, each as `sql` would.

        `queries` are a list of texts, a dict of names and texts, or one text with `$name` in it and
        `parameters`, a table with a row for each query. Those that can run as one do so: each of
        their streams is read once for all of them. Queries are named or numbered from 0, as in
        `subscribe_many`; one that has no answer does not keep the others from theirs.
        """
        from eventide.api.live.shared.asked import asked
        from eventide.api.many.history import ManyHistory

        return ManyHistory(self, asked(queries, parameters)).run()

    def answered(self, statement: Statement, params: Parameters) -> Result:
        """Answer a statement over all that is stored."""
        if statement.kind in ("create", "drop"):
            return self.define(named_request(statement))
        if statement.explain is not None:
            from eventide.api.in_memory import plan_rows

            analyze = statement.explain == "analyze"
            return plan_rows(self.explained(statement.explained, params, analyze=analyze))
        self.publish_parts(statement, params)
        plan = self.history_plan(statement, params)
        with self.pointing(statement.text):
            return Result(interruptible(run_history)(plan, self.sources(plan), self.weights))

    def plan(self, query: str | Statement, params: Parameters = None) -> Plan:
        """Return the plan of a query over streams, which publishes what it says."""
        statement = read_statement(query) if isinstance(query, str) else query
        self.publish_parts(statement, params)
        catalog = self.catalog()
        return plan_sql(statement, catalog, params, indexed=catalog, named=self.named.inlined())

    def publish_parts(self, statement: Statement, params: Parameters) -> None:
        """Define the streams that the CEL in a statement publishes."""
        if statement.cel:
            from eventide.api.published import publish

            publish(self.named, statement, params)

    def history_plan(self, query: str | Statement, params: Parameters = None) -> Plan:
        """Return the plan of a query over all that is stored, and the list of live queries."""
        stored = self.catalog()
        catalog = {**stored, QUERIES: QUERIES_SCHEMA}
        plan = plan_sql(query, catalog, params, indexed=stored, named=self.named.inlined())
        read = QUERIES in stored_streams(plan)
        for span, what, name in uses_of_time(plan, (QUERIES,)) if read else ():
            message = f"{what} needs times, and the table {name} has none"
            text = query if isinstance(query, str) else query.text
            hint = "its rows are the live queries of now"
            raise BindError(message, span=span, hint=hint).located_in(text)
        return plan

    def define(self, wanted: CreateRequest | DropRequest) -> Result:
        """Create or drop a named query."""
        if isinstance(wanted, DropRequest):
            return self.named.drop(wanted)
        known = self.named.all()
        said = self.named.create(wanted)
        if wanted.kind == "stored stream" and wanted.name.lower() not in known:
            try:
                with wanted.pointing():
                    self.live_side.stored.begin(wanted.name)
            except BaseException:
                self.named.drop(DropRequest(wanted.text, wanted.name, wanted.span, view=False))
                raise
        return said

    @contextmanager
    def pointing(self, text: str) -> Iterator[None]:
        """Let errors that are raised inside point into a query, or into what it reads by name."""
        try:
            yield
        except EventideError as error:
            NamedTexts.of(text, self.named.inlined()).locate(error)
            raise

    def tpstream(self, text: str, params: Parameters = None) -> Matches:
        """Answer a TPStream statement: find situations whose periods lie in time as a pattern says.

        `FROM cars PARTITION BY car DEFINE fast AS speed > 70, brake AS accel < -9 PATTERN fast
        meets brake; fast overlaps brake WITHIN 5 MINUTES RETURN max(fast.speed) AS top`. All other
        calls that take SQL take such a text too. The result can be drawn:
        `db.tpstream(text).plot("matches.html")`.
        """
        statement = read_tpstream(text)
        if statement.explain is not None:
            from eventide.api.matches import Matches

            return Matches(self.sql(text, params).to_arrow())
        from eventide.api.in_memory import find_matches

        plan = plan_sql(statement, self.catalog(), params, named=self.named.inlined())
        return find_matches(text, plan, self.sources(plan), self.weights)

    def explain(
        self, query: Query, params: Parameters = None, *, analyze: bool = False
    ) -> Explanation:
        """Return how a query would be answered: its plan, the ways considered, where it would run.

        With `analyze` the query is run, and the measured times stand beside the estimates. The
        text can be drawn: `db.explain(query, analyze=True).save("plan.svg")`.
        """
        return self.explained(read_statement(str(query)), params, analyze=analyze)

    def explained(self, statement: Statement, params: Parameters, *, analyze: bool) -> Explanation:
        """Return how a statement would be answered, or with `analyze` how it was."""
        from eventide.api.explanation import Explanation
        from eventide.engines.explain.explained import explained

        plan = self.history_plan(statement, params)
        with self.pointing(statement.text):
            run = interruptible(explained)
            seen = run(plan, self.sources(plan), self.weights, analyze=analyze)
            return Explanation.of(statement.text, seen, self.shown(statement, params))

    def shown(self, statement: Statement, params: Parameters) -> str:
        """Return the plans of the named queries that a statement reads, as text."""
        return self.named.explained(statement, params, self.failures())

    @cached_property
    def weights(self) -> Weights:
        """The cost of each kind of step: as `calibrate` measured it, or a typical value."""
        return Weights.load(self.path)

    def calibrate(self, on_step: OnStep = lambda _: None) -> Weights:
        """Measure what each kind of step of a query costs on this machine, and store it.

        It takes some seconds. From then on the ways to answer a query are compared by these costs;
        the answers stay the same. `on_step` is called with what is measured next.
        """
        from eventide.engines.history.calibrate import calibrated

        self.weights = calibrated(self.path, on_step)
        self.weights.save(self.path)
        return self.weights

    def sources(self, plan: Plan) -> Sources:
        """Return the sources of a plan: snapshots of streams, and rows written in the query.

        The list of live queries is one as well.
        """
        found: dict[str, EventSource] = {**self.store.snapshots(stored_streams(plan) - {QUERIES})}
        if any(scan.written is not None for scan in scans_of(plan)):
            found |= written_sources(plan)
        if any(scan.stream == QUERIES for scan in scans_of(plan)):
            found[QUERIES] = queries_source(self.queries())
        return found

    def __repr__(self) -> str:
        return f"<Database {self.path}: {', '.join(self.streams()) or 'no streams yet'}>"


def open_database(
    path: str | Path, *, create: bool = True, max_state_bytes: Bytes | None = None
) -> Database:
    """Open the database in a folder; if there is no such folder, create it.

    If the live queries of this process remember more than `max_state_bytes` together, such as
    "4 GB", those that remember most fail, and the others go on.
    """
    return Database(path, create=create, max_state_bytes=max_state_bytes)
