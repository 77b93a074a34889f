"""Random situations and patterns of them over s(k, a … e, v, n, w), and random rows for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from hypothesis import strategies as st

from eventide.plan.bind import bind
from eventide.plan.expressions import (
    Aggregate,
    Call,
    Column,
    Expression,
    Literal,
    MatchAggregate,
    Named,
    NamedAggregate,
    PeriodPart,
)
from eventide.plan.nodes import Scan
from eventide.plan.situations import allen
from eventide.plan.situations.nodes import Situations, TemporalPattern
from eventide.plan.situations.parts import Constraint, Situation
from eventide.schema import BOOL, FLOAT64, INT64, MAX_TS_US, MIN_TS_US, Schema
from tests.naive.situations.runs import Period, by_key, moments_of, periods_of

Row = dict[str, Any]

FLAGS = "abcde"
SCHEMA = Schema.of(
    {
        "k": "string",
        **dict.fromkeys(FLAGS, "bool"),
        "v": "float64",
        "n": "int64",
        "w": "string",
    }
)
CATALOG = {"s": SCHEMA}
SECOND = 1_000_000
KEY = (Named("k", Column("k")),)
NAN = float("nan")
HUGE = 2**60
"""Longer than all of time."""
SELDOM = st.sampled_from([False] * 7 + [True])
OFTEN = st.sampled_from([True] * 7 + [False])


# Rows

FIELDS = st.fixed_dictionaries(
    {
        "ts": st.sampled_from([1, 1, 1, 2, 0, 3, 8]),
        "k": st.sampled_from(["p", "p", "p", "p", "p", "p", "q", "q", None]),
        "turned": st.sampled_from(range(32)),
        "unknown": st.sampled_from([None, None, None, None, *FLAGS]),
        "v": st.sampled_from([0.5, -0.5, 0.25, 2.0, 1.5, NAN, None]),
        "n": st.sampled_from([0, 1, 2, 3, -4, None]),
        "w": st.sampled_from(["x", "yy", "", None]),
    }
)
BASES = (0, 0, MIN_TS_US, MAX_TS_US - 200 * SECOND)


@st.composite
def rows(draw: st.DrawFn, most: int = 14, keys: Sequence[Any] = ("p", "q", None)) -> list[Row]:
    """Draw rows in order of (ts, _seq): every flag turns from time to time, and may be unknown."""
    base = draw(st.sampled_from(BASES))
    flags: dict[Any, int] = {}
    found = []
    # Now and then none at all; but few rows seldom match.
    count = draw(st.sampled_from([most, most - 1, most - 2, most - 4, most, 5, 2, 0]))
    for seq, fields in enumerate(draw(st.lists(FIELDS, min_size=count, max_size=count))):
        base += fields["ts"] * SECOND
        key = fields["k"] if fields["k"] in keys else keys[0]
        bits = flags[key] = flags.get(key, 0) ^ fields["turned"]
        row: Row = {name: bool(bits >> place & 1) for place, name in enumerate(FLAGS)}
        if fields["unknown"]:
            row[fields["unknown"]] = None
        values = {name: fields[name] for name in "vnw"}
        found.append({"ts": base, "_seq": seq, "k": key, **row, **values})
    return found


# Situations


def call(function: str, *arguments: Expression) -> Call:
    return Call(function, arguments)


def constant(value: Any) -> Literal:  # noqa: ANN401
    kinds = {bool: BOOL, int: INT64, float: FLOAT64}
    return Literal(value, kinds[type(value)])


CONDITIONS: Sequence[Expression] = (
    Column("a"),
    call("not", Column("a")),
    call("and", Column("b"), Column("c")),
    call("or", Column("d"), Column("e")),
    call(">", Column("v"), constant(0.25)),
    call("<=", Column("n"), constant(1)),
    call("is null", Column("n")),
    call(">", Column("n"), Column("v")),
    constant(True),
    constant(False),
)
DURATIONS: Sequence[tuple[int, int | None]] = (
    *[(0, None)] * 16,
    (1, None),
    (2, None),
    (5, None),
    (0, 3),
    (2, 4),
    (2, 2),
    (0, 0),
)
GAPS: Sequence[int | None] = (None, None, 1, 2, 5, HUGE)


@st.composite
def definitions(draw: st.DrawFn, most: int = 5) -> tuple[Situation, ...]:
    """Draw definitions A, B, … most of them by a flag of their own."""
    found = []
    for place in range(draw(st.sampled_from([2, 2, 3, 3, 1, 4, 5][: most + 2]))):
        odd = draw(SELDOM)
        condition = draw(st.sampled_from(CONDITIONS)) if odd else Column(FLAGS[place])
        least, longest = draw(st.sampled_from(DURATIONS))
        most_us = None if longest is None else longest * SECOND
        found.append(Situation(FLAGS[place].upper(), condition, least * SECOND, most_us))
    return tuple(found)


AGGREGATES: Sequence[tuple[str, Expression | None]] = (
    ("count", None),
    ("count", Column("v")),
    ("sum", Column("n")),
    ("sum", Column("v")),
    ("avg", Column("v")),
    ("avg", Column("n")),
    ("min", Column("v")),
    ("max", Column("v")),
    ("max", Column("n")),
    ("max", Column("ts")),
    ("min", Column("w")),
    ("first", Column("w")),
    ("last", Column("v")),
    ("first", Column("n")),
    ("last", call("+", Column("n"), constant(1))),
    ("max", Column("a")),
    ("stddev", Column("n")),
)


@st.composite
def situations(draw: st.DrawFn) -> Situations:
    """Draw bound nodes that report situations."""
    chosen = draw(st.lists(st.sampled_from(AGGREGATES), max_size=3))
    aggregates = tuple(
        NamedAggregate(f"r{place}", Aggregate(function, argument))
        for place, (function, argument) in enumerate(chosen)
    )
    keys = draw(st.sampled_from([KEY, KEY, ()]))
    gap_us = scaled(draw(st.sampled_from(GAPS)))
    node = Situations(Scan("s"), keys, draw(definitions()), aggregates, gap_us)
    bound = bind(node, CATALOG)
    assert isinstance(bound, Situations)
    return bound


def scaled(seconds: int | None) -> int | None:
    return seconds if seconds is None or seconds == HUGE else seconds * SECOND


# Patterns of situations

MASKS = (
    allen.ANY,
    *(1 << bit for bit in range(13)),
    *allen.GROUPS,
    *(group | allen.BEFORE | allen.MEETS for group in allen.GROUPS),
    allen.BEFORE | allen.MEETS,
    allen.MEETS | allen.OVERLAPS | allen.STARTS | allen.DURING,
    allen.MEETS | allen.CONTAINS | allen.FINISHED_BY,
    allen.ANY & ~allen.EQUALS,
    allen.ANY & ~allen.OVERLAPS,
    allen.EQUALS | allen.STARTS,
)
WINDOWS = (8, 16, HUGE, HUGE, 4, 2, 1)


@dataclass(frozen=True, slots=True)
class Kinds:
    """Which patterns to draw. Everything goes unless it is left out here."""

    most_situations: int = 5
    most_rows: int = 14
    windows: Sequence[int] = WINDOWS
    summaries: bool = True
    limits: bool = True
    durations: bool = True
    gaps: bool = True


ANYTHING = Kinds()
ALL_MATCHES = Kinds(3, 12, summaries=False, limits=False)
"""Rows that tell which situations they are of, and all of them."""


Case = tuple[TemporalPattern, list[Row]]


@st.composite
def cases(draw: st.DrawFn, kinds: Kinds = ANYTHING) -> Case:
    """Draw a bound node and rows for it. Most often they have a match.

    Items of all but summaries begin with the starts of the situations.
    """
    events = draw(rows(kinds.most_rows))
    held = draw(definitions(kinds.most_situations))
    if not kinds.durations:
        held = tuple(replace(each, least_us=0, most_us=None) for each in held)
    summary = kinds.summaries and draw(SELDOM)
    node = TemporalPattern(
        Scan("s"),
        draw(st.sampled_from([KEY, KEY, ()])),
        held,
        (),
        scaled(draw(st.sampled_from(kinds.windows))) or 0,
        draw(summaries(held) if summary else returns(held)),
        draw(st.sampled_from(["early", "early", "final"])),
        not summary and draw(st.booleans()),
        draw(st.sampled_from([None, None, 1, 2, 4])) if kinds.limits and not summary else None,
        scaled(draw(st.sampled_from(GAPS))) if kinds.gaps else None,
    )
    fitting = draw(combination(bound_pattern(node), events))
    exact = draw(st.booleans())
    if fitting and exact:
        node = replace(node, within_us=max(1, span_us(fitting) + draw(st.sampled_from([0, 0, -1]))))
    node = replace(node, constraints=draw(constraints(len(held), fitting)))
    return bound_pattern(node), events


def bound_pattern(node: TemporalPattern) -> TemporalPattern:
    bound = bind(node, CATALOG)
    assert isinstance(bound, TemporalPattern)
    return bound


@st.composite
def constraints(draw: st.DrawFn, count: int, fitting: Sequence[Period]) -> tuple[Constraint, ...]:
    """Draw constraints that a combination fits. Neighbours are seldom left free, others often."""
    found = []
    for first, second in combinations(range(count), 2):
        if draw(OFTEN if second == first + 1 else st.booleans()):
            fits = relation(fitting[first], fitting[second]) if fitting else 0
            mask = draw(st.sampled_from(MASKS)) if draw(st.booleans()) else 0
            found.append(Constraint(first, second, fits | mask or allen.MEETS))
    return tuple(found)


@st.composite
def combination(
    draw: st.DrawFn, node: TemporalPattern, events: Sequence[Row]
) -> tuple[Period, ...]:
    """Draw situations that some key has, one of each kind, or nothing."""
    for own in by_key(node.keys, events).values():
        moments = moments_of(own, node.gap_us)
        periods = [periods_of(each, moments) for each in node.situations]
        if all(periods) and draw(OFTEN):
            return tuple(draw(st.sampled_from(each)) for each in periods)
    return ()


def span_us(periods: Sequence[Period]) -> int:
    """Return how long it takes from the first start to the last end, or start if there is none."""
    known = [each.start_ts if each.end_ts is None else each.end_ts for each in periods]
    return max(known) - min(each.start_ts for each in periods)


def relation(a: Period, b: Period) -> int:
    """Return the relation of two situations, or all those they may have."""
    if a.end is None and b.end is None:
        return allen.GROUPS[(a.start >= b.start) + (a.start > b.start)]
    ends = [len(each.moments) if each.end is None else each.end for each in (a, b)]
    return allen.relation_between((a.start, ends[0]), (b.start, ends[1]))


def part(situation: Situation, which: Any) -> PeriodPart:  # noqa: ANN401
    return PeriodPart(situation.name, which)


@st.composite
def returns(draw: st.DrawFn, held: Sequence[Situation]) -> tuple[Named, ...]:
    """Draw what is told of each match: when its situations began, and more."""
    one = st.sampled_from(list(held))
    items: list[Expression] = []
    for function, argument in draw(st.lists(st.sampled_from(AGGREGATES), max_size=2)):
        items.append(MatchAggregate(function, argument, draw(one).name))
    for which in draw(st.lists(st.sampled_from(["end", "duration", "both"]), max_size=2)):
        if which == "both":
            count = MatchAggregate("count", None, draw(one).name)
            highest = MatchAggregate("max", Column("n"), draw(one).name)
            items.append(call("-", highest, count))
            items.append(call("-", part(draw(one), "end"), part(draw(one), "start")))
        else:
            items.append(part(draw(one), which))
    return (
        *starts_of(held),
        *(Named(f"r{place}", item) for place, item in enumerate(items)),
    )


def starts_of(held: Sequence[Situation]) -> tuple[Named, ...]:
    return tuple(Named(f"{each.name}_start", part(each, "start")) for each in held)


@st.composite
def summaries(draw: st.DrawFn, held: Sequence[Situation]) -> tuple[Named, ...]:
    """Draw what is told of all matches of a moment."""
    one = st.sampled_from(list(held))
    arguments: Sequence[Expression] = (
        call("epoch_us", part(draw(one), "duration")),
        MatchAggregate("count", None, draw(one).name),
        MatchAggregate("max", Column("v"), draw(one).name),
        MatchAggregate("sum", Column("n"), draw(one).name),
    )
    items: list[Expression] = [Aggregate("count", None)]
    for function in draw(st.lists(st.sampled_from(["sum", "min", "max", "avg"]), max_size=2)):
        items.append(Aggregate(function, draw(st.sampled_from(arguments))))
    items.append(Aggregate("min", part(draw(one), "start")))
    items.append(Aggregate("count", part(draw(one), "end")))
    items.append(call("+", Aggregate("count", None), constant(1)))
    return tuple(Named(f"r{place}", item) for place, item in enumerate(items))
