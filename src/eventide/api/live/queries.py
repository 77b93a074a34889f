"""Start the live queries of a database."""

from __future__ import annotations

import logging
import shutil
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import RLock
from typing import TypeVar

from eventide.api.live.clocks.wall_time import listen
from eventide.api.live.dead_letters import DeadLetters
from eventide.api.live.delivery import Delivery
from eventide.api.live.durable import ASKED, QUERIES, Definition, DurableGroup, DurableQuery, alone
from eventide.api.live.kept.listed import KeptQuery, kept_queries
from eventide.api.live.options import LiveOptions, ManyOptions
from eventide.api.live.pulled import Pull
from eventide.api.live.receiver import Receive, receiver_of
from eventide.api.live.running import RunningStream
from eventide.api.live.shared.asked import AskedQueries
from eventide.api.live.shared.durable_set import (
    DurableSet,
    DurableSetGroup,
    digest_of_queries,
)
from eventide.api.live.shared.live_set import LiveSet
from eventide.api.live.shared.sets import SetPlanner
from eventide.api.live.shared.shared_live import SHARED_FROM, SharedLive
from eventide.api.live.shared.shared_query import SharedQuery
from eventide.api.live.subscription import Subscription
from eventide.api.named import NamedQueries, reached_names
from eventide.api.published import publish
from eventide.api.stream import instant
from eventide.engines.live.engine import LiveEngine
from eventide.engines.live.sharing.many import ManyQueries
from eventide.engines.standing.choice import best_plan
from eventide.engines.standing.resume import resumed
from eventide.errors import SchemaError, StateError, StoreError
from eventide.instants import START_OF_TIME_US
from eventide.lang.parameters import Parameters
from eventide.lang.sql import plan_sql
from eventide.lang.sql.named.stream import plan_stream
from eventide.lang.sql.named.texts import NamedTexts
from eventide.lang.sql.statement import Statement, read_statement
from eventide.plan.events.written import refuse_written
from eventide.plan.named import NamedQuery
from eventide.plan.nodes import stored_streams
from eventide.plan.sharing.portion import portions_of
from eventide.plan.sharing.template import TemplateQuery, member_of
from eventide.plan.tree import Plan
from eventide.sinks.contract import Sink
from eventide.store import Snapshot, Store
from eventide.store.store import STREAM_NAME

log = logging.getLogger("eventide.live")

AnyReceiver = Receive | Sink | Pull
MOST_TEMPLATES = 10_000
"""So many templates are counted; those that were met least are forgotten."""
Started = TypeVar("Started", Subscription, RunningStream)


