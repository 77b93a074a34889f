"""The door for users: open a database, append events, ask, subscribe."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from time import perf_counter

import pyarrow as pa

from eventide.engines.answer import Sources, run_history
from eventide.engines.calibrate import OnStep, calibrated
from eventide.engines.explained import explained
from eventide.engines.live import LiveEngine
from eventide.engines.weights import DEFAULTS, Weights
from eventide.errors import (
    BindError,
    SchemaError,
    UnboundedStateWarning,
    listed,
    pointing_into,
)
from eventide.explanation import Explanation
from eventide.ingest.coerce import inferred_table, to_events
from eventide.lang.sql import plan_sql
from eventide.lang.sql.explain import explain_request
from eventide.lang.sql.statement import require_tpstream
from eventide.matches import Matches
from eventide.matching import Match, Query
from eventide.pace import Speed, speed_of
from eventide.plan.nodes import Plan, scans_of
from eventide.plan.times import Duration, duration_us
from eventide.replay import Replay, replay_merged, replay_queries
from eventide.result import Result
from eventide.schema import SEQ, TIMESTAMP, TS, DataType, Schema
from eventide.store import Snapshot, Store, TableSource
from eventide.stream import Stream, Time, forward_range, options_from
from eventide.subscription import OnResult, Subscription


class Database:
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

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.store = Store.open(path, create=create)
        self.subscriptions: list[Subscription] = []
        self.arrivals: deque[tuple[str, pa.RecordBatch]] = deque()
        self.delivering = Lock()

    @property
    def path(self) -> Path:
        """The database's folder."""
        return self.store.path

    def streams(self) -> tuple[str, ...]:
        """Return the names of the streams."""
        return self.store.streams()

    def create_stream(
        self, name: str, attributes: Mapping[str, str | DataType], **options: object
    ) -> Stream:
        """Create a stream; `attributes` are names and types, `ts` and `seq` come by themselves.

        durability       "batch" (an append returns when its events are on the disk), "group"
                         (they are there `commit_interval` later), or "none"
        codec            "lz4", "zstd" or "none"
        split            how long a segment is, such as "1 day"; else a segment ends when full
        index            attributes with a secondary index, or "auto"
        aggregates       more aggregates in the index, such as ["max2(speed)"]
        summaries        the attributes whose aggregates are in the index; all without it
        keep, keep_bytes retention by age, such as "90 days", and by size
        order            "time", or "arrival" to store events as they come and sort when read
        spare            how much leaves may grow by late events; 0.1 is a tenth
        """
        schema = Schema.of(attributes)
        stored = self.store.create_stream(name, schema, options_from(options))
        return Stream(stored, self.publish)

    def drop_stream(self, name: str) -> None:
        """Delete a stream and all its events, for good."""
        self.store.drop_stream(name)

    def stream(self, name: str) -> Stream:
        """Return a stream by its name."""
        return Stream(self.store.stream(name), self.publish)

    def backup(self, path: str | Path) -> Database:
        """Copy all streams as they are now into a new folder, while writing goes on."""
        return Database(self.store.backup(path).path, create=False)

    def catalog(self) -> dict[str, Schema]:
        """Return the schema of every stream."""
        return {name: self.store.stream(name).schema for name in self.streams()}

    def sql(self, query: Query) -> Result:
        """Answer a query over all that is stored; of `EXPLAIN …` the rows are lines of text."""
        text = str(query)
        asked = explain_request(text)
        if asked is not None:
            with asked.pointing():
                return plan_rows(self.explain(asked.query, analyze=asked.analyze))
        plan = plan_sql(text, self.catalog())
        with pointing_into(text):
            return Result(run_history(plan, self.snapshots(plan), self.weights))

    def tpstream(self, text: str) -> Matches:
        """Answer a TPStream statement: situations that lie in time as a pattern says.

        `FROM cars PARTITION BY car DEFINE fast AS speed > 70, brake AS accel < -9 PATTERN fast
        meets brake; fast overlaps brake WITHIN 5 MINUTES RETURN max(fast.speed) AS top`. All
        other calls take such a text too, wherever they take SQL. What comes back can also be
        drawn: `db.tpstream(text).plot("matches.html")`.
        """
        require_tpstream(text)
        if explain_request(text) is not None:
            return Matches(self.sql(text).to_arrow())
        plan = plan_sql(text, self.catalog())
        return find_matches(text, plan, self.snapshots(plan), self.weights)

    def explain(self, query: Query, *, analyze: bool = False) -> Explanation:
        """Return how a query would be answered: its plan, the ways considered, where it would run.

        With `analyze` the query is run, and what it really took stands beside the estimates. The
        text can be drawn: `db.explain(query, analyze=True).save("plan.svg")`.
        """
        text = str(query)
        plan = plan_sql(text, self.catalog())
        with pointing_into(text):
            seen = explained(plan, self.snapshots(plan), self.weights, analyze=analyze)
            return Explanation.of(text, seen)

    @cached_property
    def weights(self) -> Weights:
        """What single steps of a query take: as `calibrate` found, or as they mostly are."""
        return Weights.load(self.path)

    def calibrate(self, on_step: OnStep = lambda _: None) -> Weights:
        """Measure what single steps of a query take on this machine, and keep it for later.

        It takes some seconds. By what it finds the ways to answer a query are compared from now
        on; the answers are the same. `on_step` is told what is measured next.
        """
        self.weights = calibrated(self.path, on_step)
        self.weights.save(self.path)
        return self.weights

    def snapshots(self, plan: Plan) -> dict[str, Snapshot]:
        """Return what is stored now of the streams that a plan reads."""
        names = {scan.stream for scan in scans_of(plan)}
        return {name: self.store.stream(name).snapshot() for name in names}

    def subscribe(
        self, query: Query, on_result: OnResult | None = None, *, lateness: Duration = "0 s"
    ) -> Subscription:
        """Run a query live over what is appended to this database from now on.

        `on_result` gets each piece of the answer once it is complete: when the watermark, the
        newest time seen less `lateness`, has passed it. Events behind the watermark are stored
        but too late for this query; the subscription counts and keeps them.
        """
        text = str(query)
        plan = plan_sql(text, self.catalog())
        with pointing_into(text):
            subscription = live_query(plan, self.catalog(), on_result, lateness, text=text)
        self.subscriptions.append(subscription)
        return subscription

    def replay(
        self,
        queries: Query | Sequence[Query] | Mapping[str, Query],
        on_result: OnResult | None = None,
        *,
        start: Time | None = None,
        end: Time | None = None,
        speed: Speed | None = None,
        lateness: Duration = "0 s",
    ) -> Replay:
        """Run queries as if live over the stored events of [start, end), of all their streams.

        One query, several, or several by name. The streams are merged under one clock, and every
        piece of an answer comes once the clock has passed it, with the clock it came at: going
        through the replay yields the pieces, `run` hands all of them to `on_result`. The end of
        the range completes what is still open. `speed`, such as "10x", is how much faster than
        the clock on the wall event time goes; without it, it goes as fast as it can. What is
        appended meanwhile is not replayed.
        """
        times, pace = forward_range(start, end), speed_of(speed)
        catalog = self.catalog()
        standing: list[tuple[str, Subscription]] = []
        for name, query in named_queries(queries):
            text = str(query)
            plan = plan_sql(text, catalog)
            # Here the range is the bound.
            with pointing_into(text), warnings.catch_warnings():
                warnings.simplefilter("ignore", UnboundedStateWarning)
                standing.append((name, live_query(plan, catalog, None, lateness, text=text)))
        names = dict.fromkeys(query.engine.stream for _, query in standing)
        snapshots = {name: self.store.stream(name).snapshot() for name in names}
        return replay_queries(standing, snapshots, times, pace, on_result)

    def replay_events(
        self,
        *streams: str,
        start: Time | None = None,
        end: Time | None = None,
        columns: Sequence[str] | None = None,
        speed: Speed | None = None,
    ) -> Replay:
        """Replay the stored events of [start, end) of some streams, merged in order of time.

        Pieces have `ts`, the `stream`, `seq`, and the attributes of all streams, null where a
        stream has none of that name. Events of the same time come in the order in which the
        streams are named here, those of one stream in order of arrival. For `speed` see `replay`.
        """
        times, pace = forward_range(start, end), speed_of(speed)
        snapshots = [self.store.stream(name).snapshot() for name in dict.fromkeys(streams)]
        return replay_merged(snapshots, times, columns, pace)

    def publish(self, stream: str, events: pa.RecordBatch) -> None:
        """Hand new events to the standing queries over a stream, in the order of appending.

        A callback may append in its turn. What it appends waits until every query has seen what
        came before, or it would be early for some and make others late. A query that fails, or
        whose callback does, keeps nothing from the others.
        """
        self.arrivals.append((stream, events))
        failures: list[Exception] = []
        # Whoever holds the lock also delivers what others have put in the queue meanwhile.
        while self.arrivals and self.delivering.acquire(blocking=False):
            try:
                failures += self.deliver(*self.arrivals.popleft())
            finally:
                self.delivering.release()
        if failures:
            failures[0].add_note("a standing query failed; the appended events are stored")
            raise failures[0]

    def deliver(self, stream: str, events: pa.RecordBatch) -> list[Exception]:
        """Push events into every standing query over their stream; return what went wrong."""
        failures: list[Exception] = []
        for subscription in list(self.subscriptions):
            if subscription.engine.stream != stream:
                continue
            try:
                subscription.push(events)
            except Exception as failure:
                failures.append(failure)
        self.subscriptions = [each for each in self.subscriptions if not each.finished]
        return failures

    def __repr__(self) -> str:
        return f"<Database {self.path}: {', '.join(self.streams()) or 'no streams yet'}>"


