"""Windows of many queries in one operator: each answers as if it were alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eventide.engines.live.sharing.windows  # noqa: F401 - so that trees have the operator
from eventide.engines.build import build_tree
from eventide.errors import PlanError, StateError
from eventide.instants import END_OF_TIME_US
from eventide.operators.sharing import slices as slices_module
from eventide.operators.sharing import windows as windows_module
from eventide.operators.sharing.windows import AggregateManyWindows, ManyWindowsState
from eventide.operators.tree import OperatorTree
from eventide.plan.bind import bind, bind_condition
from eventide.plan.expressions import (
    Aggregate,
    Call,
    Column,
    Expression,
    Literal,
    Named,
    NamedAggregate,
)
from eventide.plan.nodes import Filter, Scan
from eventide.plan.sharing.query_windows import AskedWindow, QueryWindows
from eventide.plan.sharing.windows import ManyWindows
from eventide.plan.windows.nodes import Window, WindowAggregate
from eventide.schema import BOOL, INT64, STRING
from tests.naive.sharing import windows as naive
from tests.operators.windows.test_windows import (
    ALL_AGGREGATES,
    SCHEMA,
    events,
    fits,
    named_aggregate,
    plain_rows,
    same_value,
    to_batch,
)

DEFINED = tuple(named_aggregate(*each) for each in ALL_AGGREGATES)
OTHERS = (
    Aggregate("sum", Column("speed"), distinct=True),
    Aggregate("median", Column("speed")),
    Aggregate("quantile_disc", Column("car"), parameter=0.4),
    Aggregate("mode", Column("gear")),
    Aggregate("top_k", Column("gear"), parameter=2),
    Aggregate("count", Column("gear"), distinct=True),
    Aggregate("string_agg", Column("car"), parameter="-"),
    Aggregate("array_agg", Column("speed")),
    Aggregate("arg_min", Column("car"), second=Column("speed")),
    Aggregate("arg_max", Column("gear"), second=Column("toll")),
    Aggregate("corr", Column("speed"), second=Column("gear")),
    Aggregate("covar_pop", Column("speed"), second=Column("gear")),
    Aggregate("var_pop", Column("speed")),
    Aggregate("last", Column("car"), condition=Column("lit")),
    Aggregate("array_agg", Column("gear"), condition=Column("lit")),
    Aggregate("bool_and", Column("lit")),
)


def compares(function: str, name: str, value: float | str) -> Call:
    kind = STRING if isinstance(value, str) else INT64
    return Call(function, (Column(name), Literal(value, kind)), BOOL)


IS_A, IS_B, WIDE = compares("=", "car", "a"), compares("=", "car", "b"), compares(">", "lane", 1)
COUNTED: dict[str, tuple[Expression | None, naive.Counts]] = {
    "": (None, lambda _: True),
    "a": (IS_A, lambda event: event["car"] == "a"),
    "wide": (WIDE, lambda event: event["lane"] == 2),
    "a or b": (Call("or", (IS_A, IS_B), BOOL), lambda event: event["car"] in ("a", "b")),
    "b or wide": (
        Call("or", (IS_B, WIDE), BOOL),
        lambda event: event["car"] == "b" or event["lane"] == 2,
    ),
}
"""What queries count: a bound condition, and the same of the rows of the twin."""
EVERY = (*DEFINED, *(NamedAggregate(f"other{i}", each) for i, each in enumerate(OTHERS)))
PLAIN = DEFINED[:10]


def shared_plan(keys: tuple[str, ...], aggregates: tuple[NamedAggregate, ...]) -> ManyWindows:
    named = tuple(Named(name, Column(name)) for name in keys)
    plan = bind(ManyWindows(Scan("cars"), named, aggregates, QueryWindows()), {"cars": SCHEMA})
    assert isinstance(plan, ManyWindows)
    return plan


@dataclass
class Alone:
    """A query that runs alone: it is given the events that it counts."""

    tree: OperatorTree
    since: int
    state: Any = field(init=False)

    def __post_init__(self) -> None:
        self.state = self.tree.initial_state()

    def step(self, rows: list[dict[str, Any]], until_us: int) -> pa.RecordBatch:
        batch = to_batch([row for row in rows if row["_seq"] >= self.since])
        self.state, found = self.tree.step(self.state, (batch,), until_us)
        return found


@dataclass
class Both:
    """Many windows in one operator, and each query alone beside it."""

    keys: tuple[str, ...]
    aggregates: tuple[NamedAggregate, ...]
    alone: dict[int, Alone] = field(default_factory=dict)
    twin: naive.ManyWindows = field(init=False)

    def __post_init__(self) -> None:
        self.plan = shared_plan(self.keys, self.aggregates)
        self.tree = build_tree(self.plan)
        self.state = self.tree.initial_state()
        self.twin = naive.ManyWindows(self.keys, ALL_AGGREGATES)

    def add(self, number: int, window: Window, since: int, counts: str = "") -> None:
        condition, holds = COUNTED[counts]
        if condition is None:
            self.plan.table.join([AskedWindow(number, window)], since)
        else:
            bound = bind_condition(condition, dict(SCHEMA.fields()))
            self.plan.table.join([AskedWindow(number, window, bound)], since)
        self.twin.add(number, window.size_us, window.slide_us, since, holds)
        named = tuple(Named(name, Column(name)) for name in self.keys)
        events = Scan("cars") if condition is None else Filter(Scan("cars"), condition)
        node = WindowAggregate(events, named, window, self.aggregates)
        self.alone[number] = Alone(build_tree(bind(node, {"cars": SCHEMA})), since)

    def drop(self, number: int) -> None:
        self.plan.table.drop(number)
        self.twin.drop(number)
        del self.alone[number]

    def step(self, rows: list[dict[str, Any]], until_us: int) -> None:
        self.state, found = self.tree.step(self.state, (to_batch(rows),), until_us)
        shared = plain_rows(found)
        names = [name for name in found.schema.names if name != "$query"]
        for number, query in self.alone.items():
            own = [{n: row[n] for n in names} for row in shared if row["$query"] == number]
            expected = [
                {n: row[n] for n in names} for row in plain_rows(query.step(rows, until_us))
            ]
            # Written out, so that every bit counts, and a NaN is equal to itself.
            assert sorted(map(repr, own)) == sorted(map(repr, expected))
        defined = self.twin.take(rows, until_us)
        same_rows(shared, defined, self.keys)

    def reload(self) -> None:
        self.state = self.tree.load(self.tree.dump(self.state))


def same_rows(
    found: list[dict[str, Any]], defined: list[dict[str, Any]], keys: tuple[str, ...]
) -> None:
    """Compare with the twin, which does not know all aggregates."""
    known = ("$query", "window_start", "window_end", *keys)

    def rank(row: dict[str, Any]) -> str:
        return repr([row[name] for name in known])

    assert len(found) == len(defined)
    for one, other in zip(sorted(found, key=rank), sorted(defined, key=rank), strict=True):
        for name in one.keys() & other.keys():
            assert same_value(name, one[name], other[name]), (name, one, other)


sizes = st.integers(1, 25)
windows = st.builds(Window, sizes, sizes) | sizes.map(lambda size: Window(size, size))
queries = st.tuples(windows, st.sampled_from([*COUNTED]))
actions = st.lists(
    st.one_of(
        st.tuples(st.just("add"), queries),
        st.tuples(st.just("drop"), st.integers(0, 5)),
        st.tuples(st.just("take"), st.integers(0, 12)),
        st.tuples(st.just("reload"), st.none()),
    ),
    max_size=14,
)


@settings(deadline=None, max_examples=120)
@given(
    events.filter(fits),
    st.lists(st.integers(0, 8), min_size=25, max_size=25),
    st.lists(queries, max_size=4),
    actions,
    st.sampled_from([(), ("car",), ("car", "lane")]),
    st.sampled_from([EVERY, PLAIN]),
)
def test_each_query_answers_as_if_alone(
    rows: list[dict[str, Any]],
    delays: list[int],
    first: list[tuple[Window, str]],
    actions: list[tuple[str, Any]],
    keys: tuple[str, ...],
    aggregates: tuple[NamedAggregate, ...],
) -> None:
    """Events come with delays, so that those that a query counts mix with others."""
    arrivals = sorted(rows, key=lambda row: row["ts"] + delays[row["_seq"]])
    arrivals = [{**row, "_seq": seq} for seq, row in enumerate(arrivals)]
    both = Both(keys, aggregates)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows_module, "FEWEST", 3)
        patch.setattr(windows_module, "ROWS_WAIT", 4)
        patch.setattr(slices_module, "MOST_WAITING", 3)
        patch.setattr(slices_module, "FEW_BATCHES", 2)
        patch.setattr(slices_module, "BLOCK_ROWS", 3)
        patch.setattr(slices_module, "ROWS_AT_ONCE", 5)
        run(both, arrivals, first, actions)


def run(
    both: Both,
    arrivals: list[dict[str, Any]],
    first: list[tuple[Window, str]],
    actions: list[tuple[str, Any]],
) -> None:
    """Let queries come and go, and events arrive, of which those before a clock go on."""
    number, arrived, waiting = 0, 0, list[dict[str, Any]]()
    for window, counts in first:
        both.add(number, window, 0, counts)
        number += 1
    for action, value in [*actions, ("take", len(arrivals))]:
        if action == "add":
            both.add(number, value[0], arrived, value[1])
            number += 1
        elif action == "drop":
            present = list(both.alone)
            if value < len(present):
                both.drop(present[value])
        elif action == "reload":
            both.reload()
        else:
            waiting += arrivals[arrived : arrived + value]
            arrived += value
            to_come = arrivals[arrived:]
            clock = min((row["ts"] for row in to_come), default=END_OF_TIME_US)
            gone = [row for row in waiting if row["ts"] < clock]
            waiting = [row for row in waiting if row["ts"] >= clock]
            gone.sort(key=lambda row: (row["ts"], row["_seq"]))
            both.step(gone, clock)


def event(ts: int, seq: int, speed: float = 1.0) -> dict[str, Any]:
    others = dict.fromkeys(("gear", "toll", "seen", "lit", "tag"))
    return {"_seq": seq, "car": "a", "lane": 1, "ts": ts, "speed": speed, **others}


def operator_of(both: Both) -> AggregateManyWindows:
    operator = both.tree.placed[0].operator
    assert isinstance(operator, AggregateManyWindows)
    return operator


def slices_of(both: Both) -> int:
    state: ManyWindowsState = both.state[0]
    return state.slices.count


def test_a_query_that_leaves_frees_what_only_it_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows_module, "FEWEST", 8)
    both = Both(("car",), PLAIN)
    both.add(1, Window(1, 1), 0)
    both.add(2, Window(10_000, 10_000), 0)
    both.add(3, Window(100, 100), 0)
    both.step([event(ts, ts) for ts in range(900)], 900)
    assert slices_of(both) < 300
    both.drop(1)
    both.step([event(ts, ts) for ts in range(900, 1100)], 1100)
    assert slices_of(both) < 20
    both.drop(2)
    both.drop(3)
    both.step([], 1101)
    assert operator_of(both).size(both.state[0]).tuples == 0


def test_old_slices_are_as_long_as_open_windows_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows_module, "FEWEST", 8)
    both = Both((), PLAIN)
    both.add(1, Window(1, 1), 0)
    both.add(2, Window(100_000, 100_000), 0)
    for start in range(0, 2000, 50):
        both.step([event(ts, ts) for ts in range(start, start + 50)], start + 50)
        assert slices_of(both) <= 64


def test_keys_that_are_gone_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows_module, "FEWEST", 8)
    both = Both(("lane",), PLAIN)
    both.add(1, Window(10, 10), 0)
    for start in range(0, 2000, 20):
        both.step([{**event(ts, ts), "lane": ts} for ts in range(start, start + 20)], start + 20)
    state: ManyWindowsState = both.state[0]
    assert state.known.count < 500


def test_a_state_belongs_to_its_table() -> None:
    both = Both((), PLAIN)
    both.add(1, Window(10, 10), 0)
    both.step([event(3, 0)], 4)
    dumped = both.tree.dump(both.state)
    both.plan.table.add(AskedWindow(2, Window(10, 10)), 7)
    with pytest.raises(StateError, match="other windows"):
        both.tree.load(dumped)


def test_a_query_counts_no_events_that_have_gone_by() -> None:
    both = Both((), PLAIN)
    both.add(1, Window(10, 10), 0)
    both.step([event(3, 4)], 4)
    both.add(2, Window(10, 10), 4)
    with pytest.raises(PlanError, match="has gone by"):
        both.step([], 5)
