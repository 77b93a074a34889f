"""Situations as rows: the operator against runs found one by one, and drawn by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from eventide.engines.build import build_tree
from eventide.errors import StateError
from eventide.instants import END_OF_TIME_US
from eventide.operators.situations import runs as situation_runs
from eventide.plan.bind import bind
from eventide.plan.explain import explain
from eventide.plan.expressions import Aggregate, Call, Column, Expression, NamedAggregate
from eventide.plan.nodes import Scan
from eventide.plan.situations.nodes import Situations
from eventide.plan.situations.parts import Situation
from eventide.schema import MAX_TS_US, MIN_TS_US
from tests.naive.situations.nodes import (
    CATALOG,
    KEY,
    NAN,
    SECOND,
    Row,
    call,
    constant,
    rows,
    situations,
)
from tests.naive.situations.runs import naive_situations
from tests.operators.situations.drive import (
    NOTHING_SPARED,
    bag,
    cuts_of,
    drawn,
    one_by_one,
    run,
    stepped,
    to_batch,
)

SLOWLY = settings(deadline=None, max_examples=80)


@SLOWLY
@given(situations(), rows())
def test_in_one_batch(node: Situations, events: list[Row]) -> None:
    note(explain(node))
    assert bag(run(node, events)) == bag(naive_situations(node, events))


@SLOWLY
@given(situations(), rows(), st.data())
def test_every_batch_gives_all_that_is_decided(
    node: Situations, events: list[Row], data: st.DataObject
) -> None:
    note(explain(node))
    found: Counter[str] = Counter()
    for count, watermark, results in stepped(node, events, data.draw(cuts_of(node, events))):
        found += bag(results)
        assert found == bag(naive_situations(node, events[:count], watermark))


def test_keys_are_forgotten_when_nothing_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(situation_runs, "SPARE", NOTHING_SPARED)

    @SLOWLY
    @given(situations(), rows())
    def check(node: Situations, events: list[Row]) -> None:
        found = run(node, events, one_by_one(events))
        assert bag(found) == bag(naive_situations(node, events))

    check()


# Drawn by hand


def holding(
    *held: Situation, gap: int | None = None, **aggregates: tuple[str, Expression | None]
) -> Situations:
    named = tuple(NamedAggregate(name, Aggregate(*each)) for name, each in aggregates.items())
    node = Situations(Scan("s"), KEY, held, named, None if gap is None else gap * SECOND)
    bound = bind(node, CATALOG)
    assert isinstance(bound, Situations)
    return bound


A = Situation("A", Column("a"))
V = Situation("V", Call(">", (Column("v"), constant(1.0))))


def periods(node: Situations, events: list[Row]) -> list[tuple[Any, ...]]:
    """Return what comes out as (situation, start, end, …) in seconds, however it is cut."""
    found = run(node, events)
    assert bag(found) == bag(run(node, events, one_by_one(events)))
    assert bag(found) == bag(naive_situations(node, events))
    listed = []
    for row in found:
        _, name, start, end, *values = row.values()
        listed.append((name, start // SECOND, end // SECOND, *values))
    return sorted(listed)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", []),
        ("....", []),
        ("####", []),  # never over
        ("##..", [(0, 2)]),
        (".#.", [(1, 2)]),
        ("#.#.#", [(0, 1), (2, 3)]),
        ("#?#.", [(0, 1), (2, 3)]),  # unknown is not true
    ],
)
def test_runs(line: str, expected: list[tuple[int, int]]) -> None:
    assert periods(holding(A), drawn({"A": line})) == [("A", *each) for each in expected]


@pytest.mark.parametrize(
    ("least", "most", "expected"),
    [
        (0, None, [1, 2, 3, 4]),
        (2, None, [2, 3, 4]),
        (0, 3, [1, 2, 3]),
        (2, 3, [2, 3]),
        (3, 3, [3]),
        (0, 0, []),
        (5, None, []),
    ],
)
def test_durations(least: int, most: int | None, expected: list[int]) -> None:
    most_us = None if most is None else most * SECOND
    node = holding(Situation("A", Column("a"), least * SECOND, most_us))
    found = periods(node, drawn({"A": "#.##.###.####."}))
    assert [end - start for _, start, end in found] == expected


def test_events_of_one_time_follow_each_other() -> None:
    found = periods(holding(A), drawn({"A": "#.##."}, at=[1, 1, 1, 2, 2]))
    assert found == [("A", 1, 1), ("A", 1, 2)]


def test_silence_ends_everything() -> None:
    #  ts  0 1 2 ... 9 10 ... 20   silent after 3 seconds
    #      # # #     # #      #
    node = holding(A, gap=3)
    found = periods(node, drawn({"A": "######"}, at=[0, 1, 2, 9, 10, 20]))
    assert found == [("A", 0, 5), ("A", 9, 13), ("A", 20, 23)]


def test_silence_has_to_be_longer() -> None:
    node = holding(A, gap=3)
    assert periods(node, drawn({"A": "###."}, at=[0, 3, 6, 9])) == [("A", 0, 9)]


def test_a_watermark_ends_what_is_silent() -> None:
    node, events = holding(A, gap=3), drawn({"A": "##"})
    ends = dict.fromkeys((3, 4, 5, 6), 0)
    for watermark in ends:
        cuts = [(2, watermark * SECOND)]
        _, _, results = next(stepped(node, events, cuts))
        ends[watermark] = len(results)
    # It could still be followed at 4, but not behind that.
    assert ends == {3: 0, 4: 0, 5: 1, 6: 1}


def test_each_name_has_its_own() -> None:
    b = Situation("B", call("not", Column("a")))
    again = Situation("C", Column("a"))
    found = periods(holding(A, b, again), drawn({"A": "#..#."}))
    assert found == [("A", 0, 1), ("A", 3, 4), ("B", 1, 3), ("C", 0, 1), ("C", 3, 4)]


def test_nan_is_greater_than_any_number() -> None:
    values = [2.0, NAN, None, 0.5, 2.0, 1.0]
    events = [{**row, "v": value} for row, value in zip(drawn({"A": "." * 6}), values, strict=True)]
    assert periods(holding(V), events) == [("V", 0, 2), ("V", 4, 5)]


def test_aggregates_leave_out_the_event_that_ends() -> None:
    values = [1, 2, None, 9, 7]
    events = [{**row, "n": value} for row, value in zip(drawn({"A": "###.#"}), values, strict=True)]
    n = Column("n")
    node = holding(
        A, rows=("count", None), known=("count", n), most=("max", n), first=("first", n),
        last=("last", n), mean=("avg", n),
    )  # fmt: skip
    assert periods(node, events) == [("A", 0, 3, 3, 2, 2, 1, None, 1.5)]


@pytest.mark.parametrize("key", ["q", None])
def test_keys_do_not_end_each_other(key: str | None) -> None:
    one = drawn({"A": "##."}, at=[0, 2, 4])
    other = drawn({"A": "#.."}, at=[1, 3, 5], k=key)
    events = sorted([*one, *other], key=lambda row: row["ts"])
    events = [{**row, "_seq": place} for place, row in enumerate(events)]
    found = {(row["k"], row["start_ts"], row["end_ts"]) for row in run(holding(A), events)}
    assert found == {("p", 0, 4 * SECOND), (key, SECOND, 3 * SECOND)}


def test_the_ends_of_time() -> None:
    events = drawn({"A": "#.#"})
    for row, ts in zip(events, [MIN_TS_US, MAX_TS_US - SECOND, MAX_TS_US - SECOND], strict=True):
        row["ts"] = ts
    [whole] = run(holding(A), events)
    assert (whole["start_ts"], whole["end_ts"]) == (MIN_TS_US, MAX_TS_US - SECOND)
    first = (MIN_TS_US, MIN_TS_US + SECOND)
    silent = run(holding(A, gap=1), events)
    assert sorted((row["start_ts"], row["end_ts"]) for row in silent) == [
        first,
        (MAX_TS_US - SECOND, MAX_TS_US),
    ]
    # What would be over after the end of time never is.
    events[-1]["ts"] += 1
    assert [(row["start_ts"], row["end_ts"]) for row in run(holding(A, gap=1), events)] == [first]


def test_a_state_belongs_to_its_query() -> None:
    one, two = (build_tree(each) for each in (holding(A), holding(A, V)))
    events = to_batch(one, drawn({"A": "##"}))
    states, _ = one.step(one.initial_state(), (events,), END_OF_TIME_US)
    with pytest.raises(StateError):
        two.load(one.dump(states))
