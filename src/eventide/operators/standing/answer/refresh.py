"""Whole answers at many instants, and results that wait for the next refresh."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.errors import StateLimitError
from eventide.kernels.compiled import Bools, Int64s
from eventide.operators.changes import Changes
from eventide.operators.checking import (
    LONGEST_US,
    filled,
    require_ascending,
    require_lengths,
    require_within,
)
from eventide.operators.columns import concat_batches
from eventide.operators.operator import Size
from eventide.operators.standing.answer.keeping import Deaths
from eventide.operators.standing.answer.turnover import Signed, left_over
from eventide.operators.standing.answer.view import View, ViewState
from eventide.operators.standing.row_log import RowLog
from eventide.operators.state import join_parts, parts_of, read_rows, write_rows
from eventide.schema import MAX_TS_US, MIN_TS_US

MOST_ROWS = 50_000_000
"""The largest number of rows of whole answers that a step reports: some gigabytes."""

_TIMES = pa.schema([("at", pa.int64()), ("exp", pa.int64())])


def refresh_of(instants: Int64s, slide_us: int) -> Int64s:
    """Return the numbers of the refreshes at or after instants; number n is at n * slide_us."""
    return -(-instants // slide_us)


def has_refresh(since_us: int, until_us: int, slide_us: int) -> bool:
    """Whether there is a refresh in [since_us, until_us)."""
    return -(-since_us // slide_us) * slide_us < until_us


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """Rows that lived in a step, in the order in which they came.

    Rows from before came at its first instant; rows that still live go at its end.
    """

    numbers: Int64s
    born: Int64s
    died: Int64s

    @classmethod
    def of(
        cls, view: View, before: ViewState, state: ViewState, changes: Changes, deaths: Deaths
    ) -> Lifetimes:
        """Return the lifetimes of a step from `before` to `state`."""
        living = view.living(state)
        numbers = np.concatenate([living, deaths.numbers])
        died = np.concatenate([np.full(len(living), state.until_us, np.int64), deaths.at])
        order = np.argsort(numbers)
        numbers, died = numbers[order], died[order]
        first = int(np.searchsorted(numbers, before.log.end))
        # All rows of the step are here: a row that came in it lives or died.
        born = np.full(len(numbers), before.until_us, np.int64)
        born[first:] = changes.at[changes.sign > 0]
        return cls(numbers, born, died)

    def at_instants(self, instants: Int64s) -> tuple[Int64s, Int64s]:
        """Return (instant, number) of each row that lives after each of these instants."""
        first, last = np.searchsorted(instants, self.born), np.searchsorted(instants, self.died)
        places, numbers = self._spread(first, last)
        return instants[places], numbers

    def at_refreshes(self, slide_us: int) -> tuple[Int64s, Int64s]:
        """Return (instant, number) of each row that lives after each refresh."""
        first, last = refresh_of(self.born, slide_us), refresh_of(self.died, slide_us)
        places, numbers = self._spread(first, last)
        return places * slide_us, numbers

    def _spread(self, first: Int64s, last: Int64s) -> tuple[Int64s, Int64s]:
        """Return each row once for each place in [first, last), in order of places."""
        counts = np.maximum(last - first, 0)
        total = float(counts.sum(dtype=np.float64))
        if total > MOST_ROWS:
            message = f"RSTREAM would report {total:,.0f} rows at once, more than {MOST_ROWS:,}"
            hint = (
                "it repeats the whole answer at each refresh: a longer SLIDE has fewer of them, "
                "and ISTREAM and DSTREAM report only what comes and what goes"
            )
            raise StateLimitError(message, hint=hint)
        rows = np.repeat(np.arange(len(counts)), counts)
        begins = np.cumsum(counts) - counts
        places = first[rows] + np.arange(len(rows)) - begins[rows]
        order = np.argsort(places, kind="stable")
        return places[order], self.numbers[rows[order]]


@dataclass(frozen=True, slots=True)
class Waiting:
    """Births that no refresh has reported yet: the last rows of the log, and their times."""

    log: RowLog
    at: Int64s
    exp: Int64s

    @classmethod
    def none(cls, schema: pa.Schema) -> Waiting:
        """Return no births."""
        return cls(RowLog.empty(schema), np.zeros(0, np.int64), np.zeros(0, np.int64))

    def joined_by(self, rows: pa.RecordBatch, at: Int64s, exp: Int64s) -> Waiting:
        """Return these births with others behind them."""
        times = np.concatenate([self.at, at]), np.concatenate([self.exp, exp])
        return Waiting(self.log.append(rows), *times)

    def reported(self, slide_us: int, until_us: int) -> tuple[Waiting, Due]:
        """Return the births that still wait, and those whose refresh is before `until_us`."""
        refreshes = refresh_of(self.at, slide_us) * slide_us
        count = int(np.searchsorted(refreshes, until_us))
        first = self.log.end - len(self.at)
        rows = self.log.take(np.arange(first, first + count))
        rest = Waiting(self.log.drop_before(first + count), self.at[count:], self.exp[count:])
        return rest, Due(rows, refreshes[:count], self.exp[:count])

    def write(self) -> bytes:
        """Write the births out."""
        rows = self.log.take(np.arange(self.log.end - len(self.at), self.log.end))
        columns = [to_arrow(self.at), to_arrow(self.exp)]
        times = pa.RecordBatch.from_arrays(columns, schema=_TIMES)
        return join_parts([write_rows("Waiting", rows, {}), write_rows("Times", times, {})])

    @classmethod
    def read(cls, written: bytes, schema: pa.Schema) -> Waiting:
        """Read back what `write` wrote."""
        values, known = parts_of("results that wait", written, 2)
        rows, _ = read_rows("Waiting", values, schema)
        times, _ = read_rows("Times", known, _TIMES)
        at, exp = filled(times["at"], "births of rows"), filled(times["exp"], "ends of rows")
        require_lengths(rows.num_rows, (at, exp), "rows that wait")
        require_within(at, MIN_TS_US, MAX_TS_US + LONGEST_US, "births of rows")
        require_ascending(at, "births of rows")
        return cls.none(schema).joined_by(rows, at, exp)

    @property
    def size(self) -> Size:
        """The size of the state."""
        return Size(len(self.at), self.log.nbytes + self.at.nbytes + self.exp.nbytes)


@dataclass(frozen=True, slots=True)
class Due:
    """Births that a refresh reports, the instant of that refresh, and when they expire."""

    rows: pa.RecordBatch
    at: Int64s
    exp: Int64s

    def gone(self, contents: pa.RecordBatch, contents_at: Int64s, *, strict: bool) -> Bools:
        """Return which are gone at their refresh, whose contents are given.

        Where rows may go before they expire, the oldest of equal rows goes first: the births that
        are gone are those beyond the number of equal rows in the contents.
        """
        if not strict:
            return self.exp <= self.at
        rows = concat_batches([self.rows, contents], self.rows.schema)
        at = np.concatenate([self.at, contents_at])
        sign = np.ones(len(at), np.int8)
        sign[len(self.at) :] = -1
        return left_over(Signed(rows, at, np.zeros(len(at), np.int64), sign))[: len(self.at)]
