"""States made of arrays, as bytes: every array with its name, type and shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide.accumulators.columns import list_of
from eventide.errors import StateError
from eventide.operators.state import read_rows, write_rows

Arrays = Mapping[str, npt.NDArray[Any]]

_SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("type", pa.string()),
        ("shape", list_of(pa.int64())),
        ("bytes", pa.large_binary()),
    ]
)


def write_arrays(operator: str, arrays: Arrays) -> bytes:
    """Write arrays under the name of the operator."""
    rows = pa.RecordBatch.from_arrays(
        [
            pa.array(list(arrays), pa.string()),
            pa.array([array.dtype.str for array in arrays.values()]),
            pa.array([list(array.shape) for array in arrays.values()], list_of(pa.int64())),
            pa.array([array.tobytes() for array in arrays.values()], pa.large_binary()),
        ],
        schema=_SCHEMA,
    )
    return write_rows(operator, rows, {})


def read_arrays(operator: str, dumped: bytes) -> dict[str, npt.NDArray[Any]]:
    """Read back what `write_arrays` wrote: arrays that can be written to."""
    rows, _ = read_rows(operator, dumped, _SCHEMA)
    found = {}
    for row in rows.to_pylist():
        try:
            flat = np.frombuffer(row["bytes"], np.dtype(row["type"]))
            found[row["name"]] = flat.reshape(row["shape"]).copy()
        except (TypeError, ValueError) as error:
            message = f"the state of {operator} is damaged at {row['name']!r}: {error}"
            raise StateError(message) from error
    return found


def prefixed(prefix: str, arrays: Arrays) -> Arrays:
    """Return the arrays under longer names."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def under(prefix: str, arrays: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays that `prefixed` named, under their own names."""
    start = f"{prefix}."
    return {name[len(start) :]: array for name, array in arrays.items() if name.startswith(start)}
