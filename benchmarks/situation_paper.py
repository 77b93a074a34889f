"""What the TPStream paper measures of single ideas: many streams, latency, orders, adaptation."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations
from statistics import median

import pyarrow as pa

from benchmarks.measure import collector_off
from benchmarks.race import ROUNDS, Finding, at_least, at_most, race
from benchmarks.situation_cases import SituationCase
from benchmarks.situation_data import ALIKE, booleans, phases
from benchmarks.situation_gains import NO_GAIN, SIMULATED, gains
from benchmarks.situation_queries import BEFORE_OVERLAPS, Q1, Q2, Q3, SHAPES, Ask, shaped
from benchmarks.situation_setting import (
    PIPELINE_ROWS,
    SituationSetting,
    arrivals,
    check_counts,
    matches_in,
    ordered_pipeline,
    over_arrow,
    single_pushes,
    standing,
    through,
)
from eventide.batch import Batch
from eventide.engines.build import Pipeline, States
from eventide.operators.match_situations import PatternState
from eventide.operators.situation_plan import fixed_orders

Order = tuple[int, ...]

STREAMS = (4, 6, 8, 10)
PATTERNS = 5
MOST_OF_STREAMS = at_most(2.5)
LEAST_OF_PLANNED = at_least(0.97)
MOST_OF_SWITCH = at_most(1.02)
MOST_OFF = at_most(0.05)
LATENCY_WINDOWS_S = (500, 10_000, 100_000)
RATIOS = ((1, 1, 1), (1, 50, 50), (50, 1, 50))
"""How often each of three situations occurs, in three phases."""
ADAPTED = Q3.within(10_000)
ORDERS: tuple[Order, ...] = tuple(permutations(range(3)))
ROUNDS_OF_ORDERS = 5


def many_streams(setting: SituationSetting) -> list[Finding]:
    """W3: from 4 to 10 situations in patterns of five shapes; a few random patterns each."""
    events = booleans(setting.sizes.of(0.1), [ALIKE] * max(STREAMS))
    findings = []
    for shape in SHAPES:
        # Nothing is random about equal and meets.
        seeds = range(PATTERNS if shape in ("chain", "star", "combined") else 1)
        taken = {count: median_of(shape, count, seeds, events) for count in STREAMS}
        fewest = STREAMS[0]
        findings += [
            Finding(
                f"{shape}, {count}",
                taken[count],
                f"{shape}, {fewest}",
                taken[fewest],
                MOST_OF_STREAMS if count == STREAMS[-1] else None,
                events.num_rows,
            )
            for count in STREAMS[1:]
        ]
    return findings


def median_of(shape: str, count: int, seeds: Sequence[int], events: pa.Table) -> float:
    """Return the median seconds over patterns of a shape, warm."""
    ways: dict[str, Callable[[], object]] = {
        str(seed): partial(over_arrow, shaped(shape, count, seed), events) for seed in seeds
    }
    for way in ways.values():
        way()
    return median(race(ways).values())


def latency_gain(setting: SituationSetting) -> list[Finding]:
    """W4: how much sooner early detection is; every match at the moment that theory says."""
    findings = []
    for gain in gains(setting.sizes.of(0.03)):
        name = f"{gain.relation}, {gain.ratio}"
        if gain.relation in NO_GAIN:
            findings.append(Finding(f"{name}: gain, s", gain.mean_s, target=at_most(0)))
            continue
        findings.append(Finding(f"{name}: gain ÷ mean of B", gain.mean_s / gain.mean_b_s))
        simulated = SIMULATED.get((gain.relation, gain.ratio))
        if simulated is not None:
            off = abs(gain.mean_s - simulated) / simulated
            ours = Finding(f"{name}: gain, s", gain.mean_s, "simulated, s", simulated)
            findings += [ours, Finding(f"{name}: off from simulated", off, target=MOST_OFF)]
    return findings


def latency(setting: SituationSetting) -> list[Finding]:
    """W5: seconds from one event to its results, early and final, in several windows."""
    singles = setting.sizes.singles
    findings = []
    for within_s in LATENCY_WINDOWS_S:
        warm = min(2 * within_s, setting.sizes.many) + 1_000
        events = booleans(warm + singles, [ALIKE] * 3)
        before = arrivals(events, warm)[0]
        batches = arrivals(events, 1)[warm:]
        early = BEFORE_OVERLAPS.within(within_s)
        spent = {}
        for pattern in (early, early.asking("count", "final")):
            query = standing(pattern, events.schema)
            query.push(before)
            spent[pattern.detection] = single_pushes(query, batches)
        for place, name in enumerate(("p50", "p99")):
            ours, theirs = spent["early"][place], spent["final"][place]
            findings.append(Finding(f"w = {within_s:,} s, early, {name}", ours, "final", theirs))
    return findings


def join_orders(setting: SituationSetting) -> list[Finding]:
    """W6: the order that is planned against all orders there are."""
    events = booleans(setting.sizes.of(0.2), [ALIKE] * 3)
    return [line for pattern in (Q1, Q2, Q3) for line in orders_of(pattern, events)]


def orders_of(pattern: Ask, events: pa.Table) -> list[Finding]:
    """Return the planned order against the best and the worst."""
    pipelines = {
        shown(order): ordered_pipeline(pattern, events.schema, order, adaptive=False)
        for order in ORDERS
    }
    pipelines["planned"] = ordered_pipeline(pattern, events.schema, None, adaptive=True)
    ways: dict[str, Callable[[], pa.Table]] = {
        name: partial(through, pipeline, events) for name, pipeline in pipelines.items()
    }
    check_counts(pattern.name, {name: matches_in(way()) for name, way in ways.items()})
    seconds = race(ways, ROUNDS_OF_ORDERS)
    planned = seconds.pop("planned")
    best, worst = min(seconds, key=seconds.__getitem__), max(seconds, key=seconds.__getitem__)
    count = events.num_rows
    ours = partial(Finding, f"{pattern.name}, planned", planned, events=count)
    return [
        ours(f"best, {best}", seconds[best], LEAST_OF_PLANNED),
        ours(f"worst, {worst}", seconds[worst]),
    ]


def shown(order: Order) -> str:
    """Return an order as letters."""
    return "".join("ABC"[place] for place in order)


def adaptation(setting: SituationSetting) -> list[Finding]:
    """W7: how often situations occur changes twice; against orders that stay, and a wise switch."""
    parts = phases(setting.sizes.of(0.6), RATIOS)
    schema = parts[0].schema
    static = {
        shown(order): ordered_pipeline(ADAPTED, schema, order, adaptive=False) for order in ORDERS
    }
    adaptive = ordered_pipeline(ADAPTED, schema, None, adaptive=True)
    spent = {name: in_phases(pipeline, parts) for name, pipeline in static.items()}
    counted = {name: matches for name, (_, matches) in spent.items()}
    counted["adaptive"] = in_phases(adaptive, parts)[1]
    check_counts(ADAPTED.name, counted)
    each = medians({name: partial(in_phases, way, parts) for name, way in static.items()})
    wise = tuple(
        ORDERS[list(each).index(min(each, key=lambda name: each[name][phase]))]
        for phase in range(len(parts))
    )
    switching = ordered_pipeline(ADAPTED, schema, wise[0], adaptive=False)
    ways = {
        "adaptive": partial(in_phases, adaptive, parts),
        "switch": partial(in_phases, switching, parts, wise),
    }
    seconds = medians(ways, ROUNDS_OF_ORDERS)
    count = sum(part.num_rows for part in parts)
    ours = partial(Finding, "adaptive", sum(seconds["adaptive"]), events=count)
    switch = f"switch {' → '.join(map(shown, wise))}"
    lines = [ours(switch, sum(seconds["switch"]), MOST_OF_SWITCH)]
    lines += [ours(f"always {name}", sum(took)) for name, took in each.items()]
    for phase, ratio in enumerate(RATIOS):
        worst = max(each, key=lambda name: each[name][phase])
        took, took_worst = seconds["adaptive"][phase], each[worst][phase]
        occur = ":".join(map(str, ratio))
        rows = parts[phase].num_rows
        lines.append(Finding(f"adaptive, {occur}", took, f"always {worst}", took_worst, None, rows))
    return lines


Run = Callable[[], tuple[tuple[float, ...], int]]


def medians(ways: Mapping[str, Run], rounds: int = ROUNDS) -> dict[str, tuple[float, ...]]:
    """Return the median seconds of each phase; every round runs every way once."""
    spent: dict[str, list[tuple[float, ...]]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            spent[name].append(way()[0])
    return {name: tuple(map(median, zip(*taken, strict=True))) for name, taken in spent.items()}


def in_phases(
    pipeline: Pipeline, parts: Sequence[pa.Table], orders: Sequence[Order] | None = None
) -> tuple[tuple[float, ...], int]:
    """Return the seconds of each phase, and how many matches; with a new order for each, if any."""
    states, matches = pipeline.initial_state(), 0
    seconds = []
    with collector_off():
        for phase, part in enumerate(parts):
            if orders is not None:
                states = switched(states, orders[phase])
            start = time.perf_counter()
            for rows in part.select(pipeline.input_schema.names).to_batches(PIPELINE_ROWS):
                newest = rows.column("ts")[-1].cast(pa.int64()).as_py()
                states, results = pipeline.step(states, Batch(rows, newest))
                matches += matches_in(pa.Table.from_batches([results.rows]))
            seconds.append(time.perf_counter() - start)
    return tuple(seconds), matches


def switched(states: States, order: Order) -> States:
    """Return the states with another order of joining: nothing else depends on it."""
    after = []
    for state in states:
        changed = state
        if isinstance(state, PatternState):
            statistics = state.statistics.copy()
            statistics.orders[:] = fixed_orders(order)
            changed = replace(state, statistics=statistics)
        after.append(changed)
    return tuple(after)


PAPER_CASES = (
    SituationCase(
        "W3 many streams",
        f"patterns of 4 to 10 situations within 2,000 s; of chains and stars the median of "
        f"{PATTERNS} with relations at random, of which at most one is before or after",
        many_streams,
    ),
    SituationCase(
        "W4 latency gain",
        "each relation alone within 1,000 s: the mean of how much sooner a match is reported than "
        "when it is over; the moment of every single match is compared with the closed form",
        latency_gain,
    ),
    SituationCase(
        "W5 latency",
        "A before B, B overlaps C: seconds until an event's results are there",
        latency,
    ),
    SituationCase(
        "W6 orders of joining",
        "Q1 A overlaps B, A overlaps C, B starts C; Q2 A overlaps B, A before C, B overlaps C; Q3 "
        "all before; within 5,000 s, only counted: the planned order against all six",
        join_orders,
    ),
    SituationCase(
        "W7 adaptation",
        "Q3 within 10,000 s, only counted, while situations occur 1:1:1, then 1:50:50, then "
        "50:1:50; against a switch to the best order at each change, and orders that stay",
        adaptation,
    ),
)
