"""State by key, in layers: a step takes the keys that it needs, and puts them back on top.

    newest   [ b d ]          a directory has the place of each key's state: that in the newest
             [ a b e ]        layer that has the key; what older layers have of it is out of date
    oldest   [ a b c d … ]

So the cost of a step depends on its keys, not on all known keys. A few small layers wait on top
until they are merged, and layers that are not much larger are merged with them: a key is copied a
few times in its life. When entries that are out of date take half as much room as the others, all
layers become one. A part is never changed in place; the directory is. It is not written out: the
first step that needs one makes it. While the state is small, or many events come at once, all of it
is one layer without a directory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Self

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import one_spelling
from eventide.arrays import to_arrow
from eventide.instants import END_OF_TIME_US, START_OF_TIME_US
from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.key_entries import current_entries, number_rows, table_for
from eventide.kernels.key_table import (
    COUNT,
    KeyTable,
    empty_table,
    look_up,
    number_keys,
    roomy,
)
from eventide.operators.columns import Numbered
from eventide.operators.dividing import Wanted
from eventide.operators.fingerprints import key_words
from eventide.operators.key_layer import (
    KeyDirectory,
    Layer,
    Remembered,
    Words,
    both,
    chosen,
    nothing,
)
from eventide.operators.key_parts import number_in_threads

FEW = 512
"""Up to this many keys and rows are one layer."""
FOR_EACH_EVENT = 4
"""All keys are taken if keys and rows are at most this many for each new event."""
MOST_WAITING = 16
"""So many layers wait until they are merged."""
MOST_ENTRIES = 2**31 - 1
"""When entries have had so many numbers, they are numbered anew."""
MANY_EVENTS = 4096
"""From so many on, keys are numbered by their values: that is faster than by fingerprints."""


class KeyLayers(Generic[Remembered]):
    """Layers of keys, the oldest first; at least one. The watermark is that of the last step."""

    __slots__ = ("directory", "layers", "watermark_us")

    def __init__(
        self,
        layers: Sequence[Layer[Remembered]],
        directory: KeyDirectory | None = None,
        watermark_us: int = START_OF_TIME_US,
    ) -> None:
        self.layers = layers
        self.directory = directory
        self.watermark_us = watermark_us

    @classmethod
    def of(cls, part: Remembered, watermark_us: int = START_OF_TIME_US) -> Self:
        """Return one layer."""
        return cls((Layer(part),), None, watermark_us)

    @property
    def weight(self) -> int:
        """The number of keys and rows held, including those out of date."""
        return sum(layer.weight for layer in self.layers)

    @property
    def nbytes(self) -> int:
        """How many bytes they take."""
        return sum(layer.part.nbytes for layer in self.layers)

    @property
    def whole(self) -> Remembered:
        """The whole state."""
        return merged(self.layers, self.directory).part

    def of_keys(self, place: int, wanted: Wanted) -> Self:
        """Return the state of the keys whose value in one of their columns is wanted."""
        part = self.whole
        chosen = np.flatnonzero(wanted(part.keys[place]))
        return type(self).of(part.take(chosen), self.watermark_us)

    def united(self, other: Self) -> Self:
        """Return the state of all keys of both; none is in both.

        A watermark that is too early only has more keys looked at.
        """
        together = self.whole.joined([other.whole])
        return type(self).of(together, min(self.watermark_us, other.watermark_us))

    def least(self, values_of: Callable[[Remembered], Int64s], limit: int) -> int:
        """Return the least value below a limit that a function gives to a key, or the limit."""
        for layer in self.layers:
            values = values_of(layer.part)
            below = np.flatnonzero(values < limit)
            if layer.stale and len(below) and self.directory is not None:
                below = self.directory.current(layer, below)
            if len(below):
                limit = int(values[below].min())
        return limit

    def taken(
        self, columns: Sequence[pa.Array], events: int, until_us: int, rows: int | None = None
    ) -> TakenKeys[Remembered]:
        """Return the state of the keys of some events, and of keys due until a time.

        If only the different keys of events are given, `rows` is how many events there are.
        """
        asked = AskedKeys(columns, events)
        few = self.weight <= FEW + FOR_EACH_EVENT * (events if rows is None else rows)
        if few or not columns or until_us == END_OF_TIME_US:
            return TakenKeys(merged(self.layers, self.directory), asked)
        if self.directory is None:
            self.directory = KeyDirectory.of(self.layers[0])
        entries = self.entries(asked, until_us)
        found = list(self.by_layer(entries))
        parts = [layer.part.take(keys) for layer, keys in found]
        if not found:
            parts = [self.layers[0].part.take(entries)]
        part = parts[0].joined(parts[1:]) if len(parts) > 1 else parts[0]
        words = both([chosen(layer.words, keys) for layer, keys in found])
        return TakenKeys(Layer(part, words), asked, TakenFrom(self, found, frozen(entries)))

    def entries(self, asked: AskedKeys, until_us: int) -> Int64s:
        """Return the entries of keys that are asked for, or due until a time; ascending."""
        assert self.directory is not None
        entries = np.full(asked.events, -1, np.int64)
        look_up(self.directory.table, *asked.words, entries)
        found = [entries]
        for layer in self.layers:
            due = layer.due(self.watermark_us, until_us)
            if due is not None:
                due = self.directory.current(layer, due) if layer.stale else due
                found.append(due + layer.first)
        if len(found) > 1 or asked.events > 1:
            entries = np.unique(np.concatenate(found))
        return entries[1:] if len(entries) and entries[0] < 0 else entries

    def by_layer(self, entries: Int64s) -> Iterator[tuple[Layer[Remembered], Int64s]]:
        """Yield the layers that have some entries, and the keys there."""
        start, bounds = 0, np.searchsorted(entries, [layer.first for layer in self.layers[1:]])
        for layer, end in zip(self.layers, [*bounds.tolist(), len(entries)], strict=True):
            if end > start:
                yield layer, entries[start:end] - layer.first
            start = end


class AskedKeys:
    """The keys of some events."""

    def __init__(self, columns: Sequence[pa.Array], events: int) -> None:
        self.columns = columns
        self.events = events

    @cached_property
    def words(self) -> Words:
        """Their words."""
        return key_words(self.columns, self.events)


@dataclass(frozen=True, slots=True)
class TakenFrom(Generic[Remembered]):
    """The layers that some keys were taken out of, and the entries that they had there."""

    layers: KeyLayers[Remembered]
    found: Sequence[tuple[Layer[Remembered], Int64s]]
    entries: Int64s


class TakenKeys(Generic[Remembered]):
    """The state taken out of layers for a step; if it is from nowhere, the whole state."""

    def __init__(
        self,
        held: Layer[Remembered],
        asked: AskedKeys,
        source: TakenFrom[Remembered] | None = None,
    ) -> None:
        self.held = held
        self.part = held.part
        self.asked = asked
        self.source = source
        self.words: Words | None = None
        """Those of the keys that were taken and of new ones, once they are numbered."""
        self.table: KeyTable | None = None
        """Their numbers, if they were numbered by a table that can go on."""

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole state."""
        return self.source is None

    def numbered(self, threads: int = 1) -> Numbered:
        """Number the keys that were taken, then the new ones in order of their first events."""
        columns, events = self.asked.columns, self.asked.events
        if not columns or events >= MANY_EVENTS:
            return number_in_threads(self.part.keys, columns, events, threads)
        known, asked = self.held.words, self.asked.words
        codes, fresh = np.empty(events, np.int32), np.empty(events, np.int64)
        most = len(known[0]) + events
        first, second = np.empty((2, most), np.int64)
        count = number_rows(table_for(most), *known, *asked, codes, fresh, first, second)
        keys, self.words = list(self.part.keys), known
        if count:
            new = fresh[:count]
            rows = to_arrow(new)
            keys = [
                pa.concat_arrays([key, one_spelling(column).take(rows)])
                for key, column in zip(keys, columns, strict=True)
            ]
            following = len(known[0]) + count
            self.words = (frozen(first[:following]), frozen(second[:following]))
        return frozen(codes), keys, len(known[0]) + count

    def roomy_table(self) -> KeyTable:
        """Return a table of the keys that were taken, with room for those of all events."""
        known, table = self.held.words, self.held.table
        if table is None or table.facts[COUNT] != len(known[0]):
            table = table_for(len(known[0]) + self.asked.events)
            number_keys(table, *known)
        self.table = roomy(table, self.asked.events)
        return self.table

    def number_fresh(self, fresh: Int64s) -> None:
        """Note the first events of the keys that have the next numbers, in order."""
        self.words = self.held.words
        if len(fresh):
            self.words = both([self.words, chosen(self.asked.words, fresh)])

    def put(
        self, part: Remembered, watermark_us: int, kept: Int64s | None = None
    ) -> KeyLayers[Remembered]:
        """Return the layers with the new state of these keys; keys without state are forgotten.

        `kept` are the keys of the part by the numbers that they were given, ascending, if that is
        known.
        """
        words, table = None, None
        if self.words is not None and kept is not None:
            if len(kept) == len(self.words[0]):
                words, table = self.words, self.table
            else:
                words = chosen(self.words, kept)
        if self.source is None:
            return KeyLayers([Layer(part, words, table=table)], None, watermark_us)
        layers, directory = list(self.source.layers.layers), self.source.layers.directory
        assert directory is not None
        layer = Layer(part, words)
        layer.first = directory.enter(layer.words, self.held.words, self.source.entries)
        for each, keys in self.source.found:
            each.forget(len(keys))
        if layer.count:
            layers.append(layer)
        return tidied(layers, directory, watermark_us)


