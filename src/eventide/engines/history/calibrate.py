"""Measure the cost of single steps of a query on this machine.

An estimate is a sum of weights, each times a number known from the plan and the store. So a few
queries are run, each in a given way over small and large generated streams; the weights are those
with which the estimates come closest to the measured times. A weight that these queries say little
about moves with the others: a machine is usually slower or faster in everything.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa

from eventide.engines.history.calibrate_queries import PROBES, Probe
from eventide.engines.history.patterns.conditions import Condition
from eventide.engines.history.patterns.estimate import as_choice, estimates
from eventide.engines.history.patterns.question import PatternQuestion, pattern_question
from eventide.engines.history.patterns.ways import IntervalAccess
from eventide.engines.history.replay import replay
from eventide.engines.history.weights import DEFAULTS, MOST_OFF, Weights
from eventide.engines.history.windows.index import replay_seconds as window_seconds
from eventide.engines.history.windows.index import window_access
from eventide.ingest.coerce import to_events
from eventide.kernels.compiled import Floats
from eventide.lang.sql import plan_sql
from eventide.plan.nodes import match_of
from eventide.plan.tree import Plan
from eventide.schema import Schema
from eventide.store.options import StreamOptions
from eventide.store.snapshot import Snapshot
from eventide.store.store import DROPPED, Store

OnStep = Callable[[str], None]

STREAM = "probe"
SIZES = (60_000, 240_000)
SECOND_US = 1_000_000
REPEATS = 2
"""The shortest of this many runs counts, after one that compiles: others were disturbed."""
PULL = 0.05
"""How strongly a weight is held to the speed of the machine as a whole."""
ROUNDS = 40
NAMES = tuple(each.name for each in fields(Weights))
NOTHING = Weights(**dict.fromkeys(NAMES, 0.0))


@dataclass(frozen=True, slots=True)
class MeasuredQuery:
    """The time of a query, and how often each weight counts in its estimate."""

    seconds: float
    counts: Floats


def calibrated(folder: Path, on_step: OnStep = lambda _: None) -> Weights:
    """Return the weights of this machine, measured in a folder of a database.

    The folder has the name of a dropped stream: if this is interrupted, the store removes it with
    the next stream that is dropped.
    """
    place = folder / f"{DROPPED}calibration-{uuid.uuid4().hex}"
    try:
        found = []
        for rows in SIZES:
            on_step(f"storing {rows:,} events")
            snapshot = stored(place / str(rows), rows)
            for probe in PROBES:
                on_step(f"{probe.name}, {rows:,} events")
                found.append(measured(probe, snapshot))
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return fitted_weights(found)


def stored(folder: Path, rows: int) -> Snapshot:
    """Return a stream of events as the estimates assume them: evenly spread, independent."""
    random = np.random.default_rng(5)
    names = ("a", "b", "c", "d")
    columns = {name: random.random(rows) for name in names}
    schema = Schema.of(dict.fromkeys(names, "float64"))
    options = StreamOptions(durability="none", indexes=("a", "b"))
    stream = Store.open(folder).create_stream(STREAM, schema, options)
    times = pa.array(np.arange(rows) * SECOND_US).cast(pa.timestamp("us", "UTC"))
    stream.append(to_events(pa.table({"ts": times, **columns}), schema))
    stream.flush()
    return stream.snapshot()


def measured(probe: Probe, snapshot: Snapshot) -> MeasuredQuery:
    """Run a query several times, and return how long it takes."""
    plan = plan_sql(probe.sql, {STREAM: snapshot.schema})
    best = np.inf
    for repeat in range(REPEATS + 1):
        run = runner(probe, plan, snapshot)
        started = perf_counter()
        run()
        # The first run may compile, and fills caches.
        best = min(best, perf_counter() - started) if repeat else best
    estimate = estimator(probe, plan, snapshot)
    # How often a weight counts: the estimate with all others zero, and this one 1.
    units = [Weights(**{**asdict(NOTHING), name: 1.0}) for name in NAMES]
    return MeasuredQuery(float(best), np.array(list(map(estimate, units))))


def runner(probe: Probe, plan: Plan, snapshot: Snapshot) -> Callable[[], object]:
    """Return the work that a probe times, made anew: a run must not use results of another."""
    if probe.way == "replay":
        return lambda: replay(plan, snapshot)
    if probe.way == "index":
        access = window_access(plan, snapshot, DEFAULTS)
        assert not isinstance(access, str)
        return access.run
    question = asked(plan, snapshot)
    return IntervalAccess(question, chosen_in(probe, question)).run


def estimator(probe: Probe, plan: Plan, snapshot: Snapshot) -> Callable[[Weights], float]:
    """Return the expected time of a probe, as a function of the weights."""
    if probe.way == "replay":
        if match_of(plan) is None:
            return lambda weights: window_seconds(plan, snapshot, weights)
        pattern = asked(plan, snapshot)
        return lambda weights: snapshot.row_count * pattern.row_seconds(weights)
    if probe.way == "index":
        access = window_access(plan, snapshot, DEFAULTS)
        assert not isinstance(access, str)
        return lambda weights: replace(access, weights=weights).estimate.seconds
    question = asked(plan, snapshot)
    wanted = chosen_in(probe, question)
    choice = as_choice(question.shape.conditions, wanted)
    return lambda weights: float(estimates(question.facts(weights), choice, weights).seconds[0])


def asked(plan: Plan, snapshot: Snapshot) -> PatternQuestion:
    """Return what is known from the index about the pattern of a probe."""
    question = pattern_question(plan, snapshot)
    assert not isinstance(question, str), question
    return question


def chosen_in(probe: Probe, question: PatternQuestion) -> tuple[Condition, ...]:
    """Return the conditions that a probe looks up: those on its attributes."""
    return tuple(
        each for each in question.shape.conditions if set(each.attributes) <= set(probe.looked_up)
    )


def fitted_weights(found: Sequence[MeasuredQuery]) -> Weights:
    """Return the weights with which estimates come closest to the measured times, as ratios.

    All values are logarithms: half as much is as far off as twice as much.
    """
    usual = np.array([getattr(DEFAULTS, name) for name in NAMES])
    parts = np.array([each.counts for each in found]) * usual
    took = np.log([each.seconds for each in found])
    speed = float(np.median(took - np.log(parts.sum(axis=1))))
    logs = np.full(len(usual), speed)
    for _ in range(ROUNDS):
        shares = parts * np.exp(logs)
        sums = shares.sum(axis=1)
        shares /= sums[:, None]
        # Newton's step: towards the measured values, held back towards the speed of the machine.
        slope = shares.T @ (took - np.log(sums)) - PULL * (logs - speed)
        bend = shares.T @ shares + PULL * np.eye(len(logs))
        logs += np.clip(np.linalg.solve(bend, slope), -1.0, 1.0)
        logs = np.clip(logs, -np.log(MOST_OFF), np.log(MOST_OFF))
    return Weights(**dict(zip(NAMES, (np.exp(logs) * usual).tolist(), strict=True)))


def compared(before: Weights, after: Weights) -> Iterator[tuple[str, float, float]]:
    """Yield the name of each weight, and its seconds before and after."""
    for name in NAMES:
        yield name, getattr(before, name), getattr(after, name)
