"""What many live queries share, as text: streams, the conditions above them, templates, queries.

cars, lateness 0 s: 1,000 queries, 2,000,000 events
├─ index of cars: 1,000 conditions, 96.1 KB
└─ template of 1,000 queries: 5,120 rows in, 81 rows out, 0.12 s
     Project car, top, $query
       MatchRecognize by car, $query, (A B+) …
"""

from __future__ import annotations

from collections.abc import Iterator

from eventide.engines.live.sharing.engine import SharedQueries, shared_of
from eventide.engines.live.sharing.many import ManyQueries
from eventide.engines.live.sharing.run import TemplateRun
from eventide.plan.explain import explain
from eventide.plan.sharing.rules import SharingRules
from eventide.plan.times import format_duration


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
        own = shared_of(state)
        for stream, index in own.indexes.items():
            if len(index):
                yield f"├─ index of {stream}: {len(index):,} conditions, {index.nbytes:,} bytes"
        here = own.numbers.all
        places, _ = own.numbers.of(here)
        for place, run in enumerate(own.runs):
            count = int((places == place).sum())
            if count:
                yield from run_lines(run, count)


def run_lines(run: TemplateRun, count: int) -> Iterator[str]:
    """Yield the lines of a template."""
    done = run.done
    size = sum(size.bytes for _, size in run.sizes) + run.nbytes
    yield (
        f"└─ template of {count:,} queries: {done.rows_in:,} rows in, {done.rows_out:,} rows out, "
        f"{done.seconds:.3f} s in {done.steps:,} steps, {size:,} bytes"
    )
    rules = ", ".join(rules_of(run))
    yield f"     rules: {rules or 'none: the queries are equal'}"
    yield from indented(explain(run.tree.template.plan).splitlines(), 5)
    if run.windows is not None:
        yield from indented(explain(run.windows.node).splitlines(), 9)


def rules_of(run: TemplateRun) -> list[str]:
    """Return the rules that made a template of its queries."""
    plan = explain(run.tree.template.plan)
    found = []
    if run.tree.numbered:
        found.append("index_conditions")
    if "$1" in plan:
        found.append("lift_constants")
    if not all(run.tree.keys):
        found.append("share_followers")
    if run.windows is not None:
        found.append("share_windows")
    return [name for name in SharingRules().on if name in found]


def indented(lines: list[str], by: int = 2) -> list[str]:
    """Return lines further to the right."""
    return [" " * by + line for line in lines]
