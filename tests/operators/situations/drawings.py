"""Patterns of situations, drawn, and what two oracles and the operator all have to find there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from eventide.plan.expressions import Column, Expression, Named, PeriodPart
from eventide.plan.nodes import Scan
from eventide.plan.situations.allen import (
    ANY,
    BEFORE,
    CONTAINS,
    DURING,
    EQUALS,
    FINISHED_BY,
    GROUPS,
    MEETS,
    MET_BY,
    OVERLAPPED_BY,
    OVERLAPS,
    STARTED_BY,
    STARTS,
)
from eventide.plan.situations.nodes import TemporalPattern
from eventide.plan.situations.parts import Constraint, Situation
from tests.naive.situations.matches import by_closed_form, step_by_step
from tests.naive.situations.nodes import SECOND, Row, bound_pattern, call
from tests.operators.situations.drive import one_by_one, run

Answer = Callable[[TemporalPattern, Sequence[Row]], list[Row]]

ANSWERS: Mapping[str, Answer] = {
    "closed form": by_closed_form,
    "step by step": step_by_step,
    "in one batch": run,
    "one by one": lambda node, events: run(node, events, one_by_one(events)),
}


def pattern(names: str, masks: Mapping[str, int], **changes: Any) -> TemporalPattern:  # noqa: ANN401
    """Return a node whose situations are flags; `masks` has the relations of "AB".

    Among the changes, `A=(2, 4)` is how many seconds A lasts, or its condition.
    """
    held = []
    for name in names:
        given = changes.pop(name, ())
        condition: Expression = Column(name.lower()) if isinstance(given, tuple) else given
        least, most = (*given, None)[:2] if isinstance(given, tuple) and given else (0, None)
        most_us = None if most is None else most * SECOND
        held.append(Situation(name, condition, least * SECOND, most_us))
    constraints = tuple(
        Constraint(names.index(pair[0]), names.index(pair[1]), mask) for pair, mask in masks.items()
    )
    returns = tuple(
        Named(f"{name}_{part}", PeriodPart(name, part))
        for name in names
        for part in ("start", "end")
    )
    within_us = changes.pop("within", 1000) * SECOND
    node = TemporalPattern(Scan("s"), (), tuple(held), constraints, within_us, returns)
    return bound_pattern(replace(node, **changes))


Found = tuple[Any, ...]


def seconds(found: Sequence[Row]) -> list[Found]:
    """Return rows in order as (ts, (start, end), …) in seconds."""

    def second(us: int | None) -> int | None:
        return None if us is None else us // SECOND

    listed: list[Found] = []
    for row in found:
        times = [second(value) for name, value in row.items() if name.endswith(("start", "end"))]
        listed.append((second(row["ts"]), *zip(times[::2], times[1::2], strict=True)))
    return sorted(listed, key=str)


@dataclass(frozen=True)
class Drawing:
    """What is found, as (ts, (start, end) of A, of B, …), in what is drawn."""

    name: str
    lines: Mapping[str, str]
    masks: Mapping[str, int]
    expected: Sequence[Found]
    changes: Mapping[str, Any] = field(default_factory=dict)
    at: Sequence[int] = ()


A_FIRST, TOGETHER, A_LAST = GROUPS
NOT_A = call("not", Column("a"))

BEGINNINGS_AND_ENDS = (
    Drawing(
        "true on the first event",
        {"A": "##..", "B": "...#"},
        {"AB": BEFORE | MEETS},
        [(3, (0, 2), (3, None))],
    ),
    Drawing("alone", {"A": ".##.#"}, {}, [(1, (1, None)), (4, (4, None))]),
    Drawing("alone, when it is over", {"A": ".##.#"}, {}, [(3, (1, 3))], {"detection": "final"}),
    Drawing(
        "both open at the end",
        {"A": "####", "B": ".###"},
        {"AB": A_FIRST},
        [(1, (0, None), (1, None))],
    ),
    Drawing("open at the end, and so unknown", {"A": "####", "B": ".###"}, {"AB": OVERLAPS}, []),
    Drawing(
        "one open at the end",
        {"A": "##..", "B": ".###"},
        {"AB": OVERLAPS},
        [(2, (0, 2), (1, None))],
    ),
    Drawing("final, one open", {"A": "##..", "B": ".###"}, {}, [], {"detection": "final"}),
    Drawing("one event", {"A": ".#..", "B": "..#."}, {"AB": MEETS}, [(2, (1, 2), (2, None))]),
    Drawing("never true", {"A": "....", "B": "####"}, {"AB": ANY}, []),
    Drawing("no events", {"A": "", "B": ""}, {"AB": ANY}, []),
    Drawing("unknown is not true", {"A": "#?#."}, {}, [(0, (0, None)), (2, (2, None))]),
    Drawing("unknown ends", {"A": "##?"}, {}, [(2, (0, 2))], {"detection": "final"}),
)

DURATIONS = (
    Drawing("exactly at least", {"A": "####"}, {}, [(2, (0, None))], {"A": (2,)}),
    Drawing("at least, at the end", {"A": "##.."}, {}, [(2, (0, 2))], {"A": (2,)}),
    Drawing("at least, between events", {"A": "##."}, {}, [(9, (0, 9))], {"A": (5,)}, [0, 1, 9]),
    Drawing("too short", {"A": "#..."}, {}, [], {"A": (2,)}),
    Drawing("too short so far", {"A": ".##"}, {}, [], {"A": (2,)}),
    Drawing("exactly at most", {"A": "##.."}, {}, [(2, (0, 2))], {"A": (0, 2)}),
    Drawing("too long", {"A": "###."}, {}, [], {"A": (0, 2)}),
    Drawing("at most, and still open", {"A": "##"}, {}, [], {"A": (0, 2)}),
    Drawing(
        "between",
        {"A": "#.##.###.####."},
        {},
        [(4, (2, 4)), (8, (5, 8))],
        {"A": (2, 3)},
    ),
    Drawing(
        "certain before it is long enough",
        {"A": "##....", "B": "..####"},
        {"AB": MEETS},
        [(5, (0, 2), (2, None))],
        {"B": (3,)},
    ),
    Drawing(
        "long enough on the event that ends it, beside an open one",
        {"A": "##..", "B": "####"},
        {"AB": STARTS},
        [(2, (0, 2), (0, None))],
        {"A": (2,)},
    ),
)

WINDOWS = (
    Drawing(
        "a period of exactly the window",
        {"A": "##..", "B": "..##"},
        {"AB": MEETS},
        [(2, (0, 2), (2, None))],
        {"within": 2},
    ),
    Drawing("a period too long", {"A": "##..", "B": "..##"}, {"AB": MEETS}, [], {"within": 1}),
    Drawing(
        "final, exactly the window",
        {"A": "##...", "B": "..##."},
        {"AB": MEETS},
        [(4, (0, 2), (2, 4))],
        {"within": 4, "detection": "final"},
    ),
    Drawing(
        "final, too long",
        {"A": "##...", "B": "..##."},
        {"AB": MEETS},
        [],
        {"within": 3, "detection": "final"},
    ),
    Drawing(
        "longer than the window, but known within",
        {"A": "#########.", "B": ".#......#."},
        {"AB": A_FIRST},
        [(1, (0, None), (1, None))],
        {"within": 2},
    ),
    Drawing("itself too long", {"A": "####."}, {}, [], {"within": 2, "detection": "final"}),
    Drawing(
        "silent for longer than the window",
        {"A": "#.#.", "B": ".#.#"},
        {"AB": BEFORE | MEETS},
        [(1, (0, 1), (1, None)), (1001, (1000, 1001), (1001, None))],
        {"within": 5},
        [0, 1, 1000, 1001],
    ),
)

SIMULTANEOUS = (
    Drawing("starts", {"A": "##.", "B": "###"}, {"AB": STARTS}, [(2, (0, 2), (0, None))]),
    Drawing("starts, any way", {"A": "##.", "B": "###"}, {"AB": TOGETHER}, [(0, *[(0, None)] * 2)]),
    Drawing("ends", {"A": "###.", "B": ".##."}, {"AB": FINISHED_BY}, [(3, (0, 3), (1, 3))]),
    Drawing("both", {"A": ".##.", "B": ".##."}, {"AB": EQUALS}, [(3, (1, 3), (1, 3))]),
    Drawing("equals, one open", {"A": ".##.", "B": ".###"}, {"AB": EQUALS}, []),
    Drawing(
        "equals or starts, one open",
        {"A": ".##.", "B": ".###"},
        {"AB": EQUALS | STARTS},
        [(3, (1, 3), (1, None))],
    ),
    Drawing("not started by", {"A": ".##.", "B": ".###"}, {"AB": EQUALS | STARTED_BY}, []),
    Drawing("finished by, one open", {"A": "####", "B": ".##."}, {"AB": FINISHED_BY}, []),
    Drawing(
        "finished by or contains, one open",
        {"A": "####", "B": ".##."},
        {"AB": FINISHED_BY | CONTAINS},
        [(3, (0, None), (1, 3))],
    ),
    Drawing(
        "an end and a start, and another end",
        {"A": "##..", "B": "..#.", "C": "##.."},
        {"AB": MEETS, "AC": EQUALS, "BC": MET_BY},
        [(2, (0, 2), (2, None), (0, 2))],
    ),
    Drawing(
        "three ends",
        {"A": "####.", "B": ".###.", "C": "..##."},
        {"AB": FINISHED_BY, "BC": FINISHED_BY, "AC": FINISHED_BY},
        [(4, (0, 4), (1, 4), (2, 4))],
    ),
    Drawing(
        "two ends inside an open one",
        {"A": "####..", "B": ".###..", "C": "#####."},
        {"AB": FINISHED_BY, "BC": DURING},
        [(4, (0, 4), (1, 4), (0, None))],
    ),
    Drawing(
        "one after the other at one time",
        {"A": "##..", "B": "..##"},
        {"AB": MEETS},
        [(1, (0, 1), (1, None))],
        at=[0, 1, 1, 2],
    ),
    Drawing("all at one time", {"A": "#.."}, {}, [(1, (1, 1))], {"detection": "final"}, [1, 1, 1]),
    Drawing(
        "before, at one time",
        {"A": "#..", "B": "..#"},
        {"AB": BEFORE},
        [(1, (1, 1), (1, None))],
        {"within": 1},
        [1, 1, 1],
    ),
    Drawing("does not meet", {"A": "#..", "B": "..#"}, {"AB": MEETS}, [], at=[1, 1, 1]),
)

CONDITIONS = (
    Drawing(
        "the same condition twice",
        {"A": "#.#.#"},
        {"AB": EQUALS},
        [(1, (0, 1), (0, 1)), (3, (2, 3), (2, 3))],
        {"B": Column("a")},
    ),
    Drawing(
        "the same condition twice, early",
        {"A": "#.##"},
        {"AB": TOGETHER},
        [(0, (0, None), (0, None)), (2, (2, None), (2, None))],
        {"B": Column("a")},
    ),
    Drawing(
        "a condition and its opposite",
        {"A": "##.#"},
        {"AB": MEETS | MET_BY},
        [(2, (0, 2), (2, None)), (3, (3, None), (2, 3))],
        {"B": NOT_A},
    ),
    Drawing(
        "any relation",
        {"A": "#.#", "B": "#.#"},
        {"AB": ANY},
        [
            (0, (0, None), (0, None)),
            (2, (0, 1), (2, None)),
            (2, (2, None), (0, 1)),
            (2, (2, None), (2, None)),
        ],
    ),
    Drawing(
        "no constraint",
        {"A": "#.", "B": ".#"},
        {},
        [(1, (0, 1), (1, None))],
    ),
    Drawing(
        "turned round",
        {"A": ".##", "B": "##."},
        {"AB": OVERLAPPED_BY},
        [(2, (1, None), (0, 2))],
    ),
)

# A before B, C and D; D during C, or C finishes D as the paper has it, or C meets D.
FIGURE_4 = {"AB": BEFORE, "AC": BEFORE, "AD": BEFORE, "CD": CONTAINS | FINISHED_BY | MEETS}
FIGURES = (
    Drawing(
        "D during C, which goes on",
        {"A": "#.........", "B": "..#.......", "C": "..#####...", "D": "....#....."},
        FIGURE_4,
        [(5, (0, 1), (2, 3), (2, None), (4, 5))],
    ),
    Drawing(
        "C and D end together, B goes on",
        {"A": "#.........", "B": "...#######", "C": "..####....", "D": "....##...."},
        FIGURE_4,
        [(6, (0, 1), (3, None), (2, 6), (4, 6))],
    ),
    Drawing(
        "C meets D, B and D go on",
        {"A": "#.........", "B": "..########", "C": "..##......", "D": "....######"},
        FIGURE_4,
        [(4, (0, 1), (2, None), (2, 4), (4, None))],
    ),
    Drawing(
        "B begins last",
        {"A": "#.........", "B": ".......###", "C": "..##......", "D": "....#....."},
        FIGURE_4,
        [(7, (0, 1), (7, None), (2, 4), (4, 5))],
    ),
    Drawing(
        "C overlaps D",
        {"A": "#.........", "B": "..########", "C": "..###.....", "D": "....######"},
        FIGURE_4,
        [],
    ),
)

DRAWINGS = (
    *BEGINNINGS_AND_ENDS,
    *DURATIONS,
    *WINDOWS,
    *SIMULTANEOUS,
    *CONDITIONS,
    *FIGURES,
)
