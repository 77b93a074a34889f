"""The door for users: open a database, append events, ask, subscribe."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from pathlib import Path
from threading import Lock

import pyarrow as pa

from eventide.engines.history import run_history
from eventide.engines.live import LiveEngine
from eventide.engines.placement import describe_embedded
from eventide.errors import BindError, SchemaError, listed, pointing_into
from eventide.ingest.coerce import inferred_table, to_events
from eventide.lang.sql import plan_sql
from eventide.matching import Query
from eventide.plan.explain import explain as explain_plan
from eventide.plan.nodes import Plan, scans_of
from eventide.plan.times import Duration, duration_us
from eventide.result import Result
from eventide.schema import SEQ, TIMESTAMP, TS, DataType, Schema
from eventide.store import Snapshot, Store, TableSource
from eventide.stream import Stream, options_from
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
        """Answer a query over all that is stored."""
        text = str(query)
        plan = plan_sql(text, self.catalog())
        with pointing_into(text):
            return Result(run_history(plan, self.snapshots(plan)))

    def explain(self, query: Query) -> str:
        """Return how a query would be answered: its plan, and where it would run."""
        plan = plan_sql(str(query), self.catalog())
        return f"{explain_plan(plan)}\n\n{describe_embedded(plan, self.snapshots(plan))}"

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


def sql(query: Query, /, **streams: object) -> Result:
    """Answer a query over tables in memory: Arrow, pandas, polars or dicts, each with a `ts`.

    >>> cars = pa.table({"ts": [0, 1, 2], "car": ["a", "a", "b"], "speed": [50.0, 60.0, 70.0]})
    >>> sql("SELECT car, speed FROM cars WHERE speed > 55", cars=cars).rows()
    [{'car': 'a', 'speed': 60.0}, {'car': 'b', 'speed': 70.0}]
    """
    text = str(query)
    sources = {name: table_source(name, data) for name, data in streams.items()}
    try:
        plan = plan_sql(text, {name: source.schema for name, source in sources.items()})
    except BindError as error:
        name = "" if error.span is None else error.span.of(text).strip('"')
        if not sources and error.message == f"no stream {name!r}":
            passed = f"{name}=table" if name.isidentifier() else f"**{{{name!r}: table}}"
            error.hint = f"pass it: ev.sql(text, {passed})"
        raise
    with pointing_into(text):
        return Result(run_history(plan, sources))


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
