"""One join of four windows against a chain of joins of two, from the same text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from statistics import median

import numpy as np
import pyarrow as pa

from benchmarks.race import ROUNDS, Finding, at_least, timed
from benchmarks.situations.setting import in_turn
from benchmarks.standing.data import (
    OTHER_INPUTS,
    SCALE,
    SECOND_US,
    START_US,
    Arrivals,
    arrivals_of,
    scaled,
    timestamps,
)
from benchmarks.standing.setting import (
    Runner,
    StandingCase,
    StandingSetting,
    check_answers,
    planned,
    steps_of,
)
from eventide.engines.build import build_tree
from eventide.plan.expressions import Expression
from eventide.plan.standing.choose import choose_plan
from eventide.plan.standing.join_order import JoinInput
from eventide.plan.standing.joins import WindowJoin
from eventide.plan.standing.nodes import Standing
from eventide.plan.tree import Plan

STEP_S = 5
FILLING_S = 200
ONE, CHAIN = "one join of four", "chain of joins of two"
WRITTEN = ((0, 1, 2, 3), (3, 2, 1, 0))
"""Orders in which the windows are named, which a chain follows."""


def text_of(order: tuple[int, ...], inputs: tuple[JoinInput, ...]) -> str:
    """Return the join with its windows in an order."""
    windows = [f"s{side} [RANGE {int(inputs[side].lifetime)} SECONDS] w{side}" for side in order]
    columns = ", ".join(f"w{side}.v AS v{side}" for side in range(len(order)))
    joins = [
        f"JOIN {window} ON w{side}.k = w{before}.k"
        for window, side, before in zip(windows[1:], order[1:], order, strict=False)
    ]
    return f"SELECT {columns} FROM {windows[0]} {' '.join(joins)}"


def streams_of(arrivals: Arrivals, count: int) -> dict[str, pa.Table]:
    """Return the tuples of each stream as events: the key, and a value."""
    found = {}
    for side in range(count):
        own = np.flatnonzero(arrivals.stream == side)
        columns = {"ts": timestamps(arrivals.at_us[own]), "k": arrivals.value[own], "v": own}
        found[f"s{side}"] = pa.table(columns)
    return found


def chained(plan: Plan) -> Plan:
    """Return a plan whose joins are of two sources, each of the one before and one more."""
    if not isinstance(plan, WindowJoin):
        return plan.with_children(chained)
    whole: Plan = plan.sources[0]
    keys: tuple[Expression, ...] = plan.keys[0]
    for source, own in zip(plan.sources[1:], plan.keys[1:], strict=True):
        whole = WindowJoin((whole, source), (keys, own))
    assert isinstance(whole, WindowJoin)
    return replace(whole, condition=plan.condition)


def chains(setting: StandingSetting) -> list[Finding]:
    """Time, and state without the answer, of both ways."""
    inputs = scaled(OTHER_INPUTS, max(1, min(SCALE, setting.sizes.many // 100_000)))
    timed_s = max(20, min(60, setting.sizes.many // 10_000))
    seconds = FILLING_S + ROUNDS * timed_s
    arrivals = arrivals_of(inputs, int(seconds * sum(each.rate for each in inputs)))
    streams = streams_of(arrivals, len(inputs))
    cuts = [START_US + SECOND_US * end for end in range(STEP_S, seconds + 1, STEP_S)]
    each = timed_s // STEP_S
    lines: list[Finding] = []
    for order in WRITTEN:
        plan = choose_plan(planned(text_of(order, inputs), streams)).plan
        chain = chained(plan)
        assert isinstance(chain, Standing)
        runners = {ONE: Runner(build_tree(plan)), CHAIN: Runner(build_tree(chain))}
        steps = {name: steps_of(one.tree, streams, cuts) for name, one in runners.items()}
        filling = len(cuts) - ROUNDS * each
        for name, runner in runners.items():
            runner.run(steps[name][:filling])
        said = "as written " + "".join(str(1 + side) for side in order)
        check_answers(f"four-way join, {said}", runners)
        spent: dict[str, list[float]] = {name: [] for name in runners}
        for turn, name in enumerate(in_turn(list(runners), ROUNDS)):
            start = filling + turn // len(runners) * each
            part = steps[name][start : start + each]
            spent[name].append(timed(partial(runners[name].run, part)))
        check_answers(f"four-way join, {said}", runners)
        events = sum(step.count for step in steps[ONE][filling : filling + each])
        took = {name: median(rounds) for name, rounds in spent.items()}
        lines.append(Finding(f"{said}: {ONE}", took[ONE], CHAIN, took[CHAIN], None, events))
        lines += state_lines(said, {name: below_answer(one) for name, one in runners.items()})
    return lines


def below_answer(runner: Runner) -> tuple[int, int]:
    """Return how many tuples, and bytes, all but the answer remembers."""
    *sizes, _ = (size for _, size in runner.tree.sizes(runner.state))
    return sum(size.tuples for size in sizes), sum(size.bytes for size in sizes)


def state_lines(said: str, sizes: Mapping[str, tuple[int, int]]) -> list[Finding]:
    """Return what both ways remember."""
    (tuples, size), (their_tuples, their_size) = sizes[ONE], sizes[CHAIN]
    return [
        Finding(f"{said}: {ONE}, tuples", tuples, CHAIN, their_tuples, at_least(1)),
        Finding(f"{said}: {ONE}, MB", size / 1e6, CHAIN, their_size / 1e6),
    ]


CHAIN_CASES = (
    StandingCase(
        "four-way join",
        "four streams joined by one key, as one join that keeps nothing in between, and as a chain "
        "of joins of two in the order as written; what they remember is without the answer",
        chains,
    ),
)
