"""Events that change nothing yet wait: a step for each few costs more than all that they are for.

While queries are over shared windows alone, events only have to be there when the next window ends.
Until then a step would put them behind those that wait already; so they come together, as one
arrival. What is known of them from outside, the newest time and the clock, goes on with each.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from eventide.engines.live.engine import LiveState
from eventide.engines.live.sharing.tree.states import SharedStates
from eventide.ingest.ordering import times, words_of
from eventide.instants import START_OF_TIME_US
from eventide.kernels.compiled import frozen
from eventide.kernels.ordering import survey
from eventide.operators.columns import concat_batches
from eventide.plan.sharing.part_rows import PART
from eventide.schema import SEQ

MOST_HELD = 65_536
"""So many events do not wait for more."""


@dataclass(slots=True)
class HeldEvents:
    """Events of the only stream behind a state, in order; no window ends before `due_us`."""

    newest_us: int
    due_us: int
    lateness_us: int
    rows: int = 0
    batches: list[pa.RecordBatch] = field(default_factory=list)

    @classmethod
    def behind(cls, state: LiveState, queries: SharedStates, lateness_us: int) -> HeldEvents:
        """Return no events behind a state."""
        return cls(state.feeds[0].newest_us, due_us(queries), lateness_us)

    def takes(self, rows: pa.RecordBatch) -> bool:
        """Take events if they are in order, none is late, and no window ends with them."""
        ts = times(rows)
        if self.due_us == START_OF_TIME_US or not len(ts) or self.rows >= MOST_HELD:
            return False
        if int(ts[-1]) - self.lateness_us >= self.due_us or int(ts[0]) < self.newest_us:
            return False
        _, newest_us, ascends = survey(frozen(ts), frozen(words_of(rows.column(SEQ))))
        if not ascends:
            return False
        self.newest_us = newest_us
        self.rows += rows.num_rows
        self.batches.append(rows)
        return True

    @property
    def watermark_us(self) -> int:
        """The instant before which no event is waited for any more."""
        return self.newest_us - self.lateness_us

    def together(self) -> pa.RecordBatch:
        """Return all events."""
        return concat_batches(self.batches, self.batches[0].schema)


def due_us(queries: SharedStates) -> int:
    """Return the instant at which the first window ends, if nothing else happens before.

    Otherwise, as where a condition is looked up for each event, it is the beginning of time.
    """
    looked_up = (len(each) for name, each in queries.indexes.items() if not name.startswith(PART))
    dues = [run.windows.due_us for run in queries.runs if run.windows is not None]
    if not dues or any(looked_up):
        return START_OF_TIME_US
    quiet = all(
        all(run.tree.keys) and run.tree.is_idle_when_empty and run.is_empty for run in queries.runs
    )
    return min(dues) if quiet else START_OF_TIME_US
