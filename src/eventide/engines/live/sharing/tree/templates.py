"""The templates of many queries over the same streams: how their queries come and go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from eventide.arrays import to_numpy
from eventide.engines.live.sharing.channels import Channels
from eventide.engines.live.sharing.known import KnownPortions
from eventide.engines.live.sharing.numbers import entries
from eventide.engines.live.sharing.parts import unread
from eventide.engines.live.sharing.run import TemplateRun, TemplateTree
from eventide.engines.live.sharing.tree.states import SharedStates
from eventide.engines.live.sharing.turns import RefreshTurns
from eventide.engines.live.sharing.windows import FROM_THE_START
from eventide.kernels.compiled import Int64s
from eventide.operators.envelope import Owner
from eventide.operators.sharing.predicate_index import PredicateIndex
from eventide.operators.stateful import Stateful
from eventide.operators.tree import TreeLeaf
from eventide.plan.meaning import digest_of
from eventide.plan.nodes import Scan
from eventide.plan.sharing.part_rows import PART, PART_NUMBER
from eventide.plan.sharing.portion import Portion, with_parts
from eventide.plan.sharing.template import Template


@dataclass(frozen=True)
class SharedTemplates(Stateful[SharedStates]):
    """Templates over some streams, and how their queries come and go.

    `leaves` are the streams, with all their columns.
    """

    leaves: tuple[TreeLeaf, ...]
    templates: dict[str, TemplateTree] = field(default_factory=dict, compare=False)
    """The templates that have been met, by digest."""
    known: dict[str, KnownPortions] = field(default_factory=dict, compare=False)
    """The queries that a state which is read may be of, by the digest of their template."""
    channels: Channels = field(default_factory=Channels, compare=False)
    """The sets of queries that take rows together, in all states."""
    turns: RefreshTurns = field(default_factory=RefreshTurns, compare=False)
    """When refreshes are computed."""
    reporter: None = field(default=None, init=False)
    ends: bool = True
    """Whether it can be told that no event will follow: standing queries stop at the newest."""

    @cached_property
    def owner(self) -> Owner:
        """The owner of the state."""
        return Owner("SharedTree", digest_of(self.leaves), {})

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams, in the order of the leaves."""
        return tuple(leaf.scan.stream for leaf in self.leaves)

    @cached_property
    def scans(self) -> dict[str, Scan]:
        """The scan of each stream, with all its columns."""
        return {leaf.scan.stream: leaf.scan for leaf in self.leaves}

    @property
    def output_schema(self) -> pa.Schema:
        """Templates have columns of their own."""
        return pa.schema([])

    @property
    def schemas(self) -> Iterator[pa.Schema]:
        """The columns of the rows of each template, without those that say whose they are."""
        for each in self.templates.values():
            schema = each.tree.output_schema
            yield pa.schema([schema.field(name) for name in each.columns])

    def initial_state(self) -> SharedStates:
        """Return the state without queries."""
        rows = {leaf.scan.stream: leaf.scan.row for leaf in self.leaves}
        return SharedStates({stream: PredicateIndex(row) for stream, row in rows.items()})

    def begin(self, states: SharedStates, portion: Portion) -> None:
        """Let queries begin in a state that has not seen any of their events, and their parts."""
        for each in with_parts((portion,)):
            new = ~states.numbers.here(each.numbers)
            if new.any():
                self.add(states, each.only(new))

    def add(self, states: SharedStates, portion: Portion) -> None:
        """Let queries begin whose parts have begun, or parts."""
        run = self.run_of(states, portion.template)
        states.numbers.add(portion.numbers, states.places[portion.template.digest], run.rows)
        run.add(portion)
        if run.windows is not None:
            run.windows.add(portion, FROM_THE_START)
        leaves = run.tree.numbered
        for leaf, conditions in zip(leaves, portion.conditions, strict=True):
            if leaf not in run.tree.indexed:
                continue
            index = self.index_of(states, run.tree, leaf)
            own = entries(portion.numbers, leaf)
            if isinstance(conditions, tuple):
                index.add(own, conditions)
            else:
                index.add_template(own, conditions, portion.constants)

        if portion.template.parts:
            read = to_numpy(portion.constants.column(PART_NUMBER))
            for part, count in zip(*np.unique(read, return_counts=True), strict=True):
                states.readers[int(part)] = states.readers.get(int(part), 0) + int(count)

    def index_of(self, states: SharedStates, tree: TemplateTree, leaf: int) -> PredicateIndex:
        """Return the index of the conditions on what a leaf of a template reads."""
        stream = tree.tree.leaves[leaf].scan.stream
        if stream not in states.indexes:
            (part,) = (each for each in tree.template.parts if PART + each.digest == stream)
            states.indexes[stream] = PredicateIndex(part.plan.row)
        return states.indexes[stream]

    def announce(
        self, states: SharedStates, portion: Portion, following: Mapping[str, int]
    ) -> None:
        """Let shared windows count for queries that begin elsewhere, and will be united with these.

        `following` is the number of the next event of each stream.
        """
        place = states.places.get(portion.template.digest)
        windows = None if place is None else states.runs[place].windows
        if windows is not None and windows.stream in following:
            windows.add(portion, following[windows.stream])

    def know(self, states: Iterable[SharedStates]) -> None:
        """Note the queries of some states, and no others: a state that is read names its own."""
        self.known.clear()
        for run in (run for each in states for run in each.runs):
            known = self.known.setdefault(run.tree.template.digest, KnownPortions())
            for portion in run.known.portions:
                known.add(portion)

    def keep_templates(self, states: Iterable[SharedStates]) -> None:
        """Forget templates of which some states have no query."""
        here = {digest for each in states for digest in each.places}
        for digest in self.templates.keys() - here:
            del self.templates[digest]

    def run_of(self, states: SharedStates, template: Template) -> TemplateRun:
        """Return the run of a template in a state, which may be new."""
        place = states.places.get(template.digest)
        if place is None:
            tree = self.templates.get(template.digest)
            if tree is None:
                tree = self.templates[template.digest] = TemplateTree.of(template)
            place = states.places[template.digest] = len(states.runs)
            states.runs.append(TemplateRun.of(tree, self.scans))
        return states.runs[place]

    def drop(self, states: SharedStates, numbers: Int64s) -> Int64s:
        """Let queries go; what their operators remember is left until `of_keys`.

        Numbers that are not here may have been announced. Returns the parts that have gone as well.
        """
        for run in states.runs:
            if run.windows is not None:
                run.windows.drop(numbers)
        numbers = numbers[states.numbers.here(numbers)]
        places, rows = states.numbers.of(numbers)
        read: list[Int64s] = []
        for place in np.unique(places):
            run, own = states.runs[place], numbers[places == place]
            run.has_gone = True
            read.append(run.parts_of(rows[places == place]))
            for leaf, stream in run.tree.indexed.items():
                states.indexes[stream].drop(entries(own, leaf))
        states.numbers.drop(numbers)
        gone = unread(states, read)
        return np.concatenate([gone, self.drop(states, gone)]) if len(gone) else gone

    def stop_counting(self, states: SharedStates, numbers: Int64s) -> None:
        """Let shared windows no longer count for parts that were announced and are gone."""
        gone = numbers[~states.numbers.here(numbers)]
        for run in states.runs:
            if run.windows is not None and len(gone):
                run.windows.drop(gone)

    def portions(self, states: SharedStates, numbers: Int64s) -> Iterator[Portion]:
        """Yield those of some queries of a state, as they once came."""
        for run in states.runs:
            yield from run.known.among(numbers)
