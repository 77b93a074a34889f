"""Aggregates of the events that end at one instant are those of the twin, in any steps."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.plan.algebra.nodes import InstantAggregate, Sequence
from eventide.plan.expressions import Aggregate, Column, Named, NamedAggregate
from eventide.plan.nodes import Project, Scan
from eventide.plan.tree import Plan
from eventide.schema import START_TS, TS
from tests.naive.algebra.events import at_instants, event, rename, seq
from tests.naive.algebra.plans import Row, typed
from tests.operators.algebra.drive import bag, instants_of, run

TIMES = st.integers(0, 12)
EVENTS = st.lists(
    st.tuples(TIMES, TIMES, st.sampled_from(["a", "b", None]), st.none() | st.integers(-3, 3)),
    max_size=14,
)


def streams_of(drawn: list[tuple[int, int, str | None, int | None]]) -> dict[str, list[Row]]:
    both = [(max(one, other), min(one, other), k, n) for one, other, k, n in drawn]
    ordered = sorted(both, key=lambda each: each[0])
    rows = [
        {TS: end, "_seq": seq, START_TS: start, "k": k, "n": n, "v": None, "w": None}
        for seq, (end, start, k, n) in enumerate(ordered)
    ]
    return {"s": rows, "t": []}


def leaf(prefix: str = "") -> Plan:
    items = [Named(TS, Column(TS)), Named(START_TS, Column(START_TS))]
    items += [Named(prefix + name, Column(name)) for name in "kn"]
    return typed(Project(Scan("s"), tuple(items)))


def aggregated(source: Plan, *keys: str) -> Plan:
    aggregates = (
        NamedAggregate("count", Aggregate("count", None)),
        NamedAggregate("total", Aggregate("sum", Column("n"))),
        NamedAggregate("most", Aggregate("max", Column("n"))),
        NamedAggregate("all", Aggregate("array_agg", Column("n"))),
    )
    return typed(
        InstantAggregate(source, tuple(Named(key, Column(key)) for key in keys), aggregates)
    )


def totals(rows: list[Mapping[str, Any]]) -> Row:
    known = [row["n"] for row in rows if row["n"] is not None]
    return {
        "count": len(rows),
        "total": sum(known) if known else None,
        "most": max(known, default=None),
    }


def without_lists(rows: list[Row]) -> list[Row]:
    return [{name: value for name, value in row.items() if name != "all"} for row in rows]


@settings(deadline=None)
@given(st.data(), EVENTS, st.booleans())
def test_instants(
    data: st.DataObject, drawn: list[tuple[int, int, str | None, int | None]], by_key: bool
) -> None:
    streams = streams_of(drawn)
    found = [event(row[START_TS], row[TS], {"k": row["k"], "n": row["n"]}) for row in streams["s"]]
    groups: list[Any] = sorted({row["k"] for row in streams["s"]}, key=str) if by_key else [...]
    expected = []
    for key in groups:
        own = [each for each in found if key is ... or each.attributes["k"] == key]
        for each in at_instants(totals, own):
            keys = {} if key is ... else {"k": key}
            expected.append({TS: each.end, START_TS: each.end, **keys, **each.attributes})
    plan = aggregated(leaf(), *(["k"] if by_key else []))
    cuts = instants_of(random.Random(data.draw(st.integers(0, 99))), streams)
    assert bag(without_lists(run(plan, streams, cuts))) == bag(expected)


def test_lists_do_not_depend_on_the_order_within_an_instant() -> None:
    streams = streams_of([(3, 1, "a", 2), (3, 2, "a", 1), (3, 0, "b", None)])
    plan = aggregated(leaf())
    rows = run(plan, streams)
    streams["s"].reverse()
    assert rows == run(plan, streams)
    assert len(rows) == 1


@pytest.mark.parametrize("cuts", [(), (2,), (4, 5, 6)])
def test_results_of_sequences_end_at_instants_too(cuts: tuple[int, ...]) -> None:

    streams = streams_of([(1, 1, "a", 1), (2, 2, "b", 2), (4, 4, "a", 3), (4, 3, "b", 5)])
    pairs = typed(Sequence(leaf("l_"), leaf()))
    events = [event(row[START_TS], row[TS], {"k": row["k"], "n": row["n"]}) for row in streams["s"]]
    left = rename({"k": "l_k", "n": "l_n"}, events)
    expected = at_instants(totals, seq(left, events))
    found = without_lists(run(aggregated(pairs), streams, cuts))
    assert bag(found) == bag(
        {TS: each.end, START_TS: each.end, **each.attributes} for each in expected
    )
