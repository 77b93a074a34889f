"""The templates of subscriptions of the document (Table 4.1), each as one query."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

RANGE = 0.7
"""The share of values that a range has."""
QUERIES = 5
"""Queries of a template, with other constants each."""
_PRIMARY, _PARAMETER = "a0", "a3"


def condition(choose: random.Random) -> str:
    """Return two equalities and two ranges, with constants that are drawn."""
    low, other = (choose.uniform(0, 1 - RANGE) for _ in range(2))
    return (
        f"a1 = {choose.randrange(100)} AND a2 = {choose.randrange(100)} "
        f"AND x0 >= {low:.3f} AND x0 < {low + RANGE:.3f} "
        f"AND x1 >= {other:.3f} AND x1 < {other + RANGE:.3f}"
    )


def linear_static(choose: random.Random) -> str:
    """Three events that follow each other; every condition is on one event."""
    first, second, third = (condition(choose) for _ in range(3))
    pair = f"FILTER{{{second}}}(FILTER{{{first}}} s NEXT{{}} s)"
    return f"SELECT * FROM FILTER{{{third}}}({pair} NEXT{{}} s)"


def linear_dynamic(choose: random.Random) -> str:
    """The same, and a value of each event is that of the one before."""
    first, second, third = (condition(choose) for _ in range(3))
    again = f"{_PARAMETER} = {_PARAMETER}_1"
    return (
        f"SELECT * FROM FILTER{{{third} AND {again}}}(FILTER{{{second} AND {again}}}"
        f"(FILTER{{{first}}} s NEXT{{}} s) NEXT{{}} s)"
    )


def filtered(choose: random.Random) -> str:
    """Three events of one value, within twenty seconds."""
    value, second, third = choose.randrange(100), condition(choose), condition(choose)
    step = f"NEXT{{DUR <= 20 seconds AND $2.{_PRIMARY} = {value}}} s"
    return (
        f"SELECT * FROM FILTER{{{third}}}(FILTER{{{second}}}"
        f"(FILTER{{{condition(choose)} AND {_PRIMARY} = {value}}} s {step}) {step})"
    )


def iterated(choose: random.Random) -> str:
    """Events of one value that follow each other for twenty seconds, as often as they come."""
    value = choose.randrange(100)
    return (
        f"SELECT * FROM FILTER{{{condition(choose)}}}(FILTER{{{_PRIMARY} = {value}}} s "
        f"FOLD{{DUR <= 20 seconds AND $2.{_PRIMARY} = {value}, , }} s)"
    )


def aggregated(choose: random.Random) -> str:
    """The same with sums of two attributes."""
    value = choose.randrange(100)
    return (
        f"SELECT * FROM FILTER{{{condition(choose)}}}"
        f"((SELECT *, x2 AS total, x3 AS other FROM FILTER{{{_PRIMARY} = {value}}} s) "
        f"FOLD{{DUR <= 20 seconds AND $2.{_PRIMARY} = {value}, , "
        "$.total + $2.x2 AS total, $.other + $2.x3 AS other} s)"
    )


TEMPLATES: dict[str, Callable[[random.Random], str]] = {
    "LinearStat": linear_static,
    "LinearDyn": linear_dynamic,
    "Filter": filtered,
    "NonDeterministic": iterated,
    "NonDeterministicAgg": aggregated,
}


def queries_of(name: str) -> Iterator[str]:
    """Yield the queries of a template, in every run the same."""
    choose = random.Random(name)
    for _ in range(QUERIES):
        yield TEMPLATES[name](choose)
