"""A template that runs: its operators, their states, and the constants of its queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter

import numpy as np
import pyarrow as pa

from eventide.arrays import no_rows, to_arrow, to_numpy
from eventide.engines.build import build_live_tree
from eventide.engines.live.sharing.known import KnownPortions
from eventide.engines.live.sharing.packed import buffers_of, packed, taken, unpacked
from eventide.engines.live.sharing.windows import WindowsRun
from eventide.kernels.compiled import Int32s, Int64s, frozen
from eventide.kernels.growing import longer
from eventide.kernels.sharing.queries import count_rows_of
from eventide.operators.columns import unchecked_take
from eventide.operators.operator import Size
from eventide.operators.tree import OperatorTree, States, TreeLeaf
from eventide.plan.check import check_plan
from eventide.plan.nodes import Scan
from eventide.plan.sharing.part_rows import PART, PART_NUMBER, is_part
from eventide.plan.sharing.portion import Portion
from eventide.plan.sharing.refreshes import Refreshed
from eventide.plan.sharing.share_windows import WINDOWS
from eventide.plan.sharing.template import QUERY, Template
from eventide.plan.tree import remembers
from eventide.schema import SEQ

NUMBER_BITS = 28
"""Standing queries know events by their numbers: an event is another one for each query."""


@dataclass(frozen=True)
class TemplateTree:
    """The operators of a template, and how its leaves are fed."""

    template: Template
    tree: OperatorTree

    @classmethod
    def of(cls, template: Template) -> TemplateTree:
        """Build the operators of a template; what rules have made of a plan is sound."""
        check_plan(template.plan, after="sharing")
        return cls(template, build_live_tree(template.plan))

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """For each leaf, the column with the numbers of queries; empty if events are for all."""
        return tuple(number_column(leaf) for leaf in self.tree.leaves)

    @cached_property
    def numbered(self) -> tuple[int, ...]:
        """The leaves whose rows are numbered, in order."""
        return tuple(place for place, key in enumerate(self.keys) if key)

    @cached_property
    def indexed(self) -> dict[int, str]:
        """The leaves whose events are numbered by the index of a stream, and that stream."""
        streams = {place: self.tree.leaves[place].scan.stream for place in self.numbered}
        return {place: stream for place, stream in streams.items() if stream != WINDOWS}

    @cached_property
    def rows_name(self) -> str:
        """What its rows are called where it is a part."""
        return PART + self.template.digest

    @cached_property
    def part_streams(self) -> tuple[str, ...]:
        """What the rows of its parts are called."""
        return tuple(leaf.scan.stream for leaf in self.tree.leaves if is_part(leaf.scan))

    @cached_property
    def may_wait(self) -> bool:
        """Whether refreshes of some queries may wait while others are computed.

        Changes of an answer are those since the refresh before: they are in order for all.
        """
        plan = self.template.plan
        return isinstance(plan, Refreshed) and plan.report == "rstream"

    @property
    def reads_windows(self) -> bool:
        """Whether the rows of its first leaf are shared windows."""
        return self.template.windows is not None

    @cached_property
    def constants(self) -> list[str]:
        """The constants that its leaves read; those of conditions alone are in the index."""
        names = {
            name.removesuffix(key.removeprefix(QUERY))
            for leaf, key in zip(self.tree.leaves, self.keys, strict=True)
            for name in leaf.schema.names
            if key and name.startswith("$") and name != key
        }
        own = [PART_NUMBER] if self.template.parts else []
        return ["$", *own, *sorted(names)]

    @cached_property
    def is_idle_when_empty(self) -> bool:
        """Whether, while nothing is remembered, only events that are numbered matter."""
        return self.can_divide and not any(remembers(each) for each in self.template.common)

    @cached_property
    def can_divide(self) -> bool:
        """Whether what queries remember can be taken apart, and put together."""
        return self.template.plan.standing is None

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of a query's rows, as they are reported live."""
        if self.can_divide:
            return self.template.columns
        return tuple(name for name in self.tree.output_schema.names if name != QUERY)


def number_column(leaf: TreeLeaf) -> str:
    """Return the column of a leaf with the numbers of queries, if it has one."""
    return next((name for name in leaf.schema.names if name.startswith(QUERY)), "")


@dataclass(slots=True)
class StepCounts:
    """What a template has done: steps, what they took, rows in and out."""

    steps: int = 0
    seconds: float = 0.0
    rows_in: int = 0
    rows_out: int = 0
    began: float = field(default_factory=perf_counter)
    """When it began, for rates."""

    def add(self, seconds: float, rows_in: int, rows_out: int) -> None:
        """Add a step."""
        self.steps += 1
        self.seconds += seconds
        self.rows_in += rows_in
        self.rows_out += rows_out

    def include(self, other: StepCounts) -> None:
        """Add what another one has done."""
        self.steps += other.steps
        self.seconds += other.seconds
        self.rows_in += other.rows_in
        self.rows_out += other.rows_out
        self.began = min(self.began, other.began)

    def rate(self, rows: int) -> float:
        """Return rows in a second of wall time since it began."""
        return rows / max(perf_counter() - self.began, 1e-9)


