"""The queries of a template as they came, to be found by their numbers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from eventide.engines.live.sharing.packed import unpacked
from eventide.kernels.compiled import Int64s
from eventide.plan.sharing.portion import Portion


@dataclass(slots=True)
class KnownPortions:
    """The queries of a template that are known, in the order in which they came.

    Their constants may be packed here; they are not where they leave.
    """

    portions: list[Portion] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    """The largest number up to each portion: numbers ascend, so the newest are found at the end."""

    def add(self, portion: Portion) -> None:
        """Add queries; those that come back are known already."""
        if self.ends and portion.numbers[0] <= self.ends[-1]:
            back = [each.numbers for each in self.among(portion.numbers)]
            if back:
                portion = portion.only(~np.isin(portion.numbers, np.concatenate(back)))
            if not len(portion.numbers):
                return
        newest = int(portion.numbers[-1])
        self.portions.append(portion)
        self.ends.append(max(newest, self.ends[-1]) if self.ends else newest)

    def among(self, numbers: Int64s) -> Iterator[Portion]:
        """Yield those of some queries, given by ascending numbers."""
        if not len(numbers):
            return
        start = bisect_left(self.ends, int(numbers[0]))
        for portion in islice(self.portions, start, None):
            # To compare all numbers costs more, and most portions are of other ones.
            if portion.numbers[0] > numbers[-1] or portion.numbers[-1] < numbers[0]:
                continue
            own = np.isin(portion.numbers, numbers)
            if own.any():
                found = portion if own.all() else portion.only(own)
                yield replace(found, constants=unpacked(found.constants))
