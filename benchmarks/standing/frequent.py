"""Frequent values of a window: how many are found, how exactly, and what that costs."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

from benchmarks.guard import MismatchError
from benchmarks.race import Finding, Target, at_least, at_most, race
from benchmarks.standing.data import READING_US, SECOND_US, SEED, START_US, Int64s, timestamps
from benchmarks.standing.groups import PANES, run_all
from benchmarks.standing.setting import (
    Runner,
    StandingCase,
    StandingSetting,
    built,
    planned,
    steps_of,
)
from eventide.operators.standing.groups.bounded import BoundedSketch

WINDOW = 100_000
PANE_SIZES = (20, 100, 500)
KEPT = (3, 7, 10)
STARTS = 20
VALUES, SKEW = 4_000, 1.3
LISTED = 10_000_000
"""More values than there are: all are listed."""
HELD_S, SLIDE_S = 100, 1
FREQUENT = f"SELECT FREQUENT(x, 0.01) FROM s [RANGE {HELD_S} SECONDS SLIDE {SLIDE_S} SECOND]"
EVERY = f"SELECT x, COUNT(*) AS n FROM s [RANGE {HELD_S} SECONDS SLIDE {SLIDE_S} SECOND] GROUP BY x"


def values_of(count: int) -> Int64s:
    """Return values of which few are frequent."""
    drawn: Int64s = np.random.default_rng(SEED).zipf(SKEW, count) % VALUES
    return drawn


def found_in(values: Int64s, pane: int, kept: int) -> tuple[int, int, float, int]:
    """Return how many values are over the bound, how many are found, their errors, and the pairs.

    Errors of counts are relative, and added up; pairs are those that are kept. The bound is how
    often a value that no pane kept may have come.
    """
    sketch = BoundedSketch(pa.int64(), LISTED, kept)
    panes = np.arange(len(values)) // pane
    entries = sketch.lift(pa.array(values), panes, int(panes[-1]) + 1)
    listed = sketch.listed(entries, np.zeros(len(entries), np.int64), 1)
    missed = int(entries.column("missed").to_numpy().sum())
    names = listed.values.to_numpy()
    truth = np.bincount(values, minlength=VALUES)
    if (listed.lower > truth[names]).any() or (listed.upper < truth[names]).any():
        message = f"a count outside of its bounds, {kept} of each {pane}"
        raise MismatchError(message)
    told = listed.lower > missed
    if (truth[names[told]] <= missed).any():
        message = f"a value that is not over the bound, {kept} of each {pane}"
        raise MismatchError(message)
    real = truth[names[told]]
    errors = float(((real - listed.lower[told]) / real).sum())
    return int((truth > missed).sum()), int(told.sum()), errors, len(entries) - len(set(panes))


def accuracy(setting: StandingSetting) -> list[Finding]:
    """What is found of windows at different places of a stream."""
    size = min(WINDOW, setting.sizes.of(0.1))
    values = values_of(4 * size)
    starts = np.random.default_rng(SEED).integers(0, 3 * size, STARTS).tolist()
    lines: list[Finding] = []
    for pane in PANE_SIZES:
        for kept in KEPT:
            found = [found_in(values[start : start + size], pane, kept) for start in starts]
            over, told, errors, pairs = (sum(column) for column in zip(*found, strict=True))
            what = f"{kept} of each {pane}"
            exact: Target | None = at_most(0.02) if pane == PANE_SIZES[0] and kept >= 7 else None
            few = at_most(0.1) if pane > PANE_SIZES[0] else None
            lines += [
                Finding(
                    f"{what}: found of those over the bound",
                    told / max(over, 1),
                    target=at_least(0.8),
                ),
                Finding(f"{what}: relative error", errors / max(told, 1), target=exact),
                Finding(f"{what}: pairs for an event", pairs / size / STARTS, target=few),
            ]
    return lines


def costs(setting: StandingSetting) -> list[Finding]:
    """Values over 1 %, and the counts of all values."""
    count = setting.sizes.of(0.4)
    moments = START_US + READING_US * np.arange(count, dtype=np.int64)
    events = pa.table({"ts": timestamps(moments), "x": values_of(count)})
    seconds = count * READING_US // SECOND_US
    cuts = [START_US + SECOND_US * second for second in range(10, seconds + 11, 10)]
    trees = {
        name: built(planned(text, {"s": events}), PANES)
        for name, text in (("frequent", FREQUENT), ("every", EVERY))
    }
    steps = {name: steps_of(tree, {"s": events}, cuts) for name, tree in trees.items()}
    sizes = {}
    for name, tree in trees.items():
        runner = Runner(tree)
        runner.run(steps[name][:-1])
        sizes[name] = runner.size[1] / 1e6
    took = race({name: partial(run_all, trees[name], steps[name]) for name in trees})
    what, rival = f"FREQUENT(x, 0.01), SLIDE {SLIDE_S} s", "COUNT(*) of every value"
    return [
        Finding(what, took["frequent"], rival, took["every"], None, count),
        Finding(f"{what}, MB", sizes["frequent"], rival, sizes["every"]),
    ]


FREQUENT_CASES = (
    StandingCase(
        "frequent values: accuracy",
        "windows of 100,000 events at 20 places of a stream, 4,000 values of which few are "
        "frequent, in panes of 20, 100 and 500 events, of which the most frequent values are kept. "
        "A value is found if its lower bound is over what a value that no pane kept may reach. All "
        "bounds are checked; nothing is reported wrongly",
        accuracy,
    ),
    StandingCase(
        "frequent values: cost",
        "the values over 1 % of the last 100 s, a reading a millisecond, with an answer every "
        "second; and the counts of all values by panes, from which the same could be chosen",
        costs,
    ),
)
