"""The live queries of a database that run as one: a hidden query whose rows go to each of them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from threading import RLock
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa

from eventide.api.live.late import LateEvents
from eventide.api.live.query import LiveQuery, WhyFull
from eventide.api.result import Result
from eventide.engines.live.engine import LiveEngine, LiveState
from eventide.engines.live.sharing.costs import costs_of
from eventide.engines.live.sharing.engine import SharedQueries
from eventide.engines.live.sharing.many import ManyQueries, ManyRows, ManyStep
from eventide.interrupts import STEPPED_AT_ONCE, interruptible_if_long
from eventide.operators.operator import Size
from eventide.plan.sharing.portion import Portion

if TYPE_CHECKING:
    from eventide.api.live.shared.shared_query import SharedQuery

SHARED_FROM = 4
"""So many queries of a template run as one: fewer take less time by themselves."""

log = logging.getLogger("eventide.live")


class SharedLive(LiveQuery):
    """Queries of one lateness that run as one; each of them has rows and a life of its own."""

    def __init__(self, many: ManyQueries) -> None:
        # It has what a group of queries asks an engine for.
        super().__init__(cast("LiveEngine", many), text="queries that run as one")
        self.many = many
        self.members: dict[int, SharedQuery] = {}
        self.following = 0
        self.held_members: dict[int, SharedQuery] = {}
        """Those that take no events now, since the group looked last."""
        self.changing = RLock()

    def __len__(self) -> int:
        return len(self.members)

    @property
    def unused(self) -> bool:
        """Whether all that ran as one have left."""
        return self.following > 0 and not self.members

    @property
    def held(self) -> bool:
        """Whether some of the queries take no events now."""
        return bool(self.held_members)

    def add(self, query: SharedQuery, portion: Portion, following: Mapping[str, int]) -> None:
        """Let a query begin now, with the events of these numbers or higher."""
        with self.changing:
            query.number = self.following
            query.late_before = {name: late.count for name, late in self.lates.items()}
            self.following += 1
            self.members[query.number] = query
            own = portion.renumbered(np.array([query.number], np.int64))
            self.many.add(own, following)
            query.engine = self.many.queries_over(portion.template.streams).engine

    def sizes_of(self, query: SharedQuery) -> tuple[tuple[str, Size], ...]:
        """Return how much is remembered for one of the queries."""
        with self.stepping, self.changing:
            shared = self.shared_of(query)
            return shared.engine.sizes(shared.looked_at(query.number))

    def seconds_of(self, query: SharedQuery) -> float:
        """Return the share of one of the queries in the time that steps took."""
        with self.stepping, self.changing:
            costs = costs_of(self.many)
        return float(costs.seconds[costs.numbers == query.number].sum())

    def drop(self, query: SharedQuery) -> None:
        """Let a query go."""
        with self.changing:
            if self.members.pop(query.number, None) is not None:
                self.held_members.pop(query.number, None)
                self.many.drop(np.array([query.number], np.int64))

    def part(self, query: SharedQuery) -> tuple[LiveEngine, LiveState]:
        """Let a query go on by itself: return its engine and its state."""
        with self.changing:
            shared = self.shared_of(query)
            query.counters.step_seconds = query.step_seconds
            state = shared.apart(query.number)
            self.drop(query)
            return shared.engine, state

    def join(self, query: SharedQuery) -> bool:
        """Let a query that runs by itself run with the others, if it is as far as they are."""
        shared = next((each for each in self.many.shared if each.engine is query.engine), None)
        if shared is None or not shared.states:
            return False
        if not shared.can_unite(shared.states[0], query.state):
            return False
        with self.changing:
            shared.join(query.state)
            self.members[query.number] = query
            query.seconds_before = self.seconds_of(query)
        return True

    def shared_of(self, query: SharedQuery) -> SharedQueries:
        """Return the queries that one runs with."""
        return next(each for each in self.many.shared if each.engine is query.engine)

    def take_delivered(
        self, arrived: Mapping[str, pa.RecordBatch], reached: Mapping[str, int]
    ) -> Result:
        """Take events of the database; a query that fails leaves the others."""
        count = sum(rows.num_rows for rows in arrived.values())
        step = interruptible_if_long(
            lambda: self.many.take(arrived, reached), count, STEPPED_AT_ONCE
        )
        with self.stepping, self.changing:
            try:
                found: ManyStep = step()
            except Exception as why:
                found = ManyStep(failed=dict.fromkeys(self.members, why))
            self.watermark_us = self.many.clock_us
            for late, _ in found.late[:1]:
                for stream, rows in late.items():
                    self.lates.setdefault(stream, LateEvents()).add(rows)
            for each in found.rows:
                self.emit(each)
            failed = [
                (self.members[number], error)
                for number, error in found.failed.items()
                if number in self.members
            ]
        for query, error in failed:
            query.fail(error)
        return Result(pa.table({}))

    def emit(self, rows: ManyRows) -> None:
        """Give each query its rows."""
        order = np.argsort(rows.numbers, kind="stable")
        numbers = rows.numbers[order]
        sorted_rows = rows.rows.take(pa.array(order))
        starts = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
        ends = [*starts[1:].tolist(), len(numbers)]
        for start, end in zip(starts.tolist(), ends, strict=True):
            query = self.members.get(int(numbers[start]))
            if query is None:
                continue
            query.take_rows(sorted_rows.slice(start, end - start))
            if query.held:
                self.held_members[query.number] = query

    def sizes(self) -> tuple[tuple[str, Size], ...]:
        """Return how much is remembered for all of them."""
        with self.stepping, self.changing:
            return self.many.sizes()

    def give_up_most(self, why: WhyFull) -> None:
        """End the queries that together remember most; the others go on."""
        with self.stepping, self.changing:
            heaviest = self.many.heaviest()
            numbers, most = max(heaviest, key=lambda each: each[1], default=(None, 0))
            if numbers is None:
                return
            queries = [self.members[each] for each in numbers.tolist()]
        error = why(f"{len(queries):,} queries such as {queries[0].described()}", most)
        for query in queries:
            query.fail(error)
        with self.stepping, self.changing:
            for shared in self.many.shared:
                shared.forget_gone()
                shared.compact()

    def lose(self, stream: str, why: Exception) -> None:
        """End the queries of a stream that cannot be read any more; the others go on."""
        for query in list(self.members.values()):
            if stream in query.streams:
                query.fail(why)

    def fail(self, why: BaseException) -> None:
        """End all queries: what they share cannot go on."""
        for query in list(self.members.values()):
            query.fail(why)
        super().fail(why)
