"""Stored derived streams: queries whose rows are stored, exactly once.

Whoever appends to a stream that such a query reads lets it take a step, and so does opening the
database. A step takes all events that the query has not seen, those of other processes as well.
What a process remembers of a query is only a copy of what the files of store/progress.py say: if
another process has gone on, or has died in the midst of a step, it follows what is written there.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from threading import Lock, RLock

import numpy as np
import pyarrow as pa

from eventide.api.live.delivery import Delivery
from eventide.api.named import Named, NamedQueries
from eventide.api.stream import Stream, with_seq_from
from eventide.engines.live.engine import LiveEngine, LiveState
from eventide.errors import (
    BusyError,
    StoreError,
    UnboundedStateWarning,
    pointing_into,
)
from eventide.instants import ALL_TIME, END_OF_TIME_US, START_OF_TIME_US, TimeRange
from eventide.lang.sql.named.inline import names_read
from eventide.lang.sql.named.stream import plan_stream
from eventide.operators.columns import concat_batches
from eventide.plan.named import NamedQuery
from eventide.schema import SEQ, DataType
from eventide.store import Appended, Snapshot, Store, StoredStream
from eventide.store.files.lock import write_lock
from eventide.store.progress import (
    QUERY_FOLDER,
    Checkpoint,
    Journal,
    TakenStep,
    place_of,
    read_progress,
    read_steps,
    write_checkpoint,
)
from eventide.store.store import not_by_hand
from eventide.store.writing.feed import Feed

STEPS_BETWEEN = 1_000
EVENTS_BETWEEN = 200_000
"""A checkpoint is written after so many steps, or events."""
EVENTS_AT_ONCE = 200_000
"""More events than this are read in parts."""

log = logging.getLogger("eventide.live")

Put = Callable[[StoredStream, pa.RecordBatch, int], None]
"""Hands stored rows to the live queries that read them."""
Rows = Mapping[str, pa.RecordBatch]
"""Events by stream."""


class StoredDerivedStream(Stream):
    """A stream that stores the rows of a query; nothing else is appended to it."""

    def append(
        self,
        data: object,  # noqa: ARG002 - refused, whatever it is
        *,
        producer: str | None = None,  # noqa: ARG002
        sequence: int | None = None,  # noqa: ARG002
    ) -> Appended:
        """Refuse events by hand."""
        raise not_by_hand(self.name)

    def feed(self, capacity_rows: int = 1_000_000) -> Feed:  # type: ignore[override] # noqa: ARG002
        """Refuse events by hand."""
        raise not_by_hand(self.name)

    def add_attribute(self, name: str, kind: str | DataType) -> None:  # noqa: ARG002
        """Refuse another column: the query has none."""
        raise self.fixed()

    def drop_attribute(self, name: str) -> None:  # noqa: ARG002
        """Refuse to lose a column that the query has."""
        raise self.fixed()

    def fixed(self) -> StoreError:
        """Return the error for other columns."""
        message = f"the columns of {self.name} are those of its query"
        return StoreError(message, hint="drop it, and create it with another query")


@dataclass(slots=True)
class Memory:
    """What a process remembers of a query that it has run."""

    number: int
    """The number of the checkpoint that the journal follows."""
    place: object
    """What tells this checkpoint's file from a later one."""
    journal: Journal
    state: LiveState
    next_seqs: dict[str, int]
    emitted: int
    """How many rows the query has emitted, from its first one on."""
    steps: int = 0
    events: int = 0
    """How many steps and events there are behind the checkpoint."""


