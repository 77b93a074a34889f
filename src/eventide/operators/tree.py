"""The operators of a plan, from the events of its scans to its results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from eventide.instants import END_OF_TIME_US
from eventide.operators.align_rows import AlignRows
from eventide.operators.columns import results_that_fit
from eventide.operators.dividing import Wanted, has_query
from eventide.operators.envelope import QUERY, Owner
from eventide.operators.filter_project import FilterRows, Stateless
from eventide.operators.operator import Edge, Operator, Size
from eventide.operators.state import join_parts, parts_of
from eventide.operators.stateful import Stateful
from eventide.plan.meaning import digest_of
from eventide.plan.nodes import Scan
from eventide.plan.standing.nodes import Standing
from eventide.plan.tree import Plan

if TYPE_CHECKING:
    from eventide.operators.standing.answer.report import Reporter

States = tuple[Any, ...]
"""The state of each operator of a tree, in order."""


@dataclass(frozen=True, slots=True)
class TreeLeaf:
    """A scan, and the columns that the operators above it read."""

    scan: Scan
    schema: pa.Schema
    relation: bool = False
    """Whether its events are the changes of a relation."""


@dataclass(frozen=True, slots=True)
class Placed:
    """An operator in a tree, the node that it is for, and the edges that it reads.

    Edges are numbered: first those of the leaves, then those of the operators, in order.
    """

    operator: Operator[Any]
    node: Plan
    inputs: tuple[int, ...]
    ends: bool = False
    """Whether nothing follows its output once the leaves have ended, though its input goes on."""
    called: str = ""
    """Its name for people, unless it is the first word of its line."""
    described: str = ""
    """Its line for people, unless it is that of the node."""

    @property
    def line(self) -> str:
        """Its line for people."""
        return self.described or self.node.line

    @property
    def name(self) -> str:
        """Its name for people."""
        return self.called or self.line.split(" ", maxsplit=1)[0].rstrip(",")


@dataclass(frozen=True, slots=True)
class TreeStep:
    """The events of each leaf before `until_us` that were in no step before."""

    rows: tuple[pa.RecordBatch, ...]
    until_us: int


@dataclass(frozen=True, slots=True)
class OperatorStep:
    """What one operator did in one step of its tree."""

    number: int
    operator: Operator[Any]
    state: Any
    inputs: tuple[Edge, ...]
    output: Edge
    seconds: float


@dataclass(frozen=True)
class OperatorTree(Stateful[States]):
    """The leaves of a plan, and the operators above them, each after its inputs."""

    leaves: tuple[TreeLeaf, ...]
    placed: tuple[Placed, ...]
    watch: Callable[[OperatorStep], None] | None = field(default=None, compare=False)
    """Called for each operator of each step."""

    @cached_property
    def owner(self) -> Owner:
        """The owner of the state: what the state depends on."""
        lines = [placed.line for placed in reversed(self.placed)]
        lines += [leaf.scan.line for leaf in self.leaves]
        # Lines for people spell names as the query does, which does not matter.
        placed = [(each.operator, each.inputs, each.ends) for each in self.placed]
        return Owner("OperatorTree", digest_of(self.leaves, placed), {QUERY: "\n".join(lines)})

    @property
    def operators(self) -> tuple[Operator[Any], ...]:
        """The operators, each after its inputs."""
        return tuple(placed.operator for placed in self.placed)

    @property
    def scan(self) -> Scan:
        """The only scan, of a tree that has one."""
        (leaf,) = self.leaves
        return leaf.scan

    @property
    def input_schema(self) -> pa.Schema:
        """The columns of the only leaf, of a tree that has one."""
        (leaf,) = self.leaves
        return leaf.schema

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of the results."""
        return self.placed[-1].operator.output_schema if self.placed else self.input_schema

    @property
    def reporter(self) -> Reporter | None:
        """What keeps the answer, if the results are reports of one."""
        root = self.placed[-1] if self.placed else None
        if root is None or not isinstance(root.node, Standing):
            return None
        return cast("Reporter", root.operator)

    @property
    def ends(self) -> bool:
        """Whether it can be told that no event will follow; otherwise time stops at the newest."""
        return self.reporter is None or self.placed[-1].ends

    @property
    def answer(self) -> Reporter:
        """What keeps the answer of a tree whose results are reports of one."""
        assert self.reporter is not None, "only a standing query has an answer"
        return self.reporter

    @cached_property
    def last_stateful(self) -> int:
        """The number of the last operator with state: those behind it do not look at the time."""
        stateful = [not isinstance(each, Stateless) for each in self.operators]
        return max((number for number, each in enumerate(stateful) if each), default=-1)

    @property
    def filters(self) -> tuple[Operator[None], ...]:
        """The operators right above the only leaf that only filter rows."""
        return tuple(takewhile(lambda each: isinstance(each, FilterRows), self.operators))

    @property
    def stateless(self) -> tuple[Operator[None], ...]:
        """The operators above the only leaf and below the first one with state."""
        return tuple(takewhile(lambda each: isinstance(each, Stateless), self.operators))

    def shared(self) -> OperatorTree:
        """Return the tree for leaves that get the same events if their scans are the same.

        What keeps nothing, and computes the same of the same events, is computed once. The buckets
        of Spark give each leaf the events of its own keys.
        """
        alike = [self.leaves.index(leaf) for leaf in self.leaves]
        numbers, placed = list(range(len(self.leaves))), list[Placed]()
        known: dict[tuple[Operator[Any], tuple[int, ...]], int] = {}
        for each in self.placed:
            place = len(self.leaves) + len(placed)
            if isinstance(each.operator, Stateless):
                key = each.operator, tuple(alike[below] for below in each.inputs)
                place = known.setdefault(key, place)
            if place == len(self.leaves) + len(placed):
                inputs = tuple(numbers[below] for below in each.inputs)
                placed.append(replace(each, inputs=inputs))
            numbers.append(place)
            alike.append(place)
        return OperatorTree(self.leaves, tuple(placed), self.watch)

    def above(self, operators: int) -> OperatorTree:
        """Return a chain without its lowest operators: their output is its leaf."""
        (leaf,) = self.leaves
        if operators:
            leaf = TreeLeaf(leaf.scan, self.placed[operators - 1].operator.output_schema)
        return chain(leaf, self.placed[operators:], self.watch)

    def lowest(self, operators: int) -> OperatorTree:
        """Return a chain of only the lowest operators."""
        return OperatorTree(self.leaves, self.placed[:operators], self.watch)

    def initial_state(self) -> States:
        """Return the states before the first step."""
        return tuple(placed.operator.initial_state() for placed in self.placed)

    def step(
        self, states: States, rows: tuple[pa.RecordBatch, ...], until_us: int
    ) -> tuple[States, pa.RecordBatch]:
        """Take the events of each leaf before `until_us`; return the results."""
        edges: list[Any] = list(rows)
        reached = [until_us] * len(edges)
        after: list[Any] = []
        with results_that_fit():
            for number, (placed, state) in enumerate(zip(self.placed, states, strict=True)):
                started = perf_counter()
                inputs = tuple([edges[each] for each in placed.inputs])
                least_us = min([reached[each] for each in placed.inputs])
                state_after, output = placed.operator.step(state, inputs, least_us)
                edges.append(output)
                if placed.ends and until_us == END_OF_TIME_US:
                    least_us = until_us
                elif number < self.last_stateful:
                    least_us = placed.operator.reached(state_after, least_us)
                reached.append(least_us)
                after.append(state_after)
                if self.watch is not None:
                    seconds = perf_counter() - started
                    operator = placed.operator
                    self.watch(OperatorStep(number, operator, state_after, inputs, output, seconds))
        return tuple(after), edges[-1]

    def knowing(self, states: States, newest_us: Sequence[int]) -> States:
        """Return states that know the newest time of each leaf, also of events elsewhere.

        Where the events end, all standing queries inside a query stop at the newest of them.
        """
        known: list[Any] = []
        for placed, state in zip(self.placed, states, strict=True):
            operator, after = placed.operator, state
            if isinstance(operator, AlignRows):
                leaves = [newest_us[each] for each in placed.inputs if each < len(self.leaves)]
                after = operator.knowing(state, max(leaves))
            known.append(after)
        return tuple(known)

    def run(self, steps: Iterable[TreeStep]) -> Iterator[pa.RecordBatch]:
        """Yield the results of all steps; of an answer that changes, the last state of it."""
        states = self.initial_state()
        changes = self.reporter is not None and self.reporter.report == "current"
        for step in steps:
            states, rows = self.step(states, step.rows, step.until_us)
            if rows.num_rows and not changes:
                yield rows
        if changes:
            yield self.current(states)

    def reached(self, state: States, until_us: int) -> int:
        """Return the instant before which the results are complete, after a step to `until_us`."""
        reached = [until_us] * len(self.leaves)
        for placed, own in zip(self.placed, state, strict=True):
            least_us = min(reached[each] for each in placed.inputs)
            reached.append(placed.operator.reached(own, least_us))
        return reached[-1]

    def current(self, state: States, sooner_us: int = 0) -> pa.RecordBatch:
        """Return the answer at the last instant before the last `until_us`.

        With `sooner_us`, as if all rows expired that much sooner.
        """
        return self.answer.current(state[-1], sooner_us)

    def of_keys(self, state: States, wanted: Wanted) -> States:
        """Return the states of the keys of some queries; what is the same for all is copied."""
        common = self.common
        return tuple(
            placed.operator.read(placed.operator.write(each))
            if number in common
            else placed.operator.of_keys(each, wanted)
            for number, (placed, each) in enumerate(zip(self.placed, state, strict=True))
        )

    @cached_property
    def common(self) -> frozenset[int]:
        """The operators over leaves without numbers of queries, where other leaves have them."""
        numbered = [any(map(has_query, leaf.schema.names)) for leaf in self.leaves]
        if not any(numbered):
            return frozenset()
        for placed in self.placed:
            numbered.append(any(numbered[each] for each in placed.inputs))
        count = len(self.leaves)
        return frozenset(place for place, own in enumerate(numbered[count:]) if not own)

    def united(self, state: States, other: States) -> States:
        """Return the states of the keys of both."""
        return tuple(
            placed.operator.united(*pair)
            for placed, *pair in zip(self.placed, state, other, strict=True)
        )

    def write(self, state: States) -> bytes:
        """Write all states out."""
        return join_parts(
            [placed.operator.write(each) for placed, each in zip(self.placed, state, strict=True)]
        )

    def read(self, written: bytes) -> States:
        """Read back what `write` wrote."""
        parts = parts_of("the query", written, len(self.placed))
        return tuple(
            placed.operator.read(part) for placed, part in zip(self.placed, parts, strict=True)
        )

    def sizes(self, state: States) -> tuple[tuple[str, Size], ...]:
        """Return the name and size of each operator that keeps something."""
        return tuple(
            (placed.name, placed.operator.size(each))
            for placed, each in zip(self.placed, state, strict=True)
            if each is not None
        )


