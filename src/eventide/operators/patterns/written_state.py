"""The state of a row pattern as bytes: the rows that are kept, and where each key stands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.kernels.patterns.remainder import BEGIN, NEVER, NUMBER, SEEN, WHOLE
from eventide.operators.checking import (
    filled,
    filled_bools,
    require,
    require_instant,
    require_keys,
    require_within,
)
from eventide.operators.key_layers import KeyLayers
from eventide.operators.patterns.state import MatchState
from eventide.operators.state import join_parts, parts_of, read_rows, write_rows
from eventide.plan.events.time_order import follows_time
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.schema import MAX_TS_US, MIN_TS_US, TS

NAME = "MatchRows"
KEYS_NAME = "MatchRows keys"
MATCHED = "row of a match"


@dataclass(frozen=True)
class WrittenForm:
    """What a written state has: columns of rows and of keys, and how far conditions look ahead."""

    node: MatchRecognize
    source_schema: pa.Schema
    shows_unmatched: bool
    reach_ahead: int
    remembers_keys: bool

    @property
    def fact_schema(self) -> pa.Schema:
        """The columns of the state of keys, in a dumped state."""
        keys = [(f"key {n}", key.type.arrow) for n, key in enumerate(self.node.keys)]
        facts = [(name, pa.int64()) for name in ("kept", "begin", "seen", "numbers")]
        return pa.schema([*keys, *facts, ("whole", pa.bool_())])


def write_state(form: WrittenForm, layers: KeyLayers[MatchState]) -> bytes:
    """Write a state out."""
    state = layers.whole
    if not (form.remembers_keys or state.kept.all()):
        state = state.take(np.flatnonzero(state.kept))
    marks = state.matched if form.shows_unmatched else np.zeros(state.rows.num_rows, np.bool_)
    # Last, and read back from there, whatever the others are called.
    rows = state.rows.append_column(MATCHED, to_arrow(marks))
    numbers, whole = state.facts[:WHOLE], state.facts[WHOLE] != 0
    arrays = [*state.keys, *map(to_arrow, (*numbers, whole))]
    keys = pa.RecordBatch.from_arrays(arrays, schema=form.fact_schema)
    clock = {"watermark_us": layers.watermark_us}
    return join_parts([write_rows(NAME, rows, clock), write_rows(KEYS_NAME, keys, {})])


def read_state(form: WrittenForm, written: bytes) -> MatchState:
    """Read back what `write_state` wrote; when keys are due is not in it."""
    rows_part, keys_part = parts_of(NAME, written, 2)
    row_schema = form.source_schema.append(pa.field(MATCHED, pa.bool_()))
    rows, clock = read_rows(NAME, rows_part, row_schema)
    facts, _ = read_rows(KEYS_NAME, keys_part, form.fact_schema)
    marks = filled_bools(rows.columns[-1], "marks of rows")
    own = pa.RecordBatch.from_arrays(rows.columns[:-1], schema=form.source_schema)
    numbers = ("kept", "begin", "seen", "numbers")
    known = [filled(facts.column(each), each) for each in numbers]
    keys, watermark_us = tuple(facts.columns[: len(form.node.keys)]), clock["watermark_us"]
    whole = filled_bools(facts.column("whole"), "marks of keys").astype(np.int64)
    due = np.full(len(whole), NEVER, np.int64)
    held = MatchState(own, keys, np.stack([*known, whole, due]), marks, watermark_us)
    check_state(form, held)
    return held


def check_state(form: WrittenForm, state: MatchState) -> None:
    """Refuse an inconsistent state: a matcher follows its rows and counts without checks."""
    kept, rows = state.kept, state.rows.num_rows
    begin, seen, numbers = state.facts[BEGIN], state.facts[SEEN], state.facts[NUMBER]
    require_keys(state.keys, len(kept))
    require_within(kept, 0, rows + 1, "rows of keys")
    require(int(kept.sum()) == rows, f"{rows} rows are not those of all keys")
    require_within(begin, 0, rows + 1, "first undecided rows")
    require((begin <= kept).all(), "an undecided row behind the last one of its key")
    require_within(seen, -form.reach_ahead, rows + 1, "rows that were tested")
    require((seen <= kept).all(), "a row that was tested behind the last one of its key")
    require_within(numbers, 0, 2**62, "numbers of matches")
    require_instant(state.watermark_us, "the watermark")
    ts = filled(state.rows.column(TS), "times of rows")
    require_within(ts, MIN_TS_US, MAX_TS_US + 1, "times of rows")
    if follows_time(form.node.source):
        firsts = np.cumsum(kept)[:-1]
        rises = np.diff(ts, prepend=ts[:1]) >= 0
        rises[firsts[firsts < rows]] = True
        require(rises.all(), "times of rows do not ascend")
