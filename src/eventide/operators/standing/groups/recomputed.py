"""GROUP BY of a standing query whose aggregates cannot take values back.

The arguments of all living tuples are kept. Whenever a group changes, its aggregates are computed
again from those of its tuples that live: of any aggregate, and as slow as that sounds.

    at        0     3     7     9           MODE(x) over RANGE 8
    tuples    ├─a───────────┤               at 3 the group has a and b, at 8 only b
                    ├─b───────────┤
    instants  0     3      8        11      at each of them some tuple comes or goes
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from eventide.accumulators import Accumulator, Groups
from eventide.accumulators.columns import one_spelling
from eventide.arrays import no_rows, to_arrow
from eventide.kernels.compiled import Bools, Int64s, frozen
from eventide.kernels.ordering import ranges
from eventide.operators.aggregate import accumulator_of, arguments_of
from eventide.operators.changes import NEVER, Changes
from eventide.operators.checking import filled, require, require_lengths
from eventide.operators.columns import concat_batches
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.fingerprints import fingerprints
from eventide.operators.operator import Size
from eventide.operators.standing.ids import joined_ids
from eventide.operators.state import join_parts, parts_of, read_rows, write_rows
from eventide.operators.stateful import Stateful
from eventide.plan.standing.nodes import GroupAggregate

AT_ONCE = 4_000_000
"""So many pairs of an instant and a tuple that lives then are looked at together."""
WORD = pa.int64()
_LIFE = ("first", "second", "at", "end", "id")
"""The columns in front of a tuple's keys and arguments: the group, when it lives, and its id."""
_SHOWN = ("first", "second", "print", "other_print", "id")
"""The columns in front of a row of the answer: the group, what the row is, and its id."""


@dataclass(frozen=True, slots=True)
class RecomputedState:
    """Living tuples in the order in which they came, and the rows in the answer."""

    tuples: pa.RecordBatch
    shown: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class GroupMoments:
    """The instants at which groups change, by group and in order of time, and who lives then.

    Tuple t lives at the moments [first[t], last[t]). `names` are the two words of each group, and
    `some` is a tuple of each.
    """

    group: Int64s
    at: Int64s
    first: Int64s
    last: Int64s
    names: Int64s
    some: Int64s

    @classmethod
    def of(cls, tuples: pa.RecordBatch, fresh: Bools, until_us: int) -> GroupMoments:
        """Return the moments before `until_us` at which a tuple comes, if it is fresh, or goes."""
        pairs = np.stack([_words(tuples, name) for name in _LIFE[:2]], axis=1)
        names, some, group = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
        group, at, end = group.ravel(), _words(tuples, "at"), _words(tuples, "end")
        going = end < until_us
        changed = np.concatenate([group[fresh], group[going]])
        instants = np.concatenate([at[fresh], end[going]])
        order = np.lexsort((instants, changed))
        changed, instants = changed[order], instants[order]
        if len(changed):
            new = np.ones(len(changed), np.bool_)
            new[1:] = (np.diff(changed) != 0) | (np.diff(instants) != 0)
            changed, instants = changed[new], instants[new]
        # Instants as places in their order, so that a group and an instant make one number.
        known = np.unique(instants)
        width = len(known) + 1
        keys = changed * width + np.searchsorted(known, instants)
        first = np.searchsorted(keys, group * width + np.searchsorted(known, at))
        last = np.searchsorted(keys, group * width + np.searchsorted(known, end))
        return cls(changed, instants, first, np.maximum(first, last), names, some)

    @property
    def starts(self) -> Int64s:
        """The first moment of each group that has any."""
        return np.flatnonzero(np.diff(self.group, prepend=-1))


