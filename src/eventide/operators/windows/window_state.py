"""The state of tumbling and hopping windows: partials, of queries that may not be equally far.

    closed    12        15        21
    queries   1 3       2         4 5     2, 4 and 5 wait until windows have closed so far

Queries whose windows are over the rows of a row pattern, say, are as far as their own undecided
matches let them be. When their states are united, those ahead wait: whatever comes before the
instant that they have reached is not for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from eventide.arrays import to_arrow
from eventide.instants import START_OF_TIME_US
from eventide.operators.checking import require
from eventide.operators.columns import concat_batches
from eventide.operators.dividing import Wanted, merged_by
from eventide.operators.state import read_rows, write_rows

PANE = "pane"
"""The column of partials with the start of their pane."""


@dataclass(frozen=True, slots=True)
class WindowState:
    """The partials of panes that open windows still need, and how far windows have closed.

    The first `merged_rows` were merged. Those `ahead` are further, each further than the one
    before. Rows that came `later` are kept apart from the `oldest`, so that a step does not copy
    all of them.
    """

    oldest: pa.RecordBatch
    merged_rows: int = 0
    closed_us: int = START_OF_TIME_US
    ahead: tuple[WindowState, ...] = ()
    later: tuple[pa.RecordBatch, ...] = ()

    @property
    def layers(self) -> tuple[pa.RecordBatch, ...]:
        """The partials, the oldest first."""
        return (self.oldest, *self.later)

    @property
    def partials(self) -> pa.RecordBatch:
        """The partials as one batch."""
        return concat_batches(self.layers, self.oldest.schema)

    @property
    def rows(self) -> int:
        """How many partials there are."""
        return sum(each.num_rows for each in self.layers)

    @property
    def nbytes(self) -> int:
        """How many bytes they take."""
        return sum(each.nbytes for each in self.layers)

    @property
    def alone(self) -> WindowState:
        """The state without those that are ahead."""
        return replace(self, ahead=())

    @property
    def parts(self) -> tuple[WindowState, ...]:
        """The state alone, then those ahead."""
        return (self.alone, *self.ahead)

    def of_keys(self, place: int, wanted: Wanted) -> WindowState:
        """Return the partials whose value in a column is wanted."""

        def chosen(part: WindowState) -> WindowState:
            own = wanted(part.partials.column(place))
            merged_rows = int(np.count_nonzero(own[: part.merged_rows]))
            return WindowState(part.partials.filter(to_arrow(own)), merged_rows, part.closed_us)

        return together(map(chosen, self.parts))

    def united(self, other: WindowState) -> WindowState:
        """Return the partials of both; none has a key of the other."""
        return together((*self.parts, *other.parts))


def together(parts: Iterable[WindowState]) -> WindowState:
    """Return parts as one state, each with those that are as far."""
    by_time: dict[int, WindowState] = {}
    for part in sorted(parts, key=lambda each: each.closed_us):
        known = by_time.get(part.closed_us)
        by_time[part.closed_us] = part if known is None else as_one(known, part)
    first, *others = by_time.values()
    return replace(first, ahead=tuple(each for each in others if each.rows))


def as_one(part: WindowState, other: WindowState) -> WindowState:
    """Return two parts that are equally far; their partials in order of panes.

    How many of them are merged only says when to merge again.
    """
    partials = merged_by(part.partials, other.partials, PANE)
    return WindowState(partials, part.merged_rows + other.merged_rows, part.closed_us)


def write_windows(name: str, state: WindowState) -> bytes:
    """Write a state out: the rows of all its parts, and where each ends."""
    facts, partials = dict[str, int](), []
    for number, part in enumerate(state.parts):
        behind = f" {number}" if number else ""
        facts |= {f"merged_rows{behind}": part.merged_rows, f"closed_us{behind}": part.closed_us}
        if state.ahead:
            facts[f"rows{behind}"] = part.partials.num_rows
        partials.append(part.partials)
    return write_rows(name, concat_batches(partials, state.partials.schema), facts)


def read_windows(name: str, written: bytes, schema: pa.Schema) -> WindowState:
    """Read back what `write_windows` wrote."""
    rows, facts = read_rows(name, written, schema)
    parts, first = list[WindowState](), 0
    behind = ""
    while f"closed_us{behind}" in facts:
        count = facts.get(f"rows{behind}", rows.num_rows)
        require(0 <= count <= rows.num_rows - first, f"{count} partials of {rows.num_rows}")
        partials = rows.slice(first, count)
        merged_rows = facts[f"merged_rows{behind}"]
        parts.append(WindowState(partials, merged_rows, facts[f"closed_us{behind}"]))
        first, behind = first + count, f" {len(parts)}"
    require(first == rows.num_rows, "partials of no window")
    far = [part.closed_us for part in parts]
    require(far == sorted(set(far)), "windows that are ahead are not")
    return replace(parts[0], ahead=tuple(parts[1:]))
