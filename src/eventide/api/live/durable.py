"""Durable live queries: they go on after a crash or a restart.

Position and state are kept in the database.

A step is written to a journal before it is taken, and is on the disk before its rows are handed
over. Whoever goes on takes the same steps again, and gets the same rows with the same numbers. Rows
that have been received are acknowledged, and dropped then; others come again.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from itertools import groupby
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from eventide.api.live.group import NOTHING_MOVED, Group
from eventide.api.live.journaled import JournaledSteps, ends_of
from eventide.api.live.kept.rebuild import Origin, rebuild
from eventide.api.live.kept.waiting import waiting_rows, written_rows
from eventide.api.live.numbered import sorted_between
from eventide.api.live.row_queue import LiveRows, RowQueue
from eventide.api.live.subscription import Subscription
from eventide.api.result import Result
from eventide.api.stream import Time, instant
from eventide.engines.live.engine import LiveEngine, LiveState
from eventide.errors import (
    BusyError,
    StateError,
    StateVersionError,
    StoreError,
    UnsupportedError,
)
from eventide.instants import START_OF_TIME_US
from eventide.plan.times import format_duration
from eventide.schema import TS
from eventide.store import StoredStream
from eventide.store.files.disk import sync_folder
from eventide.store.files.lock import write_lock
from eventide.store.progress import (
    Acknowledged,
    Checkpoint,
    TakenStep,
    next_number,
    read_checkpoint,
    read_progress,
)

Definition = dict[str, object]
"""What a query has to have in common with the one that wrote a checkpoint."""

ReadState = Callable[[bytes], tuple[LiveEngine, LiveState]]

log = logging.getLogger("eventide.live")

IDENTITY = "id"
"""Tells the query from one of the same name in another database, also when another text takes its
place: row numbers go on."""
ASKED = "asked"
"""Tells with which queries a set began; empty if with none."""
ORIGIN = "origin"
"""What the state is rebuilt from after an upgrade that changes its format."""
SINCE = "since_us"
STREAMS = "streams"
QUERIES = "queries"
"""The folder of a database that has a folder for each durable query."""
RUNNER = "process"
"""The file that names the process that runs the query, for who finds it locked."""
STEPS_BETWEEN = 2_000
EVENTS_BETWEEN = 200_000
SECONDS_BETWEEN = 60.0
"""A checkpoint is written after so many steps, events or seconds."""
RECEIVING_S = 10.0
"""How long a query that ends waits for a receiver that has rows in its hands."""


class Durable(Subscription):
    """A live query, or a set of them, that goes on where it was after a crash or a restart."""

    progress: DurableGroup | None = None

    def described(self) -> str:
        """Return its name."""
        assert self.name is not None
        return self.name

    def report(self, rows: LiveRows, queue: RowQueue) -> None:
        """Queue rows that have not been received, once the journal is on the disk."""
        assert self.progress is not None
        self.progress.journaled.journal.sync()
        received = max(0, self.progress.acknowledged_rows - rows.first_row)
        if received < len(rows):
            fresh = rows.to_arrow().slice(received)
            queue.put(LiveRows(fresh, rows.first_row + received))

    def advance(self, to: Time, stream: str | None = None) -> Result:
        """Declare that no event before a time will come, of one stream or of all."""
        self.check_not_paused("events that it has not seen would be late")
        self.delivery.bring(self)
        return self.delivery.advance(self, instant(to), stream)

    def finish(self) -> Result:
        """Refuse: a durable query goes on."""
        message = f"{self.name} is kept to go on: it has no end that could be completed"
        raise UnsupportedError(message, hint="call cancel(), or db.drop_query(name)")

    def cancel(self) -> None:
        """Stop the query here; it goes on where it is when someone subscribes to it again.

        Rows that wait are kept, and handed over then.
        """
        try:
            if self.progress is not None:
                self.progress.stop()
            if self.queue is not None:
                self.queue.drop_unreceived()
                if self.queue.drained(RECEIVING_S):
                    self.queue.close_receiver()
        finally:
            super().cancel()

    def ended(self) -> None:
        """Let another process run the query."""
        if self.progress is not None:
            self.progress.close()
        super().ended()


class DurableQuery(Durable):
    """A live query that goes on where it was."""

    def __init__(self, engine: LiveEngine, delivery: object, *, text: str, name: str) -> None:
        super().__init__(engine, delivery, text=text)  # type: ignore[arg-type]
        self.name = name


class DurableGroup(Group):
    """The group of one durable query: its steps are journaled, its state is kept."""

    def __init__(
        self,
        query: Durable,
        stored: dict[str, StoredStream],
        folder: Path,
        definition: Definition,
    ) -> None:
        super().__init__()
        self.stored = stored
        self.query = query
        self.queries = [query]
        self.folder = folder
        self.definition = definition
        self.identity: str | None = None
        """None for a query that began before there were any."""
        self.began: dict[str, int] = {}
        self.first_row: int | None = None
        self.since_us = START_OF_TIME_US
        """Events before this are not taken: the query started here."""
        self.held_lock = contextlib.ExitStack()
        self.saved_at = monotonic()
        self.acknowledged_rows = 0
        self.stopped = False
        """Whether it takes no more steps."""
        self.closed = False
        self.acknowledging = Lock()
        self.lock()
        self.acknowledged = Acknowledged(folder)
        self.journaled = JournaledSteps(folder, 0, 0)
        query.progress = self
        if query.queue is not None:
            query.queue.acknowledge = self.received

    def lock(self) -> None:
        """Keep other processes from running the query, until `close`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        sync_folder(self.folder.parent)
        assert self.query.name is not None
        self.held_lock.enter_context(alone(self.folder, self.query.name))
        (self.folder / RUNNER).write_text(f"process {os.getpid()}\n")

    def begin(
        self,
        position: Mapping[str, int],
        since_us: int = START_OF_TIME_US,
        *,
        from_history: bool = False,
    ) -> None:
        """Begin a query that is new at a position, with events from an instant on.

        If it takes the place of another one, its rows have later numbers, so that no receiver takes
        them for those of the other.
        """
        before = self.replaced()
        known = max(self.acknowledged.read(), 0 if before is None else before.rows)
        self.position = dict(position)
        self.since_us = since_us
        self.identity = uuid4().hex
        if before is not None:
            self.identity = json.loads(before.definition).get(IDENTITY)
        self.receive_from(known)
        self.query.counters.rows = self.acknowledged_rows
        self.began = {
            name: 0 if from_history or name in self.relations else at
            for name, at in position.items()
        }
        self.first_row = None if from_history or self.relations else self.acknowledged_rows
        self.acknowledged.write(self.acknowledged_rows)
        self.write(next_number(self.folder))

    def replaced(self) -> Checkpoint | None:
        """Return the checkpoint of the query whose place is taken, None if it cannot be read."""
        try:
            return read_checkpoint(self.folder)
        except StoreError as error:
            log.warning("%s begins anew: %s", self.query.name, error.message)
            return None

    def receive_from(self, acknowledged: int) -> None:
        """Let the receiver begin; find out which rows need not come again."""
        query = self.query
        self.acknowledged_rows = acknowledged
        if query.queue is not None:
            if self.identity is not None:
                query.queue.identify(self.identity)
            there = query.queue.begin(query.name, query.output_schema, acknowledged)
            self.acknowledged_rows = there

    def resume(self, read: ReadState | None) -> bool:
        """Go on where the files say; return whether there are any.

        `read` finds the plan that wrote the state of a standing query: there are several.
        """
        progress = read_progress(self.folder)
        if progress is None:
            return False
        found, query = progress.checkpoint, self.query
        written = json.loads(found.definition)
        self.since_us = written.pop(SINCE)
        self.identity = written.get(IDENTITY)
        self.check_definition(written)
        self.check_streams(written[STREAMS], progress.steps)
        origin = origin_of(written)
        if origin is not None:
            self.began, self.first_row = dict(origin.began), origin.first_row
        rebuilt = self.load(found, origin, read)
        query.counters.rows = found.rows
        self.position = dict(found.next_seqs)
        self.receive_from(self.acknowledged.read())
        self.journaled = JournaledSteps(self.folder, found.number, progress.journal_end)
        # What a process left unsynced when it died is on the disk before rows come of it.
        self.journaled.journal.opened()
        self.journaled.journal.sync()
        if found.waiting and query.queue is not None:
            for rows in waiting_rows(found.waiting):
                query.report(rows, query.queue)
        self.retake(progress.steps)
        if rebuilt:
            self.save()
        return True

    def check_streams(
        self,
        streams: Mapping[str, str],
        steps: tuple[TakenStep, ...],  # noqa: ARG002 - a set can do without a stream
    ) -> None:
        """Refuse to go on if a stream was dropped, given the identities of those that were read."""
        for name, stream_id in streams.items():
            if name not in self.stored or self.stored[name].stream_id != stream_id:
                raise self.other_stream(name)

    def other_stream(self, name: str) -> StoreError:
        """Return the error for a stream that was dropped, and perhaps made anew."""
        message = f"{self.query.name} has read another stream {name}, which was dropped"
        hint = "subscribe with replace=True, and say from where it starts"
        return StoreError(message, hint=hint)

    def load(
        self,
        found: Checkpoint,
        origin: Origin | None,
        read: ReadState | None,
    ) -> bool:
        """Load the state of a checkpoint; return whether it had to be rebuilt from events."""
        query = self.query
        try:
            if read is None or query.engine.tree.reporter is None:
                query.state = query.engine.load(found.state)
            else:
                query.engine, query.state = read(found.state)
        except StateVersionError:
            if origin is None:
                raise
            rebuild(self, origin, found.next_seqs, found.rows)
            return True
        query.watermark_us = query.state.clock_us
        return False

    def check_definition(self, before: Definition) -> None:
        """Refuse to go on with another query, or with other options."""
        if ASKED in before and ASKED not in self.definition:
            message = f"{self.query.name} is a set of queries, not a single one"
            raise StateError(message, hint="take another name, or subscribe with replace=True")
        now = json.loads(json.dumps(self.definition))
        differing = [name for name in now if now.get(name) != before.get(name)]
        if differing:
            told = [
                f"its {each.removesuffix('_us')} was {option_text(each, before.get(each))}, "
                f"not {option_text(each, now[each])}"
                for each in differing
            ]
            message = f"{self.query.name} is another query: {'; '.join(told)}"
            hint = "take another name, or subscribe with replace=True"
            raise StateError(message, hint=hint)

    def retake(self, steps: tuple[TakenStep, ...]) -> None:
        """Take the steps that are in the journal once more."""
        for of_changes, alike in groupby(steps, lambda step: bool(step.change)):
            if of_changes:
                for step in alike:
                    self.change_again(step.change)
                    self.journaled.taken(0)
            else:
                self.retake_between(tuple(alike))

    def change_again(self, change: Mapping[str, Any]) -> None:
        """Change again what only sets can change: which queries there are."""
        raise NotImplementedError

    def retake_between(self, steps: tuple[TakenStep, ...]) -> None:
        """Take steps once more between which nothing else has changed."""
        stored = {name: self.events_until(name, end) for name, end in ends_of(steps).items()}
        with self.stepping:
            for step in steps:
                arrived = {}
                for name, until in step.until.items():
                    arrived[name] = sorted_between(stored[name], self.position[name], until)
                    self.position[name] = until
                count = sum(rows.num_rows for rows in arrived.values())
                if count != step.rows:
                    what = f"{step.rows or 0:,} events that it took together, {count:,}"
                    raise self.gone(what)
                moved = {id(self.query): dict(step.moved)} if step.moved else NOTHING_MOVED
                super().step(self.started(arrived), moved)
                self.journaled.taken(count)
                if self.query.failure is not None:
                    return

    def events_until(self, stream: str, end: int) -> pa.RecordBatch:
        """Return the events of a stream from the position to before a number."""
        batches = list(self.missing(stream, end))
        if not batches:
            what = f"the events of {stream} up to number {end:,}, none"
            raise self.gone(what)
        return pa.concat_batches(batches)

    def gone(self, what: str) -> StoreError:
        """Return the error for events that have been dropped since they were taken."""
        message = f"{self.query.name} cannot go on: of {what} are left in the store"
        hint = "subscribe with replace=True, and say from where it starts"
        return StoreError(message, hint=hint)

    def step(
        self,
        arrived: Mapping[str, pa.RecordBatch],
        moved: Mapping[int, Mapping[str, int]] = NOTHING_MOVED,
    ) -> dict[int, Result]:
        """Write a step to the journal, then take it; if it cannot be written, the query fails."""
        if self.stopped:
            return {}
        count = sum(rows.num_rows for rows in arrived.values())
        until = {name: self.position[name] for name in arrived}
        step = TakenStep(until, count, moved=moved.get(id(self.query), {}))
        if not self.done(lambda: self.journaled.journal.add(step)):
            return {}
        results = super().step(self.started(arrived), moved)
        self.journaled.taken(count)
        if self.journaled.many(STEPS_BETWEEN, EVENTS_BETWEEN):
            self.done(self.save)
        return results

    def done(self, write: Callable[[], None]) -> bool:
        """Write something; return whether it is written. If not, the query fails, and only it."""
        try:
            write()
        except Exception as error:
            log.warning("%s cannot be kept: %s", self.query.name, error)
            self.query.fail(error)
            self.sweep()
            return False
        return True

    def started(self, arrived: Mapping[str, pa.RecordBatch]) -> Mapping[str, pa.RecordBatch]:
        """Return events without those before the query's start."""
        if self.since_us == START_OF_TIME_US:
            return arrived
        return {
            name: rows
            if name in self.relations
            else rows.filter(pc.greater_equal(rows.column(TS).view(pa.int64()), self.since_us))
            for name, rows in arrived.items()
        }

    def sweep(self) -> None:
        """Forget the query if it is over; one that has failed may be subscribed to again."""
        super().sweep()
        if self.query.failure is not None:
            self.abandon()

    def save_if_old(self) -> None:
        """Write a checkpoint if the last one is old, and something has happened since."""
        with self.stepping:
            if self.journaled.steps and monotonic() - self.saved_at >= SECONDS_BETWEEN:
                self.done(self.save)

    def save(self) -> None:
        """Write a checkpoint; the journal begins anew."""
        with self.stepping:
            if self.query.failure is None and not self.stopped:
                self.write(self.journaled.number + 1)

    def stop(self) -> None:
        """Write a last checkpoint; take no more steps."""
        with self.stepping:
            try:
                self.save()
            finally:
                self.stopped = True

    def write(self, number: int) -> None:
        """Write the checkpoint of a number."""
        query, queue = self.query, self.query.queue
        state = self.written_state()
        streams = {name: each.stream_id for name, each in self.stored.items()}
        facts = {
            SINCE: self.since_us,
            STREAMS: streams,
            IDENTITY: self.identity,
            ORIGIN: Origin(self.began, self.first_row, self.moved_to).written(),
        }
        definition = json.dumps({**self.definition, **facts})
        rows = query.counters.rows
        nothing: AbstractContextManager[list[LiveRows]] = nullcontext([])
        with nothing if queue is None else queue.at_rest() as waiting:
            kept = written_rows(waiting)
            found = Checkpoint(number, definition, self.position, rows, state, kept)
            self.journaled.save(found)
        self.saved_at = monotonic()

    @property
    def moved_to(self) -> dict[str, int]:
        """The instants to which streams were moved without events, by stream."""
        feeds = zip(self.query.engine.feeds, self.query.state.feeds, strict=True)
        return {
            feed.stream: held.advanced_us
            for feed, held in feeds
            if held.advanced_us != START_OF_TIME_US
        }

    def written_state(self) -> bytes:
        """Write the state."""
        return self.query.engine.dump(self.query.state)

    def received(self, rows: int) -> None:
        """Remember that the rows before a number have been received."""
        with self.acknowledging:
            self.acknowledged_rows = max(self.acknowledged_rows, rows)
            if not self.closed:
                self.acknowledged.write(self.acknowledged_rows)

    def abandon(self) -> None:
        """Free a query that could not be started; its files stay as they are."""
        self.stopped = True
        self.close()

    def close(self) -> None:
        """Keep where the query is, and free it for other processes."""
        with self.stepping:
            if self.closed:
                return
            try:
                if self.journaled.steps:
                    self.save()
            finally:
                self.stopped = True
                with self.acknowledging:
                    self.closed = True
                    self.acknowledged.close()
                self.journaled.journal.close()
                (self.folder / RUNNER).unlink(missing_ok=True)
                self.held_lock.close()


@contextlib.contextmanager
def alone(folder: Path, name: str) -> Iterator[None]:
    """Keep other processes from running a query meanwhile."""
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(write_lock(folder))
        except BusyError as error:
            runner = "another process"
            with contextlib.suppress(OSError):
                runner = (folder / RUNNER).read_text().strip() or runner
            message = f"{name} runs already, in {runner}"
            hint = "cancel it there, or take another name; its lock dies with the process"
            raise BusyError(message, hint=hint) from error
        yield


def origin_of(written: Mapping[str, Any]) -> Origin | None:
    """Return what a state can be rebuilt from; None if that was not written."""
    origin = written.get(ORIGIN)
    return None if origin is None else Origin(**origin)


def option_text(name: str, value: object) -> str:
    """Return the value of an option as a person would write it."""
    if isinstance(value, int) and name.endswith("_us"):
        return repr(format_duration(value))
    return repr(value)
