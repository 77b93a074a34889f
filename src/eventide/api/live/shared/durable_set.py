"""A durable set: its queries, their states and its place in the streams are kept.

A step is in the journal as that of a single durable query is, and so is each change of the queries:
those that come, with their texts, and those that leave, unless an event was the reason. Whoever
goes on plans the same queries again, and takes the same steps with them.
"""

from __future__ import annotations

import json
import logging
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import replace
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from eventide.api.live.durable import ASKED, STREAMS, Definition, Durable, DurableGroup, ReadState
from eventide.api.live.group import Group
from eventide.api.live.kept.rebuild import EVENTS_AT_ONCE, Origin, cannot_rebuild
from eventide.api.live.shared.asked import AskedQueries
from eventide.api.live.shared.live_set import LiveSet
from eventide.api.live.shared.members import Added, Members
from eventide.api.live.shared.sets import PlannedSet
from eventide.api.result import Result
from eventide.engines.live.sharing.many import ManyRows, ManyStep
from eventide.engines.live.sharing.written import Bound, dump_many, load_many, loaded
from eventide.errors import EventideError, StateError, StateLimitError, StateVersionError
from eventide.ingest.by_time import by_time
from eventide.instants import START_OF_TIME_US
from eventide.kernels.compiled import Int64s
from eventide.operators.state import join_parts, split_parts
from eventide.schema import SEQ
from eventide.store import Snapshot, Store
from eventide.store.progress import Checkpoint, TakenStep

if TYPE_CHECKING:
    from eventide.api.live.delivery import Delivery
    from eventide.api.live.shared.sets import SetPlanner
    from eventide.engines.live.sharing.many import ManyQueries

log = logging.getLogger("eventide.live")


class DurableSet(Durable, LiveSet):
    """A set that goes on where it was after a crash or a restart, with the queries that it had."""

    def __init__(
        self, many: ManyQueries, planner: SetPlanner, delivery: Delivery, *, text: str, name: str
    ) -> None:
        LiveSet.__init__(self, many, planner, delivery, text=text)
        self.name = name
        self.members = Members()

    @property
    def group(self) -> DurableSetGroup:
        """What keeps the set."""
        assert isinstance(self.progress, DurableSetGroup)
        return self.progress

    @property
    def texts(self) -> dict[int | str, str]:
        """The texts of the queries that it has, by name, or by number if they have no names."""
        here = set(self.many.numbers.tolist())
        return {
            self.key_of(number): text for number, text, _ in self.members.texts() if number in here
        }

    def begun(
        self, wanted: AskedQueries, planned: PlannedSet, following: Mapping[str, int]
    ) -> None:
        """Keep queries that have begun."""
        group = self.group
        first = self.following - len(wanted)
        position = {**group.position, **following}
        added = self.members.add(wanted, first, planned.parts_from, planned.names, position)
        if group.going:
            read = {name: group.stored[name].stream_id for name in sorted(planned.streams)}
            about = {"states": states_of(planned), STREAMS: read}
            group.note_change({**self.members.change(added), **about})

    def gone(self, numbers: Int64s) -> None:
        """Keep that queries have left."""
        if self.group.going and len(numbers):
            self.group.note_change({"drop": numbers.tolist()})

    def note(self, found: ManyStep) -> None:
        """Note which queries have failed; those that remembered too much leave for good."""
        super().note(found)
        full = [number for number, error in found.failed.items() if is_full(error)]
        self.gone(np.array(full, np.int64))

    def queued(self, found: ManyStep) -> Result:
        """Queue the rows of a step, in an order that does not depend on how queries share."""
        return super().queued(replace(found, rows=in_order(found.rows)))


