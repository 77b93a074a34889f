"""Rebuild the state of a durable query whose format is that of another release.

The query takes the events again that it had taken, and nobody gets their rows. Row numbers go on
where they were, and rows that were waiting are not affected: they are kept apart from the state.

The rows of one step may come in another order than before. That matters only after a crash: rows of
a step that were received in part are told from the others by their numbers.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eventide.api.live.group import Group
from eventide.errors import StoreError
from eventide.ingest.by_time import by_time
from eventide.schema import SEQ

if TYPE_CHECKING:
    from eventide.api.live.durable import DurableGroup

EVENTS_AT_ONCE = 1_000
"""Events that came together do not make each other late, so few are taken together."""

log = logging.getLogger("eventide.live")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a query began, and where it is: enough to take the same events again.

    began      the number of the first event that its state depends on, by stream
    first_row  the number of its first row; None if earlier rows cannot be told from its own
    reached    instants that streams were moved to without events
    """

    began: Mapping[str, int]
    first_row: int | None
    reached: Mapping[str, int]

    def written(self) -> dict[str, object]:
        """Return it as JSON may have it."""
        return {
            "began": dict(self.began),
            "first_row": self.first_row,
            "reached": dict(self.reached),
        }


def rebuild(group: DurableGroup, origin: Origin, next_seqs: Mapping[str, int], rows: int) -> None:
    """Let a query take its events again, up to some numbers; it had emitted so many rows."""
    query = group.query
    queue, query.queue = query.queue, None
    query.counters.rows = origin.first_row or 0
    group.position = dict(origin.began)
    wanted = sum(end - origin.began[name] for name, end in next_seqs.items())
    count = 0
    try:
        with group.stepping:
            streams = {name: group.missing(name, end) for name, end in next_seqs.items()}
            parts = by_time(streams, group.relations, query.engine.max_lag_us, EVENTS_AT_ONCE)
            for stream, events in parts:
                group.position[stream] = events.column(SEQ)[-1].as_py() + 1
                count += events.num_rows
                Group.step(group, group.started({stream: events}))
                if query.failure is not None:
                    return
            if count != wanted:
                raise cannot_rebuild(query.described(), wanted, count)
            Group.step(group, {}, {id(query): origin.reached})
    finally:
        query.queue = queue
    emitted = query.counters.rows
    if origin.first_row is not None and emitted != rows:
        what = "late events were decided in another way"
        log.warning("%s: rebuilt with %d rows, not %d: %s", query.name, emitted, rows, what)
    query.counters.events = query.counters.steps = 0
    log.info("%s: its state was rebuilt from %d events", query.name, count)


def cannot_rebuild(name: str, wanted: int, count: int) -> StoreError:
    """Return the error for a query whose events are gone."""
    message = (
        f"{name} cannot go on: its state is of another release of Eventide, and of the {wanted:,} "
        f"events to rebuild it from, {count:,} are left in the store"
    )
    hint = "subscribe with replace=True, and say from where it starts"
    return StoreError(message, hint=hint)