class RowCounts:
    """How many rows each query of a template has taken and given, by the place of its constants."""

    def __init__(self) -> None:
        self.both: Int64s = np.zeros((0, 2), np.int64)
        """Side by side: who takes a row most often gives one, too."""

    @property
    def taken(self) -> Int64s:
        """How many rows each query has taken."""
        return self.both[:, 0]

    @property
    def given(self) -> Int64s:
        """How many rows each query has given."""
        return self.both[:, 1]

    def reserve(self, count: int) -> None:
        """Make room for so many queries."""
        if count > len(self.both):
            self.both = longer(self.both, max(count, 2 * len(self.both)))

    def take(self, places: Int32s) -> None:
        """Count rows that queries take."""
        count_rows_of(frozen(places), 0, self.both)

    def give(self, places: Int32s) -> None:
        """Count rows that queries give."""
        count_rows_of(frozen(places), 1, self.both)

    @property
    def nbytes(self) -> int:
        """How many bytes they take."""
        return int(self.both.nbytes)


@dataclass
class TemplateRun:
    """A template in a state: changed in place by steps, and as queries come."""

    tree: TemplateTree
    states: States
    known: KnownPortions = field(default_factory=KnownPortions)
    """The queries that have come, and their conditions."""
    constants: list[pa.RecordBatch] = field(default_factory=list)
    packed_rows: int = 0
    """How many constants there were when they were packed last."""
    rows: int = 0
    """How many queries have come, also those that have left since."""
    windows: WindowsRun | None = None
    """The windows that its queries share."""
    has_gone: bool = False
    """Whether the operators may remember something of queries that have left."""
    done: StepCounts = field(default_factory=StepCounts)
    """What it has done since it began."""
    counts: RowCounts = field(default_factory=RowCounts)

    @classmethod
    def of(cls, tree: TemplateTree, scans: Mapping[str, Scan]) -> TemplateRun:
        """Return a run without queries; the scans are of streams with all their columns."""
        windows = tree.template.windows
        below = None if windows is None else WindowsRun.of(windows, scans)
        return cls(tree, tree.tree.initial_state(), windows=below)

    def reached(self, until_us: int) -> int:
        """Return the instant before which its rows are complete."""
        if self.windows is not None:
            until_us = self.windows.reached(until_us)
        return self.tree.tree.reached(self.states, until_us)

    def add(self, portion: Portion) -> None:
        """Add the constants of queries."""
        held = replace(portion, constants=packed(portion.constants))
        self.known.add(held)
        self.constants.append(held.constants.select(self.tree.constants))
        self.rows += len(portion.numbers)
        self.counts.reserve(self.rows)

    def parts_of(self, places: Int64s | Int32s) -> Int64s:
        """Return the numbers of the parts of queries, given the places of their constants."""
        if not self.tree.template.parts:
            return np.empty(0, np.int64)
        return to_numpy(taken(self.table.column(PART_NUMBER), to_arrow(places)))

    @property
    def table(self) -> pa.RecordBatch:
        """The constants of all queries, perhaps packed."""
        if len(self.constants) > 1:
            whole = pa.concat_batches(map(unpacked, self.constants))
            # To pack them takes longer than to copy them.
            if whole.num_rows >= 2 * self.packed_rows:
                whole, self.packed_rows = packed(whole), whole.num_rows
            self.constants = [whole]
        return self.constants[0]

    def leaf_rows(
        self,
        leaf: int,
        rows: pa.RecordBatch,
        events: Int64s,
        numbers: Int64s,
        places: Int64s | Int32s,
    ) -> pa.RecordBatch:
        """Return what a numbered leaf reads: some events, with numbers and constants."""
        wanted = self.tree.tree.leaves[leaf]
        if not len(events):
            return no_rows(wanted.schema)
        key = self.tree.keys[leaf]
        suffix = key.removeprefix(QUERY)
        chosen = to_arrow(events)
        of_query = to_arrow(places)
        columns: list[pa.Array] = []
        for name in wanted.schema.names:
            if name == key:
                columns.append(to_arrow(numbers))
            elif name == SEQ and not self.tree.can_divide:
                seq = to_numpy(rows.column(name))[events]
                columns.append(to_arrow((seq << NUMBER_BITS) + numbers))
            elif name.startswith("$"):
                own = name.removesuffix(suffix) if suffix else name
                columns.append(taken(self.table.column(own), of_query))
            else:
                columns.append(unchecked_take(rows.column(name), chosen))
        return pa.RecordBatch.from_arrays(columns, schema=wanted.schema)

    @property
    def sizes(self) -> tuple[tuple[str, Size], ...]:
        """How much its operators remember."""
        below = () if self.windows is None else self.windows.sizes
        return (*below, *self.tree.tree.sizes(self.states))

    @property
    def is_empty(self) -> bool:
        """Whether its operators remember nothing, but for windows below them."""
        operators = zip(self.tree.tree.placed, self.states, strict=True)
        return all(
            state is None or not placed.operator.size(state).tuples for placed, state in operators
        )

    @property
    def nbytes(self) -> int:
        """How many bytes its constants and numbers take; tables may have columns in common."""
        constants: dict[int, int] = {}
        for table in (*self.constants, *(each.constants for each in self.known.portions)):
            constants |= buffers_of(table)
        numbers = sum(int(each.numbers.nbytes) for each in self.known.portions)
        return sum(constants.values()) + numbers + self.counts.nbytes