def open_database(path: str | Path, *, create: bool = True) -> Database:
    """Open the database in a folder; a folder that does not exist becomes an empty one."""
    return Database(path, create=create)


def live_query(
    plan: Plan,
    catalog: Mapping[str, Schema],
    on_result: OnResult | None,
    lateness: Duration,
    *,
    text: str = "",
) -> Subscription:
    """Return a standing query that is fed by hand; its errors point into `text`."""
    return Subscription(LiveEngine.of(plan, catalog, duration_us(lateness)), on_result, text=text)


def named_queries(
    queries: Query | Sequence[Query] | Mapping[str, Query],
) -> list[tuple[str, Query]]:
    """Return queries with their names; one without a name is called by its text."""
    if isinstance(queries, Mapping):
        return list(queries.items())
    several = [queries] if isinstance(queries, str | Match) else list(queries)
    return [(str(query), query) for query in several]


def sql(query: Query, /, **streams: object) -> Result:
    """Answer a query over tables in memory: Arrow, pandas, polars or dicts, each with a `ts`.

    >>> cars = pa.table({"ts": [0, 1, 2], "car": ["a", "a", "b"], "speed": [50.0, 60.0, 70.0]})
    >>> sql("SELECT car, speed FROM cars WHERE speed > 55", cars=cars).rows()
    [{'car': 'a', 'speed': 60.0}, {'car': 'b', 'speed': 70.0}]
    """
    text = str(query)
    sources = {name: table_source(name, data) for name, data in streams.items()}
    asked = explain_request(text)
    if asked is not None:
        with asked.pointing():
            plan = plan_tables(asked.query, sources)
            seen = explained(plan, sources, DEFAULTS, analyze=asked.analyze)
            return plan_rows(Explanation.of(asked.query, seen))
    plan = plan_tables(text, sources)
    with pointing_into(text):
        return Result(run_history(plan, sources))


