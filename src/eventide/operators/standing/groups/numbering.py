"""Groups of a GROUP BY: numbered by their keys, each with slabs for its aggregates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.kernels.compiled import Int32s, Int64s, frozen
from eventide.kernels.groups.tables import (
    COUNT,
    FIRST,
    FREE,
    GROUPS,
    HEAD,
    SECOND,
    SEEN,
    GroupTables,
    free_empty_groups,
    number_groups,
)
from eventide.kernels.growing import longer
from eventide.kernels.key_table import KeyTable, roomy
from eventide.kernels.slabs import Slabs
from eventide.operators.fingerprints import Fingerprints
from eventide.operators.standing.compaction import compact_table, new_numbers
from eventide.operators.standing.groups.slabs import compact_slabs
from eventide.operators.standing.row_log import RowLog, is_sparse

TALLIES = 4
KEYS_AT_ONCE = 1024
"""At least this many rows are looked up at once."""


def no_groups(parts: int, width: int) -> GroupTables:
    """Return no groups, with this many parts each and rows of this many words."""
    return GroupTables(
        np.zeros((0, HEAD + width), np.int64),
        np.zeros((0, parts, TALLIES), np.int64),
        np.zeros(0, np.int64),
        np.zeros(2, np.int64),
    )


class Compacted(NamedTuple):
    """Groups without spare room, the old numbers of those kept, and the new numbers of all."""

    table: KeyTable
    groups: GroupTables
    slabs: Slabs
    keys: RowLog
    numbers: Int64s
    kept: Int64s
    renumbered: Int32s


@dataclass(slots=True)
class NumberedGroups:
    """Groups by number: `keys.take(numbers)` are the values of their keys."""

    table: KeyTable
    groups: GroupTables
    slabs: Slabs
    keys: RowLog
    numbers: Int64s

    @property
    def living(self) -> int:
        """How many groups there are."""
        return int(self.groups.facts[GROUPS] - self.groups.facts[FREE])

    def living_groups(self) -> Int64s:
        """Return the numbers of groups that have rows."""
        counts = self.groups.about[: self.groups.facts[GROUPS], COUNT]
        return np.flatnonzero(counts > 0)

    def groups_of(self, prints: Fingerprints, keys: pa.RecordBatch) -> tuple[Int32s, Int64s]:
        """Return the group of each row, and the groups that are new."""
        count, fresh, start = len(prints), 0, 0
        of_row = np.empty(count, np.int32)
        rows, new = np.empty(count, np.int64), np.empty(count, np.int64)
        while start < count:
            # Batch by batch: room for a whole batch of new keys would be most of a small state.
            end = min(count, start + max(KEYS_AT_ONCE, len(self.table.handles) // 4))
            self.table = roomy(self.table, end - start)
            first, second = prints.first[start:end], prints.second[start:end]
            found, groups = rows[fresh:], new[fresh:]
            more = number_groups(
                self.table, first, second, self.groups, of_row[start:end], found, groups
            )
            found[:more] += start
            fresh, start = fresh + more, end
        rows, new = rows[:fresh], new[:fresh]
        self._make_room()
        about = self.groups.about
        about[new, FIRST], about[new, SECOND] = prints.first[rows], prints.second[rows]
        about[new, SEEN] = 0
        if fresh and self.keys.schema.names:
            self.numbers[new] = self.keys.end + np.arange(fresh)
            self.keys = self.keys.append(keys.take(to_arrow(rows)))
        return of_row, new

    def _make_room(self) -> None:
        """Make arrays as long as there are groups."""
        wanted = int(self.groups.facts[GROUPS])
        if wanted <= len(self.groups.about):
            return
        grown = {name: longer(array, wanted) for name, array in self.groups._asdict().items()}
        self.groups = GroupTables(**(grown | {"facts": self.groups.facts}))
        owners = len(self.groups.about) * self.groups.tallies.shape[1]
        self.slabs = self.slabs._replace(notes=longer(self.slabs.notes, owners))
        self.numbers = longer(self.numbers, wanted)

    def forget(self, candidates: Int64s) -> None:
        """Free the numbers of groups without rows, and drop keys that are no longer needed."""
        free_empty_groups(self.table, self.groups, frozen(candidates))
        if is_sparse(self.keys.size, self.living):
            left = self.living_groups()
            self.keys = self.keys.kept(self.numbers[left])
            self.numbers[left] = np.arange(len(left))

    def without_spare_room(self, kinds: Int64s) -> Compacted:
        """Return the groups numbered from 0 on; `kinds` are those of the parts of each."""
        count, parts = int(self.groups.facts[GROUPS]), self.groups.tallies.shape[1]
        taken = np.ones(count, np.bool_)
        taken[self.groups.free[: self.groups.facts[FREE]]] = False
        kept = np.flatnonzero(taken)
        renumbered = new_numbers(kept, count)
        keys, numbers = self.keys, self.numbers[kept]
        if keys.schema.names:
            keys, numbers = keys.kept(numbers), np.arange(len(kept))
        notes = self.slabs.notes[: count * parts].reshape(count, parts, 4)[kept].reshape(-1, 4)
        groups = GroupTables(
            self.groups.about[kept],
            self.groups.tallies[kept],
            np.zeros(len(kept), np.int64),
            np.array([len(kept), 0], np.int64),
        )
        table = compact_table(self.table, renumbered)
        slabs = compact_slabs(self.slabs, notes, np.tile(kinds, len(kept)))
        return Compacted(table, groups, slabs, keys, numbers, kept, renumbered)