class DurableSetGroup(DurableGroup):
    """The group of a durable set: it also keeps which queries there are."""

    query: DurableSet

    def __init__(
        self, query: DurableSet, store: Store, folder: Path, definition: Definition
    ) -> None:
        self.store = store
        self.going = False
        """Whether changes of the queries are to be written down."""
        self.lost: set[str] = set()
        """Streams that were dropped while nobody ran the set."""
        super().__init__(query, {}, folder, definition)

    def begin_with(
        self,
        wanted: AskedQueries,
        planned: PlannedSet,
        seen: Mapping[str, Snapshot],
        since_us: int | None,
    ) -> None:
        """Begin a set that is new: with the events to come, or with those from an instant on."""
        query = self.query
        self.stored = {name: self.store.stream(name) for name in seen}
        self.position = {name: each.view.next_seq for name, each in seen.items()}
        if since_us is not None:
            self.position = dict.fromkeys(seen, 0)
            for number in planned.with_relations:
                engine, _ = planned.lone[number]
                planned.lone[number] = engine, engine.initial_state()
        query.note_added(wanted)
        planned.begin(query.many, self.position)
        query.begun(wanted, planned, self.position)
        self.queries = [query]  # it has streams now
        self.begin(self.position, START_OF_TIME_US if since_us is None else since_us)
        self.going = True

    def note_change(self, change: Mapping[str, Any]) -> None:
        """Write down that queries have come or left."""
        self.journaled.journal.add(TakenStep({}, 0, change=change))
        self.journaled.journal.sync()
        self.journaled.taken(0)

    def check_definition(self, before: Definition) -> None:
        """Refuse to go on with other queries than it began with; none are those that it has."""
        if ASKED not in before:
            message = f"{self.query.name} is a single query, not a set"
            raise StateError(message, hint="take another name, or subscribe with replace=True")
        asked = self.definition[ASKED]
        if asked and asked != before[ASKED]:
            message = f"{self.query.name} began with other queries"
            hint = (
                "give the same ones, or none to go on with those that it has: add and drop change "
                "them; or subscribe with replace=True"
            )
            raise StateError(message, hint=hint)
        self.definition |= {name: before[name] for name in ("text", ASKED)}
        super().check_definition(before)

    def check_streams(self, streams: Mapping[str, str], steps: tuple[TakenStep, ...]) -> None:
        """Refuse to go on if steps have to be taken again whose events are gone."""
        there = set(self.store.streams())
        streams = dict(streams)
        for step in steps:
            # Also those that only queries read which have come since the checkpoint.
            streams = {**step.change.get(STREAMS, {}), **streams}
        self.stored = {name: self.store.stream(name) for name in streams.keys() & there}
        self.lost = {
            name
            for name, stream_id in streams.items()
            if name not in self.stored or self.stored[name].stream_id != stream_id
        }
        for name in self.lost:
            if any(name in step.until for step in steps):
                raise self.other_stream(name)
            self.stored.pop(name, None)

    def load(
        self,
        found: Checkpoint,
        origin: Origin | None,
        read: ReadState | None,  # noqa: ARG002 - for single queries
    ) -> bool:
        """Plan the queries again and load their states; whether they had to be rebuilt."""
        query = self.query
        members, dumped = split_parts(found.state)
        query.members, facts = Members.read(members)
        left = np.array(facts["left"], np.int64)
        query.following = facts["following"]
        query.failed_count = facts["failed"]
        query.failures = {key: EventideError(text) for key, text in facts["failures"]}
        for each in query.members.added:
            self.know_names(each, left)
        try:
            bound: dict[int, Bound] = {}
            for each in query.members.added:
                planned = self.planned_again(each).without(left)
                planned.begin(query.many, each.position)
                bound |= planned.bound
            load_many(query.many, dumped, bound)
            rebuilt = False
        except StateError as error:
            if origin is None:
                raise
            if not isinstance(error, StateVersionError):
                log.warning("%s: %s; it is rebuilt from events", query.name, error.message)
            self.rebuild(left, origin, found)
            rebuilt = True
        query.planner.part_numbers.following = facts["parts_following"]
        query.watermark_us = query.many.clock_us
        self.queries = [query]
        return rebuilt

    def resume(self, read: ReadState | None) -> bool:
        """Go on where the files say; return whether there are any."""
        # Who has left for that reason is in the journal.
        bound, self.query.many.max_state_bytes = self.query.many.max_state_bytes, None
        found = super().resume(read)
        self.query.many.max_state_bytes = bound
        if found:
            self.going = True
            for name in sorted(self.lost):
                self.query.lose(name, self.other_stream(name))
                self.position.pop(name, None)
        return found

    def know_names(self, added: Added, left: Int64s) -> None:
        """Know what queries are called; who has left has no name."""
        query = self.query
        if added.wanted.names is None:
            return
        gone = set(left.tolist())
        query.names = query.names or {}
        for number, name in enumerate(added.wanted.names, added.first):
            if number not in gone:
                query.names[number] = name
                query.numbers[name] = number

    def planned_again(self, added: Added) -> PlannedSet:
        """Return queries as they were planned when they came."""
        return self.query.planner.plan_again(added, self.query.members.names[added.names])

    def change_again(self, change: Mapping[str, Any]) -> None:
        """Let queries come or leave once more."""
        query = self.query
        with self.stepping:
            if "drop" in change:
                numbers = np.array(change["drop"], np.int64)
                query.many.drop(numbers)
                for number in change["drop"]:
                    query.forget_name(number)
                return
            added = query.members.changed(change)
            planned = self.planned_again(added)
            for number, state in change["states"].items():
                engine, _ = planned.lone[int(number)]
                own = planned.bound[int(number)]
                planned.lone[int(number)] = loaded(engine, b64decode(state), own)
            for name in planned.streams - self.position.keys():
                self.position[name] = added.position[name]
            query.note_added(added.wanted)
            planned.begin(query.many, {name: self.position[name] for name in planned.streams})
            self.queries = [query]

    def written_state(self) -> bytes:
        """Write which queries there are, and their states."""
        query = self.query
        # A number that overflows is an error of its query, not of what is written.
        query.note(query.many.settle())
        facts = {
            "following": query.following,
            "parts_following": query.planner.part_numbers.following,
            "failed": query.failed_count,
            "failures": [[key, str(error)] for key, error in query.failures.items()],
        }
        self.definition["count"] = len(query)
        members = query.members.written(query.many.numbers, facts)
        return join_parts([members, dump_many(query.many)])

    @property
    def moved_to(self) -> dict[str, int]:
        """The instants to which streams were moved without events, by stream."""
        return self.query.many.moved_to

    def rebuild(self, left: Int64s, origin: Origin, found: Checkpoint) -> None:
        """Let the queries that are here take their events again, from when each of them came."""
        query = self.query
        queue, query.queue = query.queue, None
        query.many.drop(query.many.numbers)
        query.many.shared.clear()
        began = query.members.added[0].position if query.members.added else {}
        self.position = dict(began)
        count = 0
        try:
            for added in query.members.added:
                planned = self.planned_again(added).without(left)
                if planned.with_relations:
                    raise cannot_rebuild(query.described(), 1, 0)
                count += self.take_until(added.position)
                for name in planned.streams - self.position.keys():
                    self.position[name] = added.position[name]
                planned.begin(query.many, added.position)
                self.queries = [query]
            count += self.take_until(found.next_seqs)
            Group.step(self, {}, {id(query): origin.reached})
        finally:
            query.queue = queue
        query.counters.events = query.counters.steps = 0
        log.info("%s: its state was rebuilt from %d events", query.name, count)

    def take_until(self, ends: Mapping[str, int]) -> int:
        """Take stored events before some numbers, without journal; return how many."""
        query = self.query
        read = set(query.streams) & ends.keys()
        wanted = {name: ends[name] for name in read if self.position[name] < ends[name]}
        expected = sum(end - self.position[name] for name, end in wanted.items())
        streams = {name: self.missing(name, end) for name, end in wanted.items()}
        count = 0
        for stream, events in by_time(
            streams, self.relations, query.many.max_lag_us, EVENTS_AT_ONCE
        ):
            self.position[stream] = events.column(SEQ)[-1].as_py() + 1
            count += events.num_rows
            Group.step(self, self.started({stream: events}))
        if count != expected:
            raise cannot_rebuild(query.described(), expected, count)
        self.position |= ends
        return count


