"""Which runs to merge, and their entries in one order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from eventide.arrays import no_rows
from eventide.store.index.secondary.keys import NAMES, is_number, joined, numbers, position
from eventide.store.index.secondary.run import Run

FAN_IN = 8
SMALLEST_TIER_BYTES = 1 << 16
CHUNK_PAGES = 16
CHUNK_BYTES = 4 << 20


def runs_to_merge(sizes: Sequence[int], fan_in: int = FAN_IN) -> list[int]:
    """Return which runs to merge into one, by their places in `sizes` (bytes); none if all is well.

    A tier is a range of sizes up to `fan_in` times the one before. Of the lowest tier that has
    `fan_in` runs all are merged, with all runs of lower tiers. An entry is so rewritten once a
    tier, and fewer than `fan_in` runs of any tier are left when no merge is due.

    >>> runs_to_merge([900_000, 10, 20, 30], fan_in=3)
    [1, 2, 3]
    """
    tiers = [tier_of(size, fan_in) for size in sizes]
    for tier in sorted(set(tiers)):
        if tiers.count(tier) >= fan_in:
            return [place for place, each in enumerate(tiers) if each <= tier]
    return []


def tier_of(size: int, fan_in: int) -> int:
    """Return 0 up to the smallest tier's size, and one more for every factor of `fan_in`."""
    tier, bound = 0, SMALLEST_TIER_BYTES
    while size > bound:
        tier, bound = tier + 1, bound * fan_in
    return tier


class RunCursor:
    """The entries of a run that are still to come, some of them in memory."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.next_page = 0
        self.held = self.chunk()

    @property
    def is_last(self) -> bool:
        """Whether the entries in memory are the last of the run."""
        return self.next_page == self.run.pages

    def chunk(self) -> pa.RecordBatch:
        """Return the entries of the next few pages, of one page where values are huge."""
        _, _, places = self.run.fences
        if self.is_last:
            return no_rows(self.run.schema)
        first = self.next_page
        fitting = int(np.searchsorted(places, places[first] + CHUNK_BYTES, side="right")) - 1
        self.next_page = min(max(first + 1, fitting), first + CHUNK_PAGES, self.run.pages)
        return pa.concat_batches([self.run.page(page) for page in range(first, self.next_page)])

    def take(self, bound: pa.RecordBatch | None) -> pa.RecordBatch:
        """Return the entries in memory up to a bound, all without a bound, and read the next."""
        held = self.held
        count = held.num_rows if bound is None else rows_up_to(held, bound)
        self.held = held.slice(count) if count < held.num_rows else self.chunk()
        return held.slice(0, count)


def merged(runs: Sequence[Run]) -> Iterator[pa.RecordBatch]:
    """Yield the entries of all runs in order of (value, ts, seq).

    In memory at a time: of each run 65,536 entries, or 4 MiB as stored if values are large.
    """
    cursors = [RunCursor(run) for run in runs]
    while cursors := [cursor for cursor in cursors if cursor.held.num_rows]:
        # Entries of a run that are not read yet come behind those that are: up to the smallest
        # last entry of the runs that go on, nothing is missing.
        ends = [cursor.held[-1:] for cursor in cursors if not cursor.is_last]
        bound = joined(ends)[:1] if ends else None
        parts = [cursor.take(bound) for cursor in cursors]
        yield joined([part for part in parts if part.num_rows])


def rows_up_to(entries: pa.RecordBatch, bound: pa.RecordBatch) -> int:
    """Return how many sorted entries do not come behind `bound`, a single entry."""
    start, stop = 0, entries.num_rows
    for name in NAMES[:-1]:
        equal = entries[name][start:stop]
        sought = stored_scalar(bound[name])
        stop = start + position(equal, sought, after=True)
        start += position(equal, sought, after=False)
    return start + position(entries["seq"][start:stop], stored_scalar(bound["seq"]), after=True)


def stored_scalar(values: pa.Array) -> object:
    """Return the only value of a column, as `position` takes it."""
    return numbers(values)[0] if is_number(values.type) else values[0].as_py()
