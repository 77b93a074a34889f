"""Where a plan would run and how it is distributed: the last lines of `explain`."""

from __future__ import annotations

import os
from collections.abc import Iterator

from eventide.engines.build import build_live_tree, build_tree
from eventide.engines.derived import Opener, parts_of
from eventide.engines.explain.explained import Explained, ExplainedBlock, ExplainedMerge
from eventide.engines.explain.situations import kept_text, matcher_lines
from eventide.engines.explain.text import aligned, block_lines, seconds_text
from eventide.engines.history.access import WorkStep
from eventide.engines.history.choice import calendar_of
from eventide.engines.history.ends import has_filter
from eventide.engines.history.patterns.slices import matcher_of
from eventide.engines.history.pruning import value_ranges
from eventide.engines.history.replay import SLICE_ROWS
from eventide.engines.history.situations.joined import describe_join, joins_of, named_blocks
from eventide.engines.history.situations.slices import temporal_matcher
from eventide.engines.history.slices import halo_of, slices_of, why_undivided
from eventide.engines.partitioning import keys_of_scan, spread_line
from eventide.engines.standing.explained import (
    ExplainedStanding,
    OperatorTally,
    edge_lines,
    history_lines,
    live_line,
)
from eventide.errors import UnsupportedError
from eventide.operators.key_parts import SMALLEST_PART
from eventide.plan.bounds import kept_of_every_key, unbounded_reason, unbounded_reasons
from eventide.plan.explain import explain
from eventide.plan.expressions import Expression
from eventide.plan.nodes import (
    EndRows,
    Relational,
    derived_in,
    is_chain,
    match_of,
    scans_of,
    situations_of,
)
from eventide.plan.patterns.cutting import why_whole
from eventide.plan.patterns.nodes import MatchRecognize
from eventide.plan.render import render
from eventide.plan.situations.nodes import Situations, TemporalPattern
from eventide.plan.standing.update_patterns import windows_of
from eventide.plan.times import format_duration
from eventide.plan.tree import Plan, remembers
from eventide.plan.windows.nodes import (
    CalendarWindow,
    CountWindow,
    Sessions,
    SlidingAggregate,
    WindowAggregate,
    WindowRanks,
)
from eventide.visible import visible

MOST_NODES_SHOWN = 16

MOST_READERS = 4
"""With up to this many cores, each reads a stored stream by itself instead of a shuffle."""


def opened_blocks(plan: Plan) -> tuple[Plan, ...]:
    """Return the standing queries and the plans over one scan that a plan consists of.

    Those below derived streams come before those that read them.
    """
    opener = Opener.of(plan)
    found: list[Plan] = []

    def add(part: Plan) -> None:
        opened = opener.open(part)
        for stream in opened.below.values():
            for below in parts_of(stream.source):
                add(below)
        found.extend(block for _, block in named_blocks(opened.plan) if block not in found)

    add(plan)
    return tuple(found)


def describe_plan(seen: Explained) -> str:
    """Return the plan as text; for a standing query the plan that runs, with its edges."""
    if seen.is_standing:
        lines = list(edge_lines(seen.standing[-1]))
        for name, stream in seen.derived.items():
            lines += [f"{name}:", *(f"  {line}" for line in explain(stream).splitlines())]
        return "\n".join(map(visible, lines))
    return explain(seen.plan)


def describe_embedded(seen: Explained) -> str:
    """Return how a plan runs here: over history, and live if it can."""
    lines: list[str] = []
    lines += [f"{name}: {stream.line}" for name, stream in seen.derived.items()]
    for block in seen.blocks:
        lines += describe_matcher(block.plan)
        derived = block.scan.stream in seen.derived
        lines.append(f"history: {describe_history(block, derived=derived)}")
        lines += block_lines(block)
    for merged in seen.merged:
        lines += merge_lines(merged)
    for query in seen.standing:
        lines += standing_lines(query, live=seen.is_standing and not seen.derived)
    for place, node in enumerate(joins_of(seen.plan)):
        took = f": {rest_text(seen.joins[place])}" if seen.joins else ""
        lines.append(f"history: {describe_join(node)}{took}")
    if isinstance(seen.plan, Relational):
        took = "" if seen.rest is None else f": {rest_text(seen.rest)}"
        lines.append(f"history: DuckDB does the rest{took}")
    if seen.is_standing and not seen.derived:
        return "\n".join(map(visible, lines))
    try:
        build_live_tree(seen.plan)
    except UnsupportedError as error:
        lines.append(f"live: no, {error.message}")
    else:
        lines.append(f"live: yes, {describe_live(seen)}")
    return "\n".join(map(visible, lines))


def describe_live(seen: Explained) -> str:
    """Return what a live run of a plan remembers."""
    if len(seen.blocks) == 1 and not (seen.derived or seen.standing):
        return describe_state(seen.plan)
    reasons = "; ".join(dict.fromkeys(unbounded_reasons(seen.plan)))
    bound = f", state has no bound, because {reasons}" if reasons else ""
    return f"all of it as one tree of operators, each remembering what it needs{bound}"


