"""A node that is defined here goes through all passes and runs, without a line in the package.

It says of itself what passes need to know, and its operator is registered for its type.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.engines.build import Building, operators_of
from eventide.engines.history import replay
from eventide.engines.history.answer import run_history
from eventide.engines.live.engine import LiveEngine
from eventide.engines.partitioning import leaf_keys
from eventide.errors import BindError, PlanError
from eventide.operators.expressions.evaluate import evaluate
from eventide.operators.operator import Operator, Size
from eventide.operators.stateful import Stateful
from eventide.plan.bind import bind
from eventide.plan.check import check_plan, require
from eventide.plan.events.derived import as_events
from eventide.plan.explain import explain
from eventide.plan.expressions import Aggregate, Call, Column, Expression, Named, NamedAggregate
from eventide.plan.expressions import Literal as Constant
from eventide.plan.nodes import DerivedStream, Filter, Project, Scan
from eventide.plan.passes import optimise
from eventide.plan.standing.edges import UpdatePattern
from eventide.plan.standing.joins import WindowJoin
from eventide.plan.standing.update_patterns import pattern_of
from eventide.plan.standing.windows import RangeWindow, Unbounded, Windowed
from eventide.plan.tree import ChangeExpression, Keys, OverOne, Plan, Timed, changed_values
from eventide.plan.windows.nodes import Window, WindowAggregate
from eventide.schema import FLOAT64, INT64, STRING, TIMESTAMP, Schema, row_schema
from eventide.store import TableSource
from tests.engines.engines import plain, to_table
from tests.engines.live.arriving import lived
from tests.naive.windows import Event

SCHEMA = Schema.of({"car": "string", "speed": "float64", "lane": "int64"})
CATALOG = {"cars": SCHEMA}
CAR, SPEED = Column("car", STRING), Column("speed", FLOAT64)


@dataclass(frozen=True, slots=True)
class EveryNth(OverOne):
    """One of `count` events of each key: the first, and then each that many further."""

    reads_time = True

    source: Plan
    keys: tuple[Expression, ...]
    count: int

    def with_expressions(self, change: ChangeExpression) -> EveryNth:
        return replace(self, keys=changed_values(self.keys, change))

    @property
    def state_keys(self) -> Keys:
        return self.keys

    def keys_below(self, key: Expression) -> Keys | None:
        return (key,) if key in self.keys else None

    def timed(self) -> Timed:
        below = self.source.timed()
        return replace(below, plan=replace(self, source=below.plan))

    @property
    def line(self) -> str:
        return f"EveryNth one of {self.count}"

    def check(self) -> None:
        require(self.count > 0, "one of none")


@dataclass(frozen=True)
class TakeEveryNth(Stateful[dict[str, int]]):
    """Counts the events of each key."""

    node: EveryNth
    output_schema: pa.Schema

    def initial_state(self) -> dict[str, int]:
        return {}

    def step(
        self,
        state: dict[str, int],
        inputs: tuple[pa.RecordBatch, ...],
        until_us: int,  # noqa: ARG002 - the contract of an operator
    ) -> tuple[dict[str, int], pa.RecordBatch]:
        (rows,) = inputs
        counts, taken = dict(state), []
        keys = [evaluate(key, rows).to_pylist() for key in self.node.keys]
        for key in map(json.dumps, zip(*keys, strict=True)):
            counts[key] = counts.get(key, -1) + 1
            taken.append(counts[key] % self.node.count == 0)
        return counts, rows.filter(pa.array(taken, pa.bool_())).cast(self.output_schema)

    def write(self, state: dict[str, int]) -> bytes:
        return json.dumps(state).encode()

    def read(self, written: bytes) -> dict[str, int]:
        found: dict[str, int] = json.loads(written)
        return found

    def size(self, state: dict[str, int]) -> Size:
        return Size(len(state), len(self.write(state)))


@operators_of.register
def _(node: EveryNth, how: Building) -> tuple[Operator[Any], ...]:  # noqa: ARG001
    return (TakeEveryNth(node, row_schema(node.row)),)


def third(source: Plan, *keys: Expression) -> EveryNth:
    return EveryNth(source, keys or (Column("car"),), 3)


def bound(plan: Plan) -> Plan:
    return bind(plan, CATALOG)


def fast(source: Plan) -> Filter:
    limit = Call("*", (Constant(3, INT64), Constant(10, INT64)))
    return Filter(source, Call(">", (Column("speed"), limit)))


def test_names_and_types_are_found() -> None:
    plan = bound(third(Scan("CARS"), Column("CAR"), Call("+", (Column("lane"), Column("Speed")))))
    assert isinstance(plan, EveryNth)
    car, both = plan.keys
    assert car == CAR
    assert both.type == FLOAT64
    assert list(plan.row) == ["ts", "_seq", "car", "speed", "lane"]
    with pytest.raises(BindError, match="no column 'cr'"):
        bound(third(Scan("cars"), Column("cr")))


def test_its_own_rule_and_those_of_all_nodes_are_checked() -> None:
    plan = bound(third(Scan("cars")))
    assert isinstance(plan, EveryNth)
    assert check_plan(plan, after="bind") == plan
    broken = {
        "one of none": replace(plan, count=0),
        "no column 'lame'": replace(plan, keys=(Column("lame", INT64),)),
        "car is string, not int64": replace(plan, keys=(Column("car", INT64),)),
        "EveryNth needs ts": replace(plan, source=Project(plan.source, (Named("car", CAR),))),
        "only row-local": replace(plan, keys=(Aggregate("count", None, INT64),)),
    }
    for message, each in broken.items():
        with pytest.raises(PlanError, match=message):
            check_plan(each, after="bind")


def test_what_it_needs_is_read_and_nothing_else() -> None:
    plan = optimise(bound(Project(fast(third(Scan("cars"))), (Named("lane", Column("lane")),))))
    assert explain(plan) == (
        "Project lane\n"
        "  Filter speed > 30.0\n"
        "    EveryNth one of 3\n"
        "      Scan cars (ts, car, speed, lane)"
    )
    counted = WindowAggregate(
        third(fast(Scan("cars"))),
        (),
        Window(60, 60),
        (NamedAggregate("n", Aggregate("count", None)),),
    )
    assert explain(optimise(bound(counted))).endswith(
        "  EveryNth one of 3\n    Filter speed > 30.0\n      Scan cars (ts, car, speed)"
    )


def test_a_bound_on_times_stays_above_it() -> None:
    early = Call("<", (Column("ts"), Constant(5, TIMESTAMP)))
    plan = optimise(bound(Filter(third(Scan("cars")), early)))
    assert explain(plan).startswith("Filter ts <")
    assert explain(plan).endswith("Scan cars (ts, _seq, car, speed, lane)")


def test_events_are_spread_by_its_keys() -> None:
    by_car = third(Scan("cars"))
    by_both = third(by_car, Column("lane"), Column("car"))
    assert leaf_keys(bound(by_both)) == ((CAR,),)
    assert leaf_keys(bound(third(by_car, Column("lane")))) is None
    assert leaf_keys(bound(fast(by_car))) == ((CAR,),)


def test_its_rows_are_events() -> None:
    """So windows and other operators read them."""
    items = (Named("car", Column("car")),)
    stream = as_events(bound(Project(third(Scan("cars")), items)), always=True)
    assert isinstance(stream, DerivedStream)
    number = NamedAggregate("n", Aggregate("count", None))
    plan = optimise(bound(WindowAggregate(stream, items, Window(10, 10), (number,))))
    assert leaf_keys(plan) == ((CAR,),)
    events = events_of([(number, "ab"[number % 2], 3) for number in range(20)])
    source = TableSource("cars", SCHEMA, to_table(events))
    found = plain(run_history(plan, {"cars": source}))
    rows = [(row["window_start"], row["car"], row["n"]) for row in found]
    # Of each car the events 0, 3, 6 and 9: those of a have even times, those of b odd ones.
    assert sorted(rows) == [(0, "a", 2), (0, "b", 2), (10, "a", 2), (10, "b", 2)]


@pytest.mark.parametrize(
    ("window", "pattern"),
    [(Unbounded(), UpdatePattern.MONOTONIC), (RangeWindow(60), UpdatePattern.STRICT)],
)
def test_its_edge_is_as_careful_as_the_one_below_demands(
    window: Unbounded | RangeWindow, pattern: UpdatePattern
) -> None:
    """A node of a standing query that says nothing of its edge may lose any row at any time."""
    windowed = Windowed(Scan("cars"), "c", window)
    plan = bound(third(windowed, Column("c.car")))
    assert pattern_of(plan).pattern == pattern
    joined = WindowJoin((plan, bound(Windowed(Scan("cars"), "d", window))), ((), ()))
    assert pattern_of(joined).pattern == pattern


EVENTS = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from(["a", "b"]), st.integers(0, 3)), max_size=20
)


def events_of(drawn: list[tuple[int, str, int]]) -> list[Event]:
    return [
        {"ts": ts, "_seq": number, "car": car, "speed": 20.0 * lane, "lane": lane}
        for number, (ts, car, lane) in enumerate(drawn)
    ]


def naively(events: list[Event]) -> list[Event]:
    """The third events of each car, if they are fast."""
    counts: dict[str, int] = {}
    found = []
    for event in sorted(events, key=lambda each: (each["ts"], each["_seq"])):
        counts[event["car"]] = counts.get(event["car"], -1) + 1
        if counts[event["car"]] % 3 == 0 and event["speed"] > 30:
            found.append({"car": event["car"], "_seq": event["_seq"]})
    return found


@settings(deadline=None, max_examples=50)
@given(EVENTS, st.integers(1, 6))
def test_it_runs_over_history_and_live(drawn: list[tuple[int, str, int]], step: int) -> None:
    items = tuple(Named(name, Column(name)) for name in ("car", "_seq"))
    plan = optimise(bound(Project(fast(third(Scan("cars"))), items)))
    events = events_of(drawn)
    source = TableSource("cars", SCHEMA, to_table(events))
    assert plain(run_history(plan, {"cars": source})) == naively(events)
    engine = LiveEngine.of(plan, CATALOG, lateness_us=10)
    steps = [{"cars": events[place : place + step]} for place in range(0, len(events), step)]
    assert lived(engine, steps, CATALOG).rows == naively(events)


def test_a_long_history_is_not_cut_into_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "SLICE_ROWS", 10)
    events = events_of([(number, "ab"[number % 2], 3) for number in range(100)])
    items = tuple(Named(name, Column(name)) for name in ("car", "_seq"))
    plan = optimise(bound(Project(fast(third(Scan("cars"))), items)))
    source = TableSource("cars", SCHEMA, to_table(events))
    assert plain(run_history(plan, {"cars": source})) == naively(events)
