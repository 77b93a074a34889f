"""Channels: a row that several queries of a template take goes through it once, for all of them.

    (event, 1) (event, 4) (event, 7)  ──▶  (event, {1, 4, 7})  ──▶  (row, 1) (row, 4) (row, 7)

A set of queries has a number of its own, which stands where else that of a query does. It pays off
where what a template remembers of a row does not depend on the query: what waits to be followed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow, to_numpy
from eventide.kernels.compiled import Bools, Int64s, frozen
from eventide.kernels.hashing import spread_words
from eventide.kernels.ordering import ranges
from eventide.operators.columns import unchecked_take
from eventide.operators.state import join_parts, split_parts
from eventide.plan.sharing.template import QUERY

CHANNELS_FROM = 1 << 40
"""Numbers from here on are those of sets of queries."""
FEWEST_PAIRS = 8
"""Rows that fewer queries take, on average, have no channel."""
_MANY = 1 << 12


class Channels:
    """Sets of queries that have taken a row together, by their numbers."""

    def __init__(self) -> None:
        self.members: dict[int, Int64s] = {}
        self.known: dict[bytes, int] = {}
        self.following = CHANNELS_FROM
        self.room = _MANY

    @property
    def nbytes(self) -> int:
        """How many bytes they take."""
        return 2 * sum(each.nbytes for each in self.members.values())

    @property
    def is_full(self) -> bool:
        """Whether there are so many that those which nobody remembers should go."""
        return len(self.members) > self.room

    def add(self, members: Int64s) -> int:
        """Return the number of a set; that of a single query is its own."""
        if len(members) == 1:
            return int(members[0])
        key = members.tobytes()
        number = self.known.get(key)
        if number is None:
            number = self.following
            self.put(number, members)
        return number

    def put(self, number: int, members: Int64s) -> None:
        """Note a set under a number."""
        self.members[number] = members.copy()
        self.known[members.tobytes()] = number
        self.following = max(self.following, number + 1)

    def together(self, events: Int64s, numbers: Int64s) -> tuple[Int64s, Int64s]:
        """Return where the pairs of each event begin, and the number of the set that takes it.

        Pairs of events and queries are in order of both.
        """
        starts = np.flatnonzero(np.diff(events, prepend=events[0] - 1))
        lengths = np.diff(starts, append=len(events))
        words = numbers.astype(np.uint64)
        spread = np.empty_like(words)
        spread_words(frozen(words), spread)
        marks = np.add.reduceat(spread, starts)
        _, first, which = np.unique(marks, return_index=True, return_inverse=True)
        alike = bool((lengths[first][which] == lengths).all())
        if alike:
            like = numbers[ranges(starts[first][which], lengths)]
            alike = bool((like == numbers).all())
        if not alike:  # two sets with one mark: each event is looked at by itself
            first = which = np.arange(len(starts))
        own = [self.add(numbers[starts[e] : starts[e] + lengths[e]]) for e in first.tolist()]
        return starts, np.array(own, np.int64)[which]

    def spread(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return a row for each query of the set that each row is of."""
        numbers = to_numpy(rows.column(QUERY))
        if not (numbers >= CHANNELS_FROM).any():
            return rows
        sets, which = np.unique(numbers, return_inverse=True)
        parts = [self.members.get(each, np.array([each], np.int64)) for each in sets.tolist()]
        lengths = np.array(list(map(len, parts)), np.int64)
        starts = np.cumsum(lengths) - lengths
        places = np.repeat(np.arange(len(numbers)), lengths[which])
        own = np.concatenate(parts)[ranges(starts[which], lengths[which])]
        of_row = to_arrow(places)
        columns = [
            to_arrow(own) if name == QUERY else unchecked_take(column, of_row)
            for name, column in zip(rows.schema.names, rows.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=rows.schema)

    def among(self, numbers: Int64s) -> Callable[[pa.Array], Bools]:
        """Return a function that says which values of a column are among some numbers, or sets."""

        def wanted(column: pa.Array) -> Bools:
            values, which = np.unique(to_numpy(column), return_inverse=True)
            here = np.isin(values, numbers)
            for place in np.flatnonzero(values >= CHANNELS_FROM).tolist():
                here[place] = np.isin(self.members[int(values[place])], numbers).any()
            return here[which]

        return wanted

    def keep(self, used: Iterable[int]) -> None:
        """Forget all sets but those that are in use."""
        kept = set(used)
        self.members = {each: own for each, own in self.members.items() if each in kept}
        self.known = {own.tobytes(): each for each, own in self.members.items()}
        self.room = max(_MANY, 2 * len(self.members))

    def write(self, used: Iterable[int]) -> bytes:
        """Write some sets out."""
        numbers = [np.array([each], np.int64) for each in sorted(used)]
        own = (np.concatenate([each, self.members[int(each[0])]]) for each in numbers)
        return join_parts([each.tobytes() for each in own])

    def read(self, written: bytes) -> None:
        """Note the sets that `write` wrote."""
        for part in split_parts(written):
            number, *members = np.frombuffer(part, np.int64).tolist()
            if number not in self.members:
                self.put(number, np.array(members, np.int64))


class UsedSets:
    """Notes which sets a state remembers, while it is asked for all keys."""

    def __init__(self) -> None:
        self.found: set[int] = set()

    def __call__(self, column: pa.Array) -> Bools:
        """Note the sets in a column; all of it is wanted."""
        numbers = np.unique(to_numpy(column))
        self.found |= set(numbers[numbers >= CHANNELS_FROM].tolist())
        return np.ones(len(column), np.bool_)