def tidied(
    layers: list[Layer[Remembered]], directory: KeyDirectory, watermark_us: int
) -> KeyLayers[Remembered]:
    """Return layers after those that should be one have been merged."""
    live = sum(layer.live for layer in layers)
    held = sum(layer.weight for layer in layers)
    if held - live > live // 2 + FEW or directory.following > MOST_ENTRIES // 2:
        return KeyLayers([merged(layers, directory)], None, watermark_us)
    above, first = 0, len(layers)
    while first and layers[first - 1].live <= 2 * above + FEW // 8:
        first -= 1
        above += layers[first].live
    if len(layers) - first > MOST_WAITING:
        layer = merged(layers[first:], directory)
        none = nothing()
        layer.first = directory.enter(layer.words, none, none[0])
        layers[first:] = [layer]
    return KeyLayers(layers, directory, watermark_us)


def merged(
    layers: Sequence[Layer[Remembered]], directory: KeyDirectory | None
) -> Layer[Remembered]:
    """Return some layers as one, without what is out of date."""
    if len(layers) == 1 and not layers[0].stale:
        return layers[0]
    assert directory is not None
    parts, words = [], []
    for layer in layers:
        if layer.stale:
            keys = directory.current(layer)
            parts.append(layer.part.take(keys))
            words.append(chosen(layer.words, keys))
        else:
            parts.append(layer.part)
            words.append(layer.words)
    part = parts[0].joined(parts[1:]) if len(parts) > 1 else parts[0]
    return Layer(part, both(words))


def ready() -> None:
    """Compile the kernels that steps over many keys need, so that no event waits for it."""
    words = key_words([pa.array([], pa.string())], 0)
    numbers = words[0]
    directory = KeyDirectory(empty_table(), 0)
    number_keys(directory.table, *words)
    look_up(directory.table, *words, np.empty(0, np.int64))
    directory.enter(words, words, numbers)
    current_entries(directory.table, *words, 0, numbers, np.empty(0, np.int64))
    codes, fresh = np.empty(0, np.int32), np.empty(0, np.int64)
    number_rows(directory.table, *words, *words, codes, fresh, fresh, fresh)