def standing_lines(query: ExplainedStanding, *, live: bool) -> Iterator[str]:
    """Yield how a standing query runs: its edges, what it reads and keeps, the measured cost."""
    if query.name:
        yield f"standing query {query.name}:"
        yield from (f"  {line}" for line in edge_lines(query))
    yield from history_lines(query)
    if live:
        yield live_line(query.plan)
    if query.steps:
        taken = seconds_text(query.seconds)
        yield f"history: {query.rows:,} row{'' if query.rows == 1 else 's'} in {taken}"
        heads = ("steps", "time", "tuples in", "tuples out", "most remembered", "bytes")
        yield from aligned([heads, *map(tally_cells, query.steps)])


def tally_cells(tally: OperatorTally) -> tuple[str, ...]:
    """Return the cost of an operator of a standing query as the cells of a table."""
    counts = (tally.rows_in, tally.rows_out, tally.most.tuples, tally.most.bytes)
    return (f"  {tally.name}", seconds_text(tally.seconds), *(f"{each:,}" for each in counts))


def merge_lines(block: ExplainedMerge) -> Iterator[str]:
    """Yield how a block over several scans is answered."""
    events = " and ".join(f"{count:,} events of {name}" for name, count in block.events.items())
    took = "" if block.step is None else f": {rest_text(block.step)}"
    yield f"history: {events} in order of time, in one slice{took}"
    if isinstance(block.spans, str):
        yield f"index: no, because {block.spans}"
    else:
        yield f"index: yes, {block.spans.line}"


def rest_text(rest: WorkStep) -> str:
    """Return the cost of DuckDB or of a join."""
    return f"{seconds_text(rest.seconds)}, {rest.rows:,} row{'' if rest.rows == 1 else 's'}"


def describe_matcher(plan: Plan) -> Iterator[str]:
    """Yield how the matches of a pattern are found: the automaton, or the order of joining."""
    if match_of(plan) is None and situations_of(plan) is None:
        return
    temporal = temporal_matcher(build_tree(plan))
    if temporal is not None:
        yield from matcher_lines(temporal)
    if match_of(plan) is None:
        return
    matcher = matcher_of(build_tree(plan))
    nodes = str(matcher.automaton).splitlines()
    if matcher.is_local:
        yield "matcher: two passes, because all conditions look at single rows"
    else:
        yield f"matcher: search in order of preference, because {matcher.why_search}"
    yield from (f"  {line}" for line in nodes[:MOST_NODES_SHOWN])
    if len(nodes) > MOST_NODES_SHOWN:
        yield f"  … {len(nodes) - MOST_NODES_SHOWN:,} more"


def describe_history(block: ExplainedBlock, *, derived: bool = False) -> str:
    """Return how a block is answered: through the index, or how its replay is cut in time."""
    source, plan = block.source, block.plan
    events = f"{source.row_count:,} events of {block.scan.stream}"
    if derived and block.actual is None:
        events = f"the rows of {block.scan.stream}"
    if block.best.name != "replay":
        return f"{events}: {block.best.describe()}"
    count = len(slices_of(plan, block.scan, source, SLICE_ROWS))
    threads = min(count, os.cpu_count() or 1)
    pruned = ", ".join(value_ranges(plan))
    if pruned:
        events += f", less what the index rules out by {pruned},"
    if halo_of(plan) is None:
        return f"{events} {undivided(plan)}{shared(block)}"
    if count == 1:
        return f"{events} in one slice{shared(block)}"
    return f"{events} in {count} slices of time on {threads} threads"


def shared(block: ExplainedBlock) -> str:
    """Return by which keys threads share what is in one slice; nothing if it is too little."""
    threads = os.cpu_count() or 1
    keys = keys_shared(block.plan)
    if threads == 1 or not keys or block.source.row_count < 2 * SMALLEST_PART:
        return ""
    return f", large batches by {', '.join(map(render, keys))} on {threads} threads"


def keys_shared(plan: Plan) -> tuple[Expression, ...]:
    """Return the keys of situations or frames in a plan over one scan."""
    match plan:
        case Situations(keys=keys) | TemporalPattern(keys=keys) if keys:
            return tuple(key.expression for key in keys)
        case SlidingAggregate(keys=keys) if keys:
            return keys
    return next(filter(None, map(keys_shared, plan.children)), ())


def undivided(plan: Plan) -> str:
    """Return why a plan is not cut in time, and how it is distributed instead."""
    node = match_of(plan)
    situations = situations_of(plan)
    if node is None and situations is not None:
        reason = why_undivided(situations) or "what is above cannot be cut"
        return f"in one slice, because {reason}"
    if node is None and counts_rows(plan):
        return "in one slice, for the rows of a window are counted from the first"
    if node is None and gap_of(plan) is not None:
        return "in one slice, for a session can be of any length"
    if node is None and ranks_rows(plan):
        return "in one slice, for ranks are among all rows of a window"
    if node is None and is_over_all(plan):
        return "in one slice, for it is over all of time"
    if node is None:
        return "in one slice, for a frame of rows can reach back any time"
    if node.keys:
        keys = ", ".join(render(key.expression) for key in node.keys)
        return f"in one slice, large batches by {keys} on {os.cpu_count() or 1} threads"
    return f"in one slice, because {why_whole(node) or 'what is below cannot be cut'}"


