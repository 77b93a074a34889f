"""Answer many queries in one pass over the stored events, merged in order of time.

    cars    ─┐
             ├ merged, in steps ──▶ index of conditions ──▶ templates ──▶ (query, row)
    photos  ─┘

What takes the steps is what takes the events that arrive live; the end completes what is open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from eventide.engines.live.sharing.engine import shared_of
from eventide.engines.live.sharing.many import ManyQueries, ManyRows, ManyStep
from eventide.engines.live.sharing.run import TemplateTree
from eventide.errors import UnsupportedError
from eventide.ingest.merging import EventCursor, TimeMerge
from eventide.instants import END_OF_TIME_US, TimeRange
from eventide.plan.expressions import columns_of
from eventide.plan.nodes import Scan, scans_of
from eventide.plan.sharing.part_rows import is_part
from eventide.plan.sharing.portion import Portion, with_parts
from eventide.plan.sharing.template import Template
from eventide.schema import Schema
from eventide.store.source import EventSource

FEWEST_ROWS = 1 << 10
MOST_ROWS = 1 << 16
"""So many events of a stream go into a step."""
MOST_PAIRS = 1 << 20
"""Steps become shorter if more (event, query) pairs are found in one, which take memory."""
Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class ManyFound:
    """What a pass gave: rows, and the queries that had no value for an event."""

    rows: list[ManyRows] = field(default_factory=list)
    failed: dict[int, Exception] = field(default_factory=dict)


def can_share(template: Template) -> bool:
    """Whether a template runs in order of time, without an end that it would have to know."""
    try:
        TemplateTree.of(template)
    except UnsupportedError:
        return False
    return all(map(can_share, template.parts))


def run_many(
    portions: Sequence[Portion], catalog: Mapping[str, Schema], sources: Mapping[str, EventSource]
) -> ManyFound:
    """Return the rows of queries over all that is stored, every stream read once."""
    read = narrowed(portions, catalog)
    periods = periods_of(portions)
    batches = {
        name: ()
        if periods[name].is_empty
        else sources[name].scan(schema.arrow.names, periods[name])
        for name, schema in read.items()
    }
    found = ManyFound()
    for step in steps_in_order(portions, read, batches):
        found.rows.extend(step.rows)
        found.failed.update(step.failed)
    return found


def steps_in_order(
    portions: Sequence[Portion],
    catalog: Mapping[str, Schema],
    batches: Mapping[str, Iterable[pa.RecordBatch]],
) -> Iterator[ManyStep]:
    """Yield what queries give for events that come in order of time, until these end."""
    many = ManyQueries(catalog)
    for portion in portions:
        many.add(portion)
    size = StepSize()
    cursors = [
        EventCursor(size.cut(iter(batches[name])), schema.arrow) for name, schema in catalog.items()
    ]
    for step in steps_of(many, cursors):
        yield step
        size.fit(pairs_of(many))


def steps_of(many: ManyQueries, cursors: Sequence[EventCursor]) -> Iterator[ManyStep]:
    """Yield what queries give for events, merged; cursors are in the order of their catalog."""
    names, merge, border_us = list(many.catalog), TimeMerge(cursors), None
    while border_us != END_OF_TIME_US:
        step = merge.step()
        border_us = step.border_us
        arrived = dict(zip(names, step.rows, strict=True))
        yield many.take(arrived, dict.fromkeys(names, border_us))


@dataclass
class StepSize:
    """How many events go into a step: as many as find no more pairs than fit well into memory."""

    rows: int = FEWEST_ROWS
    pairs: int = 0
    """All pairs found up to the last step."""

    def cut(self, batches: Batches) -> Batches:
        """Yield batches of the size that is right when they are asked for."""
        for rows in batches:
            first = 0
            while first < rows.num_rows:
                part = rows.slice(first, self.rows)
                first += part.num_rows
                yield part

    def fit(self, pairs: int) -> None:
        """Make steps longer or shorter; `pairs` are all that were found up to now."""
        found, self.pairs = pairs - self.pairs, pairs
        if found > MOST_PAIRS:
            self.rows = max(FEWEST_ROWS, self.rows // 2)
        elif found < MOST_PAIRS // 4:
            self.rows = min(MOST_ROWS, self.rows * 2)


def pairs_of(many: ManyQueries) -> int:
    """Return how many pairs of an event and a query templates have taken."""
    states = (state for shared in many.shared for state in shared.states)
    return sum(run.done.rows_in for state in states for run in shared_of(state).runs)


def narrowed(portions: Iterable[Portion], catalog: Mapping[str, Schema]) -> dict[str, Schema]:
    """Return the schemas of the streams that queries read, with no more columns than they need."""
    wanted: dict[str, set[str]] = {}
    for portion in with_parts(portions):
        for leaf in streams_of(portion.template):
            wanted.setdefault(leaf.stream, set()).update(leaf.row)
        for leaf, given in zip(portion.template.numbered, portion.conditions, strict=True):
            if is_part(leaf):
                continue
            conditions = given if isinstance(given, tuple) else (given,)
            stream = portion.template.stream_of(leaf)
            wanted[stream].update(*map(columns_of, conditions))
    found: dict[str, Schema] = {}
    for name, columns in sorted(wanted.items()):
        kept = tuple(each for each in catalog[name].attributes if each.name in columns)
        found[name] = replace(catalog[name], attributes=kept, key=())
    return found


def periods_of(portions: Iterable[Portion]) -> dict[str, TimeRange]:
    """Return when the events are that some query reads, by stream."""
    found: dict[str, TimeRange] = {}
    for portion in with_parts(portions):
        for leaf in streams_of(portion.template):
            period = leaf.time_range
            known = found.get(leaf.stream, period)
            found[leaf.stream] = TimeRange(
                min(known.start_us, period.start_us), max(known.end_us, period.end_us)
            )
    return found


def streams_of(template: Template) -> list[Scan]:
    """Return the scans of streams in a template, not those of parts."""
    return [leaf for leaf in scans_of(template.whole) if not is_part(leaf)]
