"""W6 and W7: the order of joining that is planned against all there are, and a change of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations

import pyarrow as pa

from benchmarks.measure import collector_off
from benchmarks.race import Finding, at_least, at_most
from benchmarks.situations.cases import SituationCase
from benchmarks.situations.data import ALIKE, booleans, phases
from benchmarks.situations.queries import Q1, Q2, Q3, Ask
from benchmarks.situations.scan import scan_matches
from benchmarks.situations.setting import (
    PIPELINE_ROWS,
    SituationSetting,
    check_counts,
    fastest,
    in_turn,
    matches_in,
    ordered_tree,
    over_arrow,
    through,
)
from eventide.operators.situations.match import PatternState
from eventide.operators.situations.plan import fixed_orders
from eventide.operators.tree import OperatorTree, States

Order = tuple[int, ...]
Run = Callable[[], tuple[tuple[float, ...], int]]

LEAST_OF_PLANNED = at_least(0.97)
MOST_OF_SWITCH = at_most(1.02)
RATIOS = ((1, 1, 1), (1, 50, 50), (50, 1, 50))
"""How often each of three situations occurs, in three phases."""
ADAPTED = Q3.within(10_000)
ORDERS: tuple[Order, ...] = tuple(permutations(range(3)))
PLANNED, ADAPTIVE = "planned", "adaptive"
COMPARED = 20_000
"""So many events are enough to compare numbers of matches with the scan."""
ROUNDS_OF_ALL = 5
ROUNDS_OF_FEW = 9
NEAR = 1.05
"""Orders that are at most so much slower than the best one have more rounds."""


def join_orders(setting: SituationSetting) -> list[Finding]:
    """W6: the order that is planned against all orders there are."""
    events = booleans(setting.sizes.of(0.1), [ALIKE] * 3)
    return [line for pattern in (Q1, Q2, Q3) for line in orders_of(pattern, events)]


def check_scanned(pattern: Ask, events: pa.Table) -> None:
    """Compare the number of matches over a few events with the scan's."""
    final, few = pattern.asking("count", "final"), events.slice(0, COMPARED)
    scanned = scan_matches(final, few)
    assert isinstance(scanned, int)
    ours = matches_in(over_arrow(final, few))
    check_counts(f"{pattern.name}, final", {"scan": scanned, "Eventide": ours})


def orders_of(
    pattern: Ask, events: pa.Table, rounds: tuple[int, int] = (ROUNDS_OF_ALL, ROUNDS_OF_FEW)
) -> list[Finding]:
    """Return the planned order against each: first all in turn, then the best ones again."""
    check_scanned(pattern, events)
    trees = {
        shown_order(order): ordered_tree(pattern, events.schema, order, adaptive=False)
        for order in ORDERS
    }
    trees[PLANNED] = ordered_tree(pattern, events.schema, None, adaptive=True)
    ways: dict[str, Callable[[], pa.Table]] = {
        name: partial(through, tree, events) for name, tree in trees.items()
    }
    check_counts(pattern.name, {name: matches_in(way()) for name, way in ways.items()})
    seconds = fastest(ways, rounds[0])
    enough = NEAR * min(taken for name, taken in seconds.items() if name != PLANNED)
    near = {name: way for name, way in ways.items() if name == PLANNED or seconds[name] <= enough}
    again = fastest(near, rounds[1])
    seconds |= {name: min(taken, seconds[name]) for name, taken in again.items()}
    planned = seconds.pop(PLANNED)
    best, *others = sorted(seconds, key=seconds.__getitem__)
    ours = partial(Finding, f"{pattern.name}, planned", planned, events=events.num_rows)
    first = ours(f"best, {best}", seconds[best], LEAST_OF_PLANNED)
    return [first, *(ours(name, seconds[name]) for name in others)]


def shown_order(order: Order) -> str:
    """Return an order as letters.

    >>> shown_order((2, 0, 1))
    'CAB'
    """
    return "".join("ABC"[place] for place in order)


