"""One layer of state by key, and the directory that says which layer has the newest of a key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa

from eventide.instants import END_OF_TIME_US
from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.key_entries import current_entries, move_entries, table_for
from eventide.kernels.key_table import KeyTable, number_keys, roomy
from eventide.operators.fingerprints import key_words

NEVER = END_OF_TIME_US
"""When a key is due that only its own events can change."""


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

    def joined(self, others: Sequence[Self]) -> Self:
        """Return these keys, then those of other parts."""
        ...


Remembered = TypeVar("Remembered", bound=KeyedPart)

Words = tuple[Int64s, Int64s]
"""The words of keys, as kernels look them up."""


class Layer(Generic[Remembered]):
    """The state of some keys; `live` is about the weight of those that are not out of date.

    Its entries are numbered from `first` on. `table` has the number of each of its keys, unless
    another step has put more into it.
    """

    def __init__(
        self,
        part: Remembered,
        words: Words | None = None,
        first: int = 0,
        table: KeyTable | None = None,
    ) -> None:
        self.part = part
        self.weight = self.live = part.weight
        self.first = first
        self.stale = 0
        self.known = words
        self.table = table
        self.passed = 0

    @property
    def words(self) -> Words:
        """The words of the keys."""
        if self.known is None:
            self.known = words_of(self.part)
        return self.known

    @cached_property
    def count(self) -> int:
        """The number of keys."""
        return len(self.part.due)

    @cached_property
    def first_due(self) -> int:
        """When the first key is due."""
        return int(self.part.due.min(initial=NEVER))

    @cached_property
    def by_due(self) -> tuple[Int64s, Int64s]:
        """The times at which keys are due, ascending, and the keys."""
        waiting = np.flatnonzero(self.part.due != NEVER)
        times = self.part.due[waiting]
        order = np.argsort(times, kind="stable")
        return times[order], waiting[order]

    def due(self, from_us: int, until_us: int) -> Int64s | None:
        """Return the keys due from one instant to another. The first never moves back."""
        if self.first_due >= until_us:
            return None
        times, waiting = self.by_due
        if self.passed < len(times) and times[self.passed] < from_us:
            self.passed += int(np.searchsorted(times[self.passed :], from_us))
        if self.passed == len(times) or times[self.passed] >= until_us:
            return None
        last = self.passed + int(np.searchsorted(times[self.passed :], until_us))
        return waiting[self.passed : last]

    def forget(self, keys: int) -> None:
        """Note that so many more keys are out of date."""
        self.stale += keys
        self.live = self.weight * (self.count - self.stale) // self.count


@dataclass(slots=True)
class KeyDirectory:
    """The number of the newest entry of each key, by the words of the key."""

    table: KeyTable
    following: int
    """The number of the next entry."""

    @classmethod
    def of(cls, layer: Layer[Remembered]) -> Self:
        """Return the directory of one layer, whose entries are numbered from 0."""
        table = table_for(layer.count)
        number_keys(table, *layer.words)
        return cls(table, layer.count)

    def enter(self, words: Words, old: Words, numbers: Int64s) -> int:
        """Enter keys; remove keys that had these numbers until now and are not among them.

        Returns the number of the first entry.
        """
        first, count = self.following, len(words[0])
        self.table = roomy(self.table, count)
        move_entries(self.table, *words, first, *old, numbers)
        self.following += count
        return first

    def current(self, layer: Layer[Remembered], keys: Int64s | None = None) -> Int64s:
        """Return the keys of a layer, or those of some, that are not out of date."""
        if keys is None:
            keys = np.arange(layer.count)
        found = np.empty(len(keys), np.int64)
        count = current_entries(self.table, *layer.words, layer.first, frozen(keys), found)
        return found[:count]


def words_of(part: KeyedPart) -> Words:
    """Return the keys of a part as words."""
    return key_words(part.keys, len(part.due))


def chosen(words: Words, places: Int64s) -> Words:
    """Return the words of some of the keys."""
    return frozen(words[0][places]), frozen(words[1][places])


def both(words: Sequence[Words]) -> Words:
    """Return the words of several lists of keys as one list."""
    if len(words) == 1:
        return words[0]
    if not words:
        return nothing()
    first, second = (np.concatenate(each) for each in zip(*words, strict=True))
    return frozen(first), frozen(second)


def nothing() -> Words:
    """Return the words of no keys."""
    none = frozen(np.empty(0, np.int64))
    return none, none
