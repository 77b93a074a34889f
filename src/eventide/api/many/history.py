"""Answer many queries over all that is stored: those that can share in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from eventide.api.live.shared.asked import AskedQueries
from eventide.api.live.shared.sets import planned_queries
from eventide.api.many.result import ManyResult, plain_schema
from eventide.engines.history.sharing.many import can_share, run_many
from eventide.engines.live.sharing.many import ManyRows
from eventide.engines.live.sharing.planned import ManyPlanner
from eventide.errors import EventideError
from eventide.interrupts import interruptible
from eventide.lang.sql.statement import read_statement
from eventide.plan.sharing.portion import Portion
from eventide.plan.sharing.rules import RULES_OF_HISTORY
from eventide.schema import row_schema

if TYPE_CHECKING:
    from eventide.api.database import Database


@dataclass
class ManyHistory:
    """The queries, and what has been found."""

    db: Database
    wanted: AskedQueries
    schemas: dict[int, pa.Schema] = field(default_factory=dict)
    rows: list[ManyRows] = field(default_factory=list)
    failed: dict[int, Exception] = field(default_factory=dict)

    def run(self) -> ManyResult:
        """Plan the queries and answer them."""
        planner = ManyPlanner(self.db.history_plan, RULES_OF_HISTORY)
        planned = planned_queries(planner, self.wanted)
        shared, alone = divided(planned.portions, frozenset(self.db.catalog()))
        alone |= planned.lone.keys() | self.together(shared)
        for number in sorted(alone):
            self.by_itself(number)
        return ManyResult(self.wanted.keys, self.schemas, self.rows, self.failed)

    def together(self, portions: list[Portion]) -> set[int]:
        """Answer queries in one pass; return those that failed, perhaps because of another one."""
        if not portions:
            return set()
        streams = frozenset().union(*(each.template.streams for each in portions))
        sources = self.db.store.snapshots(streams)
        found = interruptible(run_many)(portions, self.db.catalog(), sources)
        for portion in portions:
            row = portion.template.plan.row
            schema = row_schema({name: row[name] for name in portion.template.columns})
            self.schemas |= dict.fromkeys(portion.numbers.tolist(), schema)
        failed = np.array(sorted(found.failed), np.int64)
        for each in found.rows:
            here = ~np.isin(each.numbers, failed)
            self.rows.append(ManyRows(each.numbers[here], each.rows.filter(pa.array(here))))
        return set(found.failed)

    def by_itself(self, number: int) -> None:
        """Answer one query as `sql` does."""
        text, params = self.wanted.query(number)
        try:
            table = self.db.answered(read_statement(text), params).to_arrow()
        except EventideError as error:
            self.failed[number] = error
            return
        self.schemas[number] = plain_schema(table.schema)
        for rows in table.to_batches():
            self.rows.append(ManyRows(np.full(rows.num_rows, number, np.int64), rows))


def divided(portions: Sequence[Portion], stored: frozenset[str]) -> tuple[list[Portion], set[int]]:
    """Return the queries that run in one pass, and the numbers of those that run by themselves."""
    shared = [
        each for each in portions if each.template.streams <= stored and can_share(each.template)
    ]
    if sum(len(each.numbers) for each in shared) < 2:
        shared = []  # alone it may be answered by the index
    together = {id(each) for each in shared}
    left = [each.numbers.tolist() for each in portions if id(each) not in together]
    return shared, set(chain.from_iterable(left))
