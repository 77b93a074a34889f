"""The expected cost of choices of conditions against the measured cost, and the choice."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import exp
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.engines.history.patterns import selection
from eventide.engines.history.patterns.conditions import Condition, Shape
from eventide.engines.history.patterns.estimate import (
    PatternFacts,
    all_choices,
    as_choice,
    chances,
    estimates,
)
from eventide.engines.history.patterns.question import PatternQuestion, pattern_question
from eventide.engines.history.patterns.selection import best_choice, undominated_choices
from eventide.engines.history.patterns.ways import IntervalAccess
from eventide.engines.history.weights import DEFAULTS
from eventide.lang.sql import plan_sql
from eventide.plan.patterns.skeleton import Skeleton, Symbol
from eventide.schema import Schema
from eventide.store import Snapshot, Store
from eventide.store.index.ranges import ValueRange
from eventide.store.options import StreamOptions
from eventide.store.reading.hits import Reach

# Events at random, of values at random

EVENTS = 40_000
SCHEMA = Schema.of({"k": "int64", "x": "int64", "y": "int64", "z": "int64"})


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """Events a second apart on average, values even from 0 to 9,999, in leaves of 1,024 rows."""
    choose = np.random.default_rng(11)
    ts = np.cumsum(choose.exponential(1e6, EVENTS)).astype(np.int64)
    columns = {"ts": pa.array(ts, SCHEMA.arrow.field("ts").type)}
    columns |= {name: pa.array(choose.integers(0, 10_000, EVENTS)) for name in "xyz"}
    columns["k"] = pa.array(choose.integers(0, 4, EVENTS))
    options = StreamOptions(indexes=("x", "y", "z"))
    store = Store.open(tmp_path_factory.mktemp("even"))
    with patch("eventide.store.segments.segment_writer.LEAF_ROWS", 1024):
        stream = store.create_stream("s", SCHEMA, options)
        stream.append(pa.table(columns).select(["ts", *SCHEMA.names[-4:]]))
        stream.flush(seal=True)
    return stream.snapshot()


def question_of(stored: Snapshot, pattern: str, define: str, within: int) -> PatternQuestion:
    text = (
        "SELECT * FROM s MATCH_RECOGNIZE (MEASURES LAST(ts) AS t AFTER MATCH SKIP TO NEXT ROW "
        f"PATTERN ({pattern}) WITHIN INTERVAL '{within}' SECOND DEFINE {define})"
    )
    question = pattern_question(plan_sql(text, {"s": SCHEMA}), stored)
    assert isinstance(question, PatternQuestion)
    return question


RARE = "A AS x < 40, B AS y < 60, C AS z < 50"
COMMON = "A AS x < 400, B AS y < 500, C AS z < 300"


@pytest.mark.parametrize(
    ("pattern", "define", "within"),
    [
        ("A B C", COMMON, 30),
        ("A D* C", "A AS x < 400, C AS z < 300", 20),
        ("A D* B D* C", RARE, 100),
        ("A D* B D* C", COMMON, 20),
        ("D+ A D* B C D*", COMMON, 20),
        ("A D* B C D*", RARE, 60),
        ("D* A D* B D* C", RARE, 60),
    ],
)
def test_rows_and_periods_are_about_as_many_as_estimated(
    pattern: str, define: str, within: int, stored: Snapshot
) -> None:
    """Within 35 %, where there are enough periods for chance to even out."""
    question = question_of(stored, pattern, define, within)
    facts = question.facts(DEFAULTS)
    choices = all_choices(len(question.shape.conditions))
    found = estimates(facts, choices, DEFAULTS)
    compared = 0
    for number, row in enumerate(choices[1:], start=1):
        chosen = [each for each, taken in zip(question.shape.conditions, row, strict=True) if taken]
        _, cost = IntervalAccess(question, tuple(chosen)).run()
        if cost.intervals < 40:
            assert found.intervals[number] < 120
            continue
        compared += 1
        names = [each.text for each in chosen]
        assert found.rows[number] == pytest.approx(cost.rows, rel=0.35), names
        assert found.intervals[number] == pytest.approx(cost.intervals, rel=0.35), names
        assert found.units[number] == pytest.approx(cost.blocks, rel=0.35), names
        assert found.entries[number] == cost.entries
    assert compared


def test_keys_share_the_rows(stored: Snapshot) -> None:
    """With four keys a period has a fourth of the rows of its time. Within 35 % as well."""
    question = question_of(stored, "A D* B", "A AS x < 100, B AS y < 100", 60)
    keyed = plan_sql(
        "SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k MEASURES LAST(ts) AS t PATTERN (A D* B) "
        "WITHIN INTERVAL '60' SECOND DEFINE A AS x < 100, B AS y < 100)",
        {"s": SCHEMA},
    )
    asked = pattern_question(keyed, stored)
    assert isinstance(asked, PatternQuestion)
    asked = replace(asked, by_key=True, found={})
    assert asked.key_count() == 4
    both = tuple(asked.shape.conditions)
    # By key all rows of a period are read.
    everything = replace(question.facts(DEFAULTS), sparse=False)
    found = [
        estimates(facts, as_choice(question.shape.conditions, both), DEFAULTS)
        for facts in (everything, asked.facts(DEFAULTS))
    ]
    assert found[1].rows[0] < found[0].rows[0]
    _, cost = IntervalAccess(asked, both).run()
    assert found[1].rows[0] == pytest.approx(cost.rows, rel=0.35)
    assert found[1].intervals[0] == pytest.approx(cost.intervals, rel=0.35)


def test_the_estimate_of_the_map_alone_is_all_that_it_keeps(stored: Snapshot) -> None:
    question = question_of(stored, "A D* B", "A AS x < 100, B AS y < 100", 60)
    facts = question.facts(DEFAULTS)
    found = estimates(facts, np.zeros((1, 2), np.bool_), DEFAULTS)
    _, cost = IntervalAccess(question, ()).run()
    assert (found.rows[0], found.units[0], found.entries[0]) == (cost.rows, cost.blocks, 0)


# How long until all blocks have been met


def chance_of(*rates: float, within: float = 10.0) -> tuple[float, float]:
    """Return the chance and the mean time for blocks at these rates, from one of the first on."""
    values = np.array([rates])
    chance, mean = chances(values, np.ones_like(values, np.bool_), within)
    return float(chance[0]), float(mean[0])


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.3, 1.0])
def test_one_wait_is_exponential(rate: float) -> None:
    within = 10.0
    chance, mean = chance_of(9.9, rate)
    assert chance == pytest.approx(1 - exp(-rate * within), rel=0.01)
    decay = exp(-rate * within)
    assert mean == pytest.approx(1 / rate - within * decay / (1 - decay), rel=0.03)


@pytest.mark.parametrize(
    ("one", "other"), [(0.1, 0.1), (0.5, 0.5), (0.1, 0.4), (0.4, 0.1), (0.02, 1.0), (0.3, 0.3001)]
)
def test_two_waits_add_up(one: float, other: float) -> None:
    """The closed forms are those of Erlang, and of two different rates."""
    within = 10.0
    if one == other:
        expected = 1 - exp(-one * within) * (1 + one * within)
    else:
        parts = other * exp(-one * within) - one * exp(-other * within)
        expected = 1 - parts / (other - one)
    chance, mean = chance_of(9.9, one, other)
    assert chance == pytest.approx(expected, rel=0.02)
    assert 0 < mean < within
    # In which order they come is no matter.
    assert chance_of(9.9, other, one) == pytest.approx((chance, mean), rel=0.02)


def test_waits_at_the_ends_of_what_there_is() -> None:
    assert chance_of(0.5) == (1.0, 0.0)
    assert chance_of(0.5, 1e9) == pytest.approx((1.0, 0.0), abs=0.3)
    assert chance_of(0.5, 0.0)[0] == 0.0
    # Blocks of which nothing is asked are not waited for.
    rates = np.array([[0.5, 0.1, 0.2]])
    skipped = chances(rates, np.array([[True, False, True]]), 10.0)
    assert [float(each[0]) for each in skipped] == pytest.approx(chance_of(0.5, 0.2))
    none = chances(rates, np.array([[False, False, True]]), 10.0)
    assert [float(each[0]) for each in none] == [1.0, 0.0]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(1e-4, 5.0), min_size=2, max_size=5), st.floats(0.5, 50.0))
def test_chances_are_sane(rates: list[float], within: float) -> None:
    chance, mean = chance_of(*rates, within=within)
    assert 0 <= chance <= 1
    assert 0 <= mean <= within
    # One block more takes longer, more time helps, and so do more of them.
    assert chance_of(*rates, 1.0, within=within)[0] <= chance + 1e-9
    assert chance_of(*rates, within=2 * within)[0] >= chance - 1e-9
    assert chance_of(rates[0], *(2 * rate for rate in rates[1:]), within=within)[0] >= chance - 1e-9


# The choice


@st.composite
def facts(draw: st.DrawFn, least: int = 1, most: int = 6) -> PatternFacts:
    """Draw what could be known of a pattern."""
    follows = [False, *draw(st.lists(st.booleans(), max_size=4))]
    symbols = tuple(Symbol(frozenset("A"), each) for each in follows)
    skeleton = Skeleton(symbols, draw(st.booleans()), draw(st.booleans()))
    count = draw(st.integers(least, most))
    places = sorted(draw(st.integers(0, len(symbols) - 1)) for _ in range(count))
    conditions = tuple(
        Condition(place, ((f"x{number}", ValueRange(0)),), "")
        for number, place in enumerate(places)
    )
    rows = draw(st.sampled_from([10_000, 1_000_000, 50_000_000]))
    shares = [10 ** -draw(st.floats(0.0, 5.0)) for _ in conditions]
    indexed = [draw(st.booleans()) for _ in conditions]
    reaches = [
        Reach(int(share * rows), int(share * rows), 3, 0)
        if has_index
        else Reach(int(share * rows), 0, 0, rows)
        for share, has_index in zip(shares, indexed, strict=True)
    ]
    return PatternFacts(
        Shape(skeleton, conditions, filtered=False),
        draw(st.sampled_from([10**6, 10**8, 10**10])),
        draw(st.booleans()),
        rows,
        max(1, rows // 4096),
        rows * 1e6,
        4,
        draw(st.sampled_from([6e-8, 3e-7])),
        1.5e-3,
        draw(st.sampled_from([1, 1, 100])),
        reaches,
        np.array(shares),
        np.ones((1, len(shares))),
    )


@settings(deadline=None, max_examples=40)
@given(facts())
def test_the_best_of_few_is_the_best_of_all(known: PatternFacts) -> None:
    """Against each choice by itself, one after another."""
    count = len(known.shape.conditions)
    seconds = {
        row: float(estimates(known, np.array([row]), DEFAULTS).seconds[0])
        for row in product((False, True), repeat=count)
    }
    best = tuple(best_choice(known, DEFAULTS).tolist())
    assert seconds[best] == pytest.approx(min(seconds.values()), rel=1e-9)


@settings(deadline=None, max_examples=40)
@given(facts(least=3, most=9))
def test_of_many_one_is_chosen_that_is_hardly_worse(known: PatternFacts) -> None:
    """The search that leaves out what others beat is within 1.2 times of the best."""
    count = len(known.shape.conditions)
    best = float(estimates(known, all_choices(count), DEFAULTS).seconds.min())
    kept = undominated_choices(known, DEFAULTS)
    assert len(kept) <= selection.MOST_KEPT
    with patch.object(selection, "MOST_COMPARED", 0):
        chosen = best_choice(known, DEFAULTS)
    found = float(estimates(known, chosen[None, :], DEFAULTS).seconds[0])
    assert best - 1e-12 <= found <= 1.2 * best


@settings(deadline=None, max_examples=40)
@given(facts(), st.data())
def test_estimates_are_sane(known: PatternFacts, data: st.DataObject) -> None:
    count = len(known.shape.conditions)
    choices = all_choices(count)
    assert choices.shape == (2**count, count)
    assert len({tuple(row) for row in choices.tolist()}) == 2**count
    assert not choices[0].any()
    found = estimates(known, choices, DEFAULTS)
    for column in (found.rows, found.units, found.entries, found.intervals, found.seconds):
        assert np.isfinite(column).all()
        assert (column >= 0).all()
    assert (found.rows <= known.rows).all()
    assert (found.units <= known.units).all()
    # A condition that fewer rows meet leaves fewer rows, whatever else is chosen.
    place = data.draw(st.integers(0, count - 1))
    rarer = known.shares.copy()
    rarer[place] /= 2
    fewer = estimates(replace(known, shares=rarer), choices, DEFAULTS)
    alone = as_choice(known.shape.conditions, [known.shape.conditions[place]])[0]
    (number,) = np.flatnonzero((choices == alone).all(axis=1))
    assert fewer.rows[number] <= found.rows[number] + 1e-6


def test_what_costs_more_than_it_saves_is_not_looked_up() -> None:
    """One condition is rare, the other is met by every row."""
    symbols = (Symbol(frozenset("A"), False), Symbol(frozenset("B"), False))
    conditions = (
        Condition(0, (("x", ValueRange(0)),), "x"),
        Condition(1, (("y", ValueRange(0)),), "y"),
    )
    rows = 10_000_000
    known = PatternFacts(
        Shape(Skeleton(symbols, True, True), conditions, filtered=False),
        10 * 10**6,
        True,
        rows,
        rows // 4096,
        rows * 1e6,
        4,
        1e-7,
        1e-3,
        1,
        [Reach(100, 100, 1, 0), Reach(rows, rows, 1, 0)],
        np.array([1e-5, 1.0]),
        np.ones((1, 2)),
    )
    assert best_choice(known, DEFAULTS).tolist() == [True, False]
    # If both are met everywhere, nothing is looked up: the map alone is left.
    always = replace(known, reaches=[known.reaches[1]] * 2, shares=np.ones(2))
    assert best_choice(always, DEFAULTS).tolist() == [False, False]


def test_many_equal_conditions_are_chosen_together() -> None:
    """None of them alone leaves anything out, and all are alike."""
    count = 20
    symbols = tuple(Symbol(frozenset((f"S{n}",)), n > 0) for n in range(count))
    conditions = tuple(Condition(n, (("x", ValueRange(n, n + 1)),), f"x{n}") for n in range(count))
    rows = 50_000_000
    known = PatternFacts(
        Shape(Skeleton(symbols, True, True), conditions, filtered=False),
        300 * 10**6,
        True,
        rows,
        rows // 16_384,
        rows * 1e6,
        2,
        1e-7,
        1e-3,
        1,
        [Reach(rows // 100, rows // 100, 6, 0)] * count,
        np.full(count, 0.01),
        np.ones((1, count)),
    )
    assert 2 <= best_choice(known, DEFAULTS).sum() <= 5
