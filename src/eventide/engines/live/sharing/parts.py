"""Who reads the rows of which parts, and how far templates are that read one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from eventide.engines.live.sharing.run import TemplateRun
from eventide.kernels.compiled import Int64s
from eventide.plan.sharing.part_rows import PARTS_FROM

if TYPE_CHECKING:
    from eventide.engines.live.sharing.tree.states import SharedStates


@dataclass(slots=True)
class Reached:
    """How far templates are in a step, each after the parts whose rows it reads."""

    until_us: int
    by_name: dict[str, int] = field(default_factory=dict)
    all: list[int] = field(default_factory=list)

    def below(self, run: TemplateRun) -> int:
        """Return how far the streams and parts are that a template reads.

        A part is not noted if nobody reads it: all queries of the template have left.
        """
        parts = (self.by_name.get(name, self.until_us) for name in run.tree.part_streams)
        return min([self.until_us, *parts])

    def note(self, run: TemplateRun) -> None:
        """Note how far the rows of a template are."""
        self.by_name[run.tree.rows_name] = reached_us = run.reached(self.below(run))
        self.all.append(reached_us)


def unread(states: SharedStates, left: Sequence[Int64s]) -> Int64s:
    """Return the parts that nobody reads any more, given those of queries that have left."""
    found: list[int] = []
    read = np.concatenate([np.empty(0, np.int64), *left])
    for part, count in zip(*np.unique(read, return_counts=True), strict=True):
        states.readers[int(part)] -= int(count)
        if not states.readers[int(part)]:
            del states.readers[int(part)]
            found.append(int(part))
    return np.array(found, np.int64)


def with_read(states: SharedStates, numbers: Int64s) -> Int64s:
    """Return queries with the parts that they read, and those that these read."""
    found, newest = numbers, numbers
    while len(newest):
        places, rows = states.numbers.of(newest)
        read = [states.runs[place].parts_of(rows[places == place]) for place in np.unique(places)]
        newest = np.setdiff1d(np.concatenate(read), found)
        found = np.concatenate([found, newest])
    return np.sort(found)


def with_readers(states: SharedStates, numbers: Int64s) -> Int64s:
    """Return queries and parts with all that read the rows of these parts."""
    here = states.numbers.with_parts
    places, rows = states.numbers.of(here)
    found, newest = numbers, numbers[numbers >= PARTS_FROM]
    while len(newest):
        readers = [np.empty(0, np.int64)]
        for place in np.unique(places):
            own = np.flatnonzero(places == place)
            read = states.runs[place].parts_of(rows[own])
            readers.append(here[own[: len(read)]][np.isin(read, newest)])
        newest = np.setdiff1d(np.concatenate(readers), found)
        found = np.concatenate([found, newest])
        newest = newest[newest >= PARTS_FROM]
    return np.sort(found)