class StoredQuery:
    """The query of a stored derived stream, as it runs in this process."""

    def __init__(
        self, store: Store, named: NamedQuery, others: Named, lateness_us: int, put: Put
    ) -> None:
        self.store = store
        self.named = named
        self.others = others
        self.lateness_us = lateness_us
        self.put = put
        self.stepping = Lock()
        self.failure: Exception | None = None
        self.memory: Memory | None = None
        self.engine: LiveEngine | None = None
        self.inputs: dict[str, StoredStream] = {}
        self.target: StoredStream | None = None
        self.warns = False
        """Whether a state that may grow without bound is warned of: when the query is created."""

    @property
    def name(self) -> str:
        """The name of the stream."""
        return self.named.name

    @property
    def folder(self) -> Path:
        """Where the files are that say how far the query is."""
        return self.store.path / "streams" / self.name / QUERY_FOLDER

    @property
    def definition(self) -> str:
        """What a checkpoint is a checkpoint of."""
        return f"lateness {self.lateness_us} us: {self.named.text}"

    def reads(self, stream: str) -> bool:
        """Whether the query reads a stream; before it is known, it may."""
        return self.engine is None or stream in self.inputs

    def step(self, arrived: tuple[str, pa.RecordBatch, int] | None = None) -> bool:
        """Take the events that have come, also those of other processes; whether rows came of it.

        `arrived` are events that have just been appended, and the number of the first one. A
        failure is kept, and the query stays where it is until the database is opened again.
        """
        with self.stepping:
            if self.failure is not None:
                return False
            try:
                self.prepare()
                before = self.memory.emitted if self.memory is not None else None
                with write_lock(self.folder):
                    self.catch_up()
                    self.take_new(arrived)
                return self.memory is not None and self.memory.emitted != before
            except BusyError:
                # Another process runs it, or writes. The next step takes what is left.
                self.forget()
                return False
            except Exception as error:
                self.fail(error)
                return False
            except BaseException:
                # An interrupt in the midst of a step: the files know how to go on.
                self.forget()
                raise

    def fail(self, error: Exception) -> None:
        """Keep why the query cannot go on."""
        log.error("the stored stream %s has failed: %s", self.name, error)
        self.failure = error
        self.forget()

    def forget(self) -> None:
        """Forget the state; the files have what is needed to go on."""
        if self.memory is not None:
            self.memory.journal.close()
        self.memory = None

    def prepare(self) -> None:
        """Plan the query, and make the stream for its rows unless it is there."""
        if self.engine is not None:
            return
        catalog = {name: self.store.stream(name).schema for name in self.store.streams()}
        plan = plan_stream(self.named, catalog, self.others)
        with pointing_into(self.named.text), warnings.catch_warnings():
            if not self.warns:
                warnings.simplefilter("ignore", UnboundedStateWarning)
            engine = LiveEngine.of(plan, catalog, self.lateness_us)
        if self.name not in self.store.streams():
            self.store.create_stream(self.name, self.named.schema, defined=True)
        self.target = self.store.stream(self.name)
        self.inputs = {name: self.store.stream(name) for name in engine.streams}
        self.folder.mkdir(exist_ok=True)
        self.engine = engine

    def catch_up(self) -> None:
        """Be where the files say the query is; steps that another process has taken are taken."""
        assert self.engine is not None
        memory = self.memory
        if memory is None or place_of(self.folder, memory.number)[0] != memory.place:
            self.forget()
            memory = self.load()
        elif place_of(self.folder, memory.number)[1] != memory.journal.end:
            steps, end = read_steps(memory.journal.path, memory.journal.end)
            # Opened again, the file shows what a crash of the other process has left behind.
            memory.journal.close()
            memory.journal.end = end
            self.retake(memory, steps)

    def load(self) -> Memory:
        """Return the state of the checkpoint, after the steps that follow it."""
        assert self.engine is not None
        progress = read_progress(self.folder)
        if progress is None:
            state = self.engine.initial_state()
            next_seqs = dict.fromkeys(self.inputs, 0)
            first = Checkpoint(0, self.definition, next_seqs, 0, self.engine.dump(state))
            write_checkpoint(self.folder, first)
            place = place_of(self.folder, 0)[0]
            self.memory = Memory(0, place, Journal(self.folder, 0, 0), state, next_seqs, 0)
            return self.memory
        found = progress.checkpoint
        if found.definition != self.definition or found.next_seqs.keys() != self.inputs.keys():
            message = f"{self.name} has stored rows of another query: {found.definition}"
            raise StoreError(message, hint=f"DROP STREAM {self.name}, and create it again")
        journal = Journal(self.folder, found.number, progress.journal_end)
        state = self.engine.load(found.state)
        place = place_of(self.folder, found.number)[0]
        memory = Memory(found.number, place, journal, state, dict(found.next_seqs), found.rows)
        self.memory = memory
        self.retake(memory, progress.steps)
        return memory

    def retake(self, memory: Memory, steps: Sequence[TakenStep]) -> None:
        """Take steps that are in the journal."""
        if not steps:
            return self.check_rows(memory)
        ends: dict[str, int] = {}
        for step in steps:
            ends |= step.until
        self.check_there(ends)
        sources = self.sources(memory)
        # Steps are small, unless they are cut; together they are what lies behind a checkpoint.
        whole = None if any(step.cuts for step in steps) else self.rows_until(memory, sources, ends)
        for step in steps:
            if whole is None:
                self.run(memory, step, self.parts(memory, step, sources))
            else:
                rows = {
                    name: sorted_between(whole[name], memory.next_seqs[name], until)
                    for name, until in step.until.items()
                }
                self.run(memory, step, [rows])
        return self.check_rows(memory)

    def check_rows(self, memory: Memory) -> None:
        """Refuse a stream that has more rows than its query has emitted."""
        assert self.target is not None
        stored = self.target.current().next_seq
        if stored > memory.emitted:
            message = f"{self.name} has {stored:,} rows, and its query emitted {memory.emitted:,}"
            raise StoreError(message, hint=f"DROP STREAM {self.name}, and create it again")

    def check_there(self, ends: Mapping[str, int]) -> None:
        """Refuse streams that have lost events which the query has read."""
        for name, end in ends.items():
            if self.inputs[name].current().next_seq < end:
                message = f"{name} has lost events that {self.name} has read"
                hint = f"DROP STREAM {self.name}, and create it again"
                raise StoreError(message, hint=hint)

    def take_new(self, arrived: tuple[str, pa.RecordBatch, int] | None) -> None:
        """Take the events that no process has taken yet, if there are any."""
        memory = self.memory
        assert memory is not None
        self.check_there(memory.next_seqs)
        until = {}
        for name, stream in self.inputs.items():
            end = stream.current().next_seq
            if end > memory.next_seqs[name]:
                until[name] = end
        if until:
            given = self.given(memory, until, arrived)
            if given is not None:
                step = TakenStep(until, sum(rows.num_rows for rows in given.values()))
                memory.journal.add(step)
                self.run(memory, step, [given])
            else:
                self.take_stored(memory, until)
        if memory.steps >= STEPS_BETWEEN or memory.events >= EVENTS_BETWEEN:
            self.save(memory)

    def take_stored(self, memory: Memory, until: Mapping[str, int]) -> None:
        """Take events as they are stored; many of them in parts, in order of time."""
        sources = self.sources(memory)
        count = sum(end - memory.next_seqs[name] for name, end in until.items())
        if count <= EVENTS_AT_ONCE:
            rows = self.rows_until(memory, sources, until)
            step = TakenStep(until, sum(each.num_rows for each in rows.values()))
            memory.journal.add(step)
            self.run(memory, step, [rows])
            return
        cuts = {
            piece.time_range.start_us
            for name in until
            for piece in sources[name].slices(ALL_TIME, EVENTS_AT_ONCE)
        }
        step = TakenStep(until, None, tuple(sorted(cuts)))
        memory.journal.add(step)
        self.run(memory, step, self.parts(memory, step, sources))
        self.save(memory)

    def given(
        self,
        memory: Memory,
        until: Mapping[str, int],
        arrived: tuple[str, pa.RecordBatch, int] | None,
    ) -> dict[str, pa.RecordBatch] | None:
        """Return the events at hand, if they are all that is new."""
        if arrived is None or list(until) != [arrived[0]]:
            return None
        name, events, first_seq = arrived
        if first_seq != memory.next_seqs[name] or first_seq + events.num_rows != until[name]:
            return None
        return {name: with_seq_from(events, first_seq)}

    def sources(self, memory: Memory) -> dict[str, Snapshot]:
        """Return what is stored of every stream, without most of what the query has read."""
        return {
            name: stream.snapshot().since(memory.next_seqs[name])
            for name, stream in self.inputs.items()
        }

    def rows_until(
        self,
        memory: Memory,
        sources: Mapping[str, Snapshot],
        until: Mapping[str, int],
        times: TimeRange = ALL_TIME,
    ) -> dict[str, pa.RecordBatch]:
        """Return the events of a period that the query has not read, in the order of arrival."""
        assert self.engine is not None
        found = {}
        for name, end in until.items():
            schema = self.engine.feed_schema(name)
            batches = [
                numbered_between(batch, memory.next_seqs[name], end)
                for batch in sources[name].scan(schema.names, times)
            ]
            rows = concat_batches(batches, schema)
            order = np.argsort(rows.column(SEQ).to_numpy(), kind="stable")
            found[name] = rows.take(pa.array(order))
        return found

    def parts(
        self, memory: Memory, step: TakenStep, sources: Mapping[str, Snapshot]
    ) -> Iterator[dict[str, pa.RecordBatch]]:
        """Yield the events of a step in parts, one period after the other.

        No event is late because of an earlier part: the clock is never ahead of the newest event.
        """
        borders = [START_OF_TIME_US, *step.cuts, END_OF_TIME_US]
        for start, end in pairwise(borders):
            if start < end:
                yield self.rows_until(memory, sources, step.until, TimeRange(start, end))

    def run(self, memory: Memory, step: TakenStep, parts: Iterable[Rows]) -> None:
        """Take a step that the journal has, and store its rows."""
        assert self.engine is not None
        count = 0
        for rows in parts:
            count += sum(each.num_rows for each in rows.values())
            if step.rows is not None and count != step.rows:
                message = (
                    f"events that {self.name} has read are gone: there were {step.rows:,}, and "
                    f"{count:,} are left"
                )
                hint = f"DROP STREAM {self.name}, and create it again"
                raise StoreError(message, hint=hint)
            with pointing_into(self.named.text):
                memory.state, reported = self.engine.take(memory.state, rows)
            self.emit(memory, reported.rows)
        memory.next_seqs |= step.until
        memory.steps += 1
        memory.events += count

    def emit(self, memory: Memory, rows: pa.RecordBatch) -> None:
        """Store rows, without those that are stored already."""
        assert self.target is not None
        if not rows.num_rows:
            return
        stored = max(0, self.target.current().next_seq - memory.emitted)
        fresh = rows.slice(min(stored, rows.num_rows))
        if fresh.num_rows:
            memory.journal.sync()
            expected = self.target.schema.arrow.remove(1)
            table = pa.Table.from_batches([fresh]).select(expected.names).cast(expected)
            outcome = self.target.store(table)
            self.put(self.target, outcome.events, outcome.appended.first_seq)
            if outcome.error is not None:
                raise outcome.error
        memory.emitted += rows.num_rows

    def save(self, memory: Memory) -> None:
        """Write a checkpoint; the journal begins anew."""
        assert self.engine is not None
        number = memory.number + 1
        state = self.engine.dump(memory.state)
        # Rows that may not survive a power failure must not be counted.
        assert self.target is not None
        self.target.sync()
        write_checkpoint(
            self.folder,
            Checkpoint(number, self.definition, memory.next_seqs, memory.emitted, state),
        )
        memory.journal.close()
        memory.journal = Journal(self.folder, number, 0)
        memory.number, memory.place = number, place_of(self.folder, number)[0]
        memory.steps = memory.events = 0


