"""Texts by their fingerprint, and their order, for aggregates that return texts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.arrays import to_arrow
from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.key_table import KeyTable, empty_table, roomy
from eventide.kernels.text_numbers import find_numbers, put_numbers


@dataclass(frozen=True, slots=True)
class Texts:
    """Numbers by fingerprint, texts by number, and their ranks in order."""

    table: KeyTable
    texts: pa.Array
    ranks: Int64s
    kept: int = 0
    """How many there were after unused ones were last dropped."""

    @classmethod
    def empty(cls) -> Texts:
        """Return no texts."""
        return cls(empty_table(), pa.nulls(0, pa.string()), np.zeros(0, np.int64))

    @classmethod
    def of(cls, words: Int64s, texts: pa.Array) -> Texts:
        """Return these texts, which are all different."""
        table = roomy(empty_table(), len(words))
        put_numbers(table, frozen(words), 0)
        return cls(table, texts, _ranks(texts), len(words))

    def __len__(self) -> int:
        return len(self.texts)

    def added(self, words: Int64s, texts: pa.Array) -> Texts:
        """Return the texts with more, some of which may be known."""
        distinct, places = np.unique(words, return_index=True)
        new = find_numbers(self.table, frozen(distinct)) < 0
        if not new.any():
            return self
        table = roomy(self.table, int(new.sum()))
        put_numbers(table, frozen(distinct[new]), len(self))
        all_texts = pa.concat_arrays([self.texts, texts.take(to_arrow(places[new]))])
        return Texts(table, all_texts, _ranks(all_texts), self.kept)

    def named(self, words: Int64s) -> pa.Array:
        """Return the texts with these fingerprints."""
        return self.texts.take(to_arrow(find_numbers(self.table, frozen(words))))

    def has(self, words: Int64s) -> bool:
        """Whether all texts with these fingerprints are here."""
        return bool((find_numbers(self.table, frozen(words)) >= 0).all())

    def ranks_of(self, words: Int64s) -> Int64s:
        """Return the ranks of the texts with these fingerprints, all known."""
        numbers: Int64s = find_numbers(self.table, frozen(words))
        return self.ranks[numbers]

    def of_use(self, words: Int64s) -> Texts:
        """Return only the texts with these fingerprints."""
        distinct = np.unique(words)
        return Texts.of(distinct, self.named(distinct))


def _ranks(texts: pa.Array) -> Int64s:
    ranks = np.empty(len(texts), np.int64)
    ranks[pc.sort_indices(texts).to_numpy()] = np.arange(len(texts))
    return ranks
