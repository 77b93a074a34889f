"""Random plans of the event algebra over s and t, and random events for them.

Most plans that are put together at random give nothing. So they are drawn anew, from a seed, until
there are results.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from typing import Any

from hypothesis import strategies as st

from eventide.plan.algebra.conditions import LENGTH
from eventide.plan.algebra.nodes import TIMES, Carried, Iterate, attributes
from eventide.plan.algebra.nodes import Sequence as Next
from eventide.plan.bind import bind
from eventide.plan.expressions import ALWAYS, Call, Column, Expression, Literal, Named
from eventide.plan.nodes import DerivedStream, Filter, Project, Scan
from eventide.plan.standing.nodes import Merge
from eventide.plan.tree import Plan
from eventide.schema import (
    FLOAT64,
    INT64,
    INTERVAL,
    MAX_TS_US,
    MIN_TS_US,
    START_TS,
    STRING,
    TS,
    DataType,
    Schema,
)
from tests.naive.algebra.events import TooMuch
from tests.naive.algebra.trees import answer

Row = dict[str, Any]
Columns = Mapping[str, DataType]
Streams = dict[str, list[Row]]

SCHEMA = Schema.of(
    {"start_ts": "timestamp", "k": "string", "n": "int64", "v": "float64", "w": "string"}
)
CATALOG = {"s": SCHEMA, "t": SCHEMA}
NAN = float("nan")

# Events

BASES = (0, 0, 0, MIN_TS_US + 6, MAX_TS_US - 100)


def streams(choose: random.Random, most: int = 12) -> Streams:
    """The events of both streams, each in order of (ts, _seq)."""
    base = choose.choice(BASES)
    return {name: rows(choose, base, choose.randint(most // 2, most)) for name in CATALOG}


def rows(choose: random.Random, ts: int, count: int) -> list[Row]:
    """Events that overlap, some at the same instant, with values that are null or no number."""
    found = []
    for seq in range(count):
        ts += choose.choice([1, 1, 0, 2, 1, 0, 3])
        values = {
            START_TS: ts - choose.choice([0, 0, 0, 0, 1, 2, 6]),
            "k": choose.choice(["p", "p", "p", "q", "p", "p", "q", None]),
            "n": choose.choice([1, 2, 0, 3, 2, 1, -4, None]),
            "v": choose.choice([0.5, 2.0, 0.25, 0.5, -0.0, 0.0, NAN, None]),
            "w": choose.choice(["x", "yy", "", None]),
        }
        found.append({TS: ts, "_seq": seq, **values})
    return found


# Expressions over some columns


def call(function: str, *arguments: Expression) -> Call:
    return Call(function, arguments)


def named(columns: Columns, *kinds: DataType) -> list[str]:
    return [name for name, kind in columns.items() if kind in kinds]


def number(choose: random.Random, columns: Columns, kind: DataType) -> Expression:
    """A column, a constant, the sum or difference of two columns, a product, or the greater one."""
    names = named(columns, kind)
    constants = [1, 2, 0, 3] if kind == INT64 else [0.5, 0.0, NAN, 2.0]
    if not names or choose.random() < 0.1:
        return Literal(choose.choice(constants), kind)
    one, other = (Column(choose.choice(names)) for _ in range(2))
    match choose.choice(["", "", "", "+", "-", "*", "case"]):
        case "+" | "-" as function:
            return call(function, one, other)
        case "*":
            return call("*", one, Literal(constants[-1], kind))
        case "case":
            return call("case", call("<", one, other), other, one)
    return one


COMPARED = ("<=", ">=", "<>", "<", ">", "=", "is distinct from", "is not distinct from")
KINDS = {"int": (INT64, INT64), "float": (FLOAT64, FLOAT64), "mixed": (INT64, FLOAT64)}


def comparison(choose: random.Random, columns: Columns) -> Expression:
    texts = named(columns, STRING)
    match choose.choice(["int", "int", "float", "text", "length", "known", "mixed"]):
        case "text" if texts:
            pair = (Column(choose.choice(texts)) for _ in range(2))
            return call(choose.choice(("=", "<>", "<")), *pair)
        case "length" if TS in columns:
            return bounded(choose)
        case "known":
            unknown = call("is null", Column(choose.choice(sorted(columns))))
            return call("not", unknown) if choose.random() < 0.8 else unknown
        case kind:
            numbers = (number(choose, columns, each) for each in KINDS.get(kind, KINDS["int"]))
            return call(choose.choice(COMPARED), *numbers)


def bounded(choose: random.Random) -> Expression:
    """A bound of DUR, either side first."""
    most = choose.random() < 0.6
    bound = Literal(choose.choice([8, 12, 20, 5, 3, 1, 0] if most else [2, 1, 3, 0, 8]), INTERVAL)
    if choose.random() < 0.5:
        return call(choose.choice(["<=", "<"] if most else [">=", ">"]), LENGTH, bound)
    return call(choose.choice([">=", ">"] if most else ["<=", "<"]), bound, LENGTH)


def condition(choose: random.Random, columns: Columns) -> Expression:
    one = comparison(choose, columns)
    match choose.choice(["", "", "", "or", "not", "and"]):
        case "not":
            return call("not", one)
        case "and" | "or" as function:
            return call(function, one, comparison(choose, columns))
    return one


def of_both(choose: random.Random, left: Columns, right: Columns, columns: Columns) -> Expression:
    """What may be asked of an event and one that follows it: often that they share a key."""
    parts = [condition(choose, columns) for _ in range(choose.choice([0, 0, 1, 1, 2]))]
    for ending, often in (("k", 0.5), ("n", 0.1), ("v", 0.1)):
        names = [[name for name in each if name.endswith(ending)] for each in (left, right)]
        if all(names) and choose.random() < often:
            pair = [Column(choose.choice(each)) for each in names]
            parts.append(call("=", *choose.sample(pair, 2)))
    if choose.random() < 0.2:
        parts.append(bounded(choose))
    choose.shuffle(parts)
    return reduce(lambda one, other: call("and", one, other), parts) if parts else ALWAYS


# Plans

ENDINGS = {STRING: "k", INT64: "n", FLOAT64: "v"}


class Fresh:
    """Names that are used once."""

    def __init__(self) -> None:
        self.used = 0

    def next(self) -> str:
        self.used += 1
        return f"c{self.used}"


def typed(plan: Plan) -> Plan:
    return bind(plan, CATALOG)


def leaf(choose: random.Random, fresh: Fresh) -> Plan:
    """Events of a stream, or of both, under names of their own."""
    prefix, names = fresh.next(), choose.choice(["knvw", "kn", "knv", "n", "knw"])
    found: list[Plan] = []
    for stream in choose.choice(["s", "s", "t", "st", "ss"]):
        scan = typed(Scan(stream))
        # The time of the stream may be that of its events: then each is of one instant.
        start = Column(choose.choice([START_TS, START_TS, TS]))
        items = [Named(TS, Column(TS)), Named(START_TS, start)]
        items += [Named(f"{prefix}_{name}", Column(name)) for name in names]
        if choose.random() < 0.2:
            columns = {name: kind for name, kind in scan.row.items() if name in SCHEMA.names}
            scan = Filter(scan, condition(choose, attributes(columns)))
        found.append(Project(scan, tuple(items)))
    if len(found) == 1:
        return typed(found[0])
    merged = Merge(tuple(found))
    return typed(choose.choice([merged, DerivedStream(merged)]))


def carried_by(choose: random.Random, left: Plan, right: Plan, fresh: Fresh) -> list[Carried]:
    """Sums, counts, the newest value, the first one, values of each other."""
    own = attributes(left.row)
    firsts = named(own, INT64, FLOAT64, STRING)
    chosen = [choose.choice(firsts) for _ in range(choose.choice([0, 1, 1, 2, 3]))]
    begun = {f"{fresh.next()}_{ENDINGS[own[first]]}": first for first in chosen}
    kinds = {**{name: own[first] for name, first in begun.items()}, **attributes(right.row)}
    found = []
    for name, first in begun.items():
        kind = own[first]
        one, other = (Column(choose.choice(named(kinds, kind))) for _ in range(2))
        options: list[Expression] = [one]
        if kind != STRING:
            options.append(call("+", one, other))
        if kind == INT64:
            count = call("+", Column(name), Literal(1, INT64))
            options += [count, number(choose, kinds, INT64)]
        found.append(Carried(name, first, choose.choice(options)))
    return found


def following(choose: random.Random, left: Plan, right: Plan, fresh: Fresh) -> Plan:
    own, others = attributes(left.row), attributes(right.row)
    if choose.random() < 0.5:
        asked = of_both(choose, own, others, {**left.row, **others})
        return typed(Next(left, right, asked))
    carried = carried_by(choose, left, right, fresh)
    own = {**own, **{each.name: own[each.first] for each in carried}}
    columns = {**left.row, **own, **others}
    asked = of_both(choose, own, others, columns)
    proceed = condition(choose, columns) if choose.random() < 0.5 else ALWAYS
    return typed(Iterate(left, right, asked, proceed, tuple(carried)))


def tree(choose: random.Random, depth: int, fresh: Fresh) -> Plan:
    if depth == 0 or choose.random() < 0.4:
        return leaf(choose, fresh)
    return operated(choose, depth, fresh)


def operated(choose: random.Random, depth: int, fresh: Fresh) -> Plan:
    """A sequence or an iteration, and maybe a selection or a computation over it."""
    left, right = (tree(choose, depth - 1, fresh) for _ in range(2))
    below = following(choose, left, right, fresh)
    match choose.choice(["", "", "", "project", "filter", "length"]):
        case "filter":
            return typed(Filter(below, condition(choose, below.row)))
        case "length":
            return typed(Filter(below, bounded(choose)))
        case "project":
            prefix, own = fresh.next(), attributes(below.row)
            kept = [TS, START_TS, *choose.sample(sorted(own), choose.randint(1, len(own)))]
            items = [
                Named(each if each in TIMES else f"{prefix}_{each}", Column(each)) for each in kept
            ]
            items.append(Named(f"{prefix}_sum", number(choose, own, INT64)))
            return typed(Project(below, tuple(items)))
    return below


# Both


@dataclass(frozen=True)
class Case:
    """A plan, events, and the results of the twin."""

    plan: Plan
    streams: Streams
    rows: list[Row]


def case_of(seed: int, depth: int, most: int) -> Case:
    """The first plan and events from a seed that give results, or some that give none."""
    choose = random.Random(seed)
    while True:
        plan, given = operated(choose, depth, Fresh()), streams(choose, most)
        with suppress(TooMuch):
            found = answer(plan, given)
            if found or choose.random() < 0.03:
                return Case(plan, given, found)


CASES = st.builds(case_of, st.integers(0, 2**32), st.integers(1, 3), st.integers(2, 12))
