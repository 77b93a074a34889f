"""Rows as CSV, JSON lines or Parquet.

|             | CSV                      | JSON lines                            | Parquet   |
|-------------|--------------------------|---------------------------------------|-----------|
| null        | nothing                  | null                                  | null      |
| timestamp   | 2026-03-02T08:00:00Z     | the same, in quotes                   | timestamp |
| decimal     | 12.50                    | "12.50": a number would lose digits   | decimal   |
| binary      | hexadecimal              | hexadecimal, in quotes                | binary    |
| NaN, ±∞     | nan, inf, -inf           | "NaN", "Infinity", "-Infinity"        | as it is  |
| interval    | microseconds             | microseconds                          | int64     |

Times are UTC, and have six more digits where they are not whole seconds. `eventide ingest` reads
back all three into a stream of the same types, with two exceptions: binary comes back from
Parquet alone, and NaN and ±∞, for which JSON has no number, not from JSON lines.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

LINES_AT_ONCE = 50_000
"""Rows that are turned into text before they are written: enough to be fast, small in memory."""

Writer = Callable[[pa.Table, IO[bytes]], None]


def write_csv(table: pa.Table, out: IO[bytes]) -> None:
    r"""Write rows as comma-separated values under a line of names.

    >>> import io
    >>> written = io.BytesIO()
    >>> write_csv(pa.table({"car": ["a", "b,c"], "speed": [50.0, None]}), written)
    >>> written.getvalue()
    b'car,speed\na,50.0\n"b,c",\n'
    """
    out.write(csv_header(table.column_names).encode())
    write_lines(table, csv_lines, out)


def csv_header(names: list[str]) -> str:
    """Return the line of names."""
    return ",".join(csv_strings(pa.array(names, pa.string())).to_pylist()) + "\n"


def write_json_lines(table: pa.Table, out: IO[bytes]) -> None:
    r"""Write rows as one JSON object a line.

    >>> import io
    >>> written = io.BytesIO()
    >>> write_json_lines(pa.table({"car": ["a"], "speed": [50.0]}), written)
    >>> written.getvalue()
    b'{"car": "a", "speed": 50.0}\n'
    """
    write_lines(table, json_lines, out)


def write_lines(
    table: pa.Table, lines_of: Callable[[pa.RecordBatch], pa.Array], out: IO[bytes]
) -> None:
    """Write each row as a line, some rows at a time."""
    for batch in table.to_batches(max_chunksize=LINES_AT_ONCE):
        if batch.num_rows:
            out.write(("\n".join(lines_of(batch).to_pylist()) + "\n").encode())


def write_parquet(table: pa.Table, out: IO[bytes]) -> None:
    """Write rows as a Parquet file, timestamps as UTC instants."""
    columns = [parquet_column(column) for column in table.columns]
    plain = pa.table(columns, names=table.column_names)
    pyarrow.parquet.write_table(plain, out, compression="zstd")


WRITERS: dict[str, Writer] = {
    "csv": write_csv,
    "jsonl": write_json_lines,
    "parquet": write_parquet,
}
"""How to write each format, by the name the command line gives it."""


def parquet_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of a type that every Parquet reader understands the same way."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return column.cast(pa.int64()).cast(pa.timestamp(kind.unit, "UTC"))
    if pa.types.is_duration(kind):
        return column.cast(pa.int64())
    return column


def csv_lines(batch: pa.RecordBatch) -> pa.Array:
    """Return each row as values between commas. Python sees no single value."""
    columns = [pc.fill_null(csv_column(column), "") for column in batch.columns]
    return pc.binary_join_element_wise(*columns, ",")


def csv_column(column: pa.Array) -> pa.Array:
    """Return each value of a column as it stands in a CSV file, null where it is null."""
    kind, text = column.type, plain_text(column)
    return csv_strings(text) if pa.types.is_string(kind) or pa.types.is_list(kind) else text


def csv_strings(text: pa.Array) -> pa.Array:
    """Return strings, in quotes where they have to be; an empty one differs from null."""
    special = pc.match_substring_regex(text, r'^$|^\s|\s$|[",\r\n]')
    if not pc.any(special).as_py():
        return text
    return pc.if_else(special, quoted(pc.replace_substring(text, '"', '""')), text)


def json_lines(batch: pa.RecordBatch) -> pa.Array:
    """Return each row as a JSON object. Python sees no single value."""
    parts: list[pa.Array | str] = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        parts += [f"{', ' if parts else '{'}{json.dumps(name, ensure_ascii=False)}: "]
        parts += [pc.fill_null(json_column(column), "null")]
    return pc.binary_join_element_wise(*parts, "}", "")


def json_column(column: pa.Array) -> pa.Array:
    """Return each value of a column as JSON text, null where it is null."""
    kind, text = column.type, plain_text(column)
    if pa.types.is_list(kind):
        return text
    if pa.types.is_floating(kind):
        for ours, json_text in JSON_FLOATS:
            text = pc.if_else(pc.equal(text, ours), json_text, text)
        return text
    if pa.types.is_string(kind):
        return json_strings(text)
    as_it_is = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_duration, pa.types.is_null)
    return text if any(holds(kind) for holds in as_it_is) else quoted(text)


JSON_FLOATS = (("nan", '"NaN"'), ("inf", '"Infinity"'), ("-inf", '"-Infinity"'))


def json_strings(text: pa.Array) -> pa.Array:
    """Return strings as JSON text; most columns have nothing to escape."""
    if not pc.any(pc.match_substring_regex(text, r'["\\\x00-\x1f]')).as_py():
        return quoted(text)
    encoded = text.dictionary_encode()
    words = [json.dumps(word, ensure_ascii=False) for word in encoded.dictionary.to_pylist()]
    return pa.array(words, pa.string()).take(encoded.indices)


def plain_text(column: pa.Array) -> pa.Array:
    """Return each value of a column as text without quotes, null where it is null.

    Lists are JSON.
    """
    kind = column.type
    if pa.types.is_list(kind):
        values = pc.fill_null(json_column(column.values), "null")
        lists = pa.ListArray.from_arrays(column.offsets, values)
        joined = pc.binary_join_element_wise("[", pc.binary_join(lists, ", "), "]", "")
        return pc.if_else(column.is_valid(), joined, pa.scalar(None, pa.string()))
    if pa.types.is_timestamp(kind):
        return iso_times(column)
    if pa.types.is_floating(kind):
        # A whole number keeps its point, so that a reader sees that the column has floats.
        return pc.replace_substring_regex(column.cast(pa.string()), r"^(-?\d+)$", r"\1.0")
    if pa.types.is_duration(kind):
        return column.cast(pa.int64()).cast(pa.string())
    if pa.types.is_binary(kind):
        return pa.array(
            [None if value is None else value.hex() for value in column.to_pylist()], pa.string()
        )
    return column.cast(pa.string())


def iso_times(column: pa.Array) -> pa.Array:
    """Return timestamps as ISO-8601 text in UTC, fractions only where there are any.

    >>> iso_times(pa.array([0, 1_500_000], pa.timestamp("us"))).to_pylist()
    ['1970-01-01T00:00:00Z', '1970-01-01T00:00:01.500000Z']
    """
    # Going through integers drops the zone, if any, and keeps the instant.
    micros = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    text = micros.cast(pa.timestamp("us")).cast(pa.string())
    text = pc.binary_replace_slice(text, start=10, stop=11, replacement="T")
    return pc.binary_join_element_wise(pc.replace_substring_regex(text, r"\.0+$", ""), "Z", "")


def quoted(text: pa.Array) -> pa.Array:
    """Return text in double quotes."""
    return pc.binary_join_element_wise('"', text, '"', "")
