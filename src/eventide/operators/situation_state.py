"""The state of situations as bytes."""

from __future__ import annotations

from dataclasses import fields
from zlib import crc32

import numpy as np
import pyarrow as pa

from eventide.accumulators.columns import floats, int64s
from eventide.errors import StateError
from eventide.kernels.compiled import Floats, Int64s
from eventide.operators.situation_runs import Derivation, KeyStates, Runs, RunState
from eventide.operators.situation_values import Parts
from eventide.operators.state import dump_rows, join_parts, load_rows, split_parts
from eventide.plan.expressions import Named
from eventide.plan.nodes import Situations, TemporalPattern
from eventide.plan.render import render

_RUNS = pa.schema([(each.name, pa.int64()) for each in fields(Runs)])


def key_schema(derivation: Derivation) -> pa.Schema:
    """Return the columns of what is known of keys."""
    known = [(name, pa.int64()) for name in ("held", "waiting", "last_ts")]
    return pa.schema([*derivation.key_schema, *(pa.field(*each) for each in known)])


def mark_of(node: Situations | TemporalPattern) -> int:
    """Return a number for what a state means: another query has another one."""
    asked: list[object] = [*map(_text, node.keys), node.gap_us]
    asked += [
        (each.name, render(each.condition), each.least_us, each.most_us) for each in node.situations
    ]
    if isinstance(node, Situations):
        asked += [render(item.aggregate) for item in node.aggregates]
    else:
        asked += [(each.first, each.second, each.mask) for each in node.constraints]
        asked += [node.within_us, node.detection, node.confirm, node.limit]
        asked += map(_text, node.returns)
    return crc32(repr(asked).encode())


def _text(item: Named) -> str:
    return f"{render(item.expression)} AS {item.name}"


def dump_runs(state: RunState, derivation: Derivation, mark: int) -> bytes:
    """Write keys and runs out."""
    keys = state.keys
    columns = [*keys.keys, *map(pa.array, (keys.held, keys.waiting, keys.last_ts))]
    known = pa.RecordBatch.from_arrays(columns, schema=key_schema(derivation))
    runs = pa.RecordBatch.from_arrays(list(map(pa.array, state.runs.columns)), schema=_RUNS)
    facts = {"position": state.position, "mark": mark}
    facts |= {"least": state.least, "dropped_at": state.dropped_at}
    return join_parts([dump_rows("Situations", known, facts), dump_rows("Runs", runs, {})])


def load_runs(dumped: bytes, derivation: Derivation, mark: int) -> RunState:
    """Read back what `dump_runs` wrote."""
    parts = split_parts(dumped)
    if len(parts) != 2:
        message = "the state of situations is damaged"
        raise StateError(message)
    known, facts = load_rows("Situations", parts[0], key_schema(derivation))
    if facts["mark"] != mark:
        message = "the state is of another query"
        raise StateError(message, hint="load a state with the query that wrote it")
    runs, _ = load_rows("Runs", parts[1], _RUNS)
    *keys, held, waiting, last_ts = known.columns
    states = KeyStates(tuple(keys), int64s(held), int64s(waiting), int64s(last_ts))
    columns = (np.array(int64s(column)) for column in runs.columns)
    return RunState(states, Runs(*columns), facts["position"], facts["least"], facts["dropped_at"])


def dump_parts(parts: Parts) -> bytes:
    """Write the parts of a symbol's runs out."""
    return join_parts([dump_rows("Parts", parts.columns, {}), dump_numbers(parts.run)])


def load_parts(dumped: bytes, schema: pa.Schema) -> Parts:
    """Read back what `dump_parts` wrote."""
    columns, run = split_parts(dumped)
    return Parts(load_rows("Parts", columns, schema)[0], load_int64s(run))


def dump_numbers(numbers: Int64s | Floats) -> bytes:
    """Write an array of numbers out."""
    column = pa.array(numbers)
    return dump_rows("Numbers", pa.RecordBatch.from_arrays([column], ["number"]), {})


def load_int64s(dumped: bytes) -> Int64s:
    """Read whole numbers that `dump_numbers` wrote."""
    rows, _ = load_rows("Numbers", dumped, pa.schema([("number", pa.int64())]))
    return int64s(rows.column(0)).copy()


def load_floats(dumped: bytes) -> Floats:
    """Read floats that `dump_numbers` wrote."""
    rows, _ = load_rows("Numbers", dumped, pa.schema([("number", pa.float64())]))
    return floats(rows.column(0)).copy()
