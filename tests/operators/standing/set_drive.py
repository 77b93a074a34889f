"""Drive an operator of a standing query through drawn tuples, and look at every instant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from eventide.operators.changes import Changes
from eventide.operators.operator import Operator
from eventide.plan.standing.edges import Edge, UpdatePattern
from eventide.plan.standing.execution import EXECUTIONS, Execution
from tests.naive.standing.sets import NEVER, Bag, Lived, living

SCHEMA = pa.schema([("k", pa.int64()), ("name", pa.string())])
executions = st.sampled_from(EXECUTIONS)
ENDS = 40
"""Nothing happens at this instant or later, but for what never ends."""


@st.composite
def lives(
    draw: st.DrawFn, *, strict: bool = True, payload: Sequence[str | None] = ("a", None)
) -> list[Lived]:
    """Draw tuples in order of time: windows of one length or of many, some gone before time."""
    length = draw(st.one_of(st.none(), st.integers(1, 12)))
    lifetimes = st.sampled_from([1, 1, 2, 3, 5, 8, 13, None]) if length is None else st.just(length)
    early = st.sampled_from([None, None, 0, 1, 2, 4]) if strict else st.none()
    row = st.tuples(st.sampled_from([1, 2, None]), st.sampled_from(payload))
    drawn = draw(
        st.lists(st.tuples(st.sampled_from([0, 0, 1, 2]), lifetimes, early, row), max_size=16)
    )
    tuples, at = [], 0
    for pause, lifetime, short, values in drawn:
        at = min(at + pause, 20)
        exp = NEVER if lifetime is None else at + lifetime
        gone = at + short if short is not None and at + short < exp else None
        tuples.append(Lived(values, at, exp, gone))
    return tuples


def edge_of(tuples: Sequence[Lived]) -> Edge:
    """Return what an operator is told of such an input; now and then less than there is to know."""
    lifetimes = [each.exp - each.at for each in tuples if each.exp != NEVER]
    known = max(lifetimes) if len(lifetimes) > 3 else None
    strict = any(each.gone is not None for each in tuples)
    return Edge(UpdatePattern.STRICT if strict else UpdatePattern.WEAK, known)


def changes_of(
    tuples: Sequence[Lived], execution: Execution, first_id: int = 1, schema: pa.Schema = SCHEMA
) -> Changes:
    """Return the changes that an input sends in an execution."""
    rows = []
    for number, each in enumerate(tuples):
        rows.append((each.at, 1, number, 1))
        if each.gone is not None:
            # Gone in its first instant, it goes behind what came then.
            rows.append((each.gone, 2 if each.gone == each.at else 1, number, -1))
        elif execution == "negative" and each.exp != NEVER:
            rows.append((each.exp, 0, number, -1))
    rows.sort(key=lambda row: row[:2])
    numbers = [row[2] for row in rows]
    values = [dict(zip(schema.names, tuples[number].values, strict=True)) for number in numbers]
    return Changes(
        pa.RecordBatch.from_pylist(values, schema=schema),
        np.array([row[0] for row in rows], np.int64),
        np.array([tuples[number].exp for number in numbers], np.int64),
        np.array([row[3] for row in rows], np.int8),
        np.array([first_id + number for number in numbers], np.int64),
    )


cuts = st.lists(st.tuples(st.integers(0, ENDS), st.booleans()), max_size=6)
"""Where steps end, and whether the state is dumped and loaded there."""


def run(
    operator: Operator[Any], inputs: Sequence[Changes], steps: Sequence[tuple[int, bool]]
) -> tuple[Any, Changes]:
    """Return the last state and all that came out, and check what every step promises."""
    state, parts, before = operator.initial_state(), [], -(2**63)
    for until, dumped in [*sorted(steps), (ENDS, False)]:
        if until <= before:
            continue
        given = []
        for changes in inputs:
            inside = (changes.at >= before) & (changes.at < until)
            given.append(changes.take(np.flatnonzero(inside)))
        state, out = operator.step(state, tuple(given), until)
        assert out.rows.schema.equals(operator.output_schema)
        assert out.rows.num_rows == len(out.at) == len(out.exp) == len(out.sign) == len(out.id)
        assert (np.diff(out.at) >= 0).all()
        assert (out.at < until).all()
        assert (out.at >= before).all()
        assert operator.size(state).tuples >= 0
        if dumped:
            state = operator.load(operator.dump(state))
        parts.append(out)
        before = until
    return state, Changes.concat(parts, operator.output_schema)


def answers(out: Changes, execution: Execution) -> list[Bag]:
    """Return the answer at every instant from what came out, and check the signs and ids."""
    alive: dict[int, tuple[int, tuple[Any, ...]]] = {}
    rows = [tuple(row.values()) for row in out.rows.to_pylist()]
    place, found = 0, []
    for instant in range(ENDS):
        lapsed = [name for name, (exp, _) in alive.items() if exp <= instant]
        if execution != "negative":
            for name in lapsed:
                del alive[name]
        while place < len(rows) and out.at[place] == instant:
            name, exp = int(out.id[place]), int(out.exp[place])
            if out.sign[place] > 0:
                assert name not in alive
                assert exp > instant
                alive[name] = (exp, rows[place])
            else:
                assert alive.pop(name) == (exp, rows[place])
            place += 1
        assert all(exp > instant for exp, _ in alive.values())
        found.append(Counter(values for _, values in alive.values()))
    return found


def expected(
    inputs: Sequence[Sequence[Lived]], answer: Callable[..., Bag], **asked: bool
) -> list[Bag]:
    """Return the answer at every instant, asked anew."""
    return [
        answer(*(living(tuples, instant) for tuples in inputs), **asked) for instant in range(ENDS)
    ]


def same_changes(one: Changes, other: Changes) -> bool:
    """Whether two runs told the same, in the same order but for that within an instant."""

    def told(changes: Changes) -> list[tuple[int, ...]]:
        columns = (changes.at, changes.sign, changes.id, changes.exp)
        return sorted(zip(*(column.tolist() for column in columns), strict=True))

    return told(one) == told(other)
