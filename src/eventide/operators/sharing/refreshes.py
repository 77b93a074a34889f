"""Reports of answers that are given as a whole at each refresh: which rows came, and which went.

refresh      0        10        20        30
answer       a b      a c       (none)    a          rows that are in the next answer stay
changes      +a +b    -b +c     -a -c     +a
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import int64s
from eventide.arrays import no_rows, to_arrow
from eventide.kernels.compiled import Bools, Int64s
from eventide.operators.checking import filled, require
from eventide.operators.columns import concat_batches
from eventide.operators.dividing import Wanted, rows_where
from eventide.operators.fingerprints import fingerprints
from eventide.operators.operator import Size
from eventide.operators.state import join_parts, read_rows, split_parts, write_rows
from eventide.operators.stateful import Stateful
from eventide.plan.sharing.refreshes import Refreshed
from eventide.plan.standing.nodes import AT, EXP, SIGN
from eventide.schema import row_schema

Ends = dict[int, pa.RecordBatch]
"""The rows of the last answers, by the instant at which the next answer replaces them."""


@dataclass(frozen=True)
class ReportRefreshes(Stateful[Ends]):
    """Compares each answer with the one before; equal rows are told apart by counting them."""

    node: Refreshed

    @cached_property
    def input_schema(self) -> pa.Schema:
        """The columns of answers."""
        return row_schema(self.node.source.row)

    @cached_property
    def output_schema(self) -> pa.Schema:
        """The columns of reports."""
        schema = row_schema(self.node.row)
        if SIGN not in schema.names:
            return schema
        return schema.set(schema.get_field_index(SIGN), pa.field(SIGN, pa.int8()))

    def initial_state(self) -> Ends:
        """Return the state before the first refresh."""
        return {}

    def step(
        self, state: Ends, inputs: tuple[pa.RecordBatch, ...], until_us: int
    ) -> tuple[Ends, pa.RecordBatch]:
        """Take the answers before `until_us`; return what is reported of them."""
        (rows,) = inputs
        if self.node.report == "rstream":
            order = np.argsort(int64s(rows.column(AT)), kind="stable")
            names = self.output_schema.names
            return state, rows.select(names).take(to_arrow(order))
        over = [end for end in state if end < until_us]
        if not over and not rows.num_rows:
            return state, no_rows(self.output_schema)
        known = [state[end] for end in over]
        both = concat_batches([*known, rows], self.input_schema)
        lives = Lives.of(
            both, [*self.node.answer, *([self.node.number] if self.node.number else [])]
        )
        before = sum(batch.num_rows for batch in known)
        born = np.flatnonzero(~lives.continue_one)
        died = np.flatnonzero(~lives.are_continued & (lives.exp < until_us))
        after = {end: kept for end, kept in state.items() if end >= until_us}
        lasting = np.flatnonzero(lives.exp >= until_us)
        for end in np.unique(lives.exp[lasting]).tolist():
            own = both.take(to_arrow(lasting[lives.exp[lasting] == end]))
            held = after.get(end)
            after[end] = own if held is None else concat_batches([held, own], self.input_schema)
        return after, self.reported(both, lives, born[born >= before], died)

    def reported(
        self, rows: pa.RecordBatch, lives: Lives, born: Int64s, died: Int64s
    ) -> pa.RecordBatch:
        """Return the rows that came and went as the report has them."""
        match self.node.report:
            case "istream":
                died = died[:0]
            case "dstream":
                born = born[:0]
        which = np.concatenate([died, born])
        at = np.concatenate([lives.exp[died], lives.at[born]])
        signs = np.repeat(np.array([-1, 1], np.int8), [len(died), len(born)])
        order = np.lexsort((signs, at))
        chosen = rows.take(to_arrow(which[order]))
        columns: list[pa.Array] = []
        for field in self.output_schema:
            if field.name == AT:
                columns.append(to_arrow(at[order]).view(field.type))
            elif field.name == EXP:
                columns.append(pa.nulls(len(which), field.type))
            elif field.name == SIGN:
                columns.append(pa.array(signs[order]))
            else:
                columns.append(chosen.column(field.name))
        return pa.RecordBatch.from_arrays(columns, schema=self.output_schema)

    def of_keys(self, state: Ends, wanted: Wanted) -> Ends:
        """Return the rows of some queries."""
        number = self.node.number
        found = {end: rows_where(rows, rows.column(number), wanted) for end, rows in state.items()}
        return {end: rows for end, rows in found.items() if rows.num_rows}

    def united(self, state: Ends, other: Ends) -> Ends:
        """Return the rows of the queries of both."""
        found = dict(state)
        for end, rows in other.items():
            held = found.get(end)
            found[end] = rows if held is None else concat_batches([held, rows], self.input_schema)
        return found

    def write(self, state: Ends) -> bytes:
        """Write the rows out."""
        name = type(self).__name__
        return join_parts([write_rows(name, rows, {}) for rows in state.values()])

    def read(self, written: bytes) -> Ends:
        """Read back what `write` wrote."""
        found: Ends = {}
        for part in split_parts(written) if written else ():
            rows, _ = read_rows(type(self).__name__, part, self.input_schema)
            at, ends = (filled(rows.column(name), "times of rows") for name in (AT, EXP))
            require(len(ends) and (ends == ends[0]).all(), "rows of several refreshes")
            require((at < ends).all(), "a row that goes before it comes")
            require(int(ends[0]) not in found, "a refresh that is there twice")
            found[int(ends[0])] = rows
        return found

    def size(self, state: Ends) -> Size:
        """Return the size of the state."""
        rows = sum(each.num_rows for each in state.values())
        return Size(rows, sum(each.nbytes for each in state.values()))


@dataclass(frozen=True, slots=True)
class Lives:
    """Rows of answers, and whether an equal one was in the answer before, and is in the next."""

    at: Int64s
    exp: Int64s
    continue_one: Bools
    are_continued: Bools

    @classmethod
    def of(cls, rows: pa.RecordBatch, names: list[str]) -> Lives:
        """Compare rows by some of their columns."""
        count = rows.num_rows
        at, exp = int64s(rows.column(AT)), int64s(rows.column(EXP))
        prints = fingerprints([rows.column(name) for name in names], count)
        first, second = prints.first, prints.second
        copy = copies(np.lexsort((at, second, first)), (first, second, at))
        order = np.lexsort((at, copy, second, first))
        same = np.ones(max(count - 1, 0), np.bool_)
        for column in (first, second, copy):
            same &= column[order[1:]] == column[order[:-1]]
        same &= exp[order[:-1]] == at[order[1:]]
        continues, continued = (np.zeros(count, np.bool_) for _ in range(2))
        continues[order[1:]], continued[order[:-1]] = same, same
        return cls(at, exp, continues, continued)


def copies(order: Int64s, columns: tuple[Int64s, ...]) -> Int64s:
    """Return for each row how many equal ones are before it in an order.

    >>> copies(np.array([0, 1, 2, 3]), (np.array([7, 7, 8, 8]),)).tolist()
    [0, 1, 0, 1]
    """
    count = len(order)
    begins = np.ones(count, np.bool_)
    begins[1:] = False
    for column in columns:
        begins[1:] |= column[order[1:]] != column[order[:-1]]
    places = np.arange(count)
    found = np.empty(count, np.int64)
    found[order] = places - np.maximum.accumulate(np.where(begins, places, 0))
    return found