def counts_rows(plan: Plan) -> bool:
    """Whether a plan over one scan has windows by count."""
    if isinstance(plan, WindowAggregate) and isinstance(plan.window, CountWindow):
        return True
    return any(map(counts_rows, plan.children))


def ranks_rows(plan: Plan) -> bool:
    """Whether a plan over one scan ranks the rows of windows."""
    return isinstance(plan, WindowRanks) or any(map(ranks_rows, plan.children))


def is_over_all(plan: Plan) -> bool:
    """Whether a plan over one scan aggregates all of time."""
    if isinstance(plan, WindowAggregate) and isinstance(plan.window, CalendarWindow):
        return True
    return any(map(is_over_all, plan.children))


def gap_of(plan: Plan) -> int | None:
    """Return the gap between the sessions of a plan over one scan, None if it has no sessions."""
    if isinstance(plan, WindowAggregate) and isinstance(plan.window, Sessions):
        return plan.window.gap_us
    return next((gap for gap in map(gap_of, plan.children) if gap is not None), None)


def describe_spark(plan: Plan, frames: frozenset[str], cores: int) -> str:
    """Return how a plan runs on Spark; `frames` are the streams that are DataFrames."""
    lines = []
    for block in opened_blocks(plan):
        if windows_of(block) or not is_chain(block):
            lines.append(f"spark: {spread_line(block)}")
            continue
        (scan,) = scans_of(block)
        keys = keys_of_scan(block)
        spread = f"shuffled once by {keys}" if keys else "shuffled into one partition: no key"
        if isinstance(block, EndRows) and has_filter(block):
            place = "looked for in slices of time by tasks, then put in order by Spark"
        elif isinstance(block, EndRows) or calendar_of(block) is not None:
            place = "answered by the driver from the time index"
        elif not remembers(block):
            place = "row by row where the rows are"
        elif halo_of(block) is None and scan.stream not in frames and cores <= MOST_READERS:
            own = f"keeping its own {keys}" if keys else "in one task: no key"
            place = f"read whole by each Python worker, {own}, nothing shuffled"
        elif scan.stream in frames or halo_of(block) is None:
            place = f"{spread}, then Eventide's operators in Python workers"
        else:
            place = "slices of time, read and computed in Python workers, nothing shuffled"
        lines.append(f"spark: {scan.stream}: {place}")
    for node in joins_of(plan):
        spread = f"shuffled once by {node.equal_text}" if node.keys else "in one partition: no key"
        lines.append(f"spark: {node.related_text}: both sides {spread}, joined in Python workers")
    if isinstance(plan, Relational):
        lines.append("spark: Spark SQL does the rest")
    return "\n".join(lines)


def growth(node: MatchRecognize) -> str:
    """Return how long a live pattern keeps rows."""
    reason = unbounded_reason(node)
    if reason is not None:
        return f"state has no bound, because {reason}"
    bound = "no more of a key than a match is long"
    if node.within_us is not None:
        bound = f"at most those of the last {format_duration(node.within_us)}"
    kept = "; ".join(what for what, _ in kept_of_every_key(node))
    return f"{bound}, and of every key that ever came {kept}" if kept else bound


def describe_state(plan: Plan) -> str:
    """Return the state that a live run of a plan has."""
    if derived_in(plan):
        return "with the state of the query around and of each query inside"
    halo = halo_of(plan)
    keys = keys_of_scan(plan) or "no key"
    if not remembers(plan):
        return "without any state but events that wait for the watermark"
    node = match_of(plan)
    if node is not None:
        return f"remembering rows that may still become matches, by {keys}: {growth(node)}"
    situations = situations_of(plan)
    if situations is not None:
        return f"remembering {kept_text(situations, keys)}"
    if halo is None and counts_rows(plan):
        held = "how many events came, and one partial a pane of open windows"
        return f"remembering {held}, for every key ({keys}): state grows with the keys"
    if halo is None and gap_of(plan) is not None:
        gap = format_duration(gap_of(plan) or 0)
        return f"remembering the open session of each key ({keys}), for {gap} after its last event"
    if ranks_rows(plan):
        return "remembering the rows of windows that are not complete"
    if halo is None:
        return f"remembering the last rows of every key ({keys}): state grows with the keys"
    if halo.before_us:
        return f"remembering the events of the last {format_duration(halo.before_us)} by {keys}"
    reach = format_duration(halo.after_us + halo.align_us)
    return f"remembering one partial a pane and key ({keys}) for {reach}"