class LiveQueries:
    """Starts live queries, and knows what they share."""

    def __init__(
        self, store: Store, named: NamedQueries, delivery: Delivery, letters: DeadLetters
    ) -> None:
        self.store = store
        self.named = named
        self.delivery = delivery
        self.letters = letters
        self.templates: Counter[Hashable] = Counter()
        """How many queries of each template have begun, with the options that shared ones have."""
        self.starting = RLock()
        """Held while a live query starts, so that what it shares with others starts once."""

    def subscribe(
        self, text: str, receiver: AnyReceiver | None, params: Parameters, options: LiveOptions
    ) -> Subscription:
        """Start a query, fresh or where it was."""
        live = self.started(text, receiver, params, options)
        log.info("live query %d has begun: %s", live.id, live.described())
        return live

    def started(
        self, text: str, receiver: AnyReceiver | None, params: Parameters, options: LiveOptions
    ) -> Subscription:
        """Return a query that runs, fresh or where it was."""
        with self.starting:
            statement = read_statement(text)
            if statement.cel:
                publish(self.named, statement, params)
            # What a durable query depends on is its own: others may not change it.
            alone = options.from_history or options.name is not None
            shared = {} if alone else self.running_below(text, params)
            catalog = self.named.catalog() | {name: each.schema for name, each in shared.items()}
            plan = plan_sql(text, catalog, params, indexed=catalog, named=self.named.inlined())
            try:
                with NamedTexts.of(text, self.named.inlined()).pointing():
                    refuse_written(plan)
                member = member_of(plan) if options.may_share and not shared else None
                if member is not None and self.is_met_often(member, options):
                    return self.sharing(text, member, receiver, options)
                with NamedTexts.of(text, self.named.inlined()).pointing():
                    engine = LiveEngine.of(
                        best_plan(
                            plan, self.store.snapshots(stored_streams(plan).difference(shared))
                        ),
                        catalog,
                        options.lateness_us,
                        max_state_bytes=options.most_state_bytes,
                        max_lag_us=options.max_lag_us,
                        late=options.late,
                    )
                if options.name is not None:
                    durable = DurableQuery(engine, self.delivery, text=text, name=options.name)
                    durable.listens = options.idle_us is not None
                    self.receive(durable, receiver, options)
                    self.durable(durable, plan, params, options)
                    self.listen(durable, options)
                    return durable
                live = Subscription(engine, self.delivery, text=text)
                live.listens = options.idle_us is not None
                self.receive(live, receiver, options)
                if live.queue is not None:
                    live.queue.begin(None, live.output_schema, 0)
                self.begun(live, plan, shared, from_history=options.from_history)
                self.listen(live, options)
                return live
            finally:
                # Derived streams that were started for a query that cannot run.
                self.delivery.sweep()

    def is_met_often(self, member: TemplateQuery, options: LiveOptions) -> bool:
        """Note a query of a template; whether there are so many that they run as one."""
        key = (member.template.digest, options.lateness_us, options.max_lag_us)
        self.templates[key] += 1
        if len(self.templates) > MOST_TEMPLATES:
            self.templates = Counter(dict(self.templates.most_common(MOST_TEMPLATES // 2)))
        return self.templates[key] >= SHARED_FROM

    def sharing(
        self, text: str, member: TemplateQuery, receiver: AnyReceiver | None, options: LiveOptions
    ) -> SharedQuery:
        """Start a query that runs with others of its template."""
        delivery = self.delivery
        with delivery.changing, delivery.together.stepping:
            shared = delivery.shared_live(options.lateness_us, options.max_lag_us)
            if shared is None:
                catalog = self.named.catalog()
                many = ManyQueries(catalog, options.lateness_us, options.max_lag_us)
                shared = SharedLive(many)
                delivery.add(shared, {})
            shared.many.catalog = self.named.catalog()
            (portion,) = portions_of([member], 0)
            engine = shared.many.queries_over(member.template.streams).engine
            live = SharedQuery(engine, member.template, shared, delivery, text=text)
            self.receive(live, receiver, options)
            if live.queue is not None:
                live.queue.begin(None, live.output_schema, 0)
            delivery.begin_more(shared, member.template.streams, partial(shared.add, live, portion))
        return live

    def subscribe_many(
        self, wanted: AskedQueries, receiver: AnyReceiver | None, options: ManyOptions
    ) -> LiveSet:
        """Start queries that run as one as far as they can, or let a durable set go on."""
        with self.starting:
            catalog = self.named.catalog()
            many = ManyQueries(
                catalog,
                options.lateness_us,
                options.max_lag_us,
                options.most_state_bytes,
                options.turns,
            )
            planner = SetPlanner(self.store, self.named, options.lateness_us, options.max_lag_us)
            text = wanted.texts[0] if wanted.texts else ""
            if options.name is not None:
                kept = DurableSet(many, planner, self.delivery, text=text, name=options.name)
                kept.listens = options.idle_us is not None
                self.receive(kept, receiver, options)
                self.durable_set(kept, wanted, options)
                self.listen(kept, options)
                log.info("live query %d has begun: %s", kept.id, kept.described())
                return kept
            live = LiveSet(many, planner, self.delivery, text=text)
            live.listens = options.idle_us is not None
            live.clock = options.wall_clock
            self.receive(live, receiver, options)
            self.delivery.add(live, {})
            try:
                live.add_asked(wanted)
                if live.queue is not None:
                    live.queue.begin(None, live.output_schema, 0)
            except BaseException:
                live.cancel()
                raise
            self.listen(live, options)
            log.info("live query %d has begun: %s", live.id, live.described())
            return live

    def receive(
        self, live: Subscription, receiver: AnyReceiver | None, options: LiveOptions
    ) -> None:
        """Let a query hand its rows to a receiver, if it has one, or keep them to be pulled."""
        if isinstance(receiver, Pull):
            live.queue = live.new_queue(options.hand_over.queue_rows)
        elif receiver is not None:
            live.receive(receiver_of(receiver), options.hand_over, self.letters)

    def listen(self, live: Subscription, options: LiveOptions) -> None:
        """Let the wall clock move silent streams of a query, if that is wanted."""
        if options.idle_us is not None:
            listen(live, options.wall_clock, options.idle_us, self.delivery)

    def begun(
        self,
        live: Started,
        plan: Plan,
        shared: Mapping[str, RunningStream],
        *,
        from_history: bool = False,
    ) -> Started:
        """Add a live query that reads derived streams that run; it begins with what it needs."""
        live.sources = {name: each for name, each in shared.items() if name in live.streams}
        stored = self.store.snapshots(stored_streams(plan).difference(shared))
        if from_history or any(feed.relation for feed in live.engine.feeds):
            nothing = {name: each.nothing() for name, each in live.sources.items()}
            live.begin({**stored, **nothing}, from_history)
        self.delivery.add(live, stored)
        return live

    def durable(
        self, live: DurableQuery, plan: Plan, params: Parameters, options: LiveOptions
    ) -> None:
        """Run a durable query: one that is new begins, another one goes on where it was."""
        assert live.name is not None
        self.refuse_running(live.name)
        definition: Definition = {
            "text": live.text,
            "params": repr(params),
            "lateness_us": options.lateness_us,
            "late": options.late,
            "max_lag_us": options.max_lag_us,
        }
        stored = {name: self.store.stream(name) for name in live.streams}
        folder = self.folder_of(live.name)
        group = DurableGroup(live, stored, folder, definition)
        try:
            if options.replace or not group.resume(
                lambda state: resumed(live.engine, plan, self.named.catalog(), state)
            ):
                self.start(live, group, plan, options)
            elif options.from_history or options.start != "now":
                what = "start and from_history are for a query that is new"
                log.info("%s goes on where it was: %s", live.name, what)
            self.delivery.add_durable(group)
        except BaseException:
            group.abandon()
            raise

    def durable_set(self, live: DurableSet, wanted: AskedQueries, options: LiveOptions) -> None:
        """Run a durable set: one that is new begins, another one goes on with what it has."""
        assert live.name is not None
        self.refuse_running(live.name)
        definition: Definition = {
            "text": live.text,
            ASKED: digest_of_queries(wanted),
            "lateness_us": options.lateness_us,
            "max_lag_us": options.max_lag_us,
        }
        group = DurableSetGroup(live, self.store, self.folder_of(live.name), definition)
        try:
            if options.replace or not group.resume(None):
                planned = live.planner.plan(wanted, 0)
                seen = self.store.snapshots(planned.streams)
                group.begin_with(wanted, planned, seen, starts_at(seen, options))
            elif options.start != "now":
                log.info("%s goes on where it was: start is for a set that is new", live.name)
            self.delivery.add_durable(group)
        except BaseException:
            group.abandon()
            raise

    def refuse_running(self, name: str) -> None:
        """Refuse a durable query that runs in this process."""
        if any(group.query.name == name and group.queries for group in self.delivery.durable):
            message = f"{name} runs already, in this process"
            raise StateError(message, hint="db.queries() has it")

    def start(
        self, live: DurableQuery, group: DurableGroup, plan: Plan, options: LiveOptions
    ) -> None:
        """Begin a durable query that is new."""
        stored = self.store.snapshots(stored_streams(plan))
        if options.start != "now" and options.from_history:
            message = "start and from_history exclude each other"
            hint = 'start="beginning" reports what history has; from_history does not'
            raise SchemaError(message, hint=hint)
        since_us = starts_at(stored, options)
        if since_us is None:
            if options.from_history or any(feed.relation for feed in live.engine.feeds):
                live.begin(stored, options.from_history)
            position = {name: each.view.next_seq for name, each in stored.items()}
            group.begin(position, from_history=options.from_history)
            return
        group.begin(dict.fromkeys(stored, 0), since_us)

    def folder_of(self, name: str) -> Path:
        """Return where a durable query is kept."""
        if not STREAM_NAME.fullmatch(name):
            message = f"{name!r} is no name for a query"
            raise SchemaError(message, hint="use letters, digits, _ and -, at most 100")
        return self.store.path / QUERIES / name

    def kept(self) -> tuple[KeptQuery, ...]:
        """Return the durable queries of the database."""
        return kept_queries(self.store)

    def drop(self, name: str) -> None:
        """Forget a durable query for good; it must not run."""
        folder = self.folder_of(name)
        for group in self.delivery.durable:
            if group.query.name == name:
                group.query.cancel()
        if not folder.is_dir():
            message = f"there is no durable query {name!r}"
            raise StoreError(
                message, hint=f"there are: {', '.join(each.name for each in self.kept()) or 'none'}"
            )
        with alone(folder, name):
            shutil.rmtree(folder)

    def running_below(
        self, query: str | Statement, params: Parameters = None
    ) -> dict[str, RunningStream]:
        """Return the derived streams that a live query may read, each running once, by name."""
        known = self.named.all()
        found: dict[str, RunningStream] = {}
        for name in sorted(reached_names(query, known, params)):
            if known[name].kind == "stream":
                found[known[name].name] = self.running(known[name])
        return found

    def running(self, named: NamedQuery) -> RunningStream:
        """Return a derived stream that runs; start it unless it does."""
        found = self.delivery.running(named)
        if found is not None:
            return found
        shared = self.running_below(named.text)
        catalog = self.named.catalog() | {name: each.schema for name, each in shared.items()}
        plan = plan_stream(named, catalog, self.named.inlined())
        with NamedTexts.of(named.text, self.named.inlined()).pointing():
            chosen = best_plan(plan, self.store.snapshots(stored_streams(plan).difference(shared)))
            engine = LiveEngine.of(chosen, catalog, named.lateness_us)
        schema = replace(named, columns=tuple(plan.row.items())).schema
        return self.begun(RunningStream(named, schema, engine), plan, shared)


def starts_at(stored: Mapping[str, Snapshot], options: LiveOptions) -> int | None:
    """Return the instant from which on a new query takes what is stored, None if from now on."""
    if options.start == "now":
        return None
    for name, each in stored.items():
        if each.manifest.options.keep_until is not None:
            message = f"events of {name} expire: what it has had cannot be reported from then on"
            raise SchemaError(message, hint="leave out start; from_history=True begins warm")
    return START_OF_TIME_US if options.start == "beginning" else instant(options.start)