class StoredQueries:
    """The stored derived streams of a database."""

    def __init__(self, named: NamedQueries, delivery: Delivery) -> None:
        self.named = named
        self.delivery = delivery
        self.changing = RLock()
        self.known: Named = {}
        self.queries: list[StoredQuery] = []

    def present(self) -> list[StoredQuery]:
        """Return the queries that are defined now, each behind those that it reads.

        If the definitions cannot be read, those that were defined last: producers go on, and who
        asks for a name is told.
        """
        try:
            known = self.named.all()
        except StoreError as error:
            log.warning("stored streams may be out of date: %s", error.message)
            return self.queries
        if known is self.known or not (known or self.queries):
            return self.queries
        with self.changing:
            # A stream may have been dropped and made again: what is remembered of it is void.
            stored = [each for each in known.values() if each.kind == "stored stream"]
            self.queries = [self.made(each, known) for each in stored]
            self.known = known
            return self.queries

    def made(self, named: NamedQuery, known: Named) -> StoredQuery:
        """Return a query that begins, or goes on where it is."""
        others = self.named.inlined([named.name])
        late = [named.lateness_us, *(known[each].lateness_us for each in below(named, others))]
        return StoredQuery(self.named.store, named, others, max(late), self.delivery.publish)

    def failures(self) -> dict[str, str]:
        """Return why queries have failed, by name in lower case."""
        found = ((query.name.lower(), query.failure) for query in self.present())
        return {name: str(failure) for name, failure in found if failure is not None}

    def go_on(self) -> None:
        """Let every query take what it has not seen."""
        for query in self.present():
            query.step()

    def follow(self, stream: str, events: pa.RecordBatch, first_seq: int) -> None:
        """Let queries take events that have just been appended, and others the rows of those."""
        queries = self.present()
        if not queries:
            return
        moved = {stream}
        for query in queries:
            if not any(query.reads(name) for name in moved):
                continue
            if query.step((stream, events, first_seq)):
                moved.add(query.name)

    def begin(self, name: str) -> None:
        """Let a new query take what is stored; raise why it cannot."""
        for query in self.present():
            if query.name == name:
                query.warns = True
                query.step()
                if query.failure is not None:
                    raise query.failure


def below(named: NamedQuery, others: Named) -> set[str]:
    """Return the queries whose text takes the place of names in another one."""
    found: set[str] = set()
    waiting = [named]
    while waiting:
        for name in (names_read(waiting.pop().text) & others.keys()) - found:
            found.add(name)
            waiting.append(others[name])
    return found


def numbered_between(rows: pa.RecordBatch, start: int, end: int) -> pa.RecordBatch:
    """Return the events with numbers from `start` to before `end`."""
    seq = rows.column(SEQ).to_numpy()
    inside = (seq >= start) & (seq < end)
    return rows if inside.all() else rows.filter(pa.array(inside))


def sorted_between(rows: pa.RecordBatch, start: int, end: int) -> pa.RecordBatch:
    """Return the same of events that are in order of their numbers."""
    first, last = np.searchsorted(rows.column(SEQ).to_numpy(), [start, end])
    return rows.slice(int(first), int(last - first))
