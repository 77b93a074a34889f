"""Patterns of situations worked by hand: drawings, values at the moment of detection, limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from eventide.engines.build import build_tree
from eventide.errors import PlanError, StateError
from eventide.plan.expressions import (
    Aggregate,
    Column,
    Expression,
    MatchAggregate,
    Named,
    PeriodPart,
)
from eventide.plan.nodes import Scan
from eventide.plan.passes import optimise
from eventide.plan.situations.allen import (
    BEFORE,
    CONTAINS,
    DURING,
    FINISHED_BY,
    GROUPS,
    MEETS,
    OVERLAPS,
    STARTS,
)
from eventide.plan.situations.nodes import TemporalPattern
from eventide.plan.situations.parts import Constraint, Situation
from eventide.schema import MAX_TS_US, MIN_TS_US
from tests.naive.situations.nodes import KEY, NAN, SECOND, Row, bound_pattern, call, constant
from tests.operators.situations.drawings import (
    ANSWERS,
    DRAWINGS,
    Answer,
    Drawing,
    Found,
    pattern,
    seconds,
)
from tests.operators.situations.drive import drawn, one_by_one, run


@pytest.fixture(params=list(ANSWERS))
def answer(request: pytest.FixtureRequest) -> Answer:
    return ANSWERS[request.param]


@pytest.mark.parametrize("drawing", DRAWINGS, ids=lambda drawing: drawing.name)
def test_drawings(drawing: Drawing, answer: Answer) -> None:
    names = "".join(sorted({*drawing.lines, *"".join(drawing.masks)}))
    node = pattern(names, drawing.masks, **drawing.changes)
    assert seconds(answer(node, drawn(drawing.lines, drawing.at))) == list(drawing.expected)


def test_drawings_have_names_of_their_own() -> None:
    assert len({drawing.name for drawing in DRAWINGS}) == len(DRAWINGS)


# Values


def telling(node: TemporalPattern, **items: Expression) -> TemporalPattern:
    """Return the node with other items."""
    returns = tuple(Named(name, item) for name, item in items.items())
    return bound_pattern(replace(node, returns=returns))


def told(found: Sequence[Row]) -> list[tuple[Any, ...]]:
    """Return rows as tuples in order, their ts in seconds."""
    rows = [tuple({**row, "ts": row["ts"] // SECOND}.values()) for row in found]
    return sorted(rows, key=str)


def numbered(lines: Mapping[str, str], n: Sequence[int | None]) -> list[Row]:
    return [{**row, "n": value} for row, value in zip(drawn(lines), n, strict=True)]


def of(name: str, function: str, column: str | None = "n") -> MatchAggregate:
    return MatchAggregate(function, None if column is None else Column(column), name)


def test_aggregates_are_as_they_were(answer: Answer) -> None:
    #  n  1 5 2 9 4 8
    #  A  # # # # .
    #  B  . # # . #      certain with B's start: then A is still open
    events = numbered({"A": "####..", "B": ".##.#."}, [1, 5, 2, 9, 4, 8])
    node = pattern("AB", {"AB": GROUPS[0] | MEETS}, confirm=True)
    node = telling(
        node, most=of("A", "max"), rows=of("A", "count", None), last=of("B", "last"),
        end=PeriodPart("A", "end"), held=PeriodPart("A", "duration"),
    )  # fmt: skip
    assert told(answer(node, events)) == [
        (1, 5, 2, 5, None, 1 * SECOND, False),
        # The event that ends A has 4; the later ones of B are in it only here.
        (4, 9, 4, 2, 4 * SECOND, 4 * SECOND, True),
        (4, 9, 4, 4, 4 * SECOND, 4 * SECOND, False),
        (5, 9, 4, 4, 4 * SECOND, 4 * SECOND, True),
    ]


def test_one_row_for_what_is_over(answer: Answer) -> None:
    events = drawn({"A": "##..", "B": ".##."})
    final = pattern("AB", {"AB": OVERLAPS}, confirm=True, detection="final")
    [row] = answer(final, events)
    assert (row["ts"], row["confirmed"]) == (3 * SECOND, True)


def test_what_never_ends_is_never_confirmed(answer: Answer) -> None:
    events = drawn({"A": "##..", "B": ".###"})
    [row] = answer(pattern("AB", {"AB": OVERLAPS}, confirm=True), events)
    assert (row["ts"], row["confirmed"]) == (2 * SECOND, False)


def test_a_confirmation_may_be_long_after_the_window(answer: Answer) -> None:
    events = drawn({"A": "##.", "B": ".#."}, at=[0, 1, 900])
    node = pattern("AB", {"AB": GROUPS[0]}, within=1, confirm=True)
    assert [(row["ts"] // SECOND, row["confirmed"]) for row in answer(node, events)] == [
        (1, False),
        (900, True),
    ]


def test_limits_keep_the_first(answer: Answer) -> None:
    #  A  # . # . #      with B at 5: those of A in order of their starts
    #  B  . . . . . #
    events = drawn({"A": "#.#.#.#", "B": ".....#."})
    node = pattern("AB", {"AB": BEFORE | MEETS}, limit=2)
    assert seconds(answer(node, events)) == [(5, (0, 1), (5, None)), (5, (2, 3), (5, None))]
    confirmed = replace(node, confirm=True)
    assert sorted(row["A_start"] // SECOND for row in answer(confirmed, events)) == [0, 0, 2, 2]


@pytest.mark.parametrize("linked", ["", "AC", "BC"])
@pytest.mark.parametrize("names", ["ABC", "BAC"])
def test_limits_count_in_the_order_of_definitions(names: str, linked: str, answer: Answer) -> None:
    #  A  # . # . . . . . .
    #  B  . . . . # . # . .     with C there are four matches at once
    #  C  . . . . . . . . #
    events = drawn({"A": "#.#......", "B": "....#.#..", "C": "........#"})
    masks = {linked: BEFORE} if linked else {}
    found = answer(pattern(names, masks, limit=2), events)
    pairs = {(row["A_start"] // SECOND, row["B_start"] // SECOND) for row in found}
    a_first = names.index("A") < names.index("B")
    assert pairs == ({(0, 4), (0, 6)} if a_first else {(0, 4), (2, 4)})


def test_limits_are_of_each_key(answer: Answer) -> None:
    events = [*drawn({"A": "#.#"}), *drawn({"A": "#.#"}, k="q"), *drawn({"A": "#.#"}, k=None)]
    events = [{**row, "_seq": place} for place, row in enumerate(events)]
    events.sort(key=lambda row: row["ts"])
    node = bound_pattern(replace(pattern("A", {}, limit=1), keys=KEY))
    assert {(row["k"], row["ts"]) for row in answer(node, events)} == {
        ("p", 0),
        ("q", 0),
        (None, 0),
    }


def test_summaries(answer: Answer) -> None:
    lasted = call("epoch_us", PeriodPart("A", "duration"))
    node = telling(
        pattern("AB", {"AB": BEFORE | MEETS}),
        n=Aggregate("count", None),
        longest=Aggregate("max", lasted),
        rows=call("+", Aggregate("sum", of("A", "count", None)), constant(1)),
    )
    events = drawn({"A": "#.##....", "B": ".#..#.#."})
    assert told(answer(node, events)) == [
        (1, 1, 1 * SECOND, 2),
        (4, 2, 2 * SECOND, 4),
        (6, 2, 2 * SECOND, 4),
    ]


def test_only_counts(answer: Answer) -> None:
    node = telling(pattern("AB", {}), n=Aggregate("count", None))
    # Two events at one time are two moments.
    events = drawn({"A": "#.#..", "B": "#.#.#"}, at=[0, 1, 2, 3, 3])
    assert told(answer(node, events)) == [(0, 1), (2, 3), (3, 2)]


@pytest.mark.parametrize("changes", [{"limit": 1}, {"confirm": True}])
def test_summaries_are_of_all_matches(changes: dict[str, Any]) -> None:
    node = telling(pattern("A", {}, **changes), n=Aggregate("count", None))
    with pytest.raises(PlanError):
        run(node, [])


def test_silence(answer: Answer) -> None:
    #  A  0 1 . . 4       silent after 2 seconds: both end at 3, on no event
    #  B    1
    events = drawn({"A": "##.", "B": ".#."}, at=[0, 1, 10])
    node = pattern("AB", {"AB": FINISHED_BY}, gap_us=2 * SECOND)
    assert seconds(answer(node, events)) == [(3, (0, 3), (1, 3))]
    last = events[:2]
    assert seconds(answer(node, last)) == [(3, (0, 3), (1, 3))]
    after = drawn({"A": "#..", "B": "..#"}, at=[0, 2, 10])
    meets = pattern("AB", {"AB": MEETS | BEFORE}, gap_us=SECOND)
    assert seconds(answer(meets, after)) == [(10, (0, 1), (10, None))]


def test_nan_is_greater_than_any_number(answer: Answer) -> None:
    high = call(">", Column("v"), constant(1.0))
    events = [
        {**row, "v": value}
        for row, value in zip(drawn({"A": "....."}), [2.0, NAN, None, NAN, 0.0], strict=True)
    ]
    node = telling(pattern("A", {}, A=high, detection="final"), most=of("A", "max", "v"))
    assert str(told(answer(node, events))) == "[(2, nan), (4, nan)]"


@pytest.mark.parametrize(
    ("within_us", "expected"),
    [
        (MAX_TS_US - MIN_TS_US, 1),
        (MAX_TS_US - MIN_TS_US - 1, 0),
        (2**62, 1),
        (2**63 - 1, 1),
        (1, 0),
    ],
)
def test_the_ends_of_time(within_us: int, expected: int, answer: Answer) -> None:
    events = drawn({"A": "#.", "B": ".#"})
    events[0]["ts"], events[1]["ts"] = MIN_TS_US, MAX_TS_US
    node = bound_pattern(replace(pattern("AB", {"AB": MEETS}), within_us=within_us))
    found = answer(node, events)
    assert len(found) == expected
    for row in found:
        assert (row["A_start"], row["A_end"], row["ts"]) == (MIN_TS_US, MAX_TS_US, MAX_TS_US)


@pytest.mark.parametrize("least_us", [MAX_TS_US - MIN_TS_US, 2**63 - 1])
def test_the_longest_duration(least_us: int, answer: Answer) -> None:
    events = drawn({"A": "##"})
    events[0]["ts"], events[1]["ts"] = MIN_TS_US, MAX_TS_US
    held = Situation("A", Column("a"), least_us)
    node = bound_pattern(replace(pattern("A", {}), situations=(held,), within_us=2**63 - 1))
    found = [row["ts"] for row in answer(node, events)]
    assert found == ([MAX_TS_US] if least_us < 2**63 - 1 else [])


# Aggressive drivers: they accelerate, drive fast meanwhile or then, and brake hard

ACCELERATION = [0, 9, 9, 9, 9, 9, 9, 0, 0, 0, 0, -10, -10, -10, -10, 0, 0, 0]
SPEED = [60, 60, 62, 65, 71, 75, 80, 82, 83, 82, 81, 80, 75, 70, 60, 50, 50, 50]


def aggressive(durations: bool, **changes: Any) -> TemporalPattern:  # noqa: ANN401
    """Return the pattern; `v` is the acceleration and `n` the speed."""
    s = SECOND if durations else 0
    held = (
        Situation("A", call(">", Column("v"), constant(8.0)), 5 * s),
        Situation("B", call(">", Column("n"), constant(70)), 4 * s, 30 * s or None),
        Situation("C", call("<", Column("v"), constant(-9.0)), 3 * s),
    )
    constraints = (
        Constraint(0, 1, MEETS | OVERLAPS | STARTS | DURING),
        Constraint(0, 2, BEFORE),
        Constraint(1, 2, CONTAINS | FINISHED_BY | OVERLAPS | MEETS),
    )
    returns = (
        Named("speed", of("B", "avg")),
        Named("top", of("B", "max")),
        Named("braking", PeriodPart("C", "duration")),
        Named("over", PeriodPart("B", "end")),
    )
    node = TemporalPattern(Scan("s"), KEY, held, constraints, 300 * SECOND, returns)
    return bound_pattern(replace(node, **changes))


def drive(acceleration: Sequence[int] = ACCELERATION) -> list[Row]:
    rows = drawn({"A": "." * len(SPEED)})
    return [
        {**row, "v": float(v), "n": n} for row, v, n in zip(rows, acceleration, SPEED, strict=True)
    ]


FAST = SPEED[4:13]


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        # As soon as the car brakes: both B and C still go on.
        (aggressive(False), [("p", 11, sum(FAST[:8]) / 8, 83, 0, None)]),
        # B may not last too long, so its end is awaited; and then that C is long enough.
        (aggressive(True), [("p", 14, sum(FAST) / 9, 83, 3 * SECOND, 13 * SECOND)]),
        (
            aggressive(True, detection="final"),
            [("p", 15, sum(FAST) / 9, 83, 4 * SECOND, 13 * SECOND)],
        ),
    ],
    ids=["early", "durations", "final"],
)
def test_aggressive_drivers(node: TemporalPattern, expected: list[Found], answer: Answer) -> None:
    assert told(answer(node, drive())) == expected


def test_drivers_that_brake_for_a_moment(answer: Answer) -> None:
    gently = [*ACCELERATION[:13], *[0] * 5]
    assert answer(aggressive(True), drive(gently)) == []
    assert len(answer(aggressive(False), drive(gently))) == 1


def test_drivers_that_accelerate_while_they_brake(answer: Answer) -> None:
    mixed = [0, *[9] * 10, *ACCELERATION[11:]]
    # A meets C: that is not before it.
    assert answer(aggressive(False), drive(mixed)) == []


def test_nothing_changes_what_was_reported() -> None:
    """The rows of a batch are the same once later ones have gone into the same situations."""
    events = numbered({"A": "######", "B": ".#####"}, [1, 2, 3, 4, 5, 6])
    node = telling(pattern("AB", {"AB": GROUPS[0]}), total=of("A", "sum"), n=of("B", "count"))
    assert told(run(node, events, one_by_one(events))) == [(1, 3, 1)]


def test_a_state_is_of_one_query() -> None:
    first = pattern("AB", {"AB": BEFORE}, within=10)
    tree = build_tree(optimise(bound_pattern(first)))
    dumped = tree.dump(tree.initial_state())
    assert tree.dump(tree.load(dumped)) == dumped
    others = (
        replace(first, within_us=5),
        replace(first, detection="final"),
        replace(first, confirm=True),
        replace(first, limit=3),
        replace(first, gap_us=SECOND),
        replace(first, returns=first.returns[:1]),
        pattern("AB", {"AB": OVERLAPS}, within=10),
        pattern("BA", {"BA": BEFORE}, within=10),
    )
    for other in others:
        with pytest.raises(StateError, match="the state was written by another"):
            build_tree(optimise(bound_pattern(other))).load(dumped)
