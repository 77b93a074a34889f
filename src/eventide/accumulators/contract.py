"""What an accumulator is: partial results that merge by group and by frame."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from eventide.kernels.compiled import Int64s

Columns = Sequence[pa.Array]


@dataclass(frozen=True, slots=True)
class Groups:
    """Row i belongs to group `of_row[i]`, one of `count`."""

    of_row: Int64s
    count: int


@dataclass(frozen=True, slots=True)
class Frames:
    """Frame f covers rows [left[f], right[f]); neither bound ever goes back."""

    left: Int64s
    right: Int64s


class Accumulator(ABC):
    """How one aggregate is computed; see the package."""

    @property
    @abstractmethod
    def types(self) -> tuple[pa.DataType, ...]:
        """The types of the partial columns."""

    @abstractmethod
    def lift(self, *values: pa.Array) -> list[pa.Array]:
        """Return the partial of each row alone, from its arguments."""

    @abstractmethod
    def by_group(self, partials: Columns, groups: Groups) -> list[pa.Array]:
        """Merge the partials of each group."""

    @abstractmethod
    def by_frame(self, partials: Columns, frames: Frames) -> list[pa.Array]:
        """Merge the partials of each frame."""

    @abstractmethod
    def finish(self, partials: Columns) -> pa.Array:
        """Return the aggregates."""

    def of_groups(self, values: Columns, groups: Groups) -> list[pa.Array]:
        """Return the partial of each group of rows, from the arguments of single rows."""
        return self.by_group(self.lift(*values), groups)

    def of_frames(self, partials: Columns, frames: Frames) -> pa.Array:
        """Return the aggregates of frames."""
        return self.finish(self.by_frame(partials, frames))
