"""Start a live query with what is stored, as if it had run from the first event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from eventide.engines.history.merged import readings, steps_of
from eventide.engines.live.engine import LiveEngine, LiveState
from eventide.instants import ALL_TIME, START_OF_TIME_US
from eventide.operators.columns import concat_batches
from eventide.store.source import EventSource


def started(live: LiveEngine, sources: Mapping[str, EventSource]) -> LiveState:
    """Return the state after all stored events; none of their results are reported.

    Only events that can still matter are read, where that is known, and those that wait for the
    clock.
    """
    everything = (True,) * len(live.feeds)
    state = with_newest(live, sources, everything)
    clock_us = live.clock_of(state)
    tree = live.tree
    if clock_us != START_OF_TIME_US:
        operators = state.operators
        read = readings(live.plan, tree, clock_us - 1, continuing=True)
        for step in steps_of(tree, read, sources, clock_us):
            operators, _ = tree.step(operators, step.rows, step.until_us)
        state = replace(state, clock_us=clock_us, operators=operators)
    live.check_size(state)
    return with_waiting(live, state, sources, everything)


def with_relations(live: LiveEngine, sources: Mapping[str, EventSource]) -> LiveState:
    """Return the state of a query over future events, with the present rows of its relations.

    It is not known when its clock starts, so all their changes wait for it.
    """
    if all(feed.relation for feed in live.feeds):
        return started(live, sources)
    chosen = tuple(feed.relation for feed in live.feeds)
    state = with_newest(live, sources, chosen)
    newest_us = [held.newest_us for held in state.feeds if held.newest_us != START_OF_TIME_US]
    state = replace(state, past_us=max((each + 1 for each in newest_us), default=state.past_us))
    state = with_waiting(live, state, sources, chosen)
    live.check_size(state)
    return state


def with_newest(
    live: LiveEngine, sources: Mapping[str, EventSource], chosen: Sequence[bool]
) -> LiveState:
    """Return the state before the first event of a query that knows how far some streams are."""
    state = live.initial_state()
    feeds = []
    for feed, held, wanted in zip(live.feeds, state.feeds, chosen, strict=True):
        period = sources[feed.stream].time_range
        newest_us = period.end_us - 1 if wanted and not period.is_empty else START_OF_TIME_US
        feeds.append(replace(held, newest_us=newest_us))
    return replace(state, feeds=tuple(feeds))


def with_waiting(
    live: LiveEngine,
    state: LiveState,
    sources: Mapping[str, EventSource],
    chosen: Sequence[bool],
) -> LiveState:
    """Return the state with the stored events of some streams that are not before the clock."""
    feeds = []
    for feed, held, wanted in zip(live.feeds, state.feeds, chosen, strict=True):
        allowed = [live.tree.leaves[leaf].scan.time_range for leaf in feed.leaves]
        period = replace(ALL_TIME, start_us=state.clock_us)
        batches: list[pa.RecordBatch] = []
        if wanted and any(period.overlaps(each) for each in allowed):
            batches = list(sources[feed.stream].scan(feed.schema.names, period))
        feeds.append(replace(held, waiting=concat_batches(batches, feed.schema)))
    return replace(state, feeds=tuple(feeds))
