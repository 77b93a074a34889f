"""What many live queries share, as text: streams, the conditions above them, templates, queries.

cars, lateness 0 s: 1,000 queries
├─ index of cars: 1 condition, 96 bytes
├─ part 5e0c41 of 1,000 queries: 5,120 rows in (51.2 a second), 81 rows out (0.8 a second), …
│    WindowAggregate by car, $query, tumbling 10 s: avg(speed)
├─ index of part 5e0c41: 1,000 conditions, 96,120 bytes
└─ template of 1,000 queries: …
     MatchRecognize by car, $query, (A B+) …
       Scan part 5e0c41 (…)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from eventide.engines.live.sharing.engine import SharedQueries, shared_of
from eventide.engines.live.sharing.many import ManyQueries
from eventide.engines.live.sharing.run import TemplateRun
from eventide.engines.live.sharing.tree.states import SharedStates
from eventide.engines.live.sharing.windows import WindowsRun
from eventide.kernels.compiled import Int64s
from eventide.operators.sharing.predicate_index import PredicateIndex
from eventide.plan.explain import explain
from eventide.plan.expressions import ALWAYS
from eventide.plan.render import render
from eventide.plan.sharing.part_rows import PART, PARTS_FROM
from eventide.plan.sharing.rules import RULES_OF_SETS
from eventide.plan.times import format_duration

MOST_SYNOPSES = 8
"""So many synopses of windows are shown."""


def explain_many(many: ManyQueries, what: str) -> str:
    """Return what some queries share, and what each part costs."""
    lines = [f"{what}: {len(many):,} queries"]
    for shared in many.shared:
        lines += explained(shared)
    for number, lone in many.lone.items():
        lines.append(f"query {number} runs by itself, for its rows are no keyed rows of events")
        lines += indented(explain(lone.engine.plan).splitlines())
    return "\n".join(lines)


def explained(shared: SharedQueries) -> Iterator[str]:
    """Yield the lines of queries over the same streams."""
    engine = shared.engine
    streams = ", ".join(engine.streams)
    states = len(shared.states)
    cohorts = "" if states < 2 else f", in {states} states that are not as far as each other"
    lateness = format_duration(engine.lateness_us)
    yield f"{streams}, lateness {lateness}: {len(shared):,} queries{cohorts}"
    for state in shared.states:
        yield from state_lines(shared_of(state))


def state_lines(state: SharedStates) -> Iterator[str]:
    """Yield the lines of queries that are equally far, what they read first."""
    here = state.numbers.with_parts
    places, _ = state.numbers.of(here)
    indexes = dict(state.indexes)
    for stream in [name for name in indexes if not name.startswith(PART)]:
        yield from index_lines(stream, indexes.pop(stream))
    for place, run in enumerate(state.runs):
        own = here[places == place]
        if len(own):
            yield from run_lines(run, own, state)
        if run.tree.rows_name in indexes:
            yield from index_lines(run.tree.rows_name, indexes.pop(run.tree.rows_name))


def index_lines(stream: str, index: PredicateIndex) -> Iterator[str]:
    """Yield the line of an index, if it has conditions."""
    if len(index):
        yield (f"├─ index of {shown(stream)}: {len(index):,} conditions, {index.nbytes:,} bytes")


def run_lines(run: TemplateRun, numbers: Int64s, state: SharedStates) -> Iterator[str]:
    """Yield the lines of a template, with what it has done and keeps."""
    done = run.done
    size = sum(size.bytes for _, size in run.sizes) + run.nbytes
    yield (
        f"└─ {' and '.join(roles(run, numbers, state))}: "
        f"{done.rows_in:,} rows in ({done.rate(done.rows_in):,.1f} a second), "
        f"{done.rows_out:,} rows out ({done.rate(done.rows_out):,.1f} a second), "
        f"{done.seconds:.3f} s in {done.steps:,} steps, {size:,} bytes"
    )
    rules = ", ".join(rules_of(run))
    yield f"     rules: {rules or 'none: the queries are equal'}"
    yield from indented([shown(line) for line in explain(run.tree.template.plan).splitlines()], 5)
    if run.windows is not None:
        yield from indented(explain(run.windows.node).splitlines(), 9)
        yield from indented(list(synopsis_lines(run.windows)), 9)
        yield from indented(list(delay_lines(run.windows)), 9)


def synopsis_lines(windows: WindowsRun) -> Iterator[str]:
    """Yield the synopses of windows with how many queries read each, those of the most first."""
    synopses = windows.table.synopses
    if all(each == ALWAYS for each in synopses.conditions.values()):
        return
    order = sorted(synopses.conditions, key=lambda number: (-synopses.users(number), number))
    for number in order[:MOST_SYNOPSES]:
        condition = synopses.conditions[number]
        of = "all events" if condition == ALWAYS else render(condition)
        users = synopses.users(number)
        yield f"synopsis of {of}: {users:,} {'query' if users == 1 else 'queries'}"
    if len(order) > MOST_SYNOPSES:
        yield f"and {len(order) - MOST_SYNOPSES:,} more synopses"


def delay_lines(windows: WindowsRun) -> Iterator[str]:
    """Yield how late refreshes were, if there were any, how many wait, and what was left out."""
    delays, waiting, stretch = windows.delays, windows.waiting, windows.state.stretch
    if stretch > 1 or delays.left_out:
        now = f"periods are {stretch} times as long now" if stretch > 1 else "as long as asked now"
        yield f"refreshes left out: {delays.left_out:,}; {now}"
    if waiting:
        yield f"refreshes of {waiting:,} {'query' if waiting == 1 else 'queries'} wait"
    if delays.rows:
        yield (
            f"refreshes: {delays.rows:,} rows, at most {format_duration(delays.most_us)} of event "
            f"time behind; {delays.overdue:,} when the next refresh was due as well"
        )


def roles(run: TemplateRun, numbers: Int64s, state: SharedStates) -> Iterator[str]:
    """Yield what a template is: a part of queries, or the template of some, or both."""
    parts = numbers[numbers >= PARTS_FROM]
    if len(parts):
        readers = sum(state.readers.get(int(part), 0) for part in parts)
        forms = "" if len(parts) == 1 else f", {len(parts):,} different ones,"
        yield f"{shown(run.tree.rows_name)}{forms} of {readers:,} queries"
    if len(numbers) > len(parts):
        yield f"template of {len(numbers) - len(parts):,} queries"


def shown(text: str) -> str:
    """Return text in which parts have names that are short enough to read."""
    return re.sub(re.escape(PART) + r"([0-9a-f]{6})[0-9a-f]*", r"part \1", text)


def rules_of(run: TemplateRun) -> list[str]:
    """Return the rules that made a template of its queries."""
    plan = explain(run.tree.template.plan)
    found = []
    if run.tree.indexed:
        found.append("index_conditions")
    if "$1" in plan:
        found.append("lift_constants")
    if "within $" in plan:
        found.append("lift_lengths")
    if not all(run.tree.keys):
        found.append("share_followers")
    if run.windows is not None:
        found.append("share_windows")
        if run.windows.node.refreshes:
            found.append("share_refreshes")
    if run.tree.template.parts:
        found.append("share_parts")
    if run.tree.template.channels:
        found.append("share_channels")
    if not run.tree.can_divide:
        found.append("share_standing")
    return [name for name in RULES_OF_SETS.on if name in found]


def indented(lines: list[str], by: int = 2) -> list[str]:
    """Return lines further to the right."""
    return [" " * by + line for line in lines]