@dataclass(frozen=True)
class RecomputedGroups(Stateful[RecomputedState]):
    """Maintains the rows of groups by computing them again from the living tuples."""

    node: GroupAggregate

    @cached_property
    def accumulators(self) -> tuple[Accumulator, ...]:
        """How each aggregate is computed."""
        return tuple(accumulator_of(item.aggregate) for item in self.node.aggregates)

    @cached_property
    def tuple_schema(self) -> pa.Schema:
        """The columns of kept tuples."""
        fields = [pa.field(name, WORD) for name in _LIFE]
        fields += [pa.field(f"k{i}", key.type.arrow) for i, key in enumerate(self.node.keys)]
        for i, item in enumerate(self.node.aggregates):
            parts = item.aggregate.parts
            fields += [pa.field(f"a{i}_{j}", part.type.arrow) for j, part in enumerate(parts)]
        return pa.schema(fields)

    @cached_property
    def output_schema(self) -> pa.Schema:
        """The columns of the output."""
        return pa.schema([(name, kind.arrow) for name, kind in self.node.row.items()])

    @cached_property
    def shown_schema(self) -> pa.Schema:
        """The columns of the rows in the answer."""
        columns = [pa.field(f"v{i}", kind) for i, kind in enumerate(self.output_schema.types)]
        return pa.schema([*(pa.field(name, WORD) for name in _SHOWN), *columns])

    def initial_state(self) -> RecomputedState:
        """Return the state before the first instant."""
        return RecomputedState(_nothing(self.tuple_schema), _nothing(self.shown_schema))

    def step(
        self, state: RecomputedState, inputs: tuple[Changes, ...], until_us: int
    ) -> tuple[RecomputedState, Changes]:
        """Take changes; return the rows that go and come."""
        tuples = self._with(state.tuples, inputs[0])
        at = _words(tuples, "at")
        going = _words(tuples, "end") < until_us
        fresh = np.arange(len(at)) >= state.tuples.num_rows
        kept = tuples if not going.any() else tuples.filter(to_arrow(~going))
        if not (going | fresh).any():
            return RecomputedState(kept, state.shown), Changes.nothing(self.output_schema)
        changed = _pairs(tuples.filter(to_arrow(going | fresh)))
        inside = np.flatnonzero(np.isin(_pairs(tuples), changed))
        part = tuples.take(to_arrow(inside))
        moments = GroupMoments.of(part, fresh[inside], until_us)
        rows, present = self._rows(part, moments)
        shown, changes = self._turnover(state.shown, rows, present, moments)
        return RecomputedState(kept, shown), changes

    def _with(self, tuples: pa.RecordBatch, changes: Changes) -> pa.RecordBatch:
        """Return the tuples with those that come, and with the ends of those that go early."""
        coming = np.flatnonzero(changes.sign > 0)
        rows = changes.rows.take(to_arrow(coming))
        keys = [one_spelling(evaluate(key.expression, rows)) for key in self.node.keys]
        prints = fingerprints(keys, rows.num_rows)
        words = (prints.first, prints.second, changes.at[coming], changes.exp[coming])
        columns = [to_arrow(word) for word in (*words, changes.id[coming])] + keys
        for item in self.node.aggregates:
            if item.aggregate.parts:
                columns += arguments_of(item.aggregate, rows)
        fresh = pa.RecordBatch.from_arrays(columns, schema=self.tuple_schema)
        together = concat_batches([tuples, fresh], self.tuple_schema)
        taken_back = np.flatnonzero(changes.sign < 0)
        if not len(taken_back):
            return together
        # Of tuples with one id the newest is meant: the others have gone.
        ids, ends = _words(together, "id"), _words(together, "end").copy()
        order = np.argsort(ids, kind="stable")
        place = np.searchsorted(ids[order], changes.id[taken_back], side="right") - 1
        there = np.flatnonzero(place >= 0)
        places, gone = order[place[there]], changes.at[taken_back][there]
        require((ids[places] == changes.id[taken_back][there]).all(), "a tuple that is not there")
        ends[places] = np.minimum(ends[places], gone)
        return together.set_column(3, together.schema.field(3), to_arrow(ends))

    def _rows(self, tuples: pa.RecordBatch, moments: GroupMoments) -> tuple[pa.RecordBatch, Bools]:
        """Return the row of each moment, and whether some tuple of the group lives then."""
        count = len(moments.at)
        lives = np.zeros(count + 1, np.int64)
        np.add.at(lives, moments.first, 1)
        np.add.at(lives, moments.last, -1)
        living = np.cumsum(lives[:-1])
        total = np.cumsum(living)
        parts = []
        start = 0
        while start < count:
            before = total[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(total, before + AT_ONCE, side="right")))
            parts.append(self._computed(tuples, moments, start, stop))
            start = stop
        return concat_batches(parts, self.shown_schema), living > 0

    def _computed(
        self, tuples: pa.RecordBatch, moments: GroupMoments, start: int, stop: int
    ) -> pa.RecordBatch:
        """Return the rows of the moments [start, stop); those without a tuple are arbitrary."""
        first, last = np.maximum(moments.first, start), np.minimum(moments.last, stop)
        lengths = np.maximum(last - first, 0)
        owner = ranges(first, lengths) - start
        order = np.argsort(owner, kind="stable")
        places = np.repeat(np.arange(len(first)), lengths)[order]
        groups = Groups(frozen(owner[order]), stop - start)
        some = to_arrow(moments.some[moments.group[start:stop]])
        keys = len(_LIFE) + len(self.node.keys)
        columns = [tuples.column(place).take(some) for place in range(len(_LIFE), keys)]
        rows = to_arrow(places)
        place = keys
        for item, each in zip(self.node.aggregates, self.accumulators, strict=True):
            many = len(item.aggregate.parts)
            values = [tuples.column(place + i).take(rows) for i in range(many)]
            lifted = each.lift(*(values or [rows]))
            columns.append(each.finish(each.by_group(lifted, groups)))
            place += many
        prints = fingerprints(columns, stop - start)
        first, second = moments.names[moments.group[start:stop]].T
        ids = joined_ids(first, second, moments.at[start:stop])
        words = (first, second, prints.first, prints.second, ids)
        arrays = [*(to_arrow(word) for word in words), *columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.shown_schema)

    def _turnover(
        self, shown: pa.RecordBatch, rows: pa.RecordBatch, present: Bools, moments: GroupMoments
    ) -> tuple[pa.RecordBatch, Changes]:
        """Return the rows in the answer afterwards, and those that go and come.

        Rows are numbered through: first those in the answer, then those of the moments.
        """
        count, old, starts = rows.num_rows, shown.num_rows, moments.starts
        every = concat_batches([shown, rows], self.shown_schema)
        before = np.arange(count) - 1 + old
        before[starts] = _places(_pairs(shown), _pairs(rows)[starts])
        there = np.append(np.concatenate([np.ones(old, np.bool_), present]), False)
        had = there[before]
        prints = np.stack([_words(every, name) for name in _SHOWN[2:4]], axis=1)
        same = had & present & (prints[before] == prints[old:]).all(axis=1)
        # A row that stays is the one that came, with its id.
        anchor = np.where(same, -1, np.arange(count))
        anchor[starts] = starts
        anchor = np.maximum.accumulate(anchor)
        held = np.where(same[anchor], before[anchor], anchor + old)
        going, coming = np.flatnonzero(had & ~same), np.flatnonzero(present & ~same)
        gone = before[going]
        gone = np.where(gone < old, gone, held[np.maximum(gone - old, 0)])
        turned = np.concatenate([gone, coming + old])
        at = np.concatenate([moments.at[going], moments.at[coming]])
        sign = np.repeat(np.array([-1, 1], np.int8), [len(going), len(coming)])
        order = np.lexsort((sign, at))
        chosen = every.take(to_arrow(turned[order]))
        changes = Changes(
            pa.RecordBatch.from_arrays(chosen.columns[len(_SHOWN) :], schema=self.output_schema),
            at[order],
            np.full(len(order), NEVER, np.int64),
            sign[order],
            _words(chosen, "id"),
        )
        ends = np.append(starts[1:], count) - 1
        left = np.ones(old + 1, np.bool_)
        left[before[starts]] = False
        after = np.concatenate([np.flatnonzero(left[:old]), held[ends[present[ends]]]])
        return every.take(to_arrow(after)), changes

    def write(self, state: RecomputedState) -> bytes:
        """Write the state out."""
        name = type(self).__name__
        parts = (state.tuples, state.shown)
        return join_parts([write_rows(name, rows, {}) for rows in parts])

    def read(self, written: bytes) -> RecomputedState:
        """Read back what `write` wrote."""
        name = type(self).__name__
        schemas = (self.tuple_schema, self.shown_schema)
        parts = parts_of(name, written, len(schemas))
        tuples, shown = (
            read_rows(name, part, schema)[0] for part, schema in zip(parts, schemas, strict=True)
        )
        for column in (*tuples.columns[: len(_LIFE)], *shown.columns[: len(_SHOWN)]):
            filled(column, "names of tuples and rows")
        at, end = _words(tuples, "at"), _words(tuples, "end")
        require((at < end).all(), "a tuple that goes before it comes")
        require_lengths(len(np.unique(_pairs(shown))), (shown,), "rows and their groups")
        require(np.isin(_pairs(shown), _pairs(tuples)).all(), "a row of a group without tuples")
        keys, behind = len(self.node.keys), len(_LIFE)
        _require_prints(tuples.columns[behind : behind + keys], tuples, _LIFE[:2])
        shown_columns = shown.columns[len(_SHOWN) :]
        _require_prints(shown_columns[:keys], shown, _SHOWN[:2])
        _require_prints(shown_columns, shown, _SHOWN[2:4])
        return RecomputedState(tuples, shown)

    def size(self, state: RecomputedState) -> Size:
        """Return the size of the state: tuples, and bytes."""
        return Size(state.tuples.num_rows, state.tuples.nbytes + state.shown.nbytes)


