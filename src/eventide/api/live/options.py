"""How a query runs live: what users write as keywords, checked and in one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypedDict, get_args

from eventide.api.live.clocks.clock import SYSTEM_CLOCK, Clock
from eventide.api.live.clocks.wall_time import checked_idle
from eventide.api.live.handover import Full, HandOverOptions
from eventide.api.live.row_queue import QUEUE_ROWS
from eventide.api.stream import Time
from eventide.engines.live.late_windows import Late, checked_late
from eventide.engines.live.sharing.turns import RefreshTurns
from eventide.errors import SchemaError
from eventide.plan.sizes import Bytes, size_bytes
from eventide.plan.times import Duration, duration_us

Start = Time
"""Where a query that is new starts: "now", "beginning", or a time."""


Overload = Literal["wait", "stretch"]
"""What gives way if periodic queries need more than the machine has: events, or their periods."""


class LiveKeywords(TypedDict, total=False):
    """The options of `Database.live`: the fields of `LiveOptions`."""

    lateness: Duration
    late: Late
    from_history: bool
    max_state_bytes: Bytes | None
    max_lag: Duration | None
    idle: Duration | None
    clock: Clock | None
    queue_rows: int
    name: str | None
    replace: bool
    start: Start


class SubscribeKeywords(LiveKeywords, total=False):
    """The options of `Database.subscribe`: the fields of `ReceivedOptions`."""

    full: Full
    retries: int
    retry_after: Duration


class ManyKeywords(TypedDict, total=False):
    """The options of `Database.subscribe_many`: those that are not about a single query."""

    lateness: Duration
    max_state_bytes: Bytes | None
    max_lag: Duration | None
    idle: Duration | None
    clock: Clock | None
    queue_rows: int
    full: Full
    retries: int
    retry_after: Duration
    name: str | None
    replace: bool
    start: Start
    overload: Overload


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOptions:
    """How a query runs live; `Database.subscribe` says what each option means."""

    lateness: Duration = "0 s"
    late: Late = "watermark"
    from_history: bool = False
    max_state_bytes: Bytes | None = None
    max_lag: Duration | None = None
    idle: Duration | None = None
    clock: Clock | None = None
    queue_rows: int = QUEUE_ROWS
    name: str | None = None
    replace: bool = False
    start: Start = "now"

    def __post_init__(self) -> None:
        # What cannot be read as a duration, or as a number, is refused here.
        _ = self.lateness_us, checked_late(self.late), self.max_lag_us, self.idle_us
        _ = self.most_state_bytes, self.hand_over
        if self.name is None and (self.replace or self.start != "now"):
            message = "start and replace are for queries with a name"
            raise SchemaError(message, hint='add name="…", or leave them out')

    @property
    def lateness_us(self) -> int:
        """How long the query waits for events that come out of order."""
        return duration_us(self.lateness)

    @property
    def max_lag_us(self) -> int | None:
        """How far a stream may be behind another one and still be waited for."""
        return None if self.max_lag is None else duration_us(self.max_lag)

    @property
    def idle_us(self) -> int | None:
        """After how much wall time a stream is silent; None if no wall clock counts."""
        return checked_idle(self.idle, self.clock)

    @property
    def most_state_bytes(self) -> int | None:
        """How much the query may remember, in bytes."""
        most = self.max_state_bytes
        return None if most is None else size_bytes(most, "max_state_bytes")

    @property
    def may_share(self) -> bool:
        """Whether the query may run as one with others: nothing is asked that is only its own."""
        own = (self.from_history, self.max_state_bytes, self.idle, self.name)
        return not any(own) and self.late == "watermark"

    @property
    def wall_clock(self) -> Clock:
        """The wall clock."""
        return self.clock or SYSTEM_CLOCK

    @property
    def hand_over(self) -> HandOverOptions:
        """How rows are handed over."""
        return HandOverOptions(self.queue_rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedOptions(LiveOptions):
    """The options of a query whose rows may go to a receiver."""

    full: Full = "wait"
    retries: int = 3
    retry_after: Duration = "1 s"

    @property
    def hand_over(self) -> HandOverOptions:
        """How rows are handed over."""
        after_us = duration_us(self.retry_after)
        return HandOverOptions(self.queue_rows, self.full, self.retries, after_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyOptions(ReceivedOptions):
    """The options of a set of queries."""

    overload: Overload = "wait"

    def __post_init__(self) -> None:
        # `super()` knows no class of its own in one that has slots.
        ReceivedOptions.__post_init__(self)
        if self.overload not in get_args(Overload):
            message = f"overload is not {self.overload!r}"
            raise SchemaError(message, hint='write overload="wait" or overload="stretch"')
        if self.overload == "stretch" and self.name is not None:
            message = "a set with a name cannot stretch its periods: steps come again after a crash"
            raise SchemaError(message, hint="leave out name or overload")

    @property
    def idle_us(self) -> int | None:
        """After how much wall time a stream is silent; None if no wall clock counts for that."""
        stretches = self.idle is None and self.overload == "stretch"
        return checked_idle(self.idle, None if stretches else self.clock)

    @property
    def turns(self) -> RefreshTurns:
        """When refreshes of periodic queries are computed."""
        return RefreshTurns(self.wall_clock.now_us if self.overload == "stretch" else None)
