"""Instants and periods of time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

START_OF_TIME_US = -(2**63)
"""The watermark before any event has been seen."""
END_OF_TIME_US = 2**63 - 1
"""The watermark after the last event: nothing will follow."""


def moment(us: int) -> str:
    """Return an instant as text, in UTC.

    >>> moment(1_500_000)
    '1970-01-01 00:00:01.500000'
    """
    text = str(np.datetime64(us, "us")).replace("T", " ")
    return text.removesuffix(".000000")


@dataclass(frozen=True, slots=True)
class TimeRange:
    """[start_us, end_us). The default is all of time.

    >>> TimeRange(0, 10).overlaps(TimeRange(10, 20))
    False
    """

    start_us: int = START_OF_TIME_US
    end_us: int = END_OF_TIME_US

    @classmethod
    def since(cls, start_us: int) -> TimeRange:
        """Return all time from an instant on."""
        return cls(max(START_OF_TIME_US, start_us))

    def reaching_back(self, by_us: int) -> TimeRange:
        """Return the period with the time before it, as far as that."""
        return TimeRange(max(START_OF_TIME_US, self.start_us - by_us), self.end_us)

    @property
    def is_empty(self) -> bool:
        """Whether no instant lies inside."""
        return self.start_us >= self.end_us

    def overlaps(self, other: TimeRange) -> bool:
        """Whether an instant lies inside both."""
        return max(self.start_us, other.start_us) < min(self.end_us, other.end_us)

    def intersect(self, other: TimeRange) -> TimeRange:
        """Return the instants inside both."""
        return TimeRange(max(self.start_us, other.start_us), min(self.end_us, other.end_us))


ALL_TIME = TimeRange()
