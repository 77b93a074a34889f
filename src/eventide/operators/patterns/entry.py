"""Find a row at which a slice may begin to look for matches: one that the search surely reaches.

After a match the search goes on behind it, so the matches depend on everything before. But WITHIN
limits the rows at which the search can stand after some time. Searches that began at each of these
rows soon meet in one row, and from there on they are the same. If the end of a match does not
determine where the search goes on, the entry is a row that no match from an earlier row crosses.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import int64s
from eventide.errors import EvaluationError
from eventide.instants import END_OF_TIME_US, START_OF_TIME_US
from eventide.kernels.compiled import Int64s, frozen
from eventide.kernels.patterns.entry import last_meeting
from eventide.operators.key_layer import NEVER
from eventide.operators.key_parts import KeyColumns
from eventide.operators.patterns.match import MatchRows
from eventide.operators.patterns.one_row import OneRow
from eventide.operators.patterns.state import MatchState
from eventide.plan.expressions import At, MatchNumber
from eventide.plan.patterns.tree import Skip
from eventide.schema import TS

NO_CODES = frozen(np.empty(0, np.int32))
_LAST = At(MatchNumber(), None, "last", final=True)


def state_at(rows: pa.RecordBatch, entry: int) -> MatchState:
    """Return the state in which an operator begins at a row, after the rows before it."""
    return MatchState(
        rows,
        (),
        np.array([[rows.num_rows], [entry], [0], [0], [False], [NEVER]], np.int64),
        np.zeros(rows.num_rows, np.bool_),
    )


def entry_of(
    operator: MatchRows, rows: pa.RecordBatch, read_from_us: int, owned_from_us: int
) -> int | None:
    """Return a row before those owned from which on the matches are certain, or None.

    `rows` are all rows from `read_from_us` to as far as a match of the first rows owned can reach.
    """
    ts = int64s(rows.column(TS))
    first_owned = int(np.searchsorted(ts, owned_from_us))
    # Conditions on the first rows would read rows that are not here.
    first_sure = operator.reach_back
    if first_sure > first_owned:
        return None
    node = operator.node
    if node.skip.to == "next row" or node.strategy == "skip_till_any":
        if node.output != "with unmatched":
            return first_owned
        # Rows owned may be part of matches that start earlier.
        assert node.within_us is not None
        reaching = int(np.searchsorted(ts, owned_from_us - node.within_us))
        return reaching if reaching >= first_sure else None
    assert node.within_us is not None
    last_unsure_us = max(read_from_us - 1, int(ts[first_sure - 1]) if first_sure else -(2**62))
    first = int(np.searchsorted(ts, last_unsure_us + node.within_us, side="right"))
    if first > first_owned:
        return None
    last_us = owned_from_us + node.within_us
    seen = rows.slice(0, int(np.searchsorted(ts, last_us, side="right")))
    try:
        ends = ends_of(operator, seen, first_sure, first_owned)
    except EvaluationError:
        # Rows at which the search would never start are tried too; their errors are ignored.
        return None
    if node.skip.to == "past last row":
        # After the rows before, the search stands at one of the rows that this can reach.
        following = np.maximum(ends, np.arange(first_sure, first_owned) + 1) - first_sure
        begun, last = first - first_sure, first_owned - first_sure
        # A match may reach beyond the rows owned; then it does not matter where it ends.
        met = last_meeting(frozen(np.minimum(following, last + 1)), begun, last)
        return first_sure + met if met >= 0 else None
    reached = np.concatenate([[0], np.maximum.accumulate(ends)])
    places = np.arange(first_sure, first_owned + 1)
    free = places[(reached <= places) & (places >= first)]
    return int(free[-1]) if len(free) else None


def ends_of(operator: MatchRows, rows: pa.RecordBatch, first: int, last: int) -> Int64s:
    """Return where the match of each start row in [first, last) ends; without one, the row."""
    node = replace(operator.node, skip=Skip("next row"), timeout_rows=False, output="one row")
    every = MatchRows(node, operator.output_schema)
    ends = np.arange(first, last)
    order = every.row_order
    work = order.together(
        state_at(rows, first), rows.slice(rows.num_rows), NO_CODES, KeyColumns(()), 1
    )
    for matches, _ in every.find(
        work.by_key,
        order.partitions(work.by_key, work.state, ended=True),
        every.rules(START_OF_TIME_US, END_OF_TIME_US),
    ):
        last_rows, _ = OneRow(every.naming, work.by_key, matches).found(_LAST)
        counted = (matches.start < last) & (last_rows >= 0)
        ends[matches.start[counted] - first] = last_rows[counted] + 1
    return ends
