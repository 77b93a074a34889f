"""The predicate index: which of many conditions are true on each event of a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.growing import longer
from eventide.kernels.ordering import ascends
from eventide.kernels.sharing.conditions.matching import (
    BLOCK,
    SearchedEvents,
    Searching,
    TextVerdicts,
    match_events,
)
from eventide.kernels.sharing.conditions.programs import EventWords
from eventide.operators.sharing.conditions.apart import ApartConditions, evaluated
from eventide.operators.sharing.conditions.batches import Batch, joined
from eventide.operators.sharing.conditions.columns import Columns
from eventide.operators.sharing.conditions.registering import Registering
from eventide.operators.sharing.conditions.segments import IndexSegment, segment_of
from eventide.operators.sharing.conditions.shapes import Shapes
from eventide.operators.sharing.conditions.texts import TextTests
from eventide.operators.sharing.conditions.words import Coder
from eventide.plan.expressions import Expression
from eventide.plan.tree import Row

Pairs = tuple[Int64s, Int64s]

_GROWTH = 4
"""A segment has at least so many times as many conditions as the next one."""
_ROOM = 1 << 16
_KEY_BITS = 62
"""Bits of the key of an event and a number. Numbers differ by less than that."""
_MOST_WAITING = 64
"""Batches are joined before they are looked through, if there are more."""


class PredicateIndex:
    """Conditions over events, by number. It is never written: conditions are added again.

    >>> from eventide.plan.expressions import Call, Column, integer
    >>> from eventide.schema import BOOL, INT64
    >>> index = PredicateIndex({"x": INT64})
    >>> above = [Call(">", (Column("x", INT64), integer(least)), BOOL) for least in (1, 2)]
    >>> index.add(np.array([7, 8]), above)
    >>> events, numbers = index.matches(pa.RecordBatch.from_pydict({"x": [3, None, 2]}))
    >>> events.tolist(), numbers.tolist()
    ([0, 0, 2], [7, 8, 7])
    """

    def __init__(self, row: Row) -> None:
        self.row = row
        self.failed: dict[int, Exception] = {}
        """The conditions that could not be evaluated on the last batch; they have no pairs."""
        self._texts = TextTests()
        self._columns = Columns(Coder(), self._texts)
        self._shapes = Shapes()
        self._apart = ApartConditions()
        self._registering = Registering(self._columns, self._shapes, self._apart)
        self._segments: list[IndexSegment] = []
        self._waiting: list[Batch] = []
        none = np.zeros(0, np.int64)
        self._searching = Searching(none, np.zeros(0, np.int32), none, none, none)

    def __len__(self) -> int:
        held = sum(map(len, self._segments)) + sum(map(len, self._waiting))
        return held + len(self._apart.always)

    @property
    def nbytes(self) -> int:
        """How much memory the conditions take, and what they share."""
        waiting = sum(each.nbytes for batch in self._waiting for each in batch)
        shared = self._shapes.nbytes + self._texts.nbytes + self._columns.coder.nbytes
        return waiting + shared + sum(segment.nbytes for segment in self._segments)

    def add(self, numbers: Int64s, conditions: Sequence[Expression]) -> None:
        """Add bound conditions over the row; each number is that of one condition."""
        self._waiting.append(self._registering.conditions(numbers.tolist(), conditions))

    def add_template(self, numbers: Int64s, shape: Expression, constants: pa.RecordBatch) -> None:
        """Add a condition for each row of constants.

        In `shape`, a column that is called like one of `constants` is a place for its value.
        """
        self._waiting += self._registering.template(numbers, shape, constants)

    def drop(self, numbers: Int64s) -> None:
        """Drop conditions; numbers that are not there are ignored."""
        numbers = np.unique(numbers)
        self._registering.forget(numbers.tolist())
        released = []
        if len(self._waiting) > _MOST_WAITING:
            self._waiting = [joined(self._waiting)]
        for place, batch in enumerate(self._waiting):
            gone = np.isin(batch.numbers, numbers)
            if gone.any():
                released.append(batch.at(gone))
                self._waiting[place] = batch.at(~gone)
        self._waiting = [batch for batch in self._waiting if len(batch)]
        for segment in self._segments:
            dropped = segment.drop(numbers)
            if len(dropped):
                released.append(dropped)
        for batch in released:
            self._registering.release(batch)
        self._columns.sweep()

    def matches(self, rows: pa.RecordBatch, *, by_number: bool = True) -> Pairs:
        """Return pairs of an event's place and the number of a condition that is true on it.

        They are in order of event, then of number; those of an event need not be by number.
        """
        self._settle()
        self.failed = {}
        self._texts.make_room()
        events, failed = self._columns.computed(rows)
        hit = self._apart.hit_by(failed)
        pairs = self._found(events, set(hit), by_number=by_number)
        alone = {**self._apart.always, **hit}
        if alone:
            pairs = _with_others(pairs, evaluated(alone, rows, self.failed))
        return pairs

    def _settle(self) -> None:
        """Put conditions that wait into segments, which grow geometrically."""
        new = joined(batch for batch in self._waiting if len(batch))
        self._waiting = []
        parts = [new] if len(new) else []
        size = len(new)
        kept: list[IndexSegment] = []
        for segment in reversed(self._segments):
            # Half of it may be gone; a rebuild then costs as much as it saves.
            crowded = 2 * segment.dropped > len(segment.by_number)
            if crowded or (size and len(segment) < _GROWTH * size):
                parts.append(segment.left())
                size += len(segment)
            else:
                kept.append(segment)
        if not parts:
            return
        if size:
            kept.append(segment_of(joined(parts), self._shapes))
        self._segments = sorted(kept, key=len, reverse=True)

    def _found(self, events: EventWords, without: set[int], *, by_number: bool) -> Pairs:
        """Return the pairs that segments find."""
        segments = [each for each in self._segments if len(each)]
        if not segments or not len(events.words):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        ends = np.array([each.first_and_last for each in segments])
        least = int(ends.min())
        shift = max(1, (int(ends.max()) - least).bit_length())
        step = 1 << max(0, _KEY_BITS - shift)
        texts, parts = self._texts.prepared(), []
        for origin in range(0, len(events.words), step):
            span = SearchedEvents(
                origin, min(origin + step, len(events.words)), origin, shift, least, 0
            )
            found = [keys for each in segments for keys in self._keys(each, events, texts, span)]
            keys = found[0] if len(found) == 1 else np.concatenate(found)
            repeats = any(each.repeats for each in segments)
            wants_order = by_number or len(segments) > 1 or repeats
            if wants_order and not ascends(frozen(keys[:-1]), frozen(keys[1:])):
                keys.sort()
            if repeats:
                keys = keys[np.diff(keys, prepend=-1) != 0]
            numbers = (keys & ((1 << shift) - 1)) + least
            parts.append(((keys >> shift) + origin, numbers))
        if len(parts) > 1:
            where, which = (np.concatenate(each) for each in zip(*parts, strict=True))
        else:
            where, which = parts[0]
        if without:
            kept = ~np.isin(which, np.array(list(without), np.int64))
            return where[kept], which[kept]
        return where, which

    def _keys(
        self, segment: IndexSegment, events: EventWords, texts: TextVerdicts, span: SearchedEvents
    ) -> Iterator[Int64s]:
        """Yield the keys of a segment as they fit into memory."""
        reached = np.array([span.first])
        most = segment.listings
        searching = self._room(most, len(segment.buckets.clusters))
        while reached[0] < span.last:
            count = match_events(
                span._replace(first=int(reached[0]), most=most),
                events,
                texts,
                self._shapes.code.array,
                segment.records,
                segment.buckets,
                segment.intervals,
                segment.scanned,
                searching,
                reached,
            )
            yield searching.keys[:count].copy()

    def _room(self, most: int, clusters: int) -> Searching:
        """Return room for the keys of some events, one of which has so many at most."""
        held = self._searching
        self._searching = Searching(
            longer(held.keys, 2 * most + _ROOM),
            longer(held.tried, 2 * most + _ROOM),
            longer(held.ends, BLOCK),
            longer(held.runs, BLOCK * clusters),
            longer(held.touched, 1),
        )
        return self._searching


def _with_others(pairs: Pairs, others: Pairs) -> Pairs:
    """Return pairs with others, in order."""
    where, which = (np.concatenate(each) for each in zip(pairs, others, strict=True))
    order = np.lexsort((which, where))
    return where[order], which[order]
