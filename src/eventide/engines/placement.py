"""Say where a plan would run and how it is spread: the last lines of `explain`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from eventide.engines.build import build_pipeline, common_keys, keeps_state
from eventide.engines.history import SLICE_ROWS
from eventide.engines.pruning import value_ranges
from eventide.engines.slices import halo_of, slices_of
from eventide.errors import UnsupportedError
from eventide.plan.nodes import Plan, Relational, scans_of
from eventide.plan.render import render
from eventide.plan.times import format_duration
from eventide.store.source import EventSource


def blocks_of(plan: Plan) -> tuple[Plan, ...]:
    """Return the plans over one scan that a plan consists of."""
    if isinstance(plan, Relational):
        return tuple(source for _, source in plan.inputs)
    return (plan,)


def describe_embedded(plan: Plan, sources: Mapping[str, EventSource]) -> str:
    """Return how a plan runs here: over history, and live if it can."""
    lines = [f"history: {line}" for line in describe_history(plan, sources)]
    if isinstance(plan, Relational):
        lines.append("history: DuckDB does the rest")
    try:
        build_pipeline(plan)
    except UnsupportedError as error:
        lines.append(f"live: no, {error.message}")
    else:
        lines.append(f"live: yes, {describe_state(plan)}")
    return "\n".join(lines)


def describe_history(plan: Plan, sources: Mapping[str, EventSource]) -> Iterator[str]:
    """Yield a line for each block: how it is cut in time."""
    for block in blocks_of(plan):
        (scan,) = scans_of(block)
        source = sources[scan.stream]
        count = len(slices_of(block, scan, source, SLICE_ROWS))
        threads = min(count, os.cpu_count() or 1)
        events = f"{source.row_count:,} events of {scan.stream}"
        pruned = ", ".join(value_ranges(block))
        if pruned:
            events += f", less what the index rules out by {pruned},"
        if halo_of(block) is None:
            yield f"{events} in one piece, for a frame of rows can reach back any time"
        elif count == 1:
            yield f"{events} in one piece"
        else:
            yield f"{events} in {count} slices of time on {threads} threads"


def describe_spark(plan: Plan, frames: frozenset[str]) -> str:
    """Return how a plan runs on Spark; `frames` are the streams that are DataFrames."""
    lines = []
    for block in blocks_of(plan):
        (scan,) = scans_of(block)
        keys = ", ".join(map(render, common_keys(block)))
        spread = f"shuffled once by {keys}" if keys else "shuffled into one partition: no key"
        if not keeps_state(block):
            place = "row by row where the rows are"
        elif scan.stream in frames or halo_of(block) is None:
            place = f"{spread}, then Eventide's operators in Python workers"
        else:
            place = "slices of time, read and computed in Python workers, nothing shuffled"
        lines.append(f"spark: {scan.stream}: {place}")
    if isinstance(plan, Relational):
        lines.append("spark: Spark SQL does the rest")
    return "\n".join(lines)


def describe_state(plan: Plan) -> str:
    """Return what a live run of a plan has to remember."""
    halo = halo_of(plan)
    keys = ", ".join(map(render, common_keys(plan))) or "no key"
    if not keeps_state(plan):
        return "without any state but events that wait for the watermark"
    if halo is None:
        return f"remembering the last rows of every key ({keys}): state grows with the keys"
    if halo.before_us:
        return f"remembering the events of the last {format_duration(halo.before_us)} by {keys}"
    reach = format_duration(halo.after_us + halo.align_us)
    return f"remembering one partial a pane and key ({keys}) for {reach}"
