"""Run a standing query step by step, as an engine would, and record the output of each step."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from eventide.engines.build import build_tree
from eventide.engines.standing.options import StandingOptions
from eventide.lang.sql import plan_sql
from eventide.operators.tree import OperatorTree
from eventide.plan.nodes import Scan
from eventide.plan.standing.execution import Execution
from eventide.plan.standing.nodes import Standing
from tests.engines.standing.queries import CATALOG
from tests.naive.standing.answers import Bag, Question, Streams, plain
from tests.naive.standing.windows import SECOND
from tests.naive.windows import Event

LONGEST_US = 10 * SECOND
"""After this time without events nothing changes any more."""


@cache
def plan_of(text: str) -> Standing:
    plan = plan_sql(text, CATALOG)
    assert isinstance(plan, Standing)
    return plan


@cache
def tree_of(text: str, execution: Execution) -> OperatorTree:
    return build_tree(plan_of(text), standing=StandingOptions(execution))


@dataclass(frozen=True)
class Step:
    """What a query says at an instant, and what it has reported until then."""

    now: int
    answer: Bag
    reports: list[dict[str, Any]]


def ends(streams: Streams) -> int:
    """An instant at which everything that can expire has done so."""
    return max((event["ts"] for events in streams.values() for event in events), default=0) + (
        LONGEST_US
    )


def cuts(streams: Streams, choose: random.Random, most: int = 5) -> list[int]:
    """Instants to cut at: some between events, some at one, some just after it."""
    end = ends(streams)
    ticks = [choose.randint(-6, end // SECOND) * SECOND for _ in range(choose.randint(0, most))]
    return sorted({*(tick + choose.choice((0, 1)) for tick in ticks), end})


def every_tick(streams: Streams) -> list[int]:
    """All instants just after a tick."""
    return [tick * SECOND + 1 for tick in range(-5, ends(streams) // SECOND + 1)]


def run(
    question: Question | str,
    streams: Streams,
    execution: Execution = "aware",
    untils: Sequence[int] = (),
    reloading: bool = False,
) -> Iterator[Step]:
    """Yield what the query says after each step."""
    tree = tree_of(question if isinstance(question, str) else question.text, execution)
    return run_tree(tree, streams, untils or [ends(streams)], reloading)


def run_tree(
    tree: OperatorTree, streams: Streams, untils: Sequence[int], reloading: bool = False
) -> Iterator[Step]:
    """Yield what a tree says after each step."""
    state, reports, since = tree.initial_state(), list[dict[str, Any]](), None
    for until in untils:
        rows = tuple(
            batch(streams[leaf.scan.stream], leaf.schema, since, until) for leaf in tree.leaves
        )
        state, reported = tree.step(state, rows, until)
        since = until
        reports.extend(map(flat, reported.to_pylist()))
        if reloading:
            state = tree.load(tree.dump(state))
        yield Step(until - 1, bag(tree.current(state)), list(reports))


def scanned(plan: object) -> str:
    assert isinstance(plan, Scan)
    return plan.stream


def batch(events: list[Event], schema: pa.Schema, since: int | None, until: int) -> pa.RecordBatch:
    """The events of [since, until) with the columns of a schema."""
    rows = [
        {name: event[name] for name in schema.names}
        for event in events
        if event["ts"] < until and (since is None or since <= event["ts"])
    ]
    return pa.RecordBatch.from_pylist(rows, schema=schema)


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: plain(value) for name, value in row.items()}


def bag(rows: pa.RecordBatch) -> Bag:
    return Counter(tuple(flat(row).values()) for row in rows.to_pylist())
