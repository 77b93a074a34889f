"""Rows for sinks: each holds its own number."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from eventide.sinks.rolled import RolledFiles

SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us")),
        ("row", pa.int64()),
        ("word", pa.string()),
        ("many", pa.list_(pa.int64())),
    ]
)


def rows_between(first: int, end: int) -> pa.RecordBatch:
    """Return the rows of a query with numbers from `first` to before `end`."""
    numbers = range(first, end)
    columns = [
        pa.array([1_000_000 * number for number in numbers], pa.timestamp("us")),
        pa.array(numbers, pa.int64()),
        pa.array([None if number % 7 == 3 else f'"{number}"\n' for number in numbers], pa.string()),
        pa.array([[number] * (number % 3) for number in numbers], pa.list_(pa.int64())),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def written(folder: Path) -> list[int]:
    """Return the numbers of the rows in all files of a folder, in order of the names."""
    found: list[int] = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        first, end = map(int, path.stem.split("-")[-2:])
        assert rows_of(path) == expected_rows(first, end, path.suffix)
        found += range(first, end)
    return found


def rows_of(path: Path) -> list[dict[str, object]]:
    """Return the rows of a file."""
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().split("\n")[:-1]]
    rows: list[dict[str, object]] = pyarrow.parquet.read_table(path).to_pylist()
    return rows


def expected_rows(first: int, end: int, suffix: str) -> list[dict[str, object]]:
    """Return the rows that a file with these numbers has to have."""
    rows: list[dict[str, object]] = rows_between(first, end).to_pylist()
    for number, row in zip(range(first, end), rows, strict=True):
        at = datetime.fromtimestamp(number, UTC)
        row["ts"] = at.strftime("%Y-%m-%dT%H:%M:%SZ") if suffix == ".jsonl" else at
    return rows


def die(sink: RolledFiles) -> None:
    """Let go of what the system would free if the process were gone."""
    if sink.folder is not None:
        sink.folder.close()
