"""Windows of standing queries against the twin, in every execution, for any steps."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import StateError
from eventide.operators.changes import NEVER, Changes
from eventide.operators.standing.ids import joined_ids, leaf_ids
from eventide.operators.standing.windows.choice import WindowOperator, window_operator
from eventide.operators.standing.windows.times import expiries, rounded_up
from eventide.plan.nodes import Scan
from eventide.plan.standing.execution import EXECUTIONS, Execution
from eventide.plan.standing.nodes import ANSWER_EXP
from eventide.plan.standing.windows import (
    PeriodWindow,
    RangeWindow,
    RowsWindow,
    SessionWindow,
    SinceWindow,
    StreamWindow,
    Unbounded,
    Windowed,
)
from eventide.schema import Schema
from tests.naive.standing import stream_windows as naive

SCHEMA = Schema.of({"name": "string", "place": "int64", "deleted": "bool"})
SCAN = Scan("s", tuple(SCHEMA.fields()))
WINDOWS: tuple[StreamWindow, ...] = (
    Unbounded(),
    RangeWindow(1),
    RangeWindow(7),
    RangeWindow(7, jump_us=3),
    RangeWindow(2, jump_us=9),
    RangeWindow(2**62),
    PeriodWindow(5),
    SinceWindow(-3),
    SinceWindow(-3, until_us=9),
    RowsWindow(1),
    RowsWindow(3),
    RowsWindow(2, ("name",)),
    RowsWindow(1, ("place", "name")),
    RowsWindow(1, ("place",), deleted="deleted"),
    SessionWindow(4),
    SessionWindow(3, ("place",)),
    SessionWindow(6, ("name", "place")),
    SessionWindow(2**62, ("name",)),
)

Event = dict[str, Any]


def operator_of(
    window: StreamWindow,
    slide: int | None = None,
    execution: Execution = "aware",
    *,
    answer_exp: bool = False,
    internal: bool = False,
) -> WindowOperator:
    return window_operator(Windowed(SCAN, "w", window, internal), 3, slide, execution, answer_exp)


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    """Events in order of time, many at one instant."""
    steps = draw(st.lists(st.sampled_from([0, 0, 0, 1, 1, 2, 3, 5, 11]), max_size=25))
    times = np.cumsum([draw(st.integers(-30, 10)), *steps]).tolist()[1:]
    names, places = st.sampled_from(["a", "b", None]), st.sampled_from([0, 1, None])
    return [
        {
            "ts": ts,
            "_seq": seq,
            "name": draw(names),
            "place": draw(places),
            "deleted": draw(st.sampled_from([True, False, None])),
        }
        for seq, ts in enumerate(times)
    ]


def batch(events: list[Event]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(events, schema=SCHEMA.arrow)


def run(operator: WindowOperator, events: list[Event], cuts: list[int], *, reload: bool) -> Changes:
    """All that comes out when steps end at these instants; each keeps to its time."""
    state: Any = operator.initial_state()
    parts = []
    for since, until in pairwise([-(2**63), *cuts]):
        rows = batch([event for event in events if since <= event["ts"] < until])
        state, part = operator.step(state, (rows,), until)
        assert part.rows.num_rows == len(part)
        assert part.rows.schema == operator.output_schema
        assert len(part) == 0 or (since <= part.at.min() and part.at.max() < until)
        parts.append(part)
        if reload:
            state = operator.load(operator.dump(state))
    return Changes.concat(parts, operator.output_schema)


def listed(changes: Changes) -> list[naive.Told]:
    seqs = changes.rows.column("w._seq").to_pylist()
    columns = [changes.at, changes.sign, seqs, changes.exp]
    return list(zip(*(map(int, column) for column in columns), strict=True))


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
@settings(deadline=None, max_examples=40)
@given(streams(), st.data())
def test_a_window_is_like_its_twin(
    window: StreamWindow, events: list[Event], data: st.DataObject
) -> None:
    slide = data.draw(st.sampled_from([None, None, 1, 4, 10]))
    execution = data.draw(st.sampled_from(EXECUTIONS))
    cuts = sorted({*data.draw(st.lists(st.integers(-35, 100), max_size=8)), 150})
    operator = operator_of(window, slide, execution)
    changes = run(operator, events, cuts, reload=data.draw(st.booleans()))
    expected = naive.told(window, events, slide, execution)
    assert listed(changes) == [change for change in expected if change[0] < 150]
    ids = leaf_ids(changes.rows.column("w._seq").to_numpy(), 3)
    assert changes.id.tolist() == ids.tolist()
    given_rows = {event["_seq"]: event for event in events}
    for row in changes.rows.select(["w._seq", "w.name", "w.place"]).to_pylist():
        event = given_rows[row["w._seq"]]
        assert (row["w.name"], row["w.place"]) == (event["name"], event["place"])


def many_events(count: int) -> list[Event]:
    """Events of 200 places, a quarter of which are deletions."""
    draw = np.random.default_rng(7)
    ts = np.cumsum(draw.choice([0, 0, 1, 2, 20], count)) - 5000
    columns = [ts, draw.integers(0, 200, count), draw.integers(0, 4, count)]
    return [
        {"ts": at, "_seq": seq, "name": f"n{place % 50}", "place": place, "deleted": kept == 0}
        for seq, (at, place, kept) in enumerate(zip(*(c.tolist() for c in columns), strict=True))
    ]


@pytest.mark.parametrize("window", [window for window in WINDOWS if hasattr(window, "keys")])
def test_many_keys_are_like_the_twin(window: StreamWindow) -> None:
    events = many_events(500)
    last = events[-1]["ts"]
    changes = run(operator_of(window), events, [last - 300, last + 1], reload=True)
    expected = naive.told(window, events, None, "aware")
    assert listed(changes) == [change for change in expected if change[0] <= last]


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
@pytest.mark.parametrize("execution", EXECUTIONS)
def test_many_events_are_forgotten_on_the_way(window: StreamWindow, execution: Execution) -> None:
    """So many that arrays grow, keys come and go, and logs are compacted."""
    events = many_events(6000)
    last = events[-1]["ts"]
    steps = [*range(-5000, last + 30, 700), last + 50]
    by_step = {
        slide: run(operator_of(window, slide, execution), events, steps, reload=False)
        for slide in (None, 6)
    }
    for slide, changes in by_step.items():
        whole = run(operator_of(window, slide, execution), events, steps[-1:], reload=False)
        assert listed(changes) == listed(whole)
        assert whole.rows.equals(changes.rows)
        lives = dict.fromkeys(range(6000), 0)
        for _, sign, seq, _ in listed(changes):
            lives[seq] += sign
            assert lives[seq] in (0, 1)


def event(ts: int, seq: int, **values: Any) -> Event:  # noqa: ANN401
    return {"ts": ts, "_seq": seq, "name": None, "place": None, "deleted": None, **values}


def test_what_is_rounded_to_a_later_instant_waits() -> None:
    operator = operator_of(RowsWindow(1), slide=10)
    state: Any = operator.initial_state()
    state, none = operator.step(state, (batch([event(1, 0), event(3, 1)]),), 10)
    assert len(none) == 0
    state, first = operator.step(state, (batch([event(10, 2)]),), 11)
    assert listed(first) == [(10, 1, 2, NEVER)]
    state, none = operator.step(state, (batch([event(11, 3), event(11, 4)]),), 20)
    assert len(none) == 0
    assert operator.size(state).tuples == 3
    _, second = operator.step(state, (batch([]),), 21)
    assert listed(second) == [(20, -1, 2, NEVER), (20, 1, 4, NEVER)]


def test_time_windows_remember_only_what_negative_tuples_need() -> None:
    events = batch([event(ts, ts) for ts in range(100)])
    for execution, tuples in (("aware", 0), ("direct", 0), ("negative", 10)):
        operator = operator_of(RangeWindow(10), execution=execution)  # type: ignore[arg-type]
        state, _ = operator.step(operator.initial_state(), (events,), 100)  # type: ignore[arg-type]
        assert operator.size(state).tuples == tuples  # type: ignore[arg-type]


def test_a_session_ends_before_what_comes_at_its_end() -> None:
    changes = run(operator_of(SessionWindow(5)), [event(0, 0), event(5, 1)], [11], reload=True)
    assert listed(changes) == [
        (0, 1, 0, NEVER),
        (5, -1, 0, NEVER),
        (5, 1, 1, NEVER),
        (10, -1, 1, NEVER),
    ]


def test_what_is_not_there_cannot_be_deleted() -> None:
    window = RowsWindow(1, ("place",), deleted="deleted")
    events = [
        event(0, 0, deleted=True),
        event(1, 1, place=5),
        event(2, 2, deleted=True),
        event(3, 3, place=5, deleted=True),
        event(4, 4, place=5, deleted=True),
    ]
    changes = run(operator_of(window), events, [9], reload=True)
    assert listed(changes) == [(1, 1, 1, NEVER), (3, -1, 1, NEVER)]


@pytest.mark.parametrize("slide", [None, 4])
def test_shown_is_the_expiry_of_external_windows(slide: int | None) -> None:
    events = [event(1, 0), event(2, 1)]
    for window in (RangeWindow(5), RowsWindow(1), SessionWindow(5)):
        answer_exp = run(
            operator_of(window, slide, "negative", answer_exp=True), events, [99], reload=True
        )
        assert answer_exp.rows.column(ANSWER_EXP).to_pylist() == answer_exp.exp.tolist()
        inner = operator_of(window, slide, "negative", answer_exp=True, internal=True)
        hidden = run(inner, events, [99], reload=True)
        assert set(hidden.rows.column(ANSWER_EXP).to_pylist()) == {NEVER}
        assert listed(hidden) == listed(answer_exp)


def test_instants_beyond_time_are_never() -> None:
    ts = np.array([-(2**62), -1, 0, 1, 2**62])
    assert expiries(RangeWindow(2**63 - 1), ts).tolist()[2:] == [NEVER] * 3
    assert expiries(RangeWindow(2**63 - 1), ts).tolist()[:2] == [2**62 - 1, NEVER - 1]
    assert expiries(RangeWindow(2**80), ts).tolist() == expiries(RangeWindow(NEVER), ts).tolist()
    assert expiries(PeriodWindow(2**63 - 1), ts).tolist() == [0, 0, NEVER, NEVER, NEVER]
    assert expiries(RangeWindow(1, jump_us=2**62), ts).tolist()[1:] == [0, 2**62, 2**62, NEVER]
    assert rounded_up(ts, 2**63 - 1).tolist() == [0, 0, 0, NEVER, NEVER]
    assert rounded_up(np.array([NEVER]), 7).tolist() == [NEVER]


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
def test_a_run_may_go_on_to_the_end_of_time(window: StreamWindow) -> None:
    events = [event(ts, ts) for ts in (-4, 0, 3)]
    for execution in EXECUTIONS:
        changes = run(operator_of(window, 5, execution), events, [NEVER], reload=True)
        assert listed(changes) == naive.told(window, events, 5, execution)


@pytest.mark.parametrize("window", [RangeWindow(5), RowsWindow(2), SessionWindow(5)], ids=repr)
def test_a_state_is_of_one_window(window: StreamWindow) -> None:
    operator = operator_of(window, 5)
    dumped = operator.dump(operator.initial_state())  # type: ignore[arg-type]
    others: list[Any] = [operator_of(other, 5) for other in WINDOWS if other != window]
    others += [operator_of(window), operator_of(window, 5, "negative")]
    for other in others:
        with pytest.raises(StateError, match=r"written by another query|this is a state of"):
            other.load(dumped)
    with pytest.raises(StateError):
        operator.load(dumped[:40])
    with pytest.raises(StateError):
        operator.load(b"not a state")


def test_ids_differ_by_seq_leaf_and_order() -> None:
    seqs = np.arange(-500, 500)
    ids = [leaf_ids(seqs, number) for number in range(4)]
    assert len(np.unique(ids)) == 4000
    pairs = [joined_ids(ids[0], ids[1]), joined_ids(ids[1], ids[0]), joined_ids(ids[0])]
    assert len(np.unique(pairs)) == 3000
    assert leaf_ids(seqs[5:6], 2)[0] == ids[2][5]


def test_an_ended_session_that_waits_to_be_told_is_not_ended_again() -> None:
    window = SessionWindow(8, ("place",))
    events = [event(1, 0), event(19, 1, place=1), event(26, 2, place=2)]
    changes = run(operator_of(window, 10), events, [10, 99], reload=True)
    assert [(at, sign) for at, sign, _, _ in listed(changes)] == [
        (20, 1),
        (30, -1),
        (30, 1),
        (40, -1),
    ]
