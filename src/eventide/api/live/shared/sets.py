"""Plan the queries of a set, and begin them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eventide.api.live.shared.asked import AskedQueries
from eventide.api.named import NamedQueries
from eventide.api.published import publish
from eventide.engines.live.engine import LiveEngine, LiveState
from eventide.engines.live.sharing.many import ManyQueries
from eventide.engines.live.sharing.planned import ManyPlanner, PlannedQueries
from eventide.engines.live.start import with_relations
from eventide.engines.standing.choice import best_plan
from eventide.errors import EventideError
from eventide.lang.sql import plan_sql
from eventide.lang.sql.named.texts import NamedTexts
from eventide.lang.sql.statement import read_statement
from eventide.plan.events.written import refuse_written
from eventide.plan.nodes import stored_streams
from eventide.plan.sharing.part_rows import part_numbers
from eventide.plan.sharing.rules import RULES_OF_SETS
from eventide.plan.tree import Plan
from eventide.schema import Schema
from eventide.store import Store


@dataclass(frozen=True, slots=True)
class PlannedSet:
    """Queries that are planned, and those that run by themselves in the state they begin with."""

    planned: PlannedQueries
    lone: dict[int, tuple[LiveEngine, LiveState]]
    catalog: Mapping[str, Schema]
    """The streams as they were when they were planned."""

    @property
    def streams(self) -> frozenset[str]:
        """The streams that they read."""
        read = [each.template.streams for each in self.planned.portions]
        return frozenset().union(*read, *(engine.streams for engine, _ in self.lone.values()))

    def begin(self, many: ManyQueries, following: Mapping[str, int]) -> None:
        """Let them begin now, with the events of these numbers or higher."""
        many.catalog = self.catalog
        for portion in self.planned.portions:
            many.add(portion, following)
        for number, (engine, state) in self.lone.items():
            many.add_lone(number, engine, state)


class SetPlanner:
    """Plans queries of one set; what differs only in constants it plans once."""

    def __init__(
        self, store: Store, named: NamedQueries, lateness_us: int, max_lag_us: int | None
    ) -> None:
        self.store = store
        self.named = named
        self.lateness_us = lateness_us
        self.max_lag_us = max_lag_us
        self.part_numbers = part_numbers()
        self.planner = ManyPlanner(self.plan_text, RULES_OF_SETS, self.part_numbers)
        self.catalog = named.catalog()
        self.inlined = named.inlined()

    def plan_text(self, text: str, params: Mapping[str, object] | None) -> Plan:
        """Plan one text."""
        plan = plan_sql(text, self.catalog, params, indexed=self.catalog, named=self.inlined)
        with NamedTexts.of(text, self.inlined).pointing():
            refuse_written(plan)
        return plan

    def plan(self, wanted: AskedQueries, first: int) -> PlannedSet:
        """Plan queries, which are numbered from `first` on."""
        self.publish(wanted)
        self.look_up_names()
        planned = planned_queries(self.planner, wanted, first)
        lone = {number: self.lone(plan) for number, plan in planned.lone.items()}
        return PlannedSet(planned, lone, self.catalog)

    def publish(self, wanted: AskedQueries) -> None:
        """Define the streams that texts in CEL publish."""
        for place in range(len(wanted.texts) if len(wanted) else 0):
            if "publish" in wanted.texts[place].lower():
                text, params = wanted.query(place)
                publish(self.named, read_statement(text), params)

    def look_up_names(self) -> None:
        """Forget what has been planned if names mean something else by now."""
        catalog, inlined = self.named.catalog(), self.named.inlined()
        if (catalog, inlined) != (self.catalog, self.inlined):
            self.catalog, self.inlined = catalog, inlined
            self.planner = ManyPlanner(self.plan_text, RULES_OF_SETS, self.part_numbers)

    def lone(self, plan: Plan) -> tuple[LiveEngine, LiveState]:
        """Return the engine of a query that runs by itself, and the state it begins with."""
        stored = self.store.snapshots(stored_streams(plan))
        engine = LiveEngine.of(
            best_plan(plan, stored), self.catalog, self.lateness_us, max_lag_us=self.max_lag_us
        )
        if any(feed.relation for feed in engine.feeds):
            return engine, with_relations(engine, stored)
        return engine, engine.initial_state()


def planned_queries(planner: ManyPlanner, wanted: AskedQueries, first: int = 0) -> PlannedQueries:
    """Plan queries, which are numbered from `first` on; an error says in which it is."""
    try:
        if wanted.parameters is None:
            return planner.texts(wanted.texts, first)
        return planner.table(wanted.texts[0], wanted.parameters, first)
    except EventideError as error:
        error.add_note(f"in the query {wanted.keys[planner.at - first]!r}")
        raise
