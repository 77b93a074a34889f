"""Conditions of many live queries, and events for them: known benchmarks, made anew here.

Those of Cayuga are of its table 4.1, those of BE-Gen are pairs of an attribute and a value, and
rules are like those of Sigma, by how often their tests occur there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

import numpy as np
import pyarrow as pa

from eventide.operators.sharing.predicate_index import PredicateIndex
from eventide.plan.expressions import Call, Column, Expression, Literal
from eventide.plan.tree import Row
from eventide.schema import BOOL, FLOAT64, INT64, STRING

EVENTS = 1_000
DOMAIN = 100
WIDTH, RANGES = 0.7, 25
DIMENSIONS, ASKED, GIVEN = 100, 5, 30
SYMBOLS = 100
FIELDS = ("image", "command", "parent", "file", "user")
WORDS = (
    *("cmd", "powershell", "svc", "host", "rundll", "reg", "sc", "net", "user", "add", "temp"),
    *("appdata", "windows", "system", "exe", "dll", "bat", "vbs", "enc", "hidden", "bypass"),
    *("admin", "local", "task", "sched", "wmi", "mshta", "cert", "util", "copy", "move", "del"),
    *("invoke", "web", "request", "download", "string", "base", "sixty", "four", "shadow", "vss"),
    *("delete", "all", "quiet", "log", "event", "clear", "dump"),
)


@dataclass(frozen=True, slots=True)
class Workload:
    """Conditions and events. `add` puts so many conditions into an index."""

    name: str
    asked: str
    conditions: int
    row: Row
    add: Callable[[PredicateIndex, int, np.random.Generator], None]
    events: Callable[[np.random.Generator], pa.RecordBatch]
    wanted: float
    """Events a second."""


def both(*parts: Expression) -> Expression:
    """Return that all conditions are true."""
    return reduce(lambda left, right: call("and", left, right), parts)


def call(name: str, *arguments: Expression) -> Expression:
    """Return a condition."""
    return Call(name, arguments, BOOL)


CAYUGA = {f"d{k}": INT64 for k in range(4)} | {f"c{k}": FLOAT64 for k in range(4)}


def add_cayuga(index: PredicateIndex, count: int, rng: np.random.Generator) -> None:
    """Two equalities of four attributes, and two ranges of four others."""
    pairs = list(combinations(range(4), 2))
    which = rng.integers(0, len(pairs) ** 2, count)
    for shape in range(len(pairs) ** 2):
        numbers = np.flatnonzero(which == shape)
        if not len(numbers):
            continue
        equal, between = pairs[shape // len(pairs)], pairs[shape % len(pairs)]
        columns: dict[str, np.ndarray] = {}
        parts = []
        for each in equal:
            columns[f"${each}"] = rng.integers(0, DOMAIN, len(numbers))
            parts.append(call("=", Column(f"d{each}", INT64), Column(f"${each}", INT64)))
        for each in between:
            low = rng.integers(0, RANGES, len(numbers)) * (1 - WIDTH) / (RANGES - 1)
            columns |= {f"$low{each}": low, f"$high{each}": low + WIDTH}
            value = Column(f"c{each}", FLOAT64)
            parts.append(call(">=", value, Column(f"$low{each}", FLOAT64)))
            parts.append(call("<=", value, Column(f"$high{each}", FLOAT64)))
        index.add_template(numbers, both(*parts), pa.RecordBatch.from_pydict(columns))


def cayuga_events(rng: np.random.Generator) -> pa.RecordBatch:
    """Return uniform events."""
    columns = {
        name: rng.integers(0, DOMAIN, EVENTS) if kind == INT64 else rng.random(EVENTS)
        for name, kind in CAYUGA.items()
    }
    return pa.RecordBatch.from_pydict(columns)


DIMENSION_ROW = {f"d{k}": INT64 for k in range(DIMENSIONS)}


def chosen_dimensions(count: int, chosen: int, rng: np.random.Generator) -> np.ndarray:
    """Return, for each row, which dimensions it leaves out."""
    left_out = np.ones((count, DIMENSIONS), np.bool_)
    order = np.argsort(rng.random((count, DIMENSIONS), np.float32), axis=1)
    np.put_along_axis(left_out, order[:, :chosen], values=False, axis=1)
    return left_out


def add_dimensions(index: PredicateIndex, count: int, rng: np.random.Generator) -> None:
    """Some equalities of many: a template whose constants may be left out."""
    left_out = chosen_dimensions(count, ASKED, rng)
    constants = pa.RecordBatch.from_arrays(
        [
            pa.array(rng.integers(0, DOMAIN, count), mask=left_out[:, place])
            for place in range(DIMENSIONS)
        ],
        names=[f"${place}" for place in range(DIMENSIONS)],
    )
    parts = []
    for place, name in enumerate(DIMENSION_ROW):
        constant = Column(f"${place}", INT64)
        equal = call("=", Column(name, INT64), constant)
        parts.append(call("or", call("is null", constant), equal))
    index.add_template(np.arange(count), both(*parts), constants)


def dimension_events(rng: np.random.Generator) -> pa.RecordBatch:
    """Return events that have some of the dimensions."""
    left_out = chosen_dimensions(EVENTS, GIVEN, rng)
    values = rng.integers(0, DOMAIN, (EVENTS, DIMENSIONS))
    columns = [pa.array(values[:, k], mask=left_out[:, k]) for k in range(DIMENSIONS)]
    return pa.RecordBatch.from_arrays(columns, names=list(DIMENSION_ROW))


SELECTIONS = {"x": FLOAT64, "sym": STRING}


def symbols(count: int, rng: np.random.Generator) -> list[str]:
    """Return names of shares."""
    return [f"S{each}" for each in rng.integers(0, SYMBOLS, count)]


def add_selections(index: PredicateIndex, count: int, rng: np.random.Generator) -> None:
    """`x > c AND sym = s`."""
    shape = both(
        call(">", Column("x", FLOAT64), Column("$c", FLOAT64)),
        call("=", Column("sym", STRING), Column("$s", STRING)),
    )
    constants = {"$c": rng.random(count), "$s": symbols(count, rng)}
    index.add_template(np.arange(count), shape, pa.RecordBatch.from_pydict(constants))


def selection_events(rng: np.random.Generator) -> pa.RecordBatch:
    """Return events of shares."""
    columns = {"x": rng.random(EVENTS), "sym": symbols(EVENTS, rng)}
    return pa.RecordBatch.from_pydict(columns)


RULES = dict.fromkeys((*FIELDS, "event"), STRING)


def word(rng: np.random.Generator, count: int = 2) -> str:
    """Return a name of several words."""
    return "".join(rng.choice(WORDS, count))


def path(rng: np.random.Generator, length: int) -> str:
    """Return a path."""
    return "\\".join(word(rng) for _ in range(length))


def rule_test(rng: np.random.Generator) -> Expression:
    """Return a test of a text: a third equalities, a third ends, the rest parts."""
    column, draw = Column(str(rng.choice(FIELDS)), STRING), rng.random()
    if draw < 0.31:
        return call("=", column, Literal(path(rng, 2), STRING))
    if draw < 0.61:
        return call("ends_with", column, Literal(f"\\{word(rng)}.exe", STRING))
    if draw < 0.8:
        return call("contains", column, Literal(f"{word(rng)} {word(rng, 1)}", STRING))
    return call("ilike", column, Literal(f"%{word(rng)}-{word(rng, 1)}%", STRING))


def rule(rng: np.random.Generator) -> Expression:
    """Return a condition of one to fifteen tests."""
    parts = []
    if rng.random() < 0.3:
        parts.append(call("=", Column("event", STRING), Literal(str(rng.integers(20)), STRING)))
    for _ in range(rng.integers(1, 4)):
        tests = [rule_test(rng) for _ in range(rng.integers(1, 6))]
        either = reduce(lambda left, right: call("or", left, right), tests)
        parts.append(call("not", either) if parts and rng.random() < 0.15 else either)
    return both(*parts)


def add_rules(index: PredicateIndex, count: int, rng: np.random.Generator) -> None:
    """Rules, each of a shape of its own."""
    index.add(np.arange(count), [rule(rng) for _ in range(count)])


def rule_events(rng: np.random.Generator) -> pa.RecordBatch:
    """Return events with long texts, most of which are new."""
    columns = {
        "image": [f"{path(rng, 3)}.exe" for _ in range(EVENTS)],
        "command": [" ".join(path(rng, 2) for _ in range(4)) for _ in range(EVENTS)],
        "parent": [f"{path(rng, 3)}.exe" for _ in range(EVENTS)],
        "file": [path(rng, 4) for _ in range(EVENTS)],
        "user": [path(rng, 2) for _ in range(EVENTS)],
        "event": [str(each) for each in rng.integers(0, 20, EVENTS)],
    }
    return pa.RecordBatch.from_pydict(columns)


WORKLOADS = (
    Workload(
        "selections",
        "`x > c AND sym = s`, 100 symbols",
        1_000,
        SELECTIONS,
        add_selections,
        selection_events,
        2e6,
    ),
    Workload(
        "Cayuga",
        "two equalities of four attributes with 100 values, two of four ranges of 0.7",
        400_000,
        CAYUGA,
        add_cayuga,
        cayuga_events,
        1e6,
    ),
    Workload(
        "BE-Gen",
        "5 equalities of 100 attributes with 100 values, events of 30 attributes",
        1_000_000,
        DIMENSION_ROW,
        add_dimensions,
        dimension_events,
        30e3,
    ),
    Workload(
        "rules",
        "rules like those of Sigma: equalities, ends and parts of texts, OR and NOT; all texts new",
        3_000,
        RULES,
        add_rules,
        rule_events,
        20e3,
    ),
)
