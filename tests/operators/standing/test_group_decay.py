from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from eventide.errors import StateLimitError, UnsupportedError
from eventide.operators.changes import NEVER, Changes
from eventide.operators.standing.groups import slides as group_slides
from eventide.operators.standing.groups.choice import group_operator
from eventide.operators.standing.groups.slides import AggregateSlides
from eventide.plan.expressions import Aggregate, Column, Named, NamedAggregate
from eventide.plan.standing.edges import Edge, UpdatePattern
from eventide.plan.standing.execution import EXECUTIONS
from eventide.plan.standing.nodes import GroupAggregate
from eventide.schema import FLOAT64, INT64, TIMESTAMP
from tests.operators.standing.group_drive import EDGES, Source, run, same_changes

ROW = {"k": INT64, "x": FLOAT64, "ts": TIMESTAMP}
SCHEMA = pa.schema([(name, kind.arrow) for name, kind in ROW.items()])
SLIDE, HALF = 10, 7
ENDLESS = Edge(UpdatePattern.MONOTONIC, None, in_order=True)


def decayed(*functions: str, half_life: float = HALF) -> GroupAggregate:
    named = []
    for name in functions:
        argument = None if name == "decayed_count" else Column("x", FLOAT64)
        time = Column("ts", TIMESTAMP)
        aggregate = Aggregate(name, argument, FLOAT64, parameter=half_life, time=time)
        named.append(NamedAggregate(name, aggregate))
    return GroupAggregate(Source(ROW).plan(), (Named("k", Column("k", INT64)),), tuple(named))


def events(times: list[int], life: int | None = None) -> Changes:
    """Events at these times, of two groups, that are seen at the next refresh."""
    ts = np.array(times, np.int64)
    at = -(-ts // SLIDE) * SLIDE
    count = len(ts)
    keys, values = pa.array(np.arange(count) % 2), pa.array(np.sin(np.arange(count)) * 1e3)
    rows = pa.RecordBatch.from_arrays(
        [keys, values, pa.array(ts).cast(SCHEMA.types[2])], schema=SCHEMA
    )
    exp = np.full(count, NEVER) if life is None else -(-(ts + life) // SLIDE) * SLIDE
    return Changes(rows, at, exp, np.ones(count, np.int8), np.arange(count))


@pytest.mark.parametrize("life", [None, 60, 65])
def test_rows_at_every_refresh_are_those_of_the_formula(life: int | None) -> None:
    given = events(sorted(np.random.default_rng(3).integers(-50, 300, 80).tolist()), life)
    edge = ENDLESS if life is None else Edge(UpdatePattern.WEAK, None)
    operator = AggregateSlides(decayed("decayed_sum", "decayed_count", "decayed_avg"), edge, SLIDE)
    out = run(operator, given, [5, 100, 101, 222], operator.output_schema, reload=True)
    ts = given.rows.column("ts").cast(pa.int64()).to_numpy()
    keys, values = (given.rows.column(name).to_numpy() for name in ("k", "x"))
    told = {key: out.take(np.flatnonzero(out.rows.column("k").to_numpy() == key)) for key in (0, 1)}
    for refresh in range(-50, 300, SLIDE):
        for key, rows in told.items():
            living = (given.at <= refresh) & (given.exp > refresh) & (keys == key)
            now = np.flatnonzero((rows.at == refresh) & (rows.sign > 0))
            assert len(now) == int(living.any())
            if living.any():
                weights = 0.5 ** ((refresh - ts[living]) / HALF)
                total, weight = float(values[living] @ weights), float(weights.sum())
                found = [rows.rows.column(i)[int(now[0])].as_py() for i in (1, 2, 3)]
                assert found == pytest.approx([total, weight, total / weight], rel=1e-9)


def test_cuts_and_reloading_change_nothing() -> None:
    given = events(sorted(np.random.default_rng(4).integers(0, 200, 60).tolist()), 70)
    operator = AggregateSlides(decayed("decayed_sum", "decayed_count"), EDGES["weak"], SLIDE)
    whole = run(operator, given, [], operator.output_schema, reload=False)
    cut = run(operator, given, list(range(0, 300, 13)), operator.output_schema, reload=True)
    assert same_changes(whole, cut)


def test_a_sum_that_has_faded_to_nothing_stays_and_an_average_as_long_as_nothing_comes() -> None:
    operator = AggregateSlides(decayed("decayed_sum", half_life=0.5), ENDLESS, SLIDE)
    state, out = operator.step(operator.initial_state(), (events([1, 2]),), 10**12)
    # 2^-1075 is 0: after that many half-lives of 0.5 nothing changes any more.
    assert 100 < len(out) < 300
    assert out.rows.column("decayed_sum")[-1].as_py() == 0.0
    assert operator.size(state).tuples == 2
    average = AggregateSlides(decayed("decayed_avg"), ENDLESS, SLIDE)
    _, out = average.step(average.initial_state(), (events([1, 2, 3]),), 10**12)
    assert len(out) == 2


def test_too_many_refreshes_at_once_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_slides, "MOST_ROWS", 1000)
    operator = AggregateSlides(decayed("decayed_sum", half_life=1e9), ENDLESS, SLIDE)
    with pytest.raises(StateLimitError, match="longer SLIDE"):
        operator.step(operator.initial_state(), (events([1, 2]),), 10**7)


def test_decay_needs_a_slide_and_tuples_that_go_in_their_time() -> None:
    node = decayed("decayed_sum")
    with pytest.raises(UnsupportedError, match="without SLIDE"):
        group_operator(node, EDGES["weakest"], "aware", None)
    with pytest.raises(UnsupportedError, match=r"(?s)before its time.*RANGE"):
        group_operator(node, EDGES["strict"], "aware", SLIDE)
    median = NamedAggregate("m", Aggregate("median", Column("x", FLOAT64), FLOAT64))
    beside = replace(node, aggregates=(*node.aggregates, median))
    with pytest.raises(UnsupportedError, match="two queries"):
        group_operator(beside, EDGES["weakest"], "aware", SLIDE)
    for execution in EXECUTIONS:
        assert isinstance(group_operator(node, EDGES["weakest"], execution, SLIDE), AggregateSlides)