def is_full(error: Exception) -> bool:
    """Whether a query has left because it remembered too much, which depends on the others."""
    return isinstance(error, StateLimitError)


def states_of(planned: PlannedSet) -> dict[str, str]:
    """Return the states that queries begin with which know a relation, as the journal has them."""
    return {
        str(number): b64encode(engine.dump(state)).decode()
        for number, (engine, state) in planned.lone.items()
        if number in planned.with_relations
    }


def in_order(parts: list[ManyRows]) -> list[ManyRows]:
    """Return rows in order of their columns, then of their queries."""
    found: list[ManyRows] = []
    ordered = sorted(parts, key=lambda each: str(each.rows.schema))
    for _, alike in groupby(ordered, lambda each: str(each.rows.schema)):
        several = list(alike)
        numbers = np.concatenate([each.numbers for each in several])
        order = np.argsort(numbers, kind="stable")
        rows = pa.concat_batches([each.rows for each in several])
        found.append(ManyRows(numbers[order], rows.take(pa.array(order))))
    return found


def digest_of_queries(wanted: AskedQueries) -> str:
    """Return what tells queries from others, nothing for no queries."""
    if not len(wanted):
        return ""
    text = json.dumps([wanted.texts, wanted.names])
    found = blake2b(text.encode(), digest_size=16)
    if wanted.parameters is not None:
        found.update(json.dumps(wanted.parameters.to_pylist(), default=str).encode())
    return found.hexdigest()
