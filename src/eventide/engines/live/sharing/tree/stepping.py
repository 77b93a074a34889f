"""Many live queries over the same streams as one tree: an index above each stream, templates above.

    cars ──▶ index of conditions ──▶ (event, query) ──▶ template: WindowAggregate by $query, …
                                                   ──▶ template: MatchRecognize by $query, …

To the live engine it is a tree like any other, whose results are those of each template.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from time import perf_counter

import numpy as np
import pyarrow as pa

from eventide.arrays import no_rows, to_numpy
from eventide.engines.live.feeds import within
from eventide.engines.live.sharing.channels import UsedSets
from eventide.engines.live.sharing.known import KnownPortions
from eventide.engines.live.sharing.parts import Reached, with_readers
from eventide.engines.live.sharing.run import TemplateRun
from eventide.engines.live.sharing.tree.matching import (
    Matched,
    fail,
    match,
    of_windows,
    only_here,
    passed_on,
)
from eventide.engines.live.sharing.tree.states import SharedStates, TemplateRows
from eventide.engines.live.sharing.tree.templates import SharedTemplates
from eventide.engines.live.sharing.windows import WindowsRun
from eventide.errors import StateError
from eventide.kernels.compiled import Int64s
from eventide.operators.operator import Size
from eventide.operators.state import join_parts, split_parts
from eventide.operators.tree import States
from eventide.plan.sharing.part_rows import PARTS_FROM
from eventide.plan.sharing.template import QUERY


@dataclass(frozen=True)
class SharedTree(SharedTemplates):
    """Templates over some streams as one tree: it takes steps, and its states are written."""

    def step(
        self, states: SharedStates, rows: tuple[pa.RecordBatch, ...], until_us: int
    ) -> tuple[SharedStates, tuple[TemplateRows, ...]]:
        """Take the events of each stream before `until_us`; return the rows of each template."""
        events = dict(zip(self.streams, rows, strict=True))
        matched: Matched = {}
        for stream, arrived in events.items():
            match(self, states, stream, arrived, matched)
        emitted: list[TemplateRows] = []
        reached = Reached(until_us)
        for place, run in enumerate(states.runs):
            started = perf_counter()
            own, least_us = matched.get(place, {}), reached.below(run)
            try:
                if run.windows is not None and len(run.windows.table):
                    ended = self.refreshed(states, run, run.windows, events, until_us)
                    own |= of_windows(states, run, ended)
                    least_us = run.windows.reached(until_us)
                inputs = self.inputs_of(run, events, own)
                if inputs is not None:
                    run.states, output = run.tree.tree.step(run.states, inputs, least_us)
            except Exception as error:
                fail(self, states, place, error)
                inputs = None
            self.turns.refreshed()
            if run.tree.rows_name in states.indexes:
                reached.note(run)
            if inputs is None:
                continue
            rows_in = sum(each.num_rows for each in inputs)
            run.done.add(perf_counter() - started, rows_in, output.num_rows)
            if run.tree.template.channels and output.num_rows:
                output = only_here(states, self.channels.spread(output))
            elif run.has_gone and output.num_rows:
                output = only_here(states, output)
            if output.num_rows:
                run.counts.give(states.numbers.of(to_numpy(output.column(QUERY)))[1])
            if output.num_rows and run.tree.rows_name in states.indexes:
                output = passed_on(self, states, run, output, matched)
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

    def settle(self, states: SharedStates) -> None:
        """Count what shared windows have not counted yet; queries for which that fails leave."""
        for place, run in enumerate(states.runs):
            if run.windows is not None:
                try:
                    run.windows.settle()
                except Exception as error:
                    fail(self, states, place, error)

    def write(self, state: SharedStates) -> bytes:
        """Write the numbers of the queries of each template, and its states."""
        here = state.numbers.with_parts
        places, _ = state.numbers.of(here)
        parts: list[bytes] = []
        for place, run in enumerate(state.runs):
            own = here[places == place]
            if not len(own):
                continue  # whoever reads the state has not planned it
            parts.append(run.tree.template.digest.encode())
            parts.append(own.tobytes())
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


def used_sets(run: TemplateRun, states: States) -> set[int]:
    """Return the sets of queries that a template remembers."""
    if not run.tree.template.channels:
        return set()
    used = UsedSets()
    run.tree.tree.of_keys(states, used)
    return used.found
