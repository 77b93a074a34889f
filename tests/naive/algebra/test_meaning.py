"""What the event algebra means: simultaneous and overlapping events, ties, skip and stop, null."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.plan.expressions import Call, Column, Expression, Literal
from eventide.schema import INT64
from tests.naive.algebra.events import (
    Bag,
    Row,
    at,
    bag,
    event,
    introduce,
    length,
    mu,
    rename,
    select,
    seq,
)
from tests.naive.algebra.trees import value

BRIEF = st.lists(
    st.builds(
        lambda start, lasts, n: event(start, start + lasts, {"n": n}),
        st.integers(0, 6),
        st.sampled_from([0, 0, 0, 1, 3]),
        st.integers(0, 2),
    ),
    max_size=7,
)


def left(events: Bag) -> Bag:
    return rename({"n": "m"}, events)


def periods(events: Bag) -> list[tuple[int, int]]:
    return sorted((each.start, each.end) for each in events)


@given(BRIEF, st.integers(0, 2**16))
def test_the_order_of_simultaneous_events_means_nothing(events: Bag, seed: int) -> None:
    other = random.Random(seed).sample(events, len(events))
    for condition in (lambda _: True, lambda row: row["n"] >= row["m"]):
        assert bag(seq(left(events), events, condition)) == bag(seq(left(other), other, condition))

    def rises(row: Row) -> bool:
        return bool(row["n"] >= row["n.last"])

    assert bag(mu(events, events, rises)) == bag(mu(other, other, rises))


def test_an_event_does_not_follow_one_of_its_own_instant() -> None:
    #  0 1 2
    #  a a a    the second is followed by neither itself nor its twin
    #    a
    events = [at(0, n=0), at(1, n=1), at(1, n=2), at(2, n=3)]
    pairs = seq(left(events), events)
    assert sorted((each.attributes["m"], each.attributes["n"]) for each in pairs) == [
        (0, 1),
        (0, 2),
        (1, 3),
        (2, 3),
    ]


def test_overlapping_events_do_not_follow_each_other() -> None:
    #  0 1 2 3 4 5 6 7 8
    #    ─────────          m
    #        ───────        begins before m has ended
    #                ───
    first = [event(1, 5, {"m": 0})]
    others = [event(3, 6, {"n": 1}), event(7, 8, {"n": 2})]
    assert periods(seq(first, others)) == [(1, 8)]
    assert periods(seq(first, [event(5, 8, {"n": 1})])) == []  # touching is not after


def test_the_first_to_end_wins_though_it_begins_later() -> None:
    #  0 1 2 3 4 5 6
    #  ─               m
    #    ─────────     ends last
    #      ─────       ends first
    others = [event(1, 6, {"n": 1}), event(2, 4, {"n": 2})]
    (found,) = seq([at(0, m=0)], others)
    assert found.attributes == {"m": 0, "n": 2}
    assert (found.start, found.end) == (0, 4)


def test_all_that_end_first_at_once_follow() -> None:
    others = [event(1, 4, {"n": 1}), event(2, 4, {"n": 2}), event(1, 5, {"n": 3})]
    assert [each.attributes["n"] for each in seq([at(0, m=0)], others)] == [1, 2]


def test_chains_branch_where_events_tie() -> None:
    events = [at(0, n=0), at(1, n=1), at(1, n=2), at(2, n=3), at(2, n=4)]
    found = mu(events[:1], events)
    assert sorted((each.attributes["n"], each.end) for each in found) == [
        (1, 1),
        (2, 1),
        (3, 2),
        (3, 2),
        (4, 2),
        (4, 2),
    ]


RUN = [at(time, n=n) for time, n in enumerate([1, 2, 0, 3])]


def test_a_condition_skips_and_a_chain_stops() -> None:
    def more(row: Row) -> bool:
        return bool(row["n"] > row["n.last"])

    skipping = mu(RUN[:1], RUN, more)
    assert [each.attributes["n"] for each in skipping] == [2, 3]
    stopping = mu(RUN[:1], RUN, chain=lambda found: select(more, found))
    assert [each.attributes["n"] for each in stopping] == [2]


def test_a_chain_has_at_least_one_event_and_forgets_the_one_before() -> None:
    assert mu(RUN[:1], []) == []
    seen: list[Any] = []

    def chain(found: Bag) -> Bag:
        seen.extend(each.attributes["n.last"] for each in found)
        return found

    found = mu(RUN[:1], RUN, chain=chain)
    assert seen == [1, 2, 0]  # first that of the left event
    assert {name for each in found for name, _ in each.values} == {"n", "n.first"}


def test_carried_values_change_together() -> None:
    begun = introduce({"a": lambda _: 0, "b": lambda _: 1}, RUN[:1])

    def chain(found: Bag) -> Bag:
        return introduce({"a": lambda row: row["b"], "b": lambda row: row["a"]}, found)

    found = mu(begun, RUN, chain=chain)
    assert [(each.attributes["a"], each.attributes["b"]) for each in found] == [
        (1, 0),
        (0, 1),
        (1, 0),
    ]


def test_the_length_of_an_event_and_of_what_it_ends() -> None:
    """A bound inside is about the right events; the same bound outside about the results."""
    first = [at(0, m=0)]
    others = [event(2, 6, {"n": 1}), event(5, 7, {"n": 2})]

    def brief(row: Row) -> bool:
        return length(row) <= 3

    assert periods(seq(first, others)) == [(0, 6)]
    assert periods(seq(first, select(brief, others))) == [(0, 7)]
    assert periods(select(brief, seq(first, select(brief, others)))) == []
    near = [event(1, 3, {"n": 1})]
    assert periods(select(brief, seq(first, select(brief, near)))) == [(0, 3)]


def test_a_bound_of_length_may_stand_inside_or_outside() -> None:
    """Later events only make results longer."""
    others = [at(3, n=0), at(5, n=1)]

    def brief(row: Row) -> bool:
        return length(row) <= 4

    def odd(row: Row) -> bool:
        return bool(row["n"] % 2)

    inside = seq([at(0, m=0)], others, lambda row: odd(row) and brief(row))
    assert inside == select(brief, seq([at(0, m=0)], others, odd)) == []


NAN = float("nan")


def more_than(limit: int) -> Expression:
    return Call(">", (Column("color"), Literal(limit, INT64)))


@pytest.mark.parametrize(
    ("color", "true", "denied"),
    [(3, True, False), (1, False, True), (None, False, False), (NAN, True, False)],
)
def test_null_is_neither_true_nor_false(color: float | None, true: bool, denied: bool) -> None:
    """NaN is the greatest number. A negation holds where its condition is false, not unknown."""
    condition = more_than(2)
    turned = Call("<=", condition.arguments) if isinstance(condition, Call) else condition
    for asked, expected in ((condition, true), (Call("not", (condition,)), denied)):
        for events in ([at(1, color=color)],):
            assert bool(select(value(asked), events)) == expected
            assert bool(seq([at(0, m=0)], events, value(asked))) == expected
    assert bool(select(value(turned), [at(1, color=color)])) == denied


def test_what_is_unknown_may_still_be_decided() -> None:
    unknown = at(1, color=None, name="IBM")
    is_ibm = Call("=", (Column("name"), Column("ibm")))
    for function, expected in (("and", False), ("or", True)):
        asked = Call(function, (is_ibm, more_than(2)))
        found = select(value(asked), introduce({"ibm": lambda _: "IBM"}, [unknown]))
        assert bool(found) == expected


def test_an_attribute_that_is_not_there_is_an_error() -> None:
    with pytest.raises(KeyError):
        select(value(more_than(2)), [at(1, size=1)])


def test_two_reasons_give_one_result() -> None:
    found = seq([at(0, m=1)], [at(1, n=1)], lambda row: row["n"] > 0 or row["m"] > 0)
    assert len(found) == 1


def test_what_follows_inside_ends_with_its_last_event() -> None:
    """a;(b;c) at one instant with what it is made of, as (a;b) is, so ((a;b);(c;d)) has both."""
    a, b, c, d = (at(time, **{name: time}) for time, name in enumerate("abcd"))
    inner = seq([b], [c])
    assert periods(inner) == [(1, 2)]
    assert periods(seq([a], inner)) == [(0, 2)]
    assert periods(seq(seq([a], [b]), seq([c], [d]))) == [(0, 3)]
    assert periods(seq([a], [*inner, c])) == [(0, 2), (0, 2)]  # a union below a sequence
