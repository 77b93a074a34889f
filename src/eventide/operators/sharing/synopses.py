"""Which synopses the events of a batch are in, and how they are counted there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.kernels.compiled import Bools, Int32s, Int64s, frozen
from eventide.operators.columns import concat_batches
from eventide.operators.sharing.predicate_index import PredicateIndex
from eventide.plan.expressions import ALWAYS, Expression
from eventide.plan.tree import Row

FEW_CODES = 4
"""Cells are numbered by their values if there are at most so many times as many as pairs."""


@dataclass(frozen=True, slots=True)
class Cells:
    """A code for each pair of an event and a synopsis: equal for equal synopses and keys."""

    codes: Int32s
    count: int
    synopsis_of: Int32s
    """The synopsis of each code, in the order of codes."""
    keys: int
    """How many keys there are."""
    values: Int64s | None = None
    """The place of the synopsis and key of each code, if codes are not these."""

    def synopses_and_keys(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        """Return the synopses and the keys of some codes."""
        values = codes if self.values is None else self.values[codes]
        return self.synopsis_of[codes].astype(np.int64), values % self.keys


@dataclass(frozen=True, slots=True)
class CountedEvents:
    """Events that are in synopses: pair i says that event `events[i]` is in `synopses[i]`.

    Pairs are in the order of events. Without them, all events are in the synopsis `only`.
    """

    rows: pa.RecordBatch
    only: int = 0
    events: Int64s | None = None
    synopses: Int64s | None = None

    @property
    def length(self) -> int:
        """How many pairs there are."""
        return self.rows.num_rows if self.events is None else len(self.events)

    @property
    def nbytes(self) -> int:
        """How many bytes they take."""
        pairs = 0 if self.events is None else 2 * self.events.nbytes
        return int(self.rows.nbytes) + pairs

    @classmethod
    def together(cls, parts: Sequence[CountedEvents]) -> CountedEvents:
        """Return the events of all, one behind another."""
        if len(parts) == 1:
            return parts[0]
        rows = concat_batches([part.rows for part in parts], parts[0].rows.schema)
        first = parts[0].only
        if all(part.events is None and part.only == first for part in parts):
            return cls(rows, first)
        shifts = np.cumsum([0, *(part.rows.num_rows for part in parts)])
        pairs = [part.pairs for part in parts]
        events = [own + shift for (own, _), shift in zip(pairs, shifts, strict=False)]
        return cls(rows, first, np.concatenate(events), np.concatenate([own for _, own in pairs]))

    @property
    def pairs(self) -> tuple[Int64s, Int64s]:
        """The events and synopses of pairs."""
        if self.events is None or self.synopses is None:
            count = self.rows.num_rows
            return np.arange(count), np.full(count, self.only)
        return self.events, self.synopses

    def event_of(self, pairs: Int64s) -> Int64s:
        """Return the event of each of some pairs."""
        return pairs if self.events is None else self.events[pairs]

    def cuts(self, cuts: Bools) -> Bools:
        """Return with which pairs a slice begins, for the events with which one does."""
        if self.events is None:
            return cuts
        found = np.zeros(len(self.events), np.bool_)
        # Every event has a pair.
        found[np.searchsorted(self.events, np.flatnonzero(cuts))] = True
        return found

    def cells(self, codes: Int32s, keys: int) -> Cells:
        """Return codes of pairs, for codes of the keys of events; there are so many keys."""
        if self.events is None or self.synopses is None:
            return Cells(codes, keys, np.full(keys, self.only, np.int32), keys)
        least = int(self.synopses.min())
        counts = np.bincount(self.synopses - least)
        used = np.flatnonzero(counts)
        bases = np.zeros(len(counts), np.int64)
        bases[used] = np.arange(len(used)) * keys
        used += least
        wide = bases[self.synopses - least] + codes[self.events]
        if len(used) * keys <= FEW_CODES * len(wide) + 1024:
            synopsis_of = np.repeat(used, keys).astype(np.int32)
            return Cells(frozen(wide.astype(np.int32)), len(synopsis_of), synopsis_of, keys)
        values, numbers = np.unique(wide, return_inverse=True)
        synopsis_of = used[values // keys].astype(np.int32)
        return Cells(frozen(numbers.astype(np.int32)), len(values), synopsis_of, keys, values)


class SynopsisIndex:
    """The conditions of synopses, and which of them are true on each event."""

    def __init__(self, row: Row) -> None:
        self.index = PredicateIndex(row)
        self.conditions: dict[int, Expression] = {}
        self.every: int | None = None
        """The synopsis that all events are in."""

    @property
    def nbytes(self) -> int:
        """How much memory the conditions take."""
        return self.index.nbytes

    def follow(self, conditions: Mapping[int, Expression]) -> None:
        """Take over which synopses there are."""
        gone = self.conditions.keys() - conditions.keys()
        new = {number: each for number, each in conditions.items() if number not in self.conditions}
        if gone:
            self.index.drop(np.array(sorted(gone), np.int64))
        own = {number: each for number, each in new.items() if each != ALWAYS}
        if own:
            self.index.add(np.array(list(own), np.int64), list(own.values()))
        self.conditions = dict(conditions)
        every = [number for number, each in conditions.items() if each == ALWAYS]
        self.every = every[0] if every else None

    def counted(self, rows: pa.RecordBatch, names: Sequence[str]) -> CountedEvents:
        """Return the events that are in some synopsis, with some of their columns."""
        narrow = rows.select(names)
        if self.every is not None and len(self.conditions) == 1:
            return CountedEvents(narrow, self.every)
        events, synopses = self.index.matches(rows, by_number=False)
        for error in self.index.failed.values():
            raise error
        if self.every is not None:
            where = np.concatenate([np.arange(rows.num_rows), events])
            order = np.argsort(where, kind="stable")
            every = np.full(rows.num_rows, self.every)
            return CountedEvents(narrow, 0, where[order], np.append(every, synopses)[order])
        used = np.zeros(rows.num_rows, np.bool_)
        used[events] = True
        if not used.all():
            narrow = narrow.filter(to_arrow(used))
            events = (np.cumsum(used) - 1)[events]
        return CountedEvents(narrow, 0, events, synopses)