def _require_prints(
    columns: Sequence[pa.Array], rows: pa.RecordBatch, words: Sequence[str]
) -> None:
    """Refuse rows whose words are not those of their columns."""
    prints = fingerprints(columns, rows.num_rows)
    for name, found in zip(words, (prints.first, prints.second), strict=True):
        require(np.array_equal(found, _words(rows, name)), "words that are not those of the values")


def _nothing(schema: pa.Schema) -> pa.RecordBatch:
    return no_rows(schema)


def _words(rows: pa.RecordBatch, name: str) -> Int64s:
    found: Int64s = rows.column(name).to_numpy(zero_copy_only=False)
    return found


def _pairs(rows: pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """Return both words of each row's group as one value."""
    words = np.stack([_words(rows, name) for name in _LIFE[:2]], axis=1)
    return np.ascontiguousarray(words).view("i8,i8").ravel()


def _places(
    known: np.ndarray[tuple[int], np.dtype[np.void]],
    wanted: np.ndarray[tuple[int], np.dtype[np.void]],
) -> Int64s:
    """Return the place of each value among others that are all different, -1 if it is not there."""
    found = np.full(len(wanted), -1, np.int64)
    _, at, of = np.intersect1d(known, wanted, assume_unique=True, return_indices=True)
    found[of] = at
    return found
