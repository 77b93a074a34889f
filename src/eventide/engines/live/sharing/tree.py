"""Many live queries over the same streams as one tree: an index above each stream, templates above.

    cars ──▶ index of conditions ──▶ (event, query) ──▶ template: WindowAggregate by $query, …
                                                   ──▶ template: MatchRecognize by $query, …

To the live engine it is a tree like any other, whose results are those of each template.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from time import perf_counter

import numpy as np
import pyarrow as pa

from eventide.arrays import no_rows, to_arrow, to_numpy
from eventide.engines.live.feeds import within
from eventide.engines.live.sharing.channels import FEWEST_PAIRS, Channels, UsedSets
from eventide.engines.live.sharing.known import KnownPortions
from eventide.engines.live.sharing.numbers import LEAF_BITS, AllNumbers, entries
from eventide.engines.live.sharing.parts import Reached, unread, with_read, with_readers
from eventide.engines.live.sharing.run import TemplateRun, TemplateTree
from eventide.engines.live.sharing.turns import RefreshTurns
from eventide.engines.live.sharing.windows import FROM_THE_START, WindowsRun
from eventide.errors import StateError
from eventide.kernels.compiled import Int32s, Int64s
from eventide.operators.envelope import Owner
from eventide.operators.operator import Size
from eventide.operators.sharing.predicate_index import PredicateIndex
from eventide.operators.state import join_parts, split_parts
from eventide.operators.stateful import Stateful
from eventide.operators.tree import States, TreeLeaf
from eventide.plan.meaning import digest_of
from eventide.plan.nodes import Scan
from eventide.plan.sharing.part_rows import PART, PART_NUMBER, PARTS_FROM
from eventide.plan.sharing.portion import Portion, with_parts
from eventide.plan.sharing.share_windows import WINDOWS
from eventide.plan.sharing.template import QUERY, Template


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


Matched = dict[int, dict[int, pa.RecordBatch]]
"""The rows of numbered leaves, by the place of their run and the leaf."""


@dataclass(frozen=True)
class SharedTree(Stateful[SharedStates]):
    """Templates over some streams; `leaves` are the streams, with all their columns."""

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

    def apart(self, states: SharedStates, numbers: Int64s) -> SharedStates:
        """Return the state of some queries alone; they stay in the old one until dropped."""
        alone = self.initial_state()
        numbers = with_read(states, numbers)
        for portion in self.portions(states, numbers):
            old = self.run_of(states, portion.template)
            run = self.run_of(alone, portion.template)
            if old.windows is not None:
                run.windows = old.windows.only(numbers)
            self.add(alone, portion)
            run.states = run.tree.tree.of_keys(old.states, self.channels.among(numbers))
        return alone

    def forget_gone(self, states: SharedStates) -> None:
        """Free what queries that have left remember."""
        here = states.numbers.with_parts
        left = set(states.numbers.of(here)[0].tolist())
        for place, run in enumerate(states.runs):
            if run.has_gone and place not in left:
                run.states, run.has_gone = run.tree.tree.initial_state(), False
            elif run.has_gone and run.tree.can_divide:
                run.states = run.tree.tree.of_keys(run.states, self.channels.among(here))
                run.has_gone = False

    def compacted(self, states: SharedStates) -> SharedStates:
        """Return the same queries in a state in which those that have left take no room."""
        here = states.numbers.with_parts
        fresh = self.initial_state()
        fresh.took_more, fresh.failed = states.took_more, states.failed
        self.forget_gone(states)
        for old in states.runs:
            own = list(old.known.among(here))
            if own:
                run = self.run_of(fresh, old.tree.template)
                run.windows, run.states, run.done = old.windows, old.states, old.done
                run.has_gone = old.has_gone
            for portion in own:
                self.add(fresh, portion)
        fresh.finding_seconds = states.finding_seconds
        carry_counts(states, fresh, here)
        return fresh

    def can_unite(self, states: SharedStates, other: SharedStates) -> bool:
        """Whether nothing but what is each query's own is in templates that both have."""
        both = states.places.keys() & other.places.keys()
        trees = (states.runs[states.places[digest]].tree for digest in both)
        if not all(tree.is_idle_when_empty for tree in trees):
            return False
        return all(self.counts_for(states, other, digest) for digest in both)

    def counts_for(self, states: SharedStates, other: SharedStates, digest: str) -> bool:
        """Whether the shared windows of a template have counted all that others have counted."""
        windows = states.runs[states.places[digest]].windows
        if windows is None:
            return True
        here = other.numbers.with_parts
        own = here[other.numbers.of(here)[0] == other.places[digest]]
        return not other.took_more and windows.has_all(own)

    def united(self, states: SharedStates, other: SharedStates) -> SharedStates:
        """Return the queries of both states as one."""
        # One that left may come back, and is not to meet what it once remembered here.
        self.forget_gone(states)
        self.forget_gone(other)
        new = {digest for digest in other.places if digest not in states.places}
        for theirs in other.runs:
            is_new = theirs.tree.template.digest not in states.places
            ours = self.run_of(states, theirs.tree.template)
            if is_new:
                ours.windows = theirs.windows
            elif ours.windows is not None and theirs.windows is not None:
                ours.windows.go_on_from(theirs.windows)
        theirs_all = other.numbers.with_parts
        # A part is in both if one of its queries was by itself for a while: it is as far in both.
        twice = states.numbers.here(theirs_all)
        for portion in list(self.portions(other, theirs_all[~twice])):
            self.add(states, portion)
        states.finding_seconds += other.finding_seconds
        carry_counts(other, states, theirs_all[~twice])
        for theirs in other.runs:
            run = self.run_of(states, theirs.tree.template)
            run.done.include(theirs.done)
            if theirs.tree.template.digest in new and not theirs.tree.can_divide:
                run.states, run.has_gone = theirs.states, theirs.has_gone
                continue
            if twice.any():
                own = self.channels.among(theirs_all[~twice])
                theirs.states = run.tree.tree.of_keys(theirs.states, own)
            run.states = run.tree.tree.united(run.states, theirs.states)
        return states

    def step(
        self, states: SharedStates, rows: tuple[pa.RecordBatch, ...], until_us: int
    ) -> tuple[SharedStates, tuple[TemplateRows, ...]]:
        """Take the events of each stream before `until_us`; return the rows of each template."""
        events = dict(zip(self.streams, rows, strict=True))
        matched: Matched = {}
        for stream, arrived in events.items():
            self.match(states, stream, arrived, matched)
        emitted: list[TemplateRows] = []
        reached = Reached(until_us)
        for place, run in enumerate(states.runs):
            started = perf_counter()
            own, least_us = matched.get(place, {}), reached.below(run)
            try:
                if run.windows is not None and len(run.windows.table):
                    ended = self.refreshed(states, run, run.windows, events, until_us)
                    own |= self.of_windows(states, run, ended)
                    least_us = run.windows.reached(until_us)
                inputs = self.inputs_of(run, events, own)
                if inputs is not None:
                    run.states, output = run.tree.tree.step(run.states, inputs, least_us)
            except Exception as error:
                self.fail(states, place, error)
                inputs = None
            if run.tree.rows_name in states.indexes:
                reached.note(run)
            if inputs is None:
                continue
            self.turns.refreshed()
            rows_in = sum(each.num_rows for each in inputs)
            run.done.add(perf_counter() - started, rows_in, output.num_rows)
            if run.tree.template.channels and output.num_rows:
                output = self.only_here(states, self.channels.spread(output))
            elif run.has_gone and output.num_rows:
                output = self.only_here(states, output)
            if output.num_rows:
                run.counts.give(states.numbers.of(to_numpy(output.column(QUERY)))[1])
            if output.num_rows and run.tree.rows_name in states.indexes:
                output = self.passed_on(states, run, output, matched)
            if output.num_rows:
                emitted.append(TemplateRows(run.tree.template, output, run.tree.columns))
        return states, tuple(emitted)

    def refreshed(
        self,
        states: SharedStates,
        run: TemplateRun,
        windows: WindowsRun,
        events: Mapping[str, pa.RecordBatch],
        until_us: int,
    ) -> pa.RecordBatch:
        """Return the windows that have ended; of refreshes those that have their turn."""
        if not (windows.node.refreshes and self.turns.is_timed):
            return windows.step(events, until_us)
        windows.take(events, until_us, self.turns.stretch)
        self.turns.refreshing()
        may_wait = run.tree.may_wait and not states.is_cohort
        nothing = {windows.stream: events[windows.stream].slice(0, 0)}
        return windows.step(nothing, until_us, self.turns.turn(until_us, may_wait=may_wait))

    def passed_on(
        self, states: SharedStates, run: TemplateRun, rows: pa.RecordBatch, matched: Matched
    ) -> pa.RecordBatch:
        """Give the rows of parts to the queries that read them; return those of queries."""
        of_parts = to_numpy(rows.column(QUERY)) >= PARTS_FROM
        if of_parts.any():
            self.match(states, run.tree.rows_name, rows.filter(to_arrow(of_parts)), matched)
        return rows.filter(to_arrow(~of_parts))

    def of_windows(
        self, states: SharedStates, run: TemplateRun, ended: pa.RecordBatch
    ) -> dict[int, pa.RecordBatch]:
        """Return the rows of shared windows for the queries that are here, as a leaf reads them."""
        if not ended.num_rows:
            return {}
        numbers = to_numpy(ended.column(QUERY))
        here = np.flatnonzero(states.numbers.here(numbers))
        if not len(here):
            return {}
        _, constants = states.numbers.of(numbers[here])
        run.counts.take(constants)
        (leaf,) = (place for place, each in enumerate(run.tree.tree.leaves) if is_windows(each))
        return {leaf: run.leaf_rows(leaf, ended, here, numbers[here], constants)}

    def only_here(self, states: SharedStates, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows without those of queries that have left."""
        here = states.numbers.here(to_numpy(rows.column(QUERY)))
        return rows if here.all() else rows.filter(to_arrow(here))

    def fail(self, states: SharedStates, place: int, error: Exception) -> None:
        """End all queries of a template that cannot go on, and those of which it is a part."""
        here = states.numbers.with_parts
        own = with_readers(states, here[states.numbers.of(here)[0] == place])
        states.failed |= dict.fromkeys(own[own < PARTS_FROM].tolist(), error)
        self.drop(states, own)
        run = states.runs[place]
        fresh = TemplateRun.of(run.tree, self.scans)
        run.states, run.windows = fresh.states, fresh.windows

    def match(
        self, states: SharedStates, stream: str, rows: pa.RecordBatch, matched: Matched
    ) -> None:
        """Note which rows of a stream, or of parts, which leaves of templates read."""
        index = states.indexes[stream]
        if not rows.num_rows or not len(index):
            return
        started = perf_counter()
        places, entered = index.matches(rows)
        states.finding_seconds += perf_counter() - started
        if index.failed:
            self.fail_alone(states, index.failed)
        if not len(places):
            return
        numbers, leaves = entered >> LEAF_BITS, entered & ((1 << LEAF_BITS) - 1)
        if index.failed:
            here = states.numbers.here(numbers)
            places, numbers, leaves = places[here], numbers[here], leaves[here]
        runs, constants = states.numbers.of(numbers)
        for run, leaf, wanted in groups_of(runs, leaves):
            states.runs[run].counts.take(constants[wanted])
            own, who, which = places[wanted], numbers[wanted], constants[wanted]
            if states.runs[run].tree.template.channels and pays(own):
                starts, who = self.channels.together(own, who)
                own, which = own[starts], which[starts]
            matched.setdefault(run, {})[leaf] = states.runs[run].leaf_rows(
                leaf, rows, own, who, which
            )

    def fail_alone(self, states: SharedStates, failed: Mapping[int, Exception]) -> None:
        """End queries whose own conditions have no value for an event."""
        by_number = {entry >> LEAF_BITS: error for entry, error in failed.items()}
        for number, error in by_number.items():
            lost = with_readers(states, np.array([number], np.int64))
            states.failed |= dict.fromkeys(lost[lost < PARTS_FROM].tolist(), error)
            self.drop(states, lost)

    def inputs_of(
        self,
        run: TemplateRun,
        events: Mapping[str, pa.RecordBatch],
        matched: Mapping[int, pa.RecordBatch],
    ) -> tuple[pa.RecordBatch, ...] | None:
        """Return what the leaves of a template read; None if a step would change nothing."""
        if not matched and run.tree.is_idle_when_empty and run.is_empty:
            return None
        nothing = np.empty(0, np.int64)
        inputs: list[pa.RecordBatch] = []
        for place, leaf in enumerate(run.tree.tree.leaves):
            rows = matched.get(place)
            if rows is None and run.tree.keys[place]:
                rows = run.leaf_rows(place, no_rows(leaf.schema), nothing, nothing, nothing)
            if rows is None:
                rows = events[leaf.scan.stream].select(leaf.schema.names)
            inputs.append(within(rows, leaf.scan.time_range))
        return tuple(inputs)

    def knowing(self, states: SharedStates, newest_us: Sequence[int]) -> SharedStates:  # noqa: ARG002
        """Return the states: standing queries run alone."""
        return states

    def reached(self, state: SharedStates, until_us: int) -> int:
        """Return the instant before which the rows of all templates are complete."""
        reached = Reached(until_us)
        for run in state.runs:
            reached.note(run)
        return min(reached.all, default=until_us)

    def keep_channels(self, states: Iterable[SharedStates]) -> None:
        """Forget sets of queries that no template remembers any more, in any of the states."""
        runs = (run for each in states for run in each.runs)
        self.channels.keep(chain.from_iterable(used_sets(run, run.states) for run in runs))

    def sizes(self, states: SharedStates) -> tuple[tuple[str, Size], ...]:
        """Return how much indexes, constants and the operators of all templates keep."""
        found = [
            (f"{stream}, conditions", Size(len(index), index.nbytes))
            for stream, index in states.indexes.items()
        ]
        found.append(("queries", Size(states.count, states.numbers.nbytes)))
        if self.channels.members:
            found.append(("channels", Size(len(self.channels.members), self.channels.nbytes)))
        for run in states.runs:
            found.append(("constants", Size(run.rows, run.nbytes)))
            found += run.sizes
        return tuple(found)

    def by_template(self, states: SharedStates) -> Iterator[tuple[Int64s, int]]:
        """Yield the queries that need each template, also as a part, and what it keeps."""
        here = states.numbers.with_parts
        places, _ = states.numbers.of(here)
        for place, run in enumerate(states.runs):
            own = with_readers(states, here[places == place])
            if len(own):
                yield own[own < PARTS_FROM], run.nbytes + sum(size.bytes for _, size in run.sizes)

    def size(self, state: SharedStates) -> Size:
        """Return the size of all."""
        sizes = [size for _, size in self.sizes(state)]
        return Size(sum(each.tuples for each in sizes), sum(each.bytes for each in sizes))

    def write(self, state: SharedStates) -> bytes:
        """Write the numbers of the queries of each template, and its states."""
        here = state.numbers.with_parts
        places, _ = state.numbers.of(here)
        parts: list[bytes] = []
        for place, run in enumerate(state.runs):
            parts.append(run.tree.template.digest.encode())
            parts.append(here[places == place].tobytes())
            divides = run.has_gone and run.tree.can_divide
            among = self.channels.among(here)
            kept = run.tree.tree.of_keys(run.states, among) if divides else run.states
            parts.append(self.channels.write(used_sets(run, kept)))
            parts.append(run.tree.tree.write(kept))
            parts.append(b"" if run.windows is None else run.windows.write())
        return join_parts([bytes([state.took_more]), *parts])

    def read(self, written: bytes) -> SharedStates:
        """Read back what `write` wrote, with the same queries."""
        took_more, *parts = split_parts(written)
        states = self.initial_state()
        states.took_more = took_more == b"\x01"
        each_of = (parts[place::5] for place in range(5))
        for digest, numbers, sets, operators, windows in zip(*each_of, strict=True):
            self.channels.read(sets)
            wanted = np.frombuffer(numbers, np.int64)
            run = self.run_of(states, self.templates[digest.decode()].template)
            found = 0
            known = self.known.get(digest.decode(), KnownPortions())
            if run.windows is not None:
                run.windows.read(windows, known)
            for portion in list(known.among(wanted)):
                found += len(portion.numbers)
                self.add(states, portion)
            if found != len(wanted):
                message = f"the state is of {len(wanted)} queries of a template, {found} are known"
                raise StateError(message, hint="subscribe to the same queries first")
            run.states = run.tree.tree.read(operators)
            # What is not taken apart may be of queries that have left.
            run.has_gone = not run.tree.can_divide
        return states


def pays(events: Int64s) -> bool:
    """Whether so many queries take each of some events that they are put together."""
    return len(events) >= FEWEST_PAIRS * (1 + int(np.count_nonzero(np.diff(events))))


def used_sets(run: TemplateRun, states: States) -> set[int]:
    """Return the sets of queries that a template remembers."""
    if not run.tree.template.channels:
        return set()
    used = UsedSets()
    run.tree.tree.of_keys(states, used)
    return used.found


def carry_counts(old: SharedStates, new: SharedStates, numbers: Int64s) -> None:
    """Let queries that are in another state now have the rows that were counted for them."""
    (was, old_rows), (became, new_rows) = old.numbers.of(numbers), new.numbers.of(numbers)
    for place in np.unique(was):
        own = was == place
        counts, fresh = old.runs[place].counts, new.runs[became[own][0]].counts
        fresh.taken[new_rows[own]] = counts.taken[old_rows[own]]
        fresh.given[new_rows[own]] = counts.given[old_rows[own]]


def is_windows(leaf: TreeLeaf) -> bool:
    """Whether a leaf reads the rows of shared windows."""
    return leaf.scan.stream == WINDOWS


def groups_of(runs: Int32s, leaves: Int64s) -> Iterator[tuple[int, int, slice | Int64s]]:
    """Yield each pair of run and leaf, and its places in order; most often there is one pair."""
    pair = (runs.astype(np.int64) << LEAF_BITS) | leaves
    if (pair == pair[0]).all():
        yield int(runs[0]), int(leaves[0]), slice(None)
        return
    order = np.argsort(pair, kind="stable")
    borders = np.flatnonzero(np.diff(pair[order])) + 1
    for places in np.split(order, borders):
        yield int(runs[places[0]]), int(leaves[places[0]]), places
