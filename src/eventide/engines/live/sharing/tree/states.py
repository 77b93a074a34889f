"""The queries of a tree, and what their templates remember."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from eventide.engines.live.sharing.numbers import AllNumbers
from eventide.engines.live.sharing.run import TemplateRun
from eventide.kernels.compiled import Int64s
from eventide.operators.sharing.predicate_index import PredicateIndex
from eventide.plan.sharing.template import Template


@dataclass(frozen=True, slots=True)
class TemplateRows:
    """The rows of a step of a template; a column says for which query each is."""

    template: Template
    rows: pa.RecordBatch
    columns: tuple[str, ...]
    """The columns of a query's rows."""


@dataclass
class SharedStates:
    """The queries of a tree, and the states of their templates: changed in place."""

    indexes: dict[str, PredicateIndex]
    runs: list[TemplateRun] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    """The place of each template's run, by its digest."""
    numbers: AllNumbers = field(default_factory=AllNumbers)
    readers: dict[int, int] = field(default_factory=dict)
    """How many queries read the rows of each part, by its number."""

    finding_seconds: float = 0.0
    """How long the indexes took to find who wants which rows."""
    is_cohort: bool = False
    """Whether its queries are to be one with others: their refreshes never wait until then."""
    took_more: bool = False
    """Whether it may have taken events that were late for others."""
    failed: dict[int, Exception] = field(default_factory=dict)
    """Queries whose own condition had no value for an event since they were asked for."""

    @property
    def count(self) -> int:
        """How many queries there are."""
        return self.numbers.count

    def take_failed(self) -> dict[int, Exception]:
        """Return the queries that have failed since the last call."""
        failed, self.failed = self.failed, {}
        return failed


def carry_counts(old: SharedStates, new: SharedStates, numbers: Int64s) -> None:
    """Let queries that are in another state now have the rows that were counted for them."""
    (was, old_rows), (became, new_rows) = old.numbers.of(numbers), new.numbers.of(numbers)
    for place in np.unique(was):
        own = was == place
        counts, fresh = old.runs[place].counts, new.runs[became[own][0]].counts
        fresh.taken[new_rows[own]] = counts.taken[old_rows[own]]
        fresh.given[new_rows[own]] = counts.given[old_rows[own]]