def tpstream(text: str, /, **streams: object) -> Matches:
    """Answer a TPStream statement over tables in memory, as `sql` does a query."""
    require_tpstream(text)
    if explain_request(text) is not None:
        return Matches(sql(text, **streams).to_arrow())
    sources = {name: table_source(name, data) for name, data in streams.items()}
    return find_matches(text, plan_tables(text, sources), sources, DEFAULTS)


def find_matches(text: str, plan: Plan, sources: Sources, weights: Weights) -> Matches:
    """Return the matches of a plan, and what it takes to ask more about them."""

    def run(asked: Plan) -> pa.Table:
        with pointing_into(text):
            return run_history(asked, sources, weights)

    started = perf_counter()
    table = run(plan)
    return Matches(table, plan, run, text, perf_counter() - started)


def plan_rows(text: str) -> Result:
    """Return the lines of a text as rows: the answer to EXPLAIN."""
    return Result(pa.table({"plan": pa.array(text.split("\n"), pa.string())}))


def plan_tables(text: str, sources: Mapping[str, TableSource]) -> Plan:
    """Return the plan of a query over tables; of a table that is missing, say how to pass it."""
    try:
        return plan_sql(text, {name: source.schema for name, source in sources.items()})
    except BindError as error:
        name = "" if error.span is None else error.span.of(text).strip('"')
        if not sources and error.message == f"no stream {name!r}":
            passed = f"{name}=table" if name.isidentifier() else f"**{{{name!r}: table}}"
            error.hint = f"pass it: ev.sql(text, {passed})"
        raise


def table_source(name: str, data: object) -> TableSource:
    """Return a table in memory as a stream; its `seq`, or else its rows, tell arrival order."""
    table = inferred_table(data)
    if TS not in table.column_names:
        message = f"the table {name} has no column {TS!r}, which holds the time of each row"
        raise SchemaError(message, hint=_time_hint(table.schema))
    schema = Schema.from_arrow(table.schema)
    if SEQ not in table.column_names:
        return TableSource(name, schema, to_events(table, schema))
    events = to_events(table.drop_columns([SEQ]), schema)
    if not pa.types.is_integer(table.column(SEQ).type):
        message = f"column {SEQ!r} has type {table.column(SEQ).type}"
        raise SchemaError(message, hint="it numbers the events: use int64, or leave it out")
    seq = table.column(SEQ).cast(pa.int64())
    return TableSource(name, schema, events.append_column(SEQ, seq))


def _time_hint(schema: pa.Schema) -> str:
    """Suggest which column to rename: the one of times, else one that is called so."""
    times = [field.name for field in schema if DataType.from_arrow(field.type) == TIMESTAMP]
    words = (TS, "time", "timestamp", "date", "datetime", "event_time", "t")
    named = [name for name in schema.names if name.lower() in words]
    found = next(iter([*times, *named]), None)
    if found is None:
        return f"rename the column of times to {TS!r}; there are {listed(schema.names)}"
    return f"rename {found!r} to {TS!r}"
