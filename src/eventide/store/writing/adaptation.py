"""Decide what a stream leaves out while more comes in than it can take.

A feed (`feed.py`) asks after each append. As long as its queue is short nothing changes. When the
queue stays long, the open segment is ended early, and the next one leaves something out:

    partial       some secondary indexes, if most events come in order: the index that helps
                  queries least goes first
    system time   the order of time and all secondary indexes, if many events are late: putting
                  those in their places is what takes the time

Nothing is restored before the next regular split, when a segment reaches the end of its period or
is full: otherwise a stream could alternate all the time. There everything is on again, and if the
queue is still long, the next append reduces it again.

This file only decides: no clock, no disk, no thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from eventide.errors import listed
from eventide.store.options import StreamOptions
from eventide.store.writing.load import Load
from eventide.store.writing.view import Reduced

LONG_QUEUE = 0.5
"""The share of its capacity at which a queue is long. The other half is for what comes in while
the segment is ended and the next one begins; producers should not have to wait for that."""
MOST_LATE = 0.01
"""Above this share of late events, keeping them as they arrive is faster: the published
measurements of ChronicleDB break even at one in a hundred."""
DROPPED_AT_ONCE = 0.5
"""The share of the secondary indexes that is dropped in one step. One at a time would end a segment
for each, all at once would give up more than needed."""


class Mode(StrEnum):
    """How much of its options a stream follows now."""

    FULL = "full"
    PARTIAL = "partial"
    SYSTEM_TIME = "system time"


@dataclass(frozen=True, slots=True)
class QueueState:
    """How many rows have waited for a while, of how many that may.

    `open_us` is how far back the events reach that are in no leaf yet: an event less late than this
    is sorted into its place at no cost.
    """

    rows: int
    capacity_rows: int
    open_us: int

    @property
    def is_long(self) -> bool:
        """Whether it is time to leave something out."""
        return self.rows >= self.capacity_rows * LONG_QUEUE


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a stream does now: the mode, and the secondary indexes it keeps."""

    mode: Mode
    indexes: tuple[str, ...]

    @classmethod
    def of(cls, options: StreamOptions, reduced: Reduced | None) -> Configuration:
        """Return what a stream with these options does, given what it leaves out."""
        if reduced is None:
            return cls(Mode.FULL, options.indexes)
        gave_up_order = options.order == "time" and not reduced.in_order
        return cls(Mode.SYSTEM_TIME if gave_up_order else Mode.PARTIAL, reduced.indexes)


@dataclass(frozen=True, slots=True)
class Reduction:
    """What the next segment leaves out, and the numbers that led to it."""

    mode: Mode
    reduced: Reduced
    why: str


def decide(
    load: Load,
    queued: QueueState,
    present: Configuration,
    options: StreamOptions,
    correlation: Mapping[str, float],
) -> Reduction | None:
    """Return what to leave out from now on; None to go on as before.

    A long queue has two causes. If many events are too late for the open end to absorb, it is the
    work on those; if not, it is simply too much for the indexes. How much "too much" is depends on
    the machine, so rates are not compared: the queue is the measure.
    """
    if not queued.is_long or present.mode == Mode.SYSTEM_TIME:
        return None
    if is_late(load, queued) and options.order == "time":
        change = "events are kept as they arrive, without secondary indexes"
        return Reduction(Mode.SYSTEM_TIME, Reduced(False, ()), explained(load, queued, change))
    if not present.indexes:
        return None
    kept = most_useful(present.indexes, correlation, load.asked)
    gone = [name for name in present.indexes if name not in kept]
    change = f"no secondary index on {listed(gone)}"
    reduced = Reduced(options.order == "time", kept)
    return Reduction(Mode.PARTIAL, reduced, explained(load, queued, change))


def is_late(load: Load, queued: QueueState) -> bool:
    """Whether putting late events in their places takes much of the time."""
    return load.late_share > MOST_LATE and load.average_delay_us > queued.open_us


def most_useful(
    indexes: tuple[str, ...], correlation: Mapping[str, float], asked: Mapping[str, int]
) -> tuple[str, ...]:
    """Return the indexes to keep, in their order.

    If values change little from event to event, the time index rules out most leaves already, so an
    index helps more the lower the correlation is. For attributes without a correlation, such as
    texts, the time index is assumed to rule out nothing.

    >>> most_useful(("speed", "lane"), {"speed": 0.99, "lane": 0.4}, {})
    ('lane',)
    >>> most_useful(("speed", "lane"), {"speed": 0.99, "lane": 0.4}, {"speed": 100})
    ('speed',)
    """

    def usefulness(name: str) -> float:
        return (1 - correlation.get(name, 0.0)) * (1 + asked.get(name, 0))

    count = int(len(indexes) * (1 - DROPPED_AT_ONCE))
    best = sorted(indexes, key=usefulness, reverse=True)[:count]
    return tuple(name for name in indexes if name in best)


def explained(load: Load, queued: QueueState, change: str) -> str:
    """Say what is left out, and why."""
    waited = f"{queued.rows:,} of {queued.capacity_rows:,} rows waited"
    came = f"{load.rows_per_s:,.0f} rows came in a second"
    late = f"{load.late_share:.1%} of them late, by {load.average_delay_us:,.0f} us on average"
    return f"{change} until the next regular split: {waited}, {came}, {late}"
