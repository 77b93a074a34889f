"""Both sides gave the same rows, or nothing is timed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.cases import Case
from benchmarks.setting import Setting

TOLERANCE = 1e-9


class MismatchError(AssertionError):
    """Two ways to answer one question gave different answers."""


def check_answers(case: Case, setting: Setting) -> None:
    """Compare every way of a case with its first, row by row."""
    answers = {way.name: way.answer for way in case.ways() if way.answer is not None}
    bags = {name: as_bag(answer(setting)) for name, answer in answers.items()}
    for first, expected in list(bags.items())[:1]:
        for other, found in bags.items():
            difference = difference_of(expected, found)
            if difference:
                message = f"{case.name}: {other} and {first} differ: {difference}"
                raise MismatchError(message)


def as_bag(rows: pa.Table) -> pa.Table:
    """Return rows in an order of their own, columns by name, in types that all agree on."""
    names = sorted(rows.column_names)
    plain = pa.table({name: plainly(rows.column(name)) for name in names})
    # Floats last: where everything else is equal, they were not computed but copied.
    order = sorted(names, key=lambda name: pa.types.is_floating(plain.schema.field(name).type))
    return plain.sort_by([(name, "ascending") for name in order])


def plainly(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return times as microseconds and text as strings."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us")).cast(pa.int64())
    if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
        return column
    return column.cast(pa.string())


def difference_of(expected: pa.Table, found: pa.Table) -> str:
    """Return what differs, or nothing."""
    if expected.column_names != found.column_names:
        return f"columns {found.column_names}, not {expected.column_names}"
    if expected.num_rows != found.num_rows:
        return f"{found.num_rows:,} rows, not {expected.num_rows:,}"
    for name in expected.column_names:
        place = first_difference(expected.column(name), found.column(name))
        if place is not None:
            at = f"sorted row {place:,}, column {name}"
            return f"{at}: {row_at(found, place)}, not {row_at(expected, place)}"
    return ""


def first_difference(expected: pa.ChunkedArray, found: pa.ChunkedArray) -> int | None:
    """Return where two columns first differ, floats by more than the tolerance."""
    if pa.types.is_floating(expected.type):
        # A null becomes a NaN, which the events do not have.
        same = np.isclose(
            expected.to_numpy(), found.to_numpy(), rtol=TOLERANCE, atol=0.0, equal_nan=True
        )
    else:
        nulls = pc.and_(pc.is_null(expected), pc.is_null(found))
        same = pc.fill_null(pc.equal(expected, found), nulls).to_numpy(zero_copy_only=False)
    differing = np.flatnonzero(~same.astype(bool))
    return int(differing[0]) if len(differing) else None


def row_at(rows: pa.Table, place: int) -> dict[str, object]:
    """Return one row."""
    row: dict[str, object] = rows.slice(place, 1).to_pylist()[0]
    return row
