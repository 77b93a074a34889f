"""One stream, for users: append events, read and aggregate them, maintain the stream."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.api.calendars import group_numbers, grouped_by, periods_every
from eventide.api.result import Result
from eventide.arrays import to_arrow
from eventide.engines.history.row_aggregates import aggregate_of, answers_from_rows
from eventide.errors import EvaluationError, EventideError, SchemaError
from eventide.ingest.coerce import to_events
from eventide.instants import ALL_TIME, END_OF_TIME_US, START_OF_TIME_US, TimeRange
from eventide.plan.aggregates import AGGREGATES
from eventide.plan.expressions import Aggregate
from eventide.plan.times import Duration, duration_us, parse_timestamp
from eventide.schema import SEQ, DataType, Schema
from eventide.store import Appended, Snapshot, StoredStream, StreamOptions
from eventide.store.index.aggregates import BUILT_IN, find_registered, registered
from eventide.store.order import Int64s
from eventide.store.reading.aggregate import AggregateCall, aggregate
from eventide.store.reading.scan import StreamColumns
from eventide.store.source import Where
from eventide.store.stats import StreamStats
from eventide.store.stream import AddedHow
from eventide.store.writing.feed import Feed, Ticket

Time = str | int | np.integer[Any] | np.datetime64 | date | datetime
"""An instant: ISO text, microseconds since 1970 UTC, a date or datetime (UTC without a zone)."""
Publish = Callable[[StoredStream, pa.RecordBatch, int], None]
Answer = Callable[[Snapshot, Sequence[AggregateCall], Sequence[int], Int64s | None], pa.RecordBatch]
"""Answers aggregates over periods as store/reading/aggregate.py does: here, or on Spark."""

PLAIN = re.compile(r"\*|\w+")
NAME = re.compile(r"[^\W\d]\w*")
CALL = re.compile(r"\s*(\w+)\s*\(\s*(.+?)\s*\)\s*")


class Stream:
    """A named, append-only, schema-checked sequence of events."""

    def __init__(self, stored: StoredStream, publish: Publish, answer: Answer = aggregate) -> None:
        self.stored = stored
        self.publish = publish
        self.answer = answer

    @property
    def name(self) -> str:
        """The name queries use."""
        return self.stored.name

    @property
    def schema(self) -> Schema:
        """The attributes of the events, beside `ts` and `_seq`."""
        return self.stored.schema

    @property
    def options(self) -> StreamOptions:
        """How the stream is stored."""
        return self.stored.options

    def append(
        self, data: object, *, producer: str | None = None, sequence: int | None = None
    ) -> Appended:
        """Store events for good, in any order of time.

        `data` is an Arrow table, a pandas or polars frame, or a list of dictionaries; for a stream
        of documents also bytes, texts of XML, paths of files and folders, or a list of these.
        Either all of it is stored or none, with an error that names the row. When this returns, the
        events are as safe as the stream's durability says: by default, on the disk. An error of the
        disk can come after the events are stored; it says that they are visible but may not be
        safe. What a live
        query or its receiver raises does not come here: the query's `failure` has it.

        A producer that numbers its batches can send one again: with `producer` and `sequence`,
        a batch that is stored already adds nothing.
        """
        columns = self.stored.columns
        events = events_of(data, columns.schema)
        outcome = self.stored.store(events, columns, producer=producer, sequence=sequence)
        appended = outcome.appended
        try:
            # Live queries see what readers see, even if the disk fails afterwards.
            if appended.rows:
                self.publish(self.stored, outcome.events, appended.first_seq)
        except BaseException as failure:
            if outcome.error is not None:
                failure.add_note(f"{type(outcome.error).__name__}: {outcome.error}")
            raise
        if outcome.error is not None:
            raise outcome.error
        return appended

    def last_sequence(self, producer: str) -> int | None:
        """Return the number of a producer's last batch: after a crash it goes on with the next.

        None if the producer has stored nothing, or 10,000 others have since.
        """
        return self.stored.last_sequence(producer)

    def feed(self, capacity_rows: int = 1_000_000) -> StreamFeed:
        """Return a queue that many threads can put events into, without waiting for the disk.

        Small puts are stored together. A queue that is full makes producers wait.
        """
        return StreamFeed(self, capacity_rows)

    def snapshot(self, *, now: Time | None = None) -> Snapshot:
        """Return what is stored now; later appends do not change it.

        In a stream whose events expire, now is the time of its newest event. With `now`, it is that
        time if it is later, so that events expire although no others come.
        """
        return self.stored.snapshot(START_OF_TIME_US if now is None else instant(now))

    def events(
        self,
        start: Time | None = None,
        end: Time | None = None,
        *,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
    ) -> Result:
        """Return the events of [start, end), in order of time.

        `where` has conditions by attribute: a value, or a pair (low, high) that includes both ends,
        either of which may be None. Parts of the stream whose index rules a condition out are not
        read. Events that were dropped or thinned away are not returned.
        """
        snapshot = self.snapshot()
        names = list(columns) if columns is not None else snapshot.schema.arrow.names
        batches = list(snapshot.scan(names, time_range(start, end), where))
        fields = [(name, snapshot.schema.type_of(name).arrow) for name in names]
        return Result(pa.Table.from_batches(batches, pa.schema(fields)))

    def at(self, time: Time, *, columns: Sequence[str] | None = None) -> Result:
        """Return the events of one instant."""
        us = instant(time)
        return self.events(us, us + 1, columns=columns)

    def aggregate(
        self,
        *calls: str,
        start: Time | None = None,
        end: Time | None = None,
        every: Duration | None = None,
        by: str | None = None,
        zone: str = "UTC",
    ) -> Result:
        """Answer aggregates such as `avg(speed)` or `count(*)` from the index.

        Aggregates that the index has not, such as `quantile_cont(speed, 0.9)`, are computed from
        the events, which takes as long as reading them.

        The answer is one row over all of [start, end); with `every`, a row for each period of that
        length that has events ("15 min", "day", "month"); with `by`, a row for each "hour" of the
        day, "weekday" (1 is Monday), "day" or "week" or "month" or "quarter" of the year, or
        "year". Calendar periods follow the local time of `zone`. The time it takes hardly depends
        on the number of events.
        """
        snapshot = self.snapshot()
        if not calls:
            message = "there is nothing to aggregate"
            raise SchemaError(message, hint='write aggregate("avg(speed)", "count(*)")')
        times = time_range(start, end)
        if every is not None and by is not None:
            message = "every and by exclude each other"
            raise EvaluationError(message, hint="every makes periods, by groups them")
        asked = AskedAggregates.of(calls, snapshot.schema)
        if every is None and by is None:
            rows = self.answered(snapshot, asked, borders(times), None)
            return Result(pa.Table.from_batches([rows.select(asked.names)]))
        inside = times.intersect(snapshot.known_range)
        if by is not None:
            cuts, labels = grouped_by(inside, by, zone)
            found, groups = group_numbers(labels)
            heads = [(by, pa.array(found, pa.int64()))]
            rows = self.answered(snapshot, asked, clipped(cuts, inside), groups)
        else:
            assert every is not None
            cuts = periods_every(inside, every, zone)
            heads = [
                ("start", pa.array(cuts[:-1], pa.timestamp("us"))),
                ("end", pa.array(cuts[1:], pa.timestamp("us"))),
            ]
            rows = self.answered(snapshot, asked, clipped(cuts, inside), None)
        filled = pa.array(rows.column(rows.num_columns - 1).to_numpy() > 0)
        columns = [*heads, *((name, rows.column(name)) for name in asked.names)]
        return Result(pa.table(dict(columns)).filter(filled))

    def answered(
        self, snapshot: Snapshot, asked: AskedAggregates, cuts: Sequence[int], groups: Int64s | None
    ) -> pa.RecordBatch:
        """Return the answers of periods, and how many events each has as the last column."""
        counted = [*asked.from_index, AggregateCall("count")]
        found = self.answer(snapshot, counted, cuts, groups)
        rows = pa.RecordBatch.from_arrays(found.columns, [*found.schema.names[:-1], "_events"])
        if not asked.from_rows:
            return rows
        more = answers_from_rows(snapshot, asked.from_rows, cuts, groups)
        names = [*more.schema.names, *rows.schema.names]
        return pa.RecordBatch.from_arrays([*more.columns, *rows.columns], names)

    def stats(self) -> StreamStats:
        """Describe what the stream holds, how it is kept, and what came in lately."""
        return self.stored.stats()

    def flush(self) -> None:
        """Write everything that is only in the log to the open segment."""
        self.stored.flush()

    def sync(self) -> None:
        """Return once everything appended so far is on the disk, with any durability."""
        self.stored.sync()

    def split(self) -> None:
        """End the open segment now; the next event begins another."""
        self.stored.split()

    def compact(self) -> int:
        """Merge small and overlapping segments; return how many were merged."""
        return self.stored.compact()

    def configure(self, **changes: object) -> StreamOptions:
        """Change how the stream is stored, from the next segment on.

        It takes the options of `create_stream`: durability, codec, split, keep, and so on.
        """
        return self.stored.set_options(lambda present: options_from(changes, present))

    def add_attribute(self, name: str, kind: str | DataType) -> None:
        """Add an attribute; events stored before have null."""
        self.stored.add_column(name, kind if isinstance(kind, DataType) else DataType.parse(kind))

    def drop_attribute(self, name: str) -> None:
        """Remove an attribute, from stored events as well."""
        self.stored.drop_column(name)

    def add_index(self, attribute: str, *, how: AddedHow = "backfill") -> None:
        """Keep a secondary index of an attribute; `how` says from which segment on."""
        self.stored.add_index(attribute, how)

    def drop_index(self, attribute: str) -> None:
        """Keep no secondary index of an attribute from the next segment on."""
        self.stored.drop_index(attribute)

    def rebuild_indexes(self) -> int:
        """Build the secondary indexes that segments lack; return how many were built."""
        return self.stored.rebuild_indexes()

    def add_aggregate(self, call: str, *, how: AddedHow = "backfill") -> None:
        """Keep a registered aggregate such as `max2(speed)` in the index."""
        wanted = call_of(call)
        if wanted.attribute is None:
            message = f"{call!r} names no attribute"
            raise SchemaError(message, hint='write add_aggregate("max2(speed)")')
        self.stored.add_aggregate(wanted.function, wanted.attribute, how)

    def drop_before(self, time: Time) -> int:
        """Drop the segments that end before a time; return how many events that were."""
        return self.stored.drop_before(instant(time))

    def retain(self) -> int:
        """Drop what `keep` and `keep_bytes` no longer keep; return how many events that were.

        Whole segments are dropped. `compact` also frees events that have expired in others.
        """
        return self.stored.retain()

    def thin(self, before: Time, *, level: int = 1) -> int:
        """Reduce the segments that end before a time to their aggregates; return how many.

        Level 1 keeps those of every leaf, some 16,000 events; each further level those of 64
        times as many.
        """
        return self.stored.thin(instant(before), level)

    def __len__(self) -> int:
        return self.snapshot().row_count

    def __repr__(self) -> str:
        fields = ", ".join(f"{name} {kind}" for name, kind in self.schema.fields())
        return f"<Stream {self.name} ({fields}): {len(self):,} events>"


@dataclass(frozen=True, slots=True)
class AskedAggregates:
    """The aggregates that are asked for, by name: some are from the index, the rest from rows."""

    names: list[str]
    from_index: list[AggregateCall]
    from_rows: dict[str, Aggregate]

    @classmethod
    def of(cls, texts: Sequence[str], schema: Schema) -> AskedAggregates:
        """Read the texts of aggregates."""
        asked = cls([], [], {})
        for text in texts:
            called = CALL.fullmatch(text) if isinstance(text, str) else None
            function = called[1].lower() if called is not None else ""
            registered = find_registered(function)
            exact = registered is not None and registered.kind != "rough"
            indexed = function in BUILT_IN or exact or (registered and function not in AGGREGATES)
            plain = called is not None and PLAIN.fullmatch(called[2]) is not None
            if called is None or not (indexed and (plain or called[2] in schema.names)):
                try:
                    asked.from_rows[text.strip()] = aggregate_of(text, schema)
                    asked.names.append(text.strip())
                    continue
                except EventideError:
                    pass  # the index says what there is
            call = call_of(text)
            asked.from_index.append(call)
            asked.names.append(str(call))
        return asked


class StreamFeed(Feed):
    """A feed that takes all that `append` takes, and hands it to live queries too."""

    def __init__(self, stream: Stream, capacity_rows: int) -> None:
        def publish(events: pa.RecordBatch, first_seq: int) -> None:
            stream.publish(stream.stored, events, first_seq)

        super().__init__(stream.stored, capacity_rows, publish)

    def put(
        self, data: object, timeout: float | None = None, columns: StreamColumns | None = None
    ) -> Ticket:
        """Put events into the queue; the ticket's `result()` returns once they are stored."""
        columns = columns or self.stream.columns
        return super().put(events_of(data, columns.schema), timeout, columns)


