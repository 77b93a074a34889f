"""Check a state that is read, because kernels do not check whether an index is in range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide.errors import StateError
from eventide.instants import END_OF_TIME_US, START_OF_TIME_US
from eventide.kernels.compiled import Bools, Int64s, frozen
from eventide.operators.columns import encode_keys
from eventide.schema import MAX_TS_US, MIN_TS_US, TS

LONGEST_US = 2**62 + 2**61
"""Longer than any lateness or window, and far from the end of 64 bits."""

Numbers = npt.NDArray[Any]


def require(holds: object, wrong: str) -> None:
    """Refuse a state for which a condition does not hold."""
    if not holds:
        message = f"the state is wrong inside: {wrong}"
        hint = "its checksum is right: it was written so, by something else than dump"
        raise StateError(message, hint=hint)


def require_within(numbers: Numbers, low: int, end: int, what: str) -> None:
    """Refuse numbers outside [low, end)."""
    if len(numbers):
        least, most = int(numbers.min()), int(numbers.max())
        require(low <= least and most < end, f"{what} are in {least} to {most}, not {low} to {end}")


def require_ascending(numbers: Numbers, what: str) -> None:
    """Refuse numbers that do not ascend; equal neighbours are allowed."""
    require((numbers[1:] >= numbers[:-1]).all(), f"{what} do not ascend")


def require_ascending_in_runs(numbers: Numbers, starts: Int64s, what: str) -> None:
    """Refuse numbers that do not ascend within each run."""
    falls = numbers[1:] < numbers[:-1]
    falls[starts[starts > 0] - 1] = False
    require(not falls.any(), f"{what} do not ascend")


def require_lengths(length: int, parts: Sequence[Numbers | pa.Array], what: str) -> None:
    """Refuse arrays that are not all of one length."""
    found = sorted({len(part) for part in parts} | {length})
    require(len(found) == 1, f"{what} are of lengths {found}")


def filled(column: pa.Array, what: str) -> Int64s:
    """Return a column of whole numbers or times; refuse nulls."""
    require(column.null_count == 0, f"a null among the {what}")
    if pa.types.is_temporal(column.type):
        column = column.view(pa.int64())
    return frozen(column.to_numpy(zero_copy_only=False))


def filled_bools(column: pa.Array, what: str) -> Bools:
    """Return a column of truth values; refuse nulls."""
    require(column.null_count == 0, f"a null among the {what}")
    return np.asarray(column.to_numpy(zero_copy_only=False))


def times_of(rows: pa.RecordBatch) -> Int64s:
    """Return the times of events, in any order; refuse nulls and values that are no times."""
    ts = filled(rows.column(TS), "times of events")
    require_within(ts, MIN_TS_US, MAX_TS_US + 1, "times of events")
    return ts


def require_keys(keys: Sequence[pa.Array], count: int) -> None:
    """Refuse equal keys, or more than one key where there are no key columns."""
    _, _, found = encode_keys(keys, count)
    require(found == count if keys else count <= 1, f"{count} keys are not all different")


def require_living(ends: Numbers, until_us: int, what: str = "tuples") -> None:
    """Refuse tuples that expired before the instant reached, or that expire too late."""
    require_instant(until_us, "the end of the last step")
    if len(ends):
        require(until_us != START_OF_TIME_US, f"{what} before the first step")
        require(int(ends.min()) >= until_us, f"{what} that have gone")
        known = ends[ends != END_OF_TIME_US]
        require_within(known, until_us, MAX_TS_US + LONGEST_US, f"ends of {what}")


def require_instant(instant_us: int, what: str) -> None:
    """Refuse an instant that no clock shows; the start and the end of time are allowed."""
    ends = (START_OF_TIME_US, END_OF_TIME_US)
    near = MIN_TS_US - LONGEST_US <= instant_us <= MAX_TS_US + LONGEST_US
    require(near or instant_us in ends, f"{what} is at {instant_us}")
