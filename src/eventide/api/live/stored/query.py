"""The query of a stored derived stream, as it runs in this process.

Whoever appends to a stream that such a query reads lets it take a step, and so does opening the
database. A step takes all events that the query has not seen, those of other processes as well.
What a process remembers of a query is only a copy of what the files of store/progress.py say: if
another process has gone on, or has died in the midst of a step, it follows what is written there.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import pyarrow as pa

from eventide.api.live.journaled import JournaledSteps, ends_of
from eventide.api.live.numbered import sorted_between
from eventide.api.live.stored.unread import UnreadEvents
from eventide.api.named import Named
from eventide.api.stream import with_seq_from
from eventide.engines.live.engine import LiveEngine, LiveState
from eventide.errors import BusyError, StoreError, UnboundedStateWarning, pointing_into
from eventide.instants import ALL_TIME
from eventide.lang.sql.named.stream import plan_stream
from eventide.plan.named import NamedQuery
from eventide.store import Store, StoredStream
from eventide.store.files.lock import write_lock
from eventide.store.progress import (
    QUERY_FOLDER,
    Checkpoint,
    TakenStep,
    place_of,
    read_progress,
    write_checkpoint,
)

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


@dataclass(slots=True)
class Memory:
    """What a process remembers of a query that it has run."""

    journaled: JournaledSteps
    """The steps since the checkpoint."""
    place: object
    """What tells this checkpoint's file from a later one."""
    state: LiveState
    next_seqs: dict[str, int]
    emitted: int
    """How many rows the query has emitted, from its first one on."""


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
            self.memory.journaled.journal.close()
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
        if memory is None:
            self.load()
            return
        place, end = place_of(self.folder, memory.journaled.number)
        if place != memory.place:
            self.forget()
            self.load()
        elif end != memory.journaled.journal.end:
            self.retake(memory, memory.journaled.of_others())

    def load(self) -> None:
        """Remember the state of the checkpoint, after the steps that follow it."""
        assert self.engine is not None
        progress = read_progress(self.folder)
        if progress is None:
            state = self.engine.initial_state()
            start = {name: first_read(each) for name, each in self.inputs.items()}
            first = Checkpoint(0, self.definition, start, 0, self.engine.dump(state))
            write_checkpoint(self.folder, first)
            self.memory = self.remembered(first, state)
            return
        found = progress.checkpoint
        if found.definition != self.definition or found.next_seqs.keys() != self.inputs.keys():
            message = f"{self.name} has stored rows of another query: {found.definition}"
            raise self.broken(message)
        state = self.engine.load(found.state)
        self.memory = self.remembered(found, state, progress.journal_end)
        self.retake(self.memory, progress.steps)

    def remembered(self, found: Checkpoint, state: LiveState, journal_end: int = 0) -> Memory:
        """Return what is known of a query at a checkpoint, without the steps that follow it."""
        journaled = JournaledSteps(self.folder, found.number, journal_end)
        place = place_of(self.folder, found.number)[0]
        return Memory(journaled, place, state, dict(found.next_seqs), found.rows)

    def retake(self, memory: Memory, steps: Sequence[TakenStep]) -> None:
        """Take steps that are in the journal."""
        if not steps:
            return self.check_rows(memory)
        ends = ends_of(steps)
        self.check_there(ends)
        unread = self.unread(memory)
        # Steps are small, unless they are cut; together they are what lies behind a checkpoint.
        whole = None if any(step.cuts for step in steps) else unread.until(ends)
        for step in steps:
            if whole is None:
                self.run(memory, step, unread.parts(step))
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
            raise self.broken(message)

    def broken(self, message: str) -> StoreError:
        """Return the error for a query that cannot go on with what is stored."""
        return StoreError(message, hint=f"DROP STREAM {self.name}, and create it again")

    def check_there(self, ends: Mapping[str, int]) -> None:
        """Refuse streams that have lost events which the query has read."""
        for name, end in ends.items():
            if self.inputs[name].current().next_seq < end:
                message = f"{name} has lost events that {self.name} has read"
                raise self.broken(message)

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
                self.take_whole(memory, until, given)
            else:
                self.take_stored(memory, until)
        if memory.journaled.many(STEPS_BETWEEN, EVENTS_BETWEEN):
            self.save(memory)

    def take_whole(self, memory: Memory, until: Mapping[str, int], rows: Rows) -> None:
        """Take events in one step, which is written to the journal before."""
        step = TakenStep(until, sum(each.num_rows for each in rows.values()))
        memory.journaled.journal.add(step)
        self.run(memory, step, [rows])

    def take_stored(self, memory: Memory, until: Mapping[str, int]) -> None:
        """Take events as they are stored; many of them in parts, in order of time."""
        unread = self.unread(memory)
        count = sum(end - memory.next_seqs[name] for name, end in until.items())
        if count <= EVENTS_AT_ONCE:
            self.take_whole(memory, until, unread.until(until))
            return
        cuts = {
            piece.time_range.start_us
            for name in until
            for piece in unread.snapshots[name].slices(ALL_TIME, EVENTS_AT_ONCE)
        }
        step = TakenStep(until, None, tuple(sorted(cuts)))
        memory.journaled.journal.add(step)
        self.run(memory, step, unread.parts(step))
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

    def unread(self, memory: Memory) -> UnreadEvents:
        """Return what is stored and has not been read."""
        assert self.engine is not None
        return UnreadEvents.of(self.engine, self.inputs, memory.next_seqs)

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
                raise self.broken(message)
            with pointing_into(self.named.text):
                memory.state, reported = self.engine.take(memory.state, rows)
            self.emit(memory, reported.rows)
        memory.next_seqs |= step.until
        memory.journaled.taken(count)

    def emit(self, memory: Memory, rows: pa.RecordBatch) -> None:
        """Store rows, without those that are stored already."""
        assert self.target is not None
        if not rows.num_rows:
            return
        stored = max(0, self.target.current().next_seq - memory.emitted)
        fresh = rows.slice(min(stored, rows.num_rows))
        if fresh.num_rows:
            memory.journaled.journal.sync()
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
        number = memory.journaled.number + 1
        state = self.engine.dump(memory.state)
        # Rows that may not survive a power failure must not be counted.
        assert self.target is not None
        self.target.sync()
        memory.journaled.save(
            Checkpoint(number, self.definition, memory.next_seqs, memory.emitted, state)
        )
        memory.place = place_of(self.folder, number)[0]


def first_read(stream: StoredStream) -> int:
    """Return the number of the first event that a new query reads.

    Of a stream whose events expire that is the next one: the rows that are stored must not have
    what is gone.
    """
    view = stream.current()
    return 0 if view.manifest.options.keep_until is None else view.next_seq
