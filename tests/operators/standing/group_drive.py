"""Drives operators of standing queries with tuples that come and go, and replays the output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from eventide.operators.changes import NEVER, Changes
from eventide.operators.operator import Operator
from eventide.plan.standing.edges import Edge, UpdatePattern
from eventide.plan.standing.execution import Execution
from eventide.plan.tree import Plan
from eventide.schema import DataType
from tests.naive.standing.groups import Tuple, plain

EDGES = {
    "weakest": Edge(UpdatePattern.WEAKEST, 5, in_order=True),
    "weak": Edge(UpdatePattern.WEAK, None),
    "strict": Edge(UpdatePattern.STRICT, None),
}


@dataclass(frozen=True)
class Source:
    """Stands for the plan below an operator: only its columns matter."""

    row: dict[str, DataType]

    def plan(self) -> Plan:
        return self  # type: ignore[return-value]


@st.composite
def lives(draw: st.DrawFn, pattern: str, values: st.SearchStrategy[dict[str, Any]]) -> list[Tuple]:
    """Tuples in order of coming, of an edge with this pattern."""
    instants = sorted(draw(st.lists(st.integers(-4, 20), max_size=24)))
    tuples = []
    for number, at in enumerate(instants):
        exp = at + 5
        if pattern != "weakest":
            ends = st.integers(at + 1, at + 9)
            exp = draw(st.one_of(ends, st.just(NEVER)) if pattern == "strict" else ends)
        gone = None
        if pattern == "strict" and draw(st.booleans()):
            gone = draw(st.integers(at, at + 9))
            gone = gone if gone < exp else None
        tuples.append(Tuple(at, exp, gone, number * 7919, draw(values)))
    return tuples


def changes_of(tuples: Sequence[Tuple], execution: Execution, schema: pa.Schema) -> Changes:
    """Return what an edge says of tuples: at an instant, first what expires, then the rest."""
    told: list[tuple[tuple[int, int, int, int], Tuple, int]] = []
    for number, each in enumerate(tuples):
        told.append(((each.at, 1, number, 0), each, 1))
        if each.gone is not None:
            told.append(((each.gone, 1, max(number, len(tuples)), number), each, -1))
        elif execution == "negative" and each.exp != NEVER:
            told.append(((each.exp, 0, number, 0), each, -1))
    told.sort(key=lambda item: item[0])
    rows = pa.RecordBatch.from_pylist([each.values for _, each, _ in told], schema=schema)
    return Changes(
        rows,
        np.array([key[0] for key, _, _ in told], np.int64),
        np.array([each.exp for _, each, _ in told], np.int64),
        np.array([sign for _, _, sign in told], np.int8),
        np.array([each.id for _, each, _ in told], np.int64),
    )


def run(
    operator: Operator[Any],
    changes: Changes,
    cuts: Sequence[int],
    schema: pa.Schema,
    *,
    reload: bool,
) -> Changes:
    """Step through the changes, cut at some instants; dump and load between steps if asked."""
    state = operator.initial_state()
    parts, before = [], -(10**6)
    for until in [*sorted(set(cuts)), 10**6]:
        chosen = np.flatnonzero((changes.at >= before) & (changes.at < until))
        if reload:
            state = operator.load(operator.dump(state))
        state, out = operator.step(state, (changes.take(chosen),), until)
        assert out.rows.schema.equals(operator.output_schema)
        assert np.all((out.at >= before) & (out.at < until))
        assert np.all(np.diff(out.at) >= 0)
        parts.append(out)
        before = until
    return Changes.concat(parts, schema)


def answers(
    out: Changes, instants: Sequence[int], execution: Execution
) -> Iterator[Counter[tuple[Any, ...]]]:
    """Yield what lives at each instant, by what came out; expiries count if they are not told."""
    living: dict[int, tuple[int, tuple[Any, ...]]] = {}
    rows = [tuple(map(plain, row.values())) for row in out.rows.to_pylist()]
    told = execution == "negative"
    place = 0
    for instant in instants:
        while place < len(out) and out.at[place] <= instant:
            name, now = int(out.id[place]), int(out.at[place])
            living = {key: held for key, held in living.items() if told or held[0] > now}
            if out.sign[place] > 0:
                assert name not in living
                living[name] = (int(out.exp[place]), rows[place])
            else:
                assert living.pop(name)[1] == rows[place]
            place += 1
        living = {key: held for key, held in living.items() if told or held[0] > instant}
        yield Counter(row for _, row in living.values())


def same_changes(one: Changes, other: Changes) -> bool:
    """Whether two runs said the same, in the same order."""
    return bool(
        repr(one.rows.to_pylist()) == repr(other.rows.to_pylist())
        and one.at.tolist() == other.at.tolist()
        and one.sign.tolist() == other.sign.tolist()
        and one.id.tolist() == other.id.tolist()
    )