def adaptation(setting: SituationSetting) -> list[Finding]:
    """W7: how often situations occur changes twice; against orders that stay, and a wise switch."""
    parts = phases(setting.sizes.of(0.2), RATIOS)
    schema = parts[0].schema
    check_scanned(ADAPTED, parts[0])
    static: dict[str, Run] = {
        shown_order(order): partial(
            in_phases, ordered_tree(ADAPTED, schema, order, adaptive=False), parts
        )
        for order in ORDERS
    }
    adaptive: Run = partial(in_phases, ordered_tree(ADAPTED, schema, None, adaptive=True), parts)
    each, counted = least_of_phases({**static, ADAPTIVE: adaptive}, ROUNDS_OF_ALL)
    del each[ADAPTIVE]
    wise = tuple(
        min(ORDERS, key=lambda order: each[shown_order(order)][phase])
        for phase in range(len(parts))
    )
    switching = ordered_tree(ADAPTED, schema, wise[0], adaptive=False)
    ways: dict[str, Run] = {
        ADAPTIVE: adaptive,
        "switch": partial(in_phases, switching, parts, wise),
    }
    seconds, also_counted = least_of_phases(ways, ROUNDS_OF_FEW)
    check_counts(ADAPTED.name, counted | also_counted)
    count = sum(part.num_rows for part in parts)
    ours = partial(Finding, ADAPTIVE, sum(seconds[ADAPTIVE]), events=count)
    switch = f"switch {' → '.join(map(shown_order, wise))}"
    lines = [ours(switch, sum(seconds["switch"]), MOST_OF_SWITCH)]
    lines += [ours(f"always {name}", sum(took)) for name, took in each.items()]
    for phase, ratio in enumerate(RATIOS):
        worst = max(each, key=lambda name: each[name][phase])
        took, took_worst = seconds[ADAPTIVE][phase], each[worst][phase]
        name, rows = f"{ADAPTIVE}, {':'.join(map(str, ratio))}", parts[phase].num_rows
        lines.append(Finding(name, took, f"always {worst}", took_worst, None, rows))
    return lines


def least_of_phases(
    ways: Mapping[str, Run], rounds: int
) -> tuple[dict[str, tuple[float, ...]], dict[str, int]]:
    """Return the least seconds of each phase, and how many matches; after a run for each."""
    counted = {name: way()[1] for name, way in ways.items()}
    spent: dict[str, list[tuple[float, ...]]] = {name: [] for name in ways}
    for name in in_turn(list(ways), rounds):
        spent[name].append(ways[name]()[0])
    least = {name: tuple(map(min, zip(*taken, strict=True))) for name, taken in spent.items()}
    return least, counted


def in_phases(
    tree: OperatorTree, parts: Sequence[pa.Table], orders: Sequence[Order] | None = None
) -> tuple[tuple[float, ...], int]:
    """Return the seconds of each phase, and how many matches; with a new order for each, if any."""
    states, matches = tree.initial_state(), 0
    seconds = []
    with collector_off():
        for phase, part in enumerate(parts):
            if orders is not None:
                states = switched(states, orders[phase])
            start = time.perf_counter()
            for rows in part.select(tree.input_schema.names).to_batches(PIPELINE_ROWS):
                newest = rows.column("ts")[-1].cast(pa.int64()).as_py()
                states, results = tree.step(states, (rows,), newest)
                matches += matches_in(pa.Table.from_batches([results]))
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


ORDER_CASES = (
    SituationCase(
        "W6 orders of joining",
        "Q1 A overlaps B, A overlaps C, B starts C; Q2 A overlaps B, A before C, B overlaps C; Q3 "
        "all before; within 5,000 s, only counted: the planned order against all six. The ratio "
        f"is that of throughputs; seconds are the least of {ROUNDS_OF_ALL} rounds in turn, of the "
        f"planned order and those close to the best of {ROUNDS_OF_FEW} more",
        join_orders,
    ),
    SituationCase(
        "W7 adaptation",
        "Q3 within 10,000 s, only counted, while situations occur 1:1:1, then 1:50:50, then "
        "50:1:50; against a switch to the best order at each change, and orders that stay. "
        f"Seconds are the sum of each phase's least: of {ROUNDS_OF_FEW} rounds in turn with the "
        f"switch, of {ROUNDS_OF_ALL} of the orders that stay",
        adaptation,
    ),
)
