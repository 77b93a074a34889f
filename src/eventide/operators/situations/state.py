"""The state of situations as bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import floats
from eventide.arrays import to_arrow
from eventide.kernels.compiled import Floats, Int64s
from eventide.kernels.situations.runs import NEVER
from eventide.operators.checking import LONGEST_US, filled, require, require_keys, require_within
from eventide.operators.situations.runs import (
    RUN_COLUMNS,
    Derivation,
    KeyStates,
    Runs,
    RunState,
)
from eventide.operators.situations.values import Parts
from eventide.operators.state import join_parts, parts_of, read_rows, write_rows
from eventide.schema import MAX_TS_US, MIN_TS_US

_RUNS = pa.schema([(name, pa.int64()) for name in RUN_COLUMNS])


def key_schema(derivation: Derivation) -> pa.Schema:
    """Return the columns of what is known of keys."""
    known = [(name, pa.int64()) for name in ("held", "waiting", "last_ts")]
    return pa.schema([*derivation.key_schema, *(pa.field(*each) for each in known)])


def write_runs(state: RunState, derivation: Derivation) -> bytes:
    """Write keys and runs out."""
    keys = state.keys
    columns = [*keys.keys, *map(to_arrow, keys.table)]
    known = pa.RecordBatch.from_arrays(columns, schema=key_schema(derivation))
    runs = pa.RecordBatch.from_arrays(list(map(to_arrow, state.runs.table)), schema=_RUNS)
    facts = {"position": state.position}
    facts |= {"least": state.least, "dropped_at": state.dropped_at}
    return join_parts([write_rows("Situations", known, facts), write_rows("Runs", runs, {})])


def read_runs(written: bytes, derivation: Derivation) -> RunState:
    """Read back what `write_runs` wrote."""
    parts = parts_of("situations", written, 2)
    known, facts = read_rows("Situations", parts[0], key_schema(derivation))
    runs, _ = read_rows("Runs", parts[1], _RUNS)
    *keys, held, waiting, last_ts = known.columns
    bits = [filled(column, "what is known of keys") for column in (held, waiting, last_ts)]
    states = KeyStates(tuple(keys), np.array(bits))
    found = Runs(np.array([filled(column, "runs") for column in runs.columns]))
    state = RunState(states, found, facts["position"], facts["least"], facts["dropped_at"])
    check_runs(state, derivation)
    return state


def check_runs(state: RunState, derivation: Derivation) -> None:
    """Refuse keys and runs that do not fit: a condition that holds for a key has an open run."""
    keys, runs, symbols = state.keys, state.runs, len(derivation.situations)
    count = len(keys)
    require_keys(keys.keys, count)
    require_within(keys.held, 0, 1 << symbols, "what is held of keys")
    require(not (keys.waiting & ~keys.held).any(), "a run is waited for that is not there")
    require_within(keys.last_ts, MIN_TS_US, MAX_TS_US + 1, "last times of keys")
    require_within(runs.key, 0, count, "keys of runs")
    require_within(runs.symbol, 0, symbols, "symbols of runs")
    for times in (runs.start_ts, runs.end_ts):
        require_within(times, MIN_TS_US - LONGEST_US, MAX_TS_US + LONGEST_US, "times of runs")
    require(0 <= state.position < 2**62, f"position {state.position}")
    for positions in (runs.start_pos, runs.end_pos, runs.visible):
        past = (positions >= 0) & (positions <= state.position)
        require((past | (positions == NEVER)).all(), "a run at no position")
    require((runs.start_pos < runs.end_pos).all(), "a run that ends before it begins")
    require(0 <= state.least < 2**62, f"{state.least} runs and keys were left")
    require(0 <= state.dropped_at <= state.position, f"dropped at {state.dropped_at}")
    is_open = runs.end_pos == NEVER
    held = np.zeros(count, np.int64)
    np.bitwise_or.at(held, runs.key[is_open], 1 << runs.symbol[is_open])
    places = runs.key[is_open] * symbols + runs.symbol[is_open]
    require(len(np.unique(places)) == len(places), "two open runs of a key and symbol")
    require((held == keys.held).all(), "open runs are not those that are held")
    order = np.argsort(runs.key * symbols + runs.symbol, kind="stable")
    same = np.diff(runs.key[order] * symbols + runs.symbol[order]) == 0
    later = runs.start_pos[order][1:] >= runs.end_pos[order][:-1]
    require((later | ~same).all(), "runs of a key and symbol that are not in order")


def write_parts(parts: Parts) -> bytes:
    """Write the parts of a symbol's runs out."""
    return join_parts([write_rows("Parts", parts.columns, {}), write_numbers(parts.run)])


def read_parts(written: bytes, schema: pa.Schema) -> Parts:
    """Read back what `write_parts` wrote."""
    columns, run = parts_of("situations", written, 2)
    parts = Parts(read_rows("Parts", columns, schema)[0], read_int64s(run))
    require(parts.columns.num_rows == len(parts.run) or not schema.names, "parts without a run")
    return parts


def check_parts(parts: Sequence[Parts], known: RunState) -> None:
    """Refuse parts of aggregates that belong to no run of their symbol."""
    for symbol, each in enumerate(parts):
        require_within(each.run, 0, len(known.runs), "runs of parts")
        require((known.runs.symbol[each.run] == symbol).all(), "a part of another symbol's run")


def write_numbers(numbers: Int64s | Floats) -> bytes:
    """Write an array of numbers out."""
    column = to_arrow(numbers)
    return write_rows("Numbers", pa.RecordBatch.from_arrays([column], ["number"]), {})


def read_int64s(written: bytes) -> Int64s:
    """Read whole numbers that `write_numbers` wrote."""
    rows, _ = read_rows("Numbers", written, pa.schema([("number", pa.int64())]))
    return filled(rows.column(0), "numbers").copy()


def read_floats(written: bytes) -> Floats:
    """Read floats that `write_numbers` wrote."""
    rows, _ = read_rows("Numbers", written, pa.schema([("number", pa.float64())]))
    require(rows.column(0).null_count == 0, "a null among numbers")
    return floats(rows.column(0)).copy()
