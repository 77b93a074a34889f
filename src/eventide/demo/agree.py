"""Check whether two answers have the same rows."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from eventide.errors import EventideError


class DisagreementError(EventideError):
    """Two ways to run a query gave different rows."""


def check_agree(name: str, left: pa.Table, right: pa.Table) -> None:
    """Refuse two answers that differ in a single bit of a single row; order does not count."""
    if left.num_rows != right.num_rows:
        message = f"{name}: {left.num_rows:,} rows one way, {right.num_rows:,} the other"
        raise DisagreementError(message)
    ours, theirs = in_order(left), in_order(same_types(right, left.schema))
    for column in ours.column_names:
        differs = differing(ours[column], theirs[column])
        if pc.any(differs).as_py():
            row = pc.index(differs, True).as_py()
            message = (
                f"{name}: the rows differ, first at row {row:,} in order\n"
                f"  one way    {ours.slice(row, 1).to_pylist()[0]}\n"
                f"  the other  {theirs.slice(row, 1).to_pylist()[0]}"
            )
            raise DisagreementError(message)


def same_types(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with the types of `schema`: Spark's times have a zone, ours are UTC."""
    columns = []
    for field in schema:
        column = rows[field.name]
        if pa.types.is_timestamp(field.type):
            column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        columns.append(column.cast(field.type))
    return pa.table(columns, schema=schema)


def in_order(rows: pa.Table) -> pa.Table:
    """Return rows sorted by all their values."""
    return rows.sort_by([(name, "ascending") for name in rows.column_names]).combine_chunks()


def differing(left: pa.ChunkedArray, right: pa.ChunkedArray) -> pa.ChunkedArray:
    """Tell where two columns differ; null is equal to null, and NaN to NaN."""
    same = pc.fill_null(pc.equal(left, right), False)
    both_null = pc.and_(left.is_null(), right.is_null())
    same = pc.or_(same, both_null)
    if pa.types.is_floating(left.type):
        both_nan = pc.fill_null(pc.and_(pc.is_nan(left), pc.is_nan(right)), False)
        same = pc.or_(same, both_nan)
    return pc.invert(same)
