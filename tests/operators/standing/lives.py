"""Tuples with lives as the changes of an operator's input, cut into steps; and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.operators.changes import Changes
from eventide.plan.standing.execution import Execution
from tests.naive.standing.window_join import Life


def changes_of(lives: Sequence[Life], schema: pa.Schema, execution: Execution) -> Changes:
    """Return the changes of tuples: every end is told in the negative execution."""
    told: list[tuple[int, int, int, Life, int]] = []
    for name, life in enumerate(lives):
        told.append((life.at, 1, name, life, 1))
        early = life.gone is not None and life.gone < life.exp
        if early or (execution == "negative" and life.end < 2**62):
            told.append((life.end, 0, name, life, -1))
    # Those that came earlier go before others come; one that comes and goes at once comes first.
    told.sort(key=lambda each: (each[0], each[1] if each[3].at < each[0] else 1, each[2], -each[4]))
    return Changes(
        pa.RecordBatch.from_pylist([life.row for *_, life, _ in told], schema=schema),
        np.array([at for at, *_ in told], np.int64),
        np.array([life.exp for *_, life, _ in told], np.int64),
        np.array([sign for *_, sign in told], np.int8),
        np.array([name * 7919 + 1 for _, _, name, _, _ in told], np.int64),
    )


def before(changes: Changes, start: int, until: int) -> Changes:
    """Return the changes at instants in [start, until)."""
    return changes.take(np.flatnonzero((changes.at >= start) & (changes.at < until)))


def bag_at(changes: Sequence[Changes], now: int) -> Counter[tuple[tuple[str, Any], ...]]:
    """Return what lives at an instant by what was told until then."""
    living: dict[int, list[tuple[dict[str, Any], int]]] = {}
    for part in changes:
        rows = part.rows.to_pylist()
        for row, at, exp, sign, name in zip(
            rows, part.at, part.exp, part.sign, part.id, strict=True
        ):
            if at > now:
                continue
            if sign > 0:
                living.setdefault(name, []).append((row, exp))
            else:
                assert (row, exp) in living[name], "what goes has come"
                living[name].remove((row, exp))
    found = [row for rows in living.values() for row, exp in rows if exp > now]
    return Counter(tuple(row.items()) for row in found)
