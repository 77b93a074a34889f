"""How a standing query runs, for explain: what is read and kept, and the measured cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter

import pyarrow as pa

from eventide.engines.build import build_tree
from eventide.engines.history import profiling
from eventide.engines.history.access import WorkStep
from eventide.engines.history.answer import table_of
from eventide.engines.history.merged import readings, run_merged
from eventide.engines.standing.choice import best_plan, chosen_plan
from eventide.engines.standing.reach import why_whole
from eventide.instants import ALL_TIME, TimeRange, moment
from eventide.operators.operator import Size
from eventide.operators.tree import OperatorStep, OperatorTree
from eventide.plan.nodes import scans_of
from eventide.plan.standing.choose import Chosen
from eventide.plan.standing.nodes import Standing
from eventide.plan.standing.text import described_edges
from eventide.plan.standing.update_patterns import pattern_of, windows_of
from eventide.plan.standing.windows import (
    RowsWindow,
    SessionWindow,
    SinceWindow,
    Unbounded,
    Windowed,
)
from eventide.plan.times import format_duration
from eventide.plan.tree import Plan
from eventide.store.source import EventSource


@dataclass
class OperatorTally(profiling.StepTally):
    """The cost and output of one operator, and the largest size of its state."""

    most: Size = field(default_factory=lambda: Size(0, 0))


@dataclass(frozen=True, slots=True)
class ExplainedStanding:
    """A block with a standing query: what runs and, if it was run, the cost of its operators."""

    name: str
    """What the rest of the query calls its rows; empty if there is no rest."""
    block: Plan
    """The standing query, or what computes with its rows one by one."""
    chosen: Chosen
    sources: Mapping[str, EventSource]
    until_us: int | None
    """The instant after that of the answer; None if there is no event."""
    seconds: float = 0.0
    rows: int = 0
    steps: tuple[OperatorTally, ...] = ()

    @property
    def plan(self) -> Standing:
        """The standing query that runs."""
        return self.chosen.plan

    @property
    def step(self) -> WorkStep:
        """The whole of it as one step."""
        return WorkStep("Standing query", self.seconds, self.rows)


def explain_standing(
    name: str,
    block: Plan,
    sources: Mapping[str, EventSource],
    until_us: int | None,
    *,
    analyze: bool,
) -> tuple[ExplainedStanding, pa.Table | None]:
    """Return how a standing query runs over history; with `analyze` also its rows."""
    standing = block.standing
    assert standing is not None, "windows stand in a standing query"
    seen = ExplainedStanding(name, block, chosen_plan(standing, sources), sources, until_us)
    if not analyze:
        return seen, None
    started = perf_counter()
    plan = best_plan(block, sources)
    profile = Profile(build_tree(plan))
    table = profile.run(plan, sources, until_us)
    seconds = perf_counter() - started
    steps = tuple(profile.tallies)
    return replace(seen, seconds=seconds, rows=table.num_rows, steps=steps), table


@dataclass
class Profile:
    """Runs a tree over history, and measures the cost of each operator."""

    tree: OperatorTree
    tallies: list[OperatorTally] = field(init=False)

    def __post_init__(self) -> None:
        self.tallies = [OperatorTally(placed.name) for placed in self.tree.placed]

    def run(self, plan: Plan, sources: Mapping[str, EventSource], until_us: int | None) -> pa.Table:
        """Return the rows of the query."""
        tree = replace(self.tree, watch=self.count)
        return table_of(plan, run_merged(plan, sources, until_us, tree))

    def count(self, step: OperatorStep) -> None:
        """Count a call of an operator, and keep the largest size of its state."""
        tally = self.tallies[step.number]
        tally.seconds += step.seconds
        tally.rows_in += sum(map(profiling.edge_rows, step.inputs))
        tally.rows_out += profiling.edge_rows(step.output)
        size = step.operator.size(step.state)
        tally.most = max(tally.most, size, key=lambda each: each.bytes)


def edge_lines(seen: ExplainedStanding) -> list[str]:
    """Return the plan that runs, each edge with how its tuples leave."""
    lines: list[str] = []
    above = seen.block
    while above.children and above.standing is not above:
        lines.append("  " * len(lines) + above.line)
        (above,) = above.children
    depth = len(lines)
    return [*lines, *("  " * depth + line for line in described_edges(seen.plan, seen.chosen))]


def history_lines(seen: ExplainedStanding) -> Iterator[str]:
    """Yield what is read of each stream for the answer as of the newest event."""
    plan, tree, windows = seen.plan, build_tree(seen.plan), windows_of(seen.plan)
    reason = why_whole(plan)
    for each in readings(plan, tree, 0 if seen.until_us is None else seen.until_us - 1):
        source = seen.sources[each.stream]
        pruned = f", less what the index rules out by {', '.join(each.where)}" if each.where else ""
        names = ", ".join(windows[leaf].alias for leaf in each.leaves)
        period = time_range_text(each.time_range)
        why = whole_text(windows[each.leaves[0]], reason) if period == "all" else ""
        yield f"history: {each.stream} ({names}): {period} {source.row_count:,} events{pruned}{why}"


def time_range_text(period: TimeRange) -> str:
    """Return which part of a stream is read."""
    if period.is_empty:
        return "none of"
    parts = []
    if period.start_us != ALL_TIME.start_us:
        parts.append(f"from {moment(period.start_us)}")
    if period.end_us != ALL_TIME.end_us:
        parts.append(f"until {moment(period.end_us)}")
    return f"those {' '.join(parts)} of" if parts else "all"


def whole_text(leaf: Windowed, reason: str | None) -> str:
    """Return why all events of a stream are read."""
    own = {
        Unbounded: "the window has no end",
        SinceWindow: "the window has no end",
        RowsWindow: "the last rows of a key may be of any age",
        SessionWindow: "a session may have begun at any time",
    }.get(type(leaf.window))
    why = reason or own
    return f", because {why}" if why else ""


def live_line(plan: Standing) -> str:
    """Return what a live run keeps, and for how long."""
    kept = [
        f"{', '.join(dict.fromkeys(scan.stream for scan in scans_of(leaf)))} ({leaf.alias}) "
        f"{lasting(leaf, plan)}"
        for leaf in windows_of(plan)
    ]
    return f"live: yes, remembering what the windows hold: {'; '.join(kept)}"


def lasting(leaf: Windowed, plan: Standing) -> str:
    """Return how long a window keeps an event."""
    match leaf.window:
        case RowsWindow(count=count, keys=keys):
            each = f" of each {', '.join(keys)}" if keys else ""
            return f"the last {count:,}{each}"
        case SessionWindow(gap_us=gap):
            return f"until {format_duration(gap)} of silence"
        case Unbounded() | SinceWindow():
            return "for ever"
    lifetime = pattern_of(leaf).lifetime_us
    slide = f", rounded up to {format_duration(plan.slide_us)}" if plan.slide_us else ""
    return f"for {format_duration(lifetime or 0)}{slide}"
