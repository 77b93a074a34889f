"""What is checked of a state that is read: kernels do not look whether an index is in range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide.errors import StateError
from eventide.kernels.compiled import Bools, Int64s, frozen

Numbers = npt.NDArray[Any]


def require(holds: object, wrong: str) -> None:
    """Refuse a state of which something does not hold."""
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
    """Refuse numbers that do not ascend; equal ones may follow each other."""
    require((numbers[1:] >= numbers[:-1]).all(), f"{what} do not ascend")


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


def require_different(keys: Sequence[pa.Array], what: str) -> None:
    """Refuse keys of which two are equal."""
    if keys:
        table = pa.table(list(keys), names=[f"key {number}" for number in range(len(keys))])
        found = table.group_by(table.column_names).aggregate([]).num_rows
        require(found == table.num_rows, f"{what} are not all different")
