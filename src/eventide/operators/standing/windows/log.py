"""The tuples of a window, in order of arrival, until all their changes have been emitted."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.instants import START_OF_TIME_US
from eventide.kernels.compiled import Int64s
from eventide.kernels.lifetimes.stream_windows import DIES, ID, KEY, LEAVING, LINK, TS, TUPLE_FACTS
from eventide.operators.changes import NEVER, Int8s
from eventide.operators.checking import (
    filled,
    require,
    require_ascending,
    require_instant,
    require_living,
    require_within,
)
from eventide.operators.standing.row_log import RowLog
from eventide.operators.standing.windows.times import rounded_up
from eventide.operators.state import read_rows, write_rows
from eventide.schema import MAX_TS_US, MIN_TS_US

FEWEST = 16
OWN_COLUMNS = (("_id", ID), ("_ts", TS), ("_dies", DIES))
"""The columns of a dumped tuple beside its values."""


@dataclass(frozen=True, slots=True)
class EmittedTuples:
    """The output: tuples by number, when they come (+1) or go (-1), in order."""

    numbers: Int64s
    at: Int64s
    sign: Int8s


@dataclass(frozen=True, slots=True)
class TupleLog:
    """Tuples by number, with what is known of each (rows of `facts`, see the kernels).

    The first `come` of the tuples have been emitted. Of those that leave, `leaving`, the first
    `gone` have been. With `stays` a tuple is kept until it has gone, otherwise until it has come.
    Instants are multiples of `slide_us`, if there is one.
    """

    values: RowLog
    stays: bool
    slide_us: int | None
    facts: Int64s
    count: int = 0
    come: int = 0
    leaving: int = 0
    gone: int = 0
    until_us: int = START_OF_TIME_US

    @classmethod
    def empty(cls, schema: pa.Schema, *, stays: bool, slide_us: int | None) -> TupleLog:
        """Return the log before the first tuple."""
        facts = np.zeros((TUPLE_FACTS, FEWEST), np.int64)
        return cls(RowLog.empty(schema), stays, slide_us, facts)

    @property
    def living(self) -> int:
        """The number of tuples with changes still to be emitted."""
        return self.count - (self.gone if self.stays else self.come)

    @property
    def nbytes(self) -> int:
        """How many bytes the log takes."""
        return self.values.nbytes + self.facts.nbytes

    def append(self, rows: pa.RecordBatch, ids: Int64s, ts: Int64s, dies: Int64s) -> TupleLog:
        """Return the log with more tuples, which come at `ts` or soon after."""
        count = self.count + len(ids)
        facts = self.facts
        if count > facts.shape[1]:
            facts = np.empty((TUPLE_FACTS, max(count, 2 * self.count)), np.int64)
            facts[:, : self.count] = self.facts[:, : self.count]
        new = slice(self.count, count)
        facts[ID, new], facts[TS, new], facts[DIES, new] = ids, ts, dies
        facts[LINK, new] = facts[KEY, new] = 0
        return replace(self, values=self.values.append(rows), facts=facts, count=count)

    def leave_in_order(self, number: int) -> TupleLog:
        """Return the log with the tuples from a number on leaving; they go in order of arrival."""
        known = np.flatnonzero(self.facts[DIES, number : self.count] != NEVER) + number
        self.facts[LEAVING, self.leaving : self.leaving + len(known)] = known
        return replace(self, leaving=self.leaving + len(known))

    def now_leave(self, leaving: int) -> TupleLog:
        """Return the log with this many leaving, the new ones at instants yet to be rounded."""
        facts = self.facts
        new = facts[LEAVING, self.leaving : leaving]
        facts[DIES, new] = rounded_up(facts[DIES, new], self.slide_us)
        return replace(self, leaving=leaving)

    def emit(self, until_us: int) -> tuple[TupleLog, EmittedTuples]:
        """Return the log after all instants before `until_us`, and what came and went in them.

        A tuple that goes within the instant in which it came is not emitted.
        """
        last = until_us - 1 if self.slide_us is None else self.last_multiple(until_us)
        waiting = self.facts[TS, self.come : self.count]
        come = self.come + int(np.searchsorted(waiting, max(last, START_OF_TIME_US), "right"))
        leaving, dies = self.facts[LEAVING], self.facts[DIES]
        places = range(self.gone, self.leaving)
        gone = self.gone + bisect_left(places, until_us, key=lambda i: int(dies[leaving[i]]))
        coming = np.arange(self.come, come)
        going = np.sort(leaving[self.gone : gone])
        coming, going = coming[self.seen(coming)], going[self.seen(going)]
        log = replace(self, come=come, gone=gone, until_us=until_us)
        born = rounded_up(self.facts[TS, coming], self.slide_us)
        return log, in_order(going, dies[going], coming, born)

    def last_multiple(self, until_us: int) -> int:
        """Return the last refresh before an instant."""
        assert self.slide_us is not None
        return (until_us - 1) // self.slide_us * self.slide_us

    def seen(self, numbers: Int64s) -> Int64s:
        """Return the places of tuples that do not go in the instant in which they come."""
        born = rounded_up(self.facts[TS, numbers], self.slide_us)
        return np.flatnonzero(born < self.facts[DIES, numbers])

    def compacted(self) -> tuple[TupleLog, Int64s]:
        """Return the log of only the living tuples, and how many of them are before each number."""
        keep = np.arange(self.count) >= self.come
        if self.stays:
            keep = self.facts[DIES, : self.count] >= self.until_us
        kept = np.flatnonzero(keep)
        renumbered = np.zeros(self.count + 1, np.int64)
        np.cumsum(keep, out=renumbered[1:])
        facts = np.empty((TUPLE_FACTS, max(FEWEST, 2 * len(kept))), np.int64)
        facts[:, : len(kept)] = self.facts[:, kept]
        facts[LINK, : len(kept)] = renumbered[facts[LINK, : len(kept)]]
        waiting = renumbered[self.facts[LEAVING, self.gone : self.leaving]]
        facts[LEAVING, : len(waiting)] = waiting
        compact = replace(
            self,
            values=self.values.kept(kept),
            facts=facts,
            count=len(kept),
            come=int(renumbered[self.come]),
            leaving=len(waiting),
            gone=0,
        )
        return compact, renumbered

    def write(self, operator: str) -> bytes:
        """Write the living tuples out, under the operator's name."""
        log, _ = self.compacted()
        rows = log.values.take(np.arange(log.count))
        columns = [to_arrow(log.facts[fact, : log.count]) for _, fact in OWN_COLUMNS]
        written = pa.RecordBatch.from_arrays([*rows.columns, *columns], schema=self.dumped_schema())
        return write_rows(operator, written, {"come": log.come, "until_us": log.until_us})

    def read(self, operator: str, written: bytes) -> TupleLog:
        """Return this log, which is empty, with the tuples that another one dumped."""
        rows, facts = read_rows(operator, written, self.dumped_schema())
        names = self.values.schema.names
        own = (rows.column(len(names) + i) for i in range(len(OWN_COLUMNS)))
        ids, ts, dies = (filled(column, "times of tuples") for column in own)
        come, until_us = facts["come"], facts["until_us"]
        require(0 <= come <= len(ts), f"{come} of {len(ts)} tuples have come")
        require_within(ts, MIN_TS_US, MAX_TS_US + 1, "times of tuples")
        require_ascending(ts, "times of tuples")
        require_instant(until_us, "the end of the last step")
        if self.stays:
            require_living(dies, until_us)
        log = self.append(rows.select(names), ids, ts, dies)
        going = np.flatnonzero(dies != NEVER) if self.stays else np.zeros(0, np.int64)
        log.facts[LEAVING, : len(going)] = going[np.argsort(dies[going], kind="stable")]
        return replace(log, come=come, leaving=len(going), until_us=until_us)

    def dumped_schema(self) -> pa.Schema:
        """Return the columns of dumped tuples."""
        own = [pa.field(name, pa.int64()) for name, _ in OWN_COLUMNS]
        return pa.schema([*self.values.schema, *own])


def in_order(going: Int64s, went_at: Int64s, coming: Int64s, came_at: Int64s) -> EmittedTuples:
    """Return what goes and what comes as one, in order of instants; in each, what goes is first."""
    numbers, at = np.concatenate([going, coming]), np.concatenate([went_at, came_at])
    sign = np.repeat(np.array([-1, 1], np.int8), [len(going), len(coming)])
    if not len(going):
        return EmittedTuples(numbers, at, sign)
    order = np.argsort(at, kind="stable")
    return EmittedTuples(numbers[order], at[order], sign[order])
