"""Plan the queries of a set, and begin them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from eventide.api.live.shared.asked import AskedQueries
from eventide.api.live.shared.members import Added, NamesThen
from eventide.api.named import NamedQueries
from eventide.api.published import publish
from eventide.engines.live.engine import LiveEngine, LiveState
from eventide.engines.live.sharing.many import ManyQueries
from eventide.engines.live.sharing.planned import ManyPlanner, PlannedQueries
from eventide.engines.live.sharing.written import Bound
from eventide.engines.live.start import with_relations
from eventide.engines.standing.choice import best_plan
from eventide.errors import EventideError
from eventide.kernels.compiled import Int64s
from eventide.lang.sql import plan_sql
from eventide.lang.sql.named.texts import NamedTexts
from eventide.lang.sql.statement import read_statement
from eventide.plan.events.written import refuse_written
from eventide.plan.named import NamedQuery
from eventide.plan.nodes import stored_streams
from eventide.plan.sharing.part_rows import PartNumbers
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
    inlined: Mapping[str, NamedQuery]
    """The named queries then."""
    parts_from: int
    """The number of the first part that they share."""

    @property
    def names(self) -> NamesThen:
        """What names meant to them."""
        return NamesThen({name: self.catalog[name] for name in sorted(self.streams)}, self.inlined)

    @property
    def bound(self) -> dict[int, Bound]:
        """The queries that run by themselves, as they were bound."""
        return {number: (plan, self.catalog) for number, plan in self.planned.lone.items()}

    @property
    def with_relations(self) -> list[int]:
        """The queries that begin with the rows of a relation."""
        read = self.lone.items()
        return [each for each, (engine, _) in read if any(feed.relation for feed in engine.feeds)]

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

    def without(self, left: Int64s) -> PlannedSet:
        """Return the queries that are not among some numbers."""
        if not len(left):
            return self
        portions = [
            each.only(~np.isin(each.numbers, left))
            for each in self.planned.portions
            if not np.isin(each.numbers, left).all()
        ]
        gone = set(left.tolist())
        alone = {number: plan for number, plan in self.planned.lone.items() if number not in gone}
        lone = {number: each for number, each in self.lone.items() if number not in gone}
        return replace(self, planned=PlannedQueries(portions, alone), lone=lone)


class SetPlanner:
    """Plans queries of one set; what differs only in constants it plans once."""

    def __init__(
        self, store: Store, named: NamedQueries, lateness_us: int, max_lag_us: int | None
    ) -> None:
        self.store = store
        self.named = named
        self.lateness_us = lateness_us
        self.max_lag_us = max_lag_us
        self.part_numbers = PartNumbers()
        self.planner = ManyPlanner(self.plan_text, RULES_OF_SETS, self.part_numbers)
        self.catalog: Mapping[str, Schema] = named.catalog()
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
        self.mean(self.named.catalog(), self.named.inlined())
        return self.planned(wanted, first)

    def plan_again(self, added: Added, names: NamesThen) -> PlannedSet:
        """Plan queries as they were planned when they were added, by another process perhaps."""
        self.mean(names.catalog, names.inlined)
        following, self.part_numbers.following = self.part_numbers.following, added.parts_from
        found = self.planned(added.wanted, added.first)
        self.part_numbers.following = max(following, self.part_numbers.following)
        return found

    def planned(self, wanted: AskedQueries, first: int) -> PlannedSet:
        """Plan queries with what names mean now."""
        parts_from = self.part_numbers.following
        planned = planned_queries(self.planner, wanted, first)
        lone = {number: self.lone(plan) for number, plan in planned.lone.items()}
        return PlannedSet(planned, lone, self.catalog, self.inlined, parts_from)

    def publish(self, wanted: AskedQueries) -> None:
        """Define the streams that texts in CEL publish."""
        for place in range(len(wanted.texts) if len(wanted) else 0):
            if "publish" in wanted.texts[place].lower():
                text, params = wanted.query(place)
                publish(self.named, read_statement(text), params)

    def mean(self, catalog: Mapping[str, Schema], inlined: Mapping[str, NamedQuery]) -> None:
        """Say what names mean; what has been planned is forgotten if they meant something else."""
        if (catalog, inlined) != (self.catalog, self.inlined):
            self.catalog, self.inlined = catalog, inlined
            self.planner = ManyPlanner(self.plan_text, RULES_OF_SETS, self.part_numbers)

    def lone(self, plan: Plan) -> tuple[LiveEngine, LiveState]:
        """Return the engine of a query that runs by itself, and the state it begins with."""
        read = stored_streams(plan)
        # Of queries that are planned again a stream may have been dropped: they leave then.
        stored = self.store.snapshots(read) if read <= set(self.store.streams()) else {}
        engine = LiveEngine.of(
            best_plan(plan, stored), self.catalog, self.lateness_us, max_lag_us=self.max_lag_us
        )
        if stored and any(feed.relation for feed in engine.feeds):
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
