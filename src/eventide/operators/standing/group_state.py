"""What a GROUP BY of a standing query remembers: groups, their parts, and tuples until they go."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.kernels.compiled import Int32s, Int64s, frozen
from eventide.kernels.growing import longer
from eventide.kernels.key_table import KeyTable, empty_table, roomy
from eventide.kernels.slabs import Slabs, empty_slabs, with_room
from eventide.kernels.sliding_groups import (
    COUNT,
    FIRST,
    FREE,
    GROUPS,
    HEAD,
    SECOND,
    SEEN,
    SORTED,
    Groups,
    free_empty_groups,
    number_groups,
)
from eventide.kernels.sorted_blocks import make_room
from eventide.operators.standing.array_state import Arrays, prefixed, under
from eventide.operators.standing.compaction import compact_table, is_too_roomy, new_numbers
from eventide.operators.standing.group_slabs import compact_slabs, needed_words, sorted_words
from eventide.operators.standing.group_texts import Texts
from eventide.operators.standing.keys import Fingerprints
from eventide.operators.standing.row_log import RowLog, is_sparse
from eventide.operators.standing.tuples import HeldTuples, load_tuples

TALLIES = 4


@dataclass(slots=True)
class GroupState:
    """Groups by number: `keys.take(numbers)` are the values of their keys."""

    table: KeyTable
    groups: Groups
    slabs: Slabs
    keys: RowLog
    numbers: Int64s
    tuples: HeldTuples
    texts: Texts
    unchecked: int = 0
    """How many tuples came and went since it was looked how much of the slabs is in use."""

    @classmethod
    def empty(cls, parts: int, width: int, keys: pa.Schema, tuples: HeldTuples) -> GroupState:
        """Return the state without groups, whose rows have so many words."""
        none = np.zeros(0, np.int64)
        groups = Groups(
            np.zeros((0, HEAD + width), np.int64),
            np.zeros((0, parts, TALLIES), np.int64),
            none,
            np.zeros(2, np.int64),
        )
        log = RowLog.empty(keys)
        return cls(empty_table(), groups, empty_slabs(), log, none, tuples, Texts.empty())

    @property
    def living(self) -> int:
        """How many groups there are."""
        return int(self.groups.facts[GROUPS] - self.groups.facts[FREE])

    @property
    def nbytes(self) -> int:
        """How many bytes all arrays and rows take."""
        arrays = sum(array.nbytes for array in self.arrays().values())
        return int(arrays + self.keys.nbytes + self.texts.texts.nbytes)

    def numbered(self, prints: Fingerprints, keys: pa.RecordBatch) -> tuple[Int32s, Int64s]:
        """Return the group of each row, and the groups that are new."""
        count = len(prints)
        self.table = roomy(self.table, count)
        of_row = np.empty(count, np.int32)
        rows, new = np.empty(count, np.int64), np.empty(count, np.int64)
        fresh = number_groups(
            self.table, prints.first, prints.second, self.groups, of_row, rows, new
        )
        rows, new = rows[:fresh], new[:fresh]
        self._make_room()
        about = self.groups.about
        about[new, FIRST], about[new, SECOND] = prints.first[rows], prints.second[rows]
        about[new, SEEN] = 0
        if fresh and self.keys.schema.names:
            self.numbers[new] = self.keys.end + np.arange(fresh)
            self.keys = self.keys.append(keys.take(pa.array(rows)))
        return of_row, new

    def _make_room(self) -> None:
        """Have arrays as long as there are groups."""
        wanted = int(self.groups.facts[GROUPS])
        if wanted <= len(self.groups.about):
            return
        grown = {name: longer(array, wanted) for name, array in self.groups._asdict().items()}
        self.groups = Groups(**(grown | {"facts": self.groups.facts}))
        owners = len(self.groups.about) * self.groups.tallies.shape[1]
        self.slabs = self.slabs._replace(notes=longer(self.slabs.notes, owners))
        self.numbers = longer(self.numbers, wanted)

    def widen(self, kind: int, owner: int, word: int) -> None:
        """Make room for a value of a part of this kind; in the pool, or for those in order also."""
        if kind != SORTED:
            self.slabs = with_room(self.slabs)
            return
        while not make_room(self.slabs, owner, word):
            self.slabs = with_room(self.slabs)

    def forget(self, candidates: Int64s) -> None:
        """Free the numbers of those groups that have no rows, and rows that nobody needs."""
        free_empty_groups(self.table, self.groups, frozen(candidates))
        if is_sparse(self.keys.size, self.living):
            self._renumber()

    def _renumber(self) -> None:
        living = self._living_groups()
        self.keys = self.keys.kept(self.numbers[living])
        self.numbers[living] = np.arange(len(living))

    def _living_groups(self) -> Int64s:
        counts = self.groups.about[: self.groups.facts[GROUPS], COUNT]
        return np.flatnonzero(counts > 0)

    def forget_texts(self, parts: list[int]) -> None:
        """Drop texts that no group has; those of the parts are listed."""
        if not is_sparse(len(self.texts), self.texts.kept):
            return
        owners = self._living_groups()[:, None] * self.groups.tallies.shape[1] + parts
        self.texts = self.texts.of_use(sorted_words(self.slabs, owners.ravel()))

    def fitted(self, operations: int, kinds: Int64s) -> GroupState:
        """Return the state after so many operations; without the spare room if that is most of it.

        Room for as many operations again is not spare. Parts are of these kinds.
        """
        tuples, room = self.tuples, len(self.groups.about)
        # New numbers of groups have to be told to all tuples: that has to be worth it.
        if is_too_roomy(room, self.living + tuples.used // 16 + operations):
            return self.compacted(kinds)
        if is_too_roomy(tuples.room, tuples.used + operations):
            return self.compacted(kinds)
        if is_too_roomy(len(self.table.handles) // 2, self.living + operations):
            self.table = compact_table(self.table)
        self.unchecked += operations
        # To look at the slabs takes as long as there are groups: so many tuples come and go first.
        if self.unchecked > room // 4 + 4 * operations:
            self.unchecked = 0
            notes = self.slabs.notes
            owners = np.resize(kinds, len(notes))
            needed = needed_words(self.slabs, notes, owners)
            if is_too_roomy(len(self.slabs.words), needed + operations):
                self.slabs = compact_slabs(self.slabs, notes, owners)
        return self

    def compacted(self, kinds: Int64s) -> GroupState:
        """Return the state without spare room, its groups numbered from 0 on."""
        count, parts = int(self.groups.facts[GROUPS]), self.groups.tallies.shape[1]
        taken = np.ones(count, np.bool_)
        taken[self.groups.free[: self.groups.facts[FREE]]] = False
        kept = np.flatnonzero(taken)
        numbers = new_numbers(kept, count)
        keys, rows = self.keys, self.numbers[kept]
        if keys.schema.names:
            keys, rows = keys.kept(rows), np.arange(len(kept))
        notes = self.slabs.notes[: count * parts].reshape(count, parts, 4)[kept].reshape(-1, 4)
        return GroupState(
            compact_table(self.table, numbers),
            Groups(
                self.groups.about[kept],
                self.groups.tallies[kept],
                np.zeros(len(kept), np.int64),
                np.array([len(kept), 0], np.int64),
            ),
            compact_slabs(self.slabs, notes, np.tile(kinds, len(kept))),
            keys,
            rows,
            self.tuples.compacted(numbers),
            self.texts,
        )

    def arrays(self) -> Arrays:
        """Return all arrays; the keys are rows and stand elsewhere."""
        return {
            **prefixed("table", self.table._asdict()),
            **prefixed("groups", self.groups._asdict()),
            **prefixed("slabs", self.slabs._asdict()),
            **prefixed("tuples", self.tuples.arrays()),
            **prefixed("texts", self.texts.table._asdict()),
            "numbers": self.numbers,
            "kept": np.array([self.texts.kept]),
        }

    def load(self, arrays: Arrays, keys: RowLog, texts: pa.Array) -> GroupState:
        """Return the state that `arrays`, keys and texts were of; this one is empty."""
        table = KeyTable(**under("texts", arrays))
        return GroupState(
            KeyTable(**under("table", arrays)),
            Groups(**under("groups", arrays)),
            Slabs(**under("slabs", arrays)),
            keys,
            arrays["numbers"],
            load_tuples(self.tuples, under("tuples", arrays)),
            Texts.of_table(table, texts, int(arrays["kept"][0])),
        )
