"""Patterns of situations against two oracles: any node, rows and batches, dumped and loaded."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from eventide.instants import TimeRange
from eventide.plan.bind import bind_condition
from eventide.plan.explain import explain
from eventide.plan.expressions import Column, PeriodPart
from eventide.plan.situations import allen
from eventide.plan.situations.nodes import TemporalPattern
from eventide.plan.situations.parts import Constraint
from eventide.schema import MIN_TS_US
from tests.naive.situations.matches import by_closed_form, step_by_step
from tests.naive.situations.nodes import (
    ALL_MATCHES,
    FLAGS,
    HUGE,
    SECOND,
    Case,
    Kinds,
    Row,
    bound_pattern,
    cases,
    rows,
)
from tests.naive.situations.runs import Period, by_key, moments_of, periods_of
from tests.operators.situations.drive import bag, cuts_of, one_by_one, run, stepped

SLOWLY = settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@settings(SLOWLY, max_examples=150)
@given(cases())
def test_the_oracles_agree(case: Case) -> None:
    node, events = case
    note(explain(node))
    expected = by_closed_form(node, events)
    assert all(list(row) == list(node.row) for row in expected)
    assert bag(step_by_step(node, events)) == bag(expected)


@settings(SLOWLY, max_examples=60)
@given(cases(), st.integers(0, 14), st.integers(0, 9))
def test_the_oracles_agree_before_the_end(case: Case, count: int, ahead: int) -> None:
    node, events = case
    known = events[:count]
    watermark = known[-1]["ts"] + ahead * SECOND if known else MIN_TS_US
    found = bag(by_closed_form(node, known, watermark))
    assert bag(step_by_step(node, known, watermark)) == found


@settings(SLOWLY, max_examples=150)
@given(cases())
def test_in_one_batch(case: Case) -> None:
    node, events = case
    note(explain(node))
    assert bag(run(node, events)) == bag(by_closed_form(node, events))


@settings(SLOWLY, max_examples=60)
@given(cases())
def test_one_event_after_another(case: Case) -> None:
    node, events = case
    note(explain(node))
    assert bag(run(node, events, one_by_one(events))) == bag(step_by_step(node, events))


@settings(SLOWLY, max_examples=90)
@given(cases(), st.data())
def test_every_batch_gives_all_that_is_decided(case: Case, data: st.DataObject) -> None:
    node, events = case
    note(explain(node))
    found: Counter[str] = Counter()
    for count, watermark, results in stepped(node, events, data.draw(cuts_of(node, events))):
        found += bag(results)
        assert found == bag(by_closed_form(node, events[:count], watermark))


@given(cases(Kinds(3, limits=False)), st.lists(st.integers(-2, 40), min_size=1, max_size=3))
@settings(SLOWLY)
def test_periods_of_time_own_their_matches(case: Case, borders: list[int]) -> None:
    node, events = case
    base = events[0]["ts"] if events else 0
    edges = [-HUGE, *sorted({base + border * SECOND for border in borders}), 2 * HUGE]
    found: Counter[str] = Counter()
    for start, end in pairwise(edges):
        owned = TimeRange(start, end)
        results = bag(run(node, events, owned=owned))
        assert results == bag(by_closed_form(node, events, owned=owned))
        found += results
    assert found == bag(by_closed_form(node, events))


@given(cases(Kinds(3)))
@settings(SLOWLY)
def test_keys_are_worlds_of_their_own(case: Case) -> None:
    node, events = case
    found: Counter[str] = Counter()
    for own in by_key(node.keys, events).values():
        found += bag(run(node, own))
    assert bag(run(node, events)) == found


# What has to be true of results, whatever they are


def configurations(node: TemporalPattern, found: list[Row]) -> dict[tuple[Any, ...], int]:
    """Return when each combination was first reported; none is twice."""
    names = [*(key.name for key in node.keys), *(f"{each.name}_start" for each in node.situations)]
    first: dict[tuple[Any, ...], int] = {}
    for row in found:
        if not node.confirm or not row["confirmed"]:
            identity = tuple(row[name] for name in names)
            assert identity not in first
            first[identity] = row["ts"]
    return first


def apart(events: list[Row]) -> list[Row]:
    """Return rows no two of which are at the same time."""
    return [{**row, "ts": row["ts"] + place} for place, row in enumerate(events)]


def over(events: list[Row]) -> list[Row]:
    """Return rows behind which nothing is true for any key."""
    last = events[-1]["ts"] if events else 0
    nothing = {**dict.fromkeys(FLAGS, False), "v": None, "n": 9, "w": None}
    keys: tuple[Any, ...] = ("p", "q", None)
    added = [
        {"ts": last + SECOND + place, "_seq": len(events) + place, "k": key, **nothing}
        for place, key in enumerate(keys)
    ]
    return [*events, *added]


@given(cases(ALL_MATCHES))
@settings(SLOWLY)
def test_final_matches_are_early_ones(case: Case) -> None:
    node, events = case
    node = replace(node, confirm=False)
    events = apart(events)
    early = configurations(node, run(replace(node, detection="early"), events))
    final = configurations(node, run(replace(node, detection="final"), events))
    assert final.keys() <= early.keys()
    assert all(early[each] <= moment for each, moment in final.items())


@given(cases(replace(ALL_MATCHES, windows=(HUGE,))))
@settings(SLOWLY)
def test_both_find_the_same_when_all_is_over(case: Case) -> None:
    node, events = case
    # A silence after the last row ends what is true on every row.
    gap_us = min(node.gap_us or HUGE, 20 * SECOND)
    node = replace(node, confirm=False, within_us=HUGE, gap_us=gap_us)
    events = over(apart(events))
    early = configurations(node, run(replace(node, detection="early"), events))
    final = configurations(node, run(replace(node, detection="final"), events))
    assert final.keys() == early.keys()


@given(cases(replace(ALL_MATCHES, most_situations=5)), st.randoms(use_true_random=False))
@settings(SLOWLY)
def test_the_order_of_definitions_does_not_matter(case: Case, random: Any) -> None:  # noqa: ANN401
    node, events = case
    places = list(range(len(node.situations)))
    random.shuffle(places)
    turned = []
    for each in node.constraints:
        first, second = places.index(each.first), places.index(each.second)
        mask = each.mask if first < second else allen.inverse(each.mask)
        turned.append(Constraint(min(first, second), max(first, second), mask))
    held = tuple(node.situations[place] for place in places)
    other = replace(node, situations=held, constraints=tuple(turned))
    assert bag(run(other, events)) == bag(run(node, events))


@given(cases(Kinds(3)), st.sampled_from([1, 3, 1000]), st.integers(-(10**15), 10**15))
@settings(SLOWLY)
def test_time_can_be_moved_and_stretched(case: Case, factor: int, moved: int) -> None:
    node, events = case
    base = events[0]["ts"] if events else 0

    def stretched(us: int | None) -> int | None:
        return us if us is None or us >= HUGE else us * factor

    held = tuple(
        replace(each, least_us=each.least_us * factor, most_us=stretched(each.most_us))
        for each in node.situations
    )
    within_us = stretched(node.within_us) or 0
    gap_us = None if node.gap_us == HUGE else stretched(node.gap_us)
    # What depends on the time itself is left out.
    kept = tuple(
        item
        for item in node.returns
        if node.row[item.name].kind not in ("timestamp", "interval")
        and "epoch_us" not in str(item.expression)
    )
    node = replace(node, returns=kept, gap_us=None if node.gap_us == HUGE else node.gap_us)
    other = replace(node, situations=held, within_us=within_us, gap_us=gap_us)
    elsewhere = [{**row, "ts": moved + (row["ts"] - base) * factor} for row in events]
    expected = [
        {**row, "ts": moved + (row["ts"] - base) * factor} for row in by_closed_form(node, events)
    ]
    assert bag(run(other, elsewhere)) == bag(expected)


@given(cases(replace(ALL_MATCHES, windows=(HUGE,), durations=False)))
@settings(SLOWLY, max_examples=15)
def test_two_situations_have_one_relation(case: Case) -> None:
    node, events = case
    if len(node.situations) < 2:
        return
    names = {each.name for each in node.situations[:2]}
    starts = tuple(
        item
        for item in node.returns
        if isinstance(item.expression, PeriodPart) and item.expression.variable in names
    )
    pair = replace(node, situations=node.situations[:2], returns=starts, within_us=HUGE)
    pair = replace(pair, detection="final", confirm=False)
    found: Counter[str] = Counter()
    for bit in range(13):
        found += bag(run(replace(pair, constraints=(Constraint(0, 1, 1 << bit),)), events))
    assert found == bag(run(replace(pair, constraints=()), events))
    assert found == bag(run(replace(pair, constraints=(Constraint(0, 1, allen.ANY),)), events))


# Soundness, and that nothing could be known any sooner

FEW = Kinds(3, 8, summaries=False, limits=False, gaps=False, windows=(HUGE,))


def held_together(node: TemporalPattern, starts: tuple[int, ...], events: list[Row]) -> bool:
    """Whether the situations with these starts, once all is over, are a match."""
    moments = moments_of(events, None)
    members: list[Period] = []
    for situation, start in zip(node.situations, starts, strict=True):
        periods = periods_of(situation, moments, when_over=True)
        members += [each for each in periods if each.start_ts == start]
    if len(members) < len(starts):
        return False
    ends = [each.end or 0 for each in members]
    return all(
        allen.relation_between(
            (members[each.first].start, ends[each.first]),
            (members[each.second].start, ends[each.second]),
        )
        & each.mask
        for each in node.constraints
    )


def flags_only(case: Case) -> Case:
    """Return a node whose situations are each of a flag of their own, and rows of one key."""
    node, events = case
    plain = tuple(
        replace(each, condition=bound_flag(node, flag))
        for each, flag in zip(node.situations, FLAGS, strict=False)
    )
    node = replace(node, keys=(), situations=plain, confirm=False, detection="early")
    names = {f"{each.name}_start" for each in plain}
    kept = tuple(item for item in node.returns if item.name in names)
    return bound_pattern(replace(node, returns=kept, within_us=HUGE)), apart(events)


def bound_flag(node: TemporalPattern, flag: str) -> Any:  # noqa: ANN401
    return bind_condition(Column(flag), node.source.row)


@given(cases(FEW), rows(6))
@settings(SLOWLY)
def test_what_is_reported_stays_true(case: Case, later: list[Row]) -> None:
    node, events = flags_only(case)
    last = events[-1]["ts"] if events else 0
    begin = later[0]["ts"] if later else 0
    behind = [
        {**row, "ts": last + 1 + row["ts"] - begin, "_seq": len(events) + row["_seq"]}
        for row in apart(later)
    ]
    whole = over([*events, *behind])
    found = [row for row in run(node, events) if row["ts"] <= last]
    for starts in configurations(node, found):
        assert held_together(node, starts, whole)


@given(cases(replace(FEW, durations=False)))
@settings(SLOWLY)
def test_nothing_is_reported_later_than_it_is_certain(case: Case) -> None:
    node, events = flags_only(case)
    flags = FLAGS[: len(node.situations)]
    for starts, detected in configurations(node, run(node, events)).items():
        before = [row for row in events if row["ts"] < detected]
        first, second = ({"ts": detected + more, "_seq": 99 + more} for more in (0, 1))
        blank = {"k": None, **dict.fromkeys(FLAGS, False), "v": None, "n": None, "w": None}
        futures = product(product([False, True], repeat=len(flags)), repeat=2)
        assert any(
            not held_together(
                node,
                starts,
                over(
                    [
                        *before,
                        {**blank, **first, **dict(zip(flags, one, strict=True))},
                        {**blank, **second, **dict(zip(flags, other, strict=True))},
                    ]
                ),
            )
            for one, other in futures
        )
