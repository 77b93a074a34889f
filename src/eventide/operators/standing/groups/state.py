"""The state of a GROUP BY of a standing query: groups, their parts, and tuples until they go."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.kernels.aggregates.sorted_blocks import make_room
from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.groups.sliding import SORTED
from eventide.kernels.groups.tables import COUNT, FIRST, SECOND, GroupTables
from eventide.kernels.key_table import empty_table, put_keys, roomy
from eventide.kernels.slabs import BLOCK, Slabs, empty_slabs, with_room
from eventide.operators.checking import require
from eventide.operators.standing.array_state import Arrays, prefixed, under
from eventide.operators.standing.compaction import compact_table, is_too_roomy
from eventide.operators.standing.groups.checks import (
    check_counted,
    check_groups,
    check_members,
    check_slabs,
    without_lists,
)
from eventide.operators.standing.groups.numbering import NumberedGroups, no_groups
from eventide.operators.standing.groups.plan import GroupPlan
from eventide.operators.standing.groups.slabs import compact_slabs, needed_words, sorted_words
from eventide.operators.standing.groups.texts import Texts
from eventide.operators.standing.row_log import RowLog, is_sparse
from eventide.operators.standing.tuples import HeldTuples
from eventide.operators.standing.words import text_words


@dataclass(slots=True)
class GroupState(NumberedGroups):
    """Groups, and the tuples they have until these go."""

    tuples: HeldTuples
    texts: Texts
    unchecked: int = 0
    """How many tuples came and went since the use of the slabs was last measured."""

    @classmethod
    def empty(cls, parts: int, width: int, keys: pa.Schema, tuples: HeldTuples) -> GroupState:
        """Return the state without groups, with rows of this many words."""
        log, none = RowLog.empty(keys), np.zeros(0, np.int64)
        groups, slabs = no_groups(parts, width), empty_slabs()
        return cls(empty_table(), groups, slabs, log, none, tuples, Texts.empty())

    @property
    def nbytes(self) -> int:
        """How many bytes all arrays and rows take."""
        arrays = sum(array.nbytes for array in self.arrays().values())
        return int(arrays + self.keys.nbytes + self.texts.texts.nbytes)

    def widen(self, kind: int, owner: int, word: int) -> None:
        """Make room for a value of a part of this kind, in the pool or among sorted values."""
        if kind != SORTED:
            self.slabs = with_room(self.slabs)
            return
        while not make_room(self.slabs, owner, word):
            self.slabs = with_room(self.slabs)

    def forget_texts(self, parts: list[int]) -> None:
        """Drop texts that no group has; the parts with texts are given."""
        if not is_sparse(len(self.texts), self.texts.kept):
            return
        owners = self.living_groups()[:, None] * self.groups.tallies.shape[1] + parts
        self.texts = self.texts.of_use(sorted_words(self.slabs, owners.ravel()))

    def trimmed(self, operations: int, kinds: Int64s) -> GroupState:
        """Return the state after this many operations, without spare room if that is most of it.

        Room for as many operations again does not count as spare. `kinds` are those of the parts.
        """
        tuples, room = self.tuples, len(self.groups.about)
        # Renumbering groups changes all tuples, so it has to pay.
        if is_too_roomy(room, self.living + tuples.used // 16 + operations):
            return self.compacted(kinds)
        if is_too_roomy(tuples.room, tuples.used + operations):
            return self.compacted(kinds)
        if is_too_roomy(len(self.table.handles) // 2, self.living + operations):
            self.table = compact_table(self.table)
        self.unchecked += operations
        # Looking at the slabs takes time proportional to the groups: as many tuples come and go
        # first.
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
        left = self.without_spare_room(kinds)
        tuples = self.tuples.compacted(left.renumbered)
        return GroupState(
            left.table, left.groups, left.slabs, left.keys, left.numbers, tuples, self.texts
        )

    def arrays(self) -> Arrays:
        """Return all arrays; the keys are rows and are kept elsewhere."""
        return {
            **prefixed("table", self.table._asdict()),
            **prefixed("groups", self.groups._asdict()),
            **prefixed("slabs", self.slabs._asdict()),
            **prefixed("tuples", self.tuples.arrays()),
            "numbers": self.numbers,
        }

    def written(self) -> Arrays:
        """Return what cannot be rebuilt, of a state without spare room."""
        return {
            "about": self.groups.about,
            "tallies": self.groups.tallies,
            "words": self.slabs.words,
            "notes": self.slabs.notes,
            **prefixed("tuples", self.tuples.written()),
        }

    def read(self, arrays: Arrays, plan: GroupPlan, keys: RowLog, texts: pa.Array) -> GroupState:
        """Return the state that was `written`; this one is empty. Refuse inconsistent ones."""
        about, kinds = arrays["about"], np.tile(plan.kinds[:, 0], len(arrays["about"]))
        facts = np.array([len(about), 0], np.int64)
        groups = GroupTables(about, arrays["tallies"], np.zeros(len(about), np.int64), facts)
        check_groups(groups, self.groups)
        slabs_facts = np.array([len(arrays["words"]), 0, self.slabs.facts[BLOCK]], np.int64)
        free = np.full_like(self.slabs.free, -1)
        slabs = Slabs(arrays["words"], arrays["notes"], free, slabs_facts)
        check_slabs(slabs, kinds)
        check_counted(groups, slabs, kinds)
        require((about[:, COUNT] > 0).all(), "groups without rows")
        tuples = self.tuples.read(under("tuples", arrays), len(plan.columns))
        members = tuples.members()
        if members is not None:
            check_members(groups, *members, plan.kinds[:, 1])
        require(keys.size == len(about) or not keys.schema.names, "keys are not those of groups")
        table = roomy(empty_table(), len(about))
        first, second = (np.ascontiguousarray(about[:, word]) for word in (FIRST, SECOND))
        put_keys(table, frozen(first), frozen(second))
        require(texts.null_count == 0, "a null among texts")
        known = Texts.of(text_words(texts), texts)
        require(int(known.table.facts[0]) == len(texts), "texts that are not all different")
        for part in plan.text_parts:
            owners = np.arange(len(about)) * about_parts(groups) + part
            require(known.has(sorted_words(slabs, owners)), "texts that are missing")
        for column in plan.texts:
            require(known.has(tuples.words(column)), "texts that are missing")
        numbers = np.arange(len(about)) if keys.schema.names else np.zeros(len(about), np.int64)
        return GroupState(table, groups, without_lists(slabs, kinds), keys, numbers, tuples, known)


def about_parts(groups: GroupTables) -> int:
    """Return the number of parts of each group."""
    return int(groups.tallies.shape[1])
