"""State by key, in layers: a step takes the keys that it needs, and puts them back on top.

    newest   [ b d ]          the newest layer that has a key holds its state;
             [ a b e ]        what older layers have of the key is out of date
    oldest   [ a b c d … ]

So the cost of a step depends on its keys, not on all known keys. A layer that has grown to half of
the one below is merged with it: there are few layers, a key is copied a few times in its life, and
entries that are out of date or forgotten take no more room than the valid ones. Nothing is changed
in place. While the state is small, or many events come at once, all of it is one layer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa

from eventide.instants import END_OF_TIME_US, START_OF_TIME_US
from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.key_table import KeyTable, empty_table, look_up, number_keys, roomy
from eventide.operators.fingerprints import fingerprints

NEVER = END_OF_TIME_US
"""When a key is due that only its own events can change."""
FEW = 2048
"""Up to this many keys and rows are one layer."""
FOR_EACH_EVENT = 4
"""All keys are taken if keys and rows are at most this many for each new event."""


class KeyedPart(Protocol):
    """The state of some keys, which are numbered from 0."""

    @property
    def keys(self) -> tuple[pa.Array, ...]:
        """The columns of the keys, one row for each."""
        ...

    @property
    def due(self) -> Int64s:
        """The watermark behind which each key has to be looked at even without an event."""
        ...

    @property
    def weight(self) -> int:
        """How many keys and rows there are."""
        ...

    @property
    def nbytes(self) -> int:
        """How many bytes they take."""
        ...

    def take(self, keys: Int64s) -> Self:
        """Return the state of some keys, by number."""
        ...

    def joined(self, other: Self) -> Self:
        """Return these keys, then those of another part."""
        ...


Remembered = TypeVar("Remembered", bound=KeyedPart)

Words = tuple[Int64s, Int64s]
"""The words of keys, as kernels look them up."""


@dataclass(frozen=True)
class Layer(Generic[Remembered]):
    """The state of some keys, and the `gone` ones, which older layers may still have.

    The words of the keys are computed when they are needed, unless they are known.
    """

    part: Remembered
    gone: Words
    known: Words | None = None

    @cached_property
    def words(self) -> Words:
        """The words of the keys of the part, then those of keys that are gone."""
        known = words_of(self.part) if self.known is None else self.known
        return both(known, self.gone) if len(self.gone[0]) else known

    @cached_property
    def table(self) -> KeyTable:
        """A table of the places of keys, by their words."""
        table = roomy(empty_table(), len(self.words[0]))
        number_keys(table, *self.words)
        return table

    @cached_property
    def by_due(self) -> tuple[Int64s, Int64s]:
        """The times at which keys are due, ascending, and the keys."""
        waiting = np.flatnonzero(self.part.due != NEVER)
        times = self.part.due[waiting]
        order = np.argsort(times, kind="stable")
        return times[order], waiting[order]

    @property
    def count(self) -> int:
        """The number of keys in the part."""
        return len(self.part.due)

    @property
    def weight(self) -> int:
        """The number of keys and rows, including keys that are gone."""
        return self.part.weight + len(self.gone[0])

    def has(self, words: Words) -> Int64s:
        """Return the place of each key in this layer, -1 for keys that are not in it."""
        found = np.full(len(words[0]), -1, np.int64)
        look_up(self.table, *words, found)
        return found


@dataclass(frozen=True)
class KeyLayers(Generic[Remembered]):
    """Layers of keys, the oldest first; at least one. The watermark is that of the last step."""

    layers: tuple[Layer[Remembered], ...]
    watermark_us: int = START_OF_TIME_US

    @classmethod
    def of(cls, part: Remembered, watermark_us: int = START_OF_TIME_US) -> Self:
        """Return one layer."""
        return cls((Layer(part, nothing()),), watermark_us)

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
        return merged(self.layers, is_lowest=True).part

    def least(self, values_of: Callable[[Remembered], Int64s], limit: int) -> int:
        """Return the least value below a limit that a function gives to a key, or the limit."""
        newer: list[Layer[Remembered]] = []
        for layer in reversed(self.layers):
            values = values_of(layer.part)
            below = np.flatnonzero(values < limit)
            # Older layers may have what newer ones have replaced.
            below = still_here(layer, below, newer)
            if len(below):
                limit = int(values[below].min())
            newer.append(layer)
        return limit

    def taken(
        self, columns: Sequence[pa.Array], events: int, until_us: int
    ) -> TakenKeys[Remembered]:
        """Return the state of the keys of some events, and of keys due until a time."""
        few = self.weight <= FEW + FOR_EACH_EVENT * events
        if few or not columns or until_us == END_OF_TIME_US:
            return TakenKeys(self.whole, (), nothing())
        asked = fingerprints(columns, events)
        rows = (asked.first, asked.second)
        found: list[tuple[Layer[Remembered], Int64s]] = []
        newer: list[Layer[Remembered]] = []
        for layer in reversed(self.layers):
            places = layer.has(rows)
            here = places >= 0
            numbers = places[here]
            times, waiting = layer.by_due
            first, last = np.searchsorted(times, (self.watermark_us, until_us))
            if first < last:
                due = still_here(layer, waiting[first:last], newer)
                numbers = np.concatenate([numbers, due])
            numbers = np.unique(numbers[numbers < layer.count])
            if len(numbers):
                found.append((layer, numbers))
            if here.any():
                rows = (frozen(rows[0][~here]), frozen(rows[1][~here]))
            newer.append(layer)
        if not found:
            return TakenKeys(
                self.layers[0].part.take(np.empty(0, np.int64)), self.layers, nothing()
            )
        (layer, numbers), *others = found
        part, words = layer.part.take(numbers), chosen(layer.words, numbers)
        for layer, numbers in others:
            part = part.joined(layer.part.take(numbers))
            words = both(words, chosen(layer.words, numbers))
        return TakenKeys(part, self.layers, words)


@dataclass(frozen=True, slots=True)
class TakenKeys(Generic[Remembered]):
    """The state taken out of layers for a step; without `below`, the whole state."""

    part: Remembered
    below: tuple[Layer[Remembered], ...]
    words: Words

    def put(self, part: Remembered, watermark_us: int) -> KeyLayers[Remembered]:
        """Return the layers with the new state of these keys; keys without state are forgotten."""
        if not self.below:
            return KeyLayers((Layer(part, nothing()),), watermark_us)
        layer = Layer(part, nothing(), words_of(part))
        forgotten = np.flatnonzero(layer.has(self.words) < 0)
        if len(forgotten):
            layer = Layer(part, chosen(self.words, forgotten), layer.known)
        layers = [*self.below, layer] if layer.weight else [*self.below]
        while len(layers) > 1 and layers[-2].weight <= max(2 * layers[-1].weight, FEW // 2):
            layers[-2:] = [merged(layers[-2:], is_lowest=len(layers) == 2)]
        return KeyLayers(tuple(layers), watermark_us)


def merged(layers: Sequence[Layer[Remembered]], *, is_lowest: bool) -> Layer[Remembered]:
    """Return some layers as one; if they include the oldest, keys that are gone are dropped."""
    *older, layer = layers
    for below in reversed(older):
        left = np.flatnonzero(layer.has(below.words) < 0)
        kept, gone = left[left < below.count], left[left >= below.count]
        part = below.part if len(kept) == below.count else below.part.take(kept)
        own = (layer.words[0][: layer.count], layer.words[1][: layer.count])
        layer = Layer(
            part.joined(layer.part),
            both(layer.gone, chosen(below.words, gone)),
            both(chosen(below.words, kept), own),
        )
    return Layer(layer.part, nothing(), layer.known) if is_lowest else layer


def still_here(layer: Layer[Remembered], keys: Int64s, newer: list[Layer[Remembered]]) -> Int64s:
    """Return the keys of a layer that newer layers do not have."""
    for each in newer:
        if len(keys):
            keys = keys[each.has(chosen(layer.words, keys)) < 0]
    return keys


def ready() -> None:
    """Compile the kernels that steps over many keys need, so that no event waits for it."""
    none = fingerprints([pa.array([], pa.string())], 0)
    table = empty_table()
    number_keys(table, none.first, none.second)
    look_up(table, none.first, none.second, np.empty(0, np.int64))


def words_of(part: KeyedPart) -> Words:
    """Return the keys of a part as words."""
    found = fingerprints(part.keys, len(part.due))
    return found.first, found.second


def chosen(words: Words, places: Int64s) -> Words:
    """Return the words of some of the keys."""
    return frozen(words[0][places]), frozen(words[1][places])


def both(words: Words, others: Words) -> Words:
    """Return the words of some keys, then those of others."""
    first, second = (np.concatenate(pair) for pair in zip(words, others, strict=True))
    return frozen(first), frozen(second)


def nothing() -> Words:
    """Return the words of no keys."""
    none = frozen(np.empty(0, np.int64))
    return none, none
