"""The state of situations as bytes."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import floats, int64s
from eventide.kernels.compiled import Floats, Int64s
from eventide.operators.situation_runs import Derivation, KeyStates, Runs, RunState
from eventide.operators.situation_values import Parts
from eventide.operators.state import join_parts, parts_of, read_rows, write_rows

_RUNS = pa.schema([(each.name, pa.int64()) for each in fields(Runs)])


def key_schema(derivation: Derivation) -> pa.Schema:
    """Return the columns of what is known of keys."""
    known = [(name, pa.int64()) for name in ("held", "waiting", "last_ts")]
    return pa.schema([*derivation.key_schema, *(pa.field(*each) for each in known)])


def write_runs(state: RunState, derivation: Derivation) -> bytes:
    """Write keys and runs out."""
    keys = state.keys
    columns = [*keys.keys, *map(pa.array, (keys.held, keys.waiting, keys.last_ts))]
    known = pa.RecordBatch.from_arrays(columns, schema=key_schema(derivation))
    runs = pa.RecordBatch.from_arrays(list(map(pa.array, state.runs.columns)), schema=_RUNS)
    facts = {"position": state.position}
    facts |= {"least": state.least, "dropped_at": state.dropped_at}
    return join_parts([write_rows("Situations", known, facts), write_rows("Runs", runs, {})])


def read_runs(written: bytes, derivation: Derivation) -> RunState:
    """Read back what `write_runs` wrote."""
    parts = parts_of("situations", written, 2)
    known, facts = read_rows("Situations", parts[0], key_schema(derivation))
    runs, _ = read_rows("Runs", parts[1], _RUNS)
    *keys, held, waiting, last_ts = known.columns
    states = KeyStates(tuple(keys), int64s(held), int64s(waiting), int64s(last_ts))
    columns = (np.array(int64s(column)) for column in runs.columns)
    return RunState(states, Runs(*columns), facts["position"], facts["least"], facts["dropped_at"])


def write_parts(parts: Parts) -> bytes:
    """Write the parts of a symbol's runs out."""
    return join_parts([write_rows("Parts", parts.columns, {}), write_numbers(parts.run)])


def read_parts(written: bytes, schema: pa.Schema) -> Parts:
    """Read back what `write_parts` wrote."""
    columns, run = parts_of("situations", written, 2)
    return Parts(read_rows("Parts", columns, schema)[0], read_int64s(run))


def write_numbers(numbers: Int64s | Floats) -> bytes:
    """Write an array of numbers out."""
    column = pa.array(numbers)
    return write_rows("Numbers", pa.RecordBatch.from_arrays([column], ["number"]), {})


def read_int64s(written: bytes) -> Int64s:
    """Read whole numbers that `write_numbers` wrote."""
    rows, _ = read_rows("Numbers", written, pa.schema([("number", pa.int64())]))
    return int64s(rows.column(0)).copy()


def read_floats(written: bytes) -> Floats:
    """Read floats that `write_numbers` wrote."""
    rows, _ = read_rows("Numbers", written, pa.schema([("number", pa.float64())]))
    return floats(rows.column(0)).copy()