def chain(
    leaf: TreeLeaf,
    placed: tuple[Placed, ...],
    watch: Callable[[OperatorStep], None] | None = None,
) -> OperatorTree:
    """Return a tree in which each operator reads the one below it."""
    numbered = (replace(each, inputs=(place,)) for place, each in enumerate(placed))
    return OperatorTree((leaf,), tuple(numbered), watch)


@dataclass
class TreeBuilder:
    """Places operators, each after those that feed it; leaves are numbered first."""

    leaves: list[TreeLeaf] = field(default_factory=list)
    placed: list[Placed] = field(default_factory=list)

    def tree(self) -> OperatorTree:
        """Return the tree; until all are known, leaves have numbers below zero."""
        count = len(self.leaves)
        placed = tuple(
            replace(
                each,
                inputs=tuple(
                    -1 - number if number < 0 else number + count for number in each.inputs
                ),
            )
            for each in self.placed
        )
        return OperatorTree(tuple(self.leaves), placed)

    def leaf(self, scan: Scan, schema: pa.Schema, *, relation: bool = False) -> int:
        """Add a leaf; return its number."""
        self.leaves.append(TreeLeaf(scan, schema, relation))
        return -len(self.leaves)

    def place(
        self,
        operator: Operator[Any],
        node: Plan,
        inputs: tuple[int, ...],
        *,
        name: str = "",
        line: str = "",
        ends: bool = False,
    ) -> int:
        """Add an operator; return its number. Name and line are those of the node, if not given."""
        self.placed.append(Placed(operator, node, inputs, ends, name, line))
        return len(self.placed) - 1
