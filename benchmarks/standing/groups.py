"""Aggregates over large groups: those that need all values, and panes where answers slide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.race import Finding, at_least, race
from benchmarks.situations.setting import arrivals, check_rows, one_core
from benchmarks.standing.data import SECOND_US, readings
from benchmarks.standing.live import ARRIVING_ROWS, computed_anew, opened, pushed
from benchmarks.standing.setting import (
    Runner,
    StandingCase,
    StandingSetting,
    Step,
    built,
    check_answers,
    planned,
    steps_of,
    times_of,
)
from eventide.operators.tree import OperatorTree
from eventide.plan.standing.execution import Execution

HELD_S = 100
"""So many seconds of a reading a millisecond: 100,000 values."""
HOLISTIC = ("MAX(x)", "MEDIAN(x)", "COUNT(DISTINCT x)")
SLIDING = ("SUM(x)", "MAX(x)")
SLIDE_S = 1
STEPS = 40
PANES: Execution = "aware"
TUPLES: Execution = "negative"


def check_holistic(aggregate: str, events: pa.Table) -> None:
    """Compare the answer after each batch with DuckDB's."""
    batches = arrivals(events, ARRIVING_ROWS)
    ends = np.cumsum([batch.num_rows for batch in batches]).tolist()
    question = f"SELECT {aggregate} AS v FROM held"
    expected = computed_anew(duckdb.connect(), events, ends, question, HELD_S)
    query = opened(f"SELECT {aggregate} AS v FROM s [RANGE {HELD_S} SECONDS]", events)
    for number, batch in enumerate(batches):
        query.push(batch)
        query.advance(int(times_of(pa.Table.from_batches([batch]))[-1]) + 1)
        found = query.current().to_arrow()
        check_rows(f"{aggregate} after batch {number}", expected[number], found)


def holistic(setting: StandingSetting) -> list[Finding]:
    """Aggregates that keep all values of a group, exact at every event."""
    events = readings(setting.sizes.of(0.4))
    batches = arrivals(events, ARRIVING_ROWS)
    ends = np.cumsum([batch.num_rows for batch in batches]).tolist()
    connection = duckdb.connect(config={"threads": 1})
    lines: list[Finding] = []
    for aggregate in HOLISTIC:
        check_holistic(aggregate, readings(setting.sizes.of(0.05)))
        text = f"SELECT {aggregate} AS v FROM s [RANGE {HELD_S} SECONDS]"
        question = f"SELECT {aggregate} AS v FROM held"
        ways: dict[str, Callable[[], object]] = {
            "live": partial(pushed, text, events, batches),
            "anew": partial(computed_anew, connection, events, ends, question, HELD_S),
        }
        with one_core():
            took = race(ways)
        rival = "DuckDB, anew after each batch"
        lines.append(
            Finding(
                f"{aggregate}, {ARRIVING_ROWS:,} at a time",
                took["live"],
                rival,
                took["anew"],
                None,
                events.num_rows,
            )
        )
    return lines


def run_all(tree: OperatorTree, steps: list[Step]) -> int:
    """Take all steps; return how many rows were reported."""
    return Runner(tree).run(steps)


def panes(setting: StandingSetting) -> list[Finding]:
    """Partial results by pane, and the execution that keeps every tuple."""
    events = readings(setting.sizes.of(0.4))
    first = int(times_of(events)[0])
    seconds = events.num_rows // 1_000
    every = max(1, seconds // STEPS)
    cuts = [first + SECOND_US * second for second in range(every, seconds + every + 1, every)]
    lines: list[Finding] = []
    for aggregate in SLIDING:
        text = f"SELECT {aggregate} AS v FROM s [RANGE {HELD_S} SECONDS SLIDE {SLIDE_S} SECOND]"
        plan = planned(text, {"s": events})
        trees = {str(execution): built(plan, execution) for execution in (PANES, TUPLES)}
        steps = {name: steps_of(tree, {"s": events}, cuts) for name, tree in trees.items()}
        runners = {name: Runner(tree) for name, tree in trees.items()}
        for name, runner in runners.items():
            # The last step ends after the last event: what is held is measured before.
            runner.run(steps[name][:-1])
        check_answers(f"{aggregate} by panes", runners)
        lines += sizes_beside(aggregate, {name: each.size for name, each in runners.items()})
        took = race({name: partial(run_all, trees[name], steps[name]) for name in trees})
        lines.append(
            Finding(
                f"{aggregate}, SLIDE {SLIDE_S} s: panes",
                took[PANES],
                f"{TUPLES}: every tuple",
                took[TUPLES],
                at_least(1),
                events.num_rows,
            )
        )
    return lines


def sizes_beside(aggregate: str, sizes: Mapping[str, tuple[int, int]]) -> list[Finding]:
    """Return how much is remembered by panes and by tuples."""
    (tuples, size), (others, other_size) = sizes[PANES], sizes[TUPLES]
    what, rival = f"{aggregate}, SLIDE {SLIDE_S} s: panes", f"{TUPLES}: every tuple"
    return [
        Finding(f"{what}, kept", float(tuples), rival, float(others), at_least(1)),
        Finding(f"{what}, MB", size / 1e6, rival, other_size / 1e6),
    ]


GROUP_CASES = (
    StandingCase(
        "all values of a group",
        "aggregates over the 100,000 readings of the last 100 s, one a millisecond, right at every "
        "event; and DuckDB, which answers only at the end of each batch, from scratch. On one core",
        holistic,
    ),
    StandingCase(
        "panes",
        "the same readings with an answer every second: partial results of panes against the "
        "execution that remembers every tuple; time, and how many panes or tuples are kept",
        panes,
    ),
)
