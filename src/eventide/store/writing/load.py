"""How much comes in, how late, and how far back: measured over the last few seconds."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from eventide.instants import START_OF_TIME_US
from eventide.kernels.compiled import Int64s
from eventide.schema import TS
from eventide.store.order import int64_view, is_ascending

WINDOW_S = 10.0


@dataclass(frozen=True, slots=True)
class MeteredAppend:
    """One append as the meter saw it."""

    at_s: float
    rows: int
    late_rows: int
    delay_us: float
    most_delay_us: int


@dataclass(frozen=True, slots=True)
class Load:
    """What came in over the last few seconds. An event is late if a newer one came before it."""

    rows_per_s: float
    late_share: float
    average_delay_us: float
    most_delay_us: int
    asked: Mapping[str, int] = field(default_factory=dict)
    """How many scans of this process had a condition on an attribute, since it began."""


class LoadMeter:
    """Keeps the measurements of the last few seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        # Some thread appends while others ask for statistics.
        self.mutex = threading.Lock()
        self.arrivals: deque[MeteredAppend] = deque()
        self.newest = START_OF_TIME_US
        self.asked: Counter[str] = Counter()
        self.started = clock()

    def observe(self, rows: pa.RecordBatch) -> None:
        """Record an append."""
        if not rows.num_rows:
            return
        ts = int64_view(rows.column(TS))
        now_s = self.clock()
        with self.mutex:
            late_rows, delay, most = self.lateness(ts)
            # Without late events the last is the newest.
            self.newest = max(self.newest, int(ts.max())) if late_rows else int(ts[-1])
            self.arrivals.append(MeteredAppend(now_s, len(ts), late_rows, delay, most))
            self.forget(now_s)

    def ask(self, attributes: Iterable[str]) -> None:
        """Record that a scan had conditions on some attributes."""
        with self.mutex:
            self.asked.update(list(attributes))  # a mapping would be taken for counts

    def lateness(self, ts: Int64s) -> tuple[int, float, int]:
        """Return how many events are late, by how much together, and the most."""
        if ts[0] >= self.newest and is_ascending(ts):
            return 0, 0.0, 0
        newest = np.maximum(np.maximum.accumulate(ts), self.newest)
        late = ts < newest
        if not late.any():
            return 0, 0.0, 0
        delays = newest[late] - ts[late]
        # As floats: a few dozen delays of millennia are more than an int64 holds.
        return int(late.sum()), float(delays.sum(dtype=np.float64)), int(delays.max())

    def forget(self, now_s: float) -> None:
        """Drop what is older than the window."""
        border = now_s - WINDOW_S
        while self.arrivals and self.arrivals[0].at_s < border:
            self.arrivals.popleft()

    def load(self) -> Load:
        """Return the measures of the window."""
        with self.mutex:
            self.forget(self.clock())
            arrivals, asked = list(self.arrivals), dict(self.asked)
        rows = sum(arrival.rows for arrival in arrivals)
        late = sum(arrival.late_rows for arrival in arrivals)
        delay = sum(arrival.delay_us for arrival in arrivals)
        seconds = min(WINDOW_S, max(self.clock() - self.started, 1e-3))
        return Load(
            rows_per_s=rows / seconds,
            late_share=late / rows if rows else 0.0,
            average_delay_us=delay / late if late else 0.0,
            most_delay_us=max((arrival.most_delay_us for arrival in arrivals), default=0),
            asked=asked,
        )
