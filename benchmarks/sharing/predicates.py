"""The predicate index: which of many conditions are true on each event.

The rival is each condition alone, as live queries that share nothing evaluate them: 100 of them are
timed, and counted as many times as there are conditions. Times are those of the processor.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from rich.console import Console

from benchmarks.guard import MismatchError
from benchmarks.measure import collector_off
from benchmarks.pages import PREDICATES, write_section
from benchmarks.promises import Figure, verdict
from benchmarks.race import Target, at_least, at_most
from benchmarks.report import Machine, facts
from benchmarks.sharing.conditions import EVENTS, WORKLOADS, Workload, both, call
from benchmarks.sharing.windows import lines_of
from eventide.operators.expressions.evaluate import evaluate_predicate
from eventide.operators.sharing.conditions.apart import with_constants
from eventide.operators.sharing.predicate_index import PredicateIndex
from eventide.plan.expressions import Column, Expression, Literal, integer
from eventide.plan.tree import Row
from eventide.schema import FLOAT64, INT64

CONDITIONS = max(workload.conditions for workload in WORKLOADS)
BATCHES, ROUNDS = 10, 5
TREES, CHURNED, PORTIONS = 10_000, 1_000, 100
HELD = 100_000
BUILT_S, TREES_S, SHAPE_S = 10.0, 1.5, 0.3


@dataclass(frozen=True, slots=True)
class Indexed:
    """What was measured of a workload."""

    workload: Workload
    built_s: float
    events_s: float
    pairs: float
    octets: float

    def cells(self) -> tuple[str, ...]:
        """Return its row of the table."""
        return (
            self.workload.name,
            f"{self.workload.conditions:,}",
            f"{self.built_s:.2f}",
            f"{self.octets:.0f}",
            f"{self.events_s / 1e3:,.0f}",
            f"{self.pairs:.2f}",
        )


def indexed(workload: Workload) -> Indexed:
    """Build an index, and pass batches through it, each of them new to it in the first round."""
    rng = np.random.default_rng(1)
    batches = [workload.events(rng) for _ in range(BATCHES)]
    warm_up(workload, batches[0])
    recorded = Recorded(workload.row)
    workload.add(recorded, workload.conditions, rng)
    began = time.process_time()
    index = recorded.build()
    index.matches(batches[0].slice(0, 1))
    built = time.process_time() - began
    best, pairs = np.inf, 0
    for _ in range(ROUNDS):
        fresh = [workload.events(rng) for _ in range(BATCHES)]
        began = time.process_time()
        pairs = sum(len(index.matches(batch)[0]) for batch in fresh)
        best = min(best, time.process_time() - began)
    events = BATCHES * EVENTS
    octets = index.nbytes / workload.conditions
    return Indexed(workload, built, events / best, pairs / events, octets)


def warm_up(workload: Workload, rows: pa.RecordBatch) -> None:
    """Compile what a workload needs, on few of its conditions."""
    index = PredicateIndex(workload.row)
    workload.add(index, min(1_000, workload.conditions), np.random.default_rng(2))
    index.matches(rows)


def check_workload(workload: Workload) -> None:
    """Compare an index of rules with each rule alone; other conditions are rows of a template."""
    conditions = kept_conditions(workload)
    index = PredicateIndex(workload.row)
    index.add(np.arange(len(conditions)), conditions)
    rows = workload.events(np.random.default_rng(3))
    found = index.matches(rows)
    for number, condition in enumerate(conditions):
        alone = np.flatnonzero(evaluate_predicate(condition, rows).to_numpy(zero_copy_only=False))
        if not np.array_equal(found[0][found[1] == number], alone):
            message = f"{workload.name}: condition {number} has other events alone"
            raise MismatchError(message)


def kept_conditions(workload: Workload, count: int = 100) -> list[Expression]:
    """Return some conditions of a workload as expressions."""
    recorded = Recorded(workload.row)
    workload.add(recorded, count, np.random.default_rng(4))
    return recorded.expressions()


class Recorded(PredicateIndex):
    """Keeps what is added, so that an index can be built without making it."""

    def __init__(self, row: Row) -> None:
        super().__init__(row)
        self.conditions: list[tuple[np.ndarray, Sequence[Expression]]] = []
        self.templates: list[tuple[np.ndarray, Expression, pa.RecordBatch]] = []

    def add(self, numbers: np.ndarray, conditions: Sequence[Expression]) -> None:
        """Keep conditions."""
        self.conditions.append((numbers, conditions))

    def add_template(
        self, numbers: np.ndarray, shape: Expression, constants: pa.RecordBatch
    ) -> None:
        """Keep a template."""
        self.templates.append((numbers, shape, constants))

    def build(self) -> PredicateIndex:
        """Return an index with all that was kept."""
        index = PredicateIndex(self.row)
        for numbers, conditions in self.conditions:
            index.add(numbers, conditions)
        for numbers, shape, constants in self.templates:
            index.add_template(numbers, shape, constants)
        return index

    def expressions(self) -> list[Expression]:
        """Return all conditions."""
        found = [each for _, conditions in self.conditions for each in conditions]
        for numbers, shape, constants in self.templates:
            found += [with_constants(shape, constants, row) for row in range(len(numbers))]
        return found


def alone_s(workload: Workload) -> float:
    """Return the seconds that an event takes if each condition is evaluated alone."""
    conditions = kept_conditions(workload)
    rows = workload.events(np.random.default_rng(5))
    began = time.process_time()
    for condition in conditions:
        evaluate_predicate(condition, rows)
    each = (time.process_time() - began) / len(conditions)
    return each * workload.conditions / EVENTS


def tree(rng: np.random.Generator, depth: int) -> Expression:
    """Return a condition of a shape that hardly any other has."""
    if depth:
        return call(str(rng.choice(["and", "or"])), tree(rng, depth - 1), tree(rng, depth - 1))
    if rng.random() < 0.5:
        return call("=", Column(f"d{rng.integers(4)}", INT64), integer(int(rng.integers(100))))
    name = str(rng.choice(["<", ">", "<=", ">="]))
    return call(name, Column(f"c{rng.integers(4)}", FLOAT64), Literal(float(rng.random()), FLOAT64))


def alike(rng: np.random.Generator) -> Expression:
    """Return a condition of the shape that all others have."""
    return both(
        call("=", Column("d0", INT64), integer(int(rng.integers(100)))),
        call(">", Column("c0", FLOAT64), Literal(float(rng.random()), FLOAT64)),
    )


def adding_s(make: Callable[[np.random.Generator], Expression]) -> float:
    """Return the seconds to add conditions that are expressions."""
    rng = np.random.default_rng(6)
    conditions = [make(rng) for _ in range(TREES)]
    index = PredicateIndex(WORKLOADS[1].row)
    began = time.process_time()
    index.add(np.arange(TREES), conditions)
    return time.process_time() - began


def churn_s() -> float:
    """Return the seconds of a thousand conditions that come, and as many that go, beside many."""
    rng = np.random.default_rng(7)
    index = PredicateIndex(WORKLOADS[1].row)
    index.add(np.arange(HELD), [alike(rng) for _ in range(HELD)])
    rows = WORKLOADS[1].events(rng).slice(0, 10)
    index.matches(rows)
    portion = CHURNED // PORTIONS
    new = [alike(rng) for _ in range(portion)]
    began = time.process_time()
    for step in range(PORTIONS):
        start = HELD + step * portion
        index.add(np.arange(start, start + portion), new)
        index.drop(np.arange(step * portion, (step + 1) * portion))
        index.matches(rows)
    return time.process_time() - began


def figures(found: Sequence[Indexed], changes: Sequence[tuple[str, float, Target]]) -> list[Figure]:
    """Return what has to hold."""
    kept = []
    for each in found:
        value, target = each.events_s / 1e3, at_least(each.workload.wanted / 1e3)
        case = f"{each.workload.conditions:,} conditions, K events/s"
        kept.append(Figure(case, each.workload.name, "", target, value, target.met_by(value)))
        if each.workload.name == "BE-Gen":
            target = at_most(BUILT_S)
            met = target.met_by(each.built_s)
            kept.append(Figure("seconds to build", "BE-Gen", "", target, each.built_s, met))
    for name, value, target in changes:
        kept.append(Figure(name, "seconds", "", target, value, target.met_by(value)))
    return kept


def changes() -> Iterator[tuple[str, float, Target]]:
    """Yield what adding and dropping takes."""
    yield f"{TREES:,} expressions of one shape added", adding_s(alike), at_most(SHAPE_S)
    different = adding_s(lambda rng: tree(rng, 3))
    yield f"{TREES:,} expressions of their own shapes added", different, at_most(TREES_S)
    yield f"{CHURNED:,} come and go beside {HELD:,}, in {PORTIONS} portions", churn_s(), at_most(1)


def run_predicates(screen: Console, machine: Machine, most: int, *, write: bool) -> None:
    """Measure all workloads, and report."""
    found, alone = [], []
    with collector_off():
        for workload in WORKLOADS:
            check_workload(workload)
            kept = replace(workload, conditions=min(most, workload.conditions))
            found.append(indexed(kept))
            alone.append(1e-3 / alone_s(kept))
            screen.print(" | ".join((*found[-1].cells(), f"{alone[-1]:.3g}")))
        others = list(changes())
    for name, seconds, _ in others:
        screen.print(f"{name}: {seconds:.2f} s")
    if write:
        details = predicates_section(found, alone, others, machine)
        path = write_section(PREDICATES, details, figures(found, others))
        screen.print(f"written to {path}")


def predicates_section(
    found: Sequence[Indexed],
    alone: Sequence[float],
    others: Sequence[tuple[str, float, Target]],
    machine: Machine,
) -> str:
    """Return the details."""
    about = (
        f"Batches of {EVENTS:,} events. Seconds of a processor to build; octets of a condition, "
        "with all that conditions share; thousand events a second of one processor, the best of "
        f"{ROUNDS} rounds of {BATCHES} batches that are new; true conditions of an event; and "
        "thousand events a second if each condition is evaluated alone."
    )
    heads = ("Workload", "Conditions", "built s", "octets", "K events/s", "true", "alone")
    rows = [(*each.cells(), f"{speed:.3g}") for each, speed in zip(found, alone, strict=True)]
    verdicts = [verdict(each) for each in figures(found, others)]
    what = ("Case", "What", "Against", "Target", "Found", "Met")
    lines = [
        *(*facts(machine), "", about, "", *lines_of(heads, rows), "", *lines_of(what, verdicts)),
        *("", "What each workload has:", ""),
        *(f"- **{each.workload.name}**: {each.workload.asked}" for each in found),
    ]
    return "\n".join(lines) + "\n"