def events_of(data: object, schema: Schema) -> pa.Table:
    """Return what is appended as events of a schema."""
    if schema.documents is None:
        return to_events(data, schema)
    from eventide.api.documents import document_events

    return document_events(data, schema)


def with_seq_from(events: pa.RecordBatch, first_seq: int) -> pa.RecordBatch:
    """Return events in arrival order with their numbers."""
    seq = np.arange(first_seq, first_seq + events.num_rows, dtype=np.int64)
    return events.append_column(SEQ, to_arrow(seq))


def call_of(text: str) -> AggregateCall:
    """Read `avg(speed)`.

    >>> call_of("count(*)")
    AggregateCall(function='count', attribute=None)
    """
    found = CALL.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        message = f"{text!r} is not an aggregate"
        raise SchemaError(message, hint="write avg(speed), or count(*)")
    return AggregateCall(found[1].lower(), None if found[2] == "*" else found[2])


def instant(time: Time) -> int:
    """Return an instant as microseconds since 1970 UTC.

    >>> instant("1970-01-01T00:00:01"), instant(date(1970, 1, 2)), instant(np.datetime64(1, "s"))
    (1000000, 86400000000, 1000000)
    """
    found: int | None = None
    if isinstance(time, str):
        found = parse_timestamp(time)
    elif isinstance(time, np.datetime64) and not np.isnat(time):
        found = int(time.astype("datetime64[us]").astype(np.int64))
    elif isinstance(time, (int, np.integer)) and not isinstance(time, bool):
        found = int(time)
    elif isinstance(time, date) and time == time:  # noqa: PLR0124 - pandas' NaT is a date, too
        at = time if isinstance(time, datetime) else datetime(time.year, time.month, time.day)
        aware = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        found = (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    if found is None:
        message = f"{time!r} is not a time"
        raise EvaluationError(message, hint="write 2026-01-31T12:00:00, or microseconds since 1970")
    if not START_OF_TIME_US <= found <= END_OF_TIME_US:
        message = f"{time!r} is beyond the times there are, {START_OF_TIME_US} to {END_OF_TIME_US}"
        raise EvaluationError(message, hint="times as numbers are microseconds since 1970")
    return found


def time_range(start: Time | None, end: Time | None) -> TimeRange:
    """Return [start, end); without a start or an end, the range is open on that side."""
    return TimeRange(
        ALL_TIME.start_us if start is None else instant(start),
        ALL_TIME.end_us if end is None else instant(end),
    )


def forward_range(start: Time | None, end: Time | None) -> TimeRange:
    """Return [start, end); refuse one whose end is before its start."""
    found = time_range(start, end)
    if found.start_us > found.end_us:
        message = f"the start, {start}, comes after the end, {end}"
        raise EvaluationError(message, hint="time goes forward: exchange start and end")
    return found


def borders(times: TimeRange) -> list[int]:
    """Return both ends of a time range; those of an empty range are equal."""
    return [times.start_us, max(times.start_us, times.end_us)]


def clipped(cuts: Sequence[int], times: TimeRange) -> list[int]:
    """Return cuts, those outside of a time range moved to its ends."""
    return [min(max(cut, times.start_us), times.end_us) for cut in cuts] or [0]


def options_from(
    given: Mapping[str, object], present: StreamOptions | None = None
) -> StreamOptions:
    """Read options as users write them: durations as text, short names `index` and `keep`."""
    known = (present or StreamOptions()).to_json()
    for name, value in given.items():
        match name:
            case "split":
                known["split_us"] = None if value is None else duration_us(as_duration(value))
            case "keep":
                known["keep_us"], known["keep_until"] = lifetime_of(value)
            case "commit_interval":
                known["commit_interval_ms"] = max(1, duration_us(as_duration(value)) // 1000)
            case "index" if value == "auto":
                known["auto_index"] = True
            case "index":
                known["indexes"], known["auto_index"] = names_of(value), False
            case "aggregates":
                calls = [call_of(text) for text in names_of(value)]
                for call in calls:
                    registered(call.function)  # or say that there is none of this name
                    if call.attribute is None:
                        message = f"{call} names no attribute"
                        raise SchemaError(message, hint='write aggregates=["max2(speed)"]')
                known["aggregates"] = [(call.function, call.attribute) for call in calls]
            case "zoneless":
                known["zoneless"] = names_of(value)
            case "summaries":
                known["summaries"] = None if value is None else names_of(value)
            case _:
                known[name] = value
    return StreamOptions.from_json(known)


def lifetime_of(value: object) -> tuple[int | None, str | None]:
    """Read how long events are kept: a length of time, or the attribute that says until when."""
    if isinstance(value, str) and NAME.fullmatch(value):
        return None, value
    return None if value is None else duration_us(as_duration(value)), None


def as_duration(value: object) -> Duration:
    """Refuse values that cannot be a duration before they are read as one."""
    if not isinstance(value, (str, timedelta)):
        message = f"{value!r} is not a duration"
        raise EvaluationError(message, hint='write "1 day", or a timedelta')
    return value


def names_of(value: object) -> list[str]:
    """Return a list of names; a single name may be given without a list."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, Iterable):
        message = f"{value!r} is not a list of names"
        raise SchemaError(message, hint='write ["speed", "lane"]')
    return [str(each) for each in value]
