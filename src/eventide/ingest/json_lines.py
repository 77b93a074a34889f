"""JSON lines files, one object a line, and which line of one is broken.

A missing key is null. Lines are parsed one by one, in a second pass, only when an error needs the
number of one.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.json as arrow_json

from eventide.errors import IngestError, SchemaError, listed
from eventide.ingest.coerce import check_known
from eventide.ingest.compressed import UNREADABLE, open_bytes, open_stream
from eventide.ingest.convert import EXPECTED, shown
from eventide.schema import DataType

BLOCK_BYTES = 16 << 20
INT64_BOUND = 2**63
Types = Mapping[str, DataType]

ONE_A_LINE = "write one JSON object a line, and nothing around them"


def json_schema(path: Path) -> pa.Schema:
    """Guess the types from the first block of the file."""
    if next(parsed_lines(path), None) is None:
        message = f"{path} is empty"
        raise IngestError(message, hint="give a schema, or a file with events")
    try:
        return open_json(path, None).schema
    except (pa.ArrowException, OSError) as error:
        raise json_blame(path, {}, {}, error) from error


def json_batches(path: Path, chunk_rows: int, types: Types) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file; times are as they are there, text or numbers."""
    if next(parsed_lines(path), None) is None:
        return
    times = first_times(path, types)
    read_as = {name: arrow_type(data_type, times.get(name)) for name, data_type in types.items()}
    try:
        for batch in open_json(path, pa.schema(read_as.items())):
            for start in range(0, batch.num_rows, chunk_rows):
                yield batch.slice(start, chunk_rows)
    except (pa.ArrowException, OSError) as error:
        raise json_blame(path, types, read_as, error) from error


def first_times(path: Path, types: Types) -> dict[str, object]:
    """Return the first value that is not null of each column of times."""
    missing = {name for name, data_type in types.items() if data_type.kind == "timestamp"}
    found: dict[str, object] = {}
    for _, entry in parsed_lines(path):
        found |= {name: entry[name] for name in missing if entry.get(name) is not None}
        missing -= found.keys()
        if not missing:
            break
    return found


def arrow_type(data_type: DataType, example: object) -> pa.DataType:
    """Return the type to read a column with; for times, which are numbers or text, look at one."""
    if data_type.kind == "timestamp":
        return pa.int64() if isinstance(example, int) else pa.string()
    return data_type.arrow


def open_json(path: Path, explicit: pa.Schema | None) -> arrow_json.JSONStreamingReader:
    """Open a file for reading in blocks."""
    return arrow_json.open_json(
        open_stream(path),
        read_options=arrow_json.ReadOptions(block_size=BLOCK_BYTES),
        parse_options=arrow_json.ParseOptions(
            explicit_schema=explicit,
            unexpected_field_behavior="infer" if explicit is None else "error",
        ),
    )


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield every line that is not blank, with its number."""
    with open_bytes(path) as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield number, line


def parsed_lines(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield every object with the number of its line; an error names a line that is not one."""
    try:
        for number, line in numbered_lines(path):
            yield number, parsed(line, f"{path}, line {number}")
    except UNREADABLE as error:
        message = f"cannot read {path}: {error}"
        raise IngestError(message, hint="check that the file is whole") from error


def parsed(line: bytes, where: str) -> dict[str, object]:
    """Parse one line."""
    try:
        pairs = json.loads(line, object_pairs_hook=ObjectPairs)
    except json.JSONDecodeError as error:
        message = f"{where}: not JSON ({error.msg}): {error.doc.strip()!r:.80}"
        raise IngestError(message, hint=ONE_A_LINE) from error
    except UnicodeDecodeError as error:
        message = f"{where}: {error.object[error.start :][:20]!r} is not UTF-8"
        raise IngestError(message, hint="save the file as UTF-8") from error
    except RecursionError as error:
        message = f"{where}: nested too deeply: {line.strip()[:60]!r}"
        raise IngestError(message, hint="the values of an event are plain, not nested") from error
    except ValueError as error:  # Python has no integers of so many digits
        message = f"{where}: a number is too long: {line.strip()[:60]!r}"
        raise IngestError(message, hint="write it as text") from error
    if not isinstance(pairs, ObjectPairs):
        message = f"{where}: not an object: {line.strip().decode()!r:.80}"
        raise IngestError(message, hint=ONE_A_LINE)
    entry = dict(pairs)
    if len(entry) < len(pairs):
        twice = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
        message = f"{where}: key {listed(twice)} is there twice"
        raise IngestError(message, hint="give every key of an object a name of its own")
    return entry


class ObjectPairs(list[tuple[str, object]]):
    """The keys and values of a JSON object, before a repeated key hides another."""

    def __repr__(self) -> str:
        return repr(dict(self))  # a message shows a nested object as one writes it


def json_line(path: Path, row: int) -> int | None:
    """Return the line of a row."""
    for number, (line, _) in enumerate(numbered_lines(path)):
        if number == row:
            return line
    return None


def json_blame(
    path: Path, types: Types, read_as: Mapping[str, pa.DataType], error: Exception
) -> IngestError:
    """Find the line that Arrow could not read."""
    try:
        for line, entry in parsed_lines(path):
            check_entry(entry, types, read_as, f"{path}, line {line}")
    except IngestError as found:
        return found
    row = re.search(r" in row (\d+)$", str(error))
    line_of_row = json_line(path, int(row[1])) if row else None
    where = f"{path}, line {line_of_row}" if line_of_row is not None else f"cannot read {path}"
    message = f"{where}: {error}"
    return IngestError(message, hint="give every key values of one type, and a schema that fits")


def check_entry(
    entry: Mapping[str, object], types: Types, read_as: Mapping[str, pa.DataType], where: str
) -> None:
    """Refuse keys and values that Arrow's reader does not take."""
    if not types:
        return
    try:
        check_known(list(entry), types)
    except SchemaError as error:
        message = f"{where}: {error.message}"
        raise IngestError(message, hint=error.hint) from None
    for name, value in entry.items():
        if value is not None and not fits(value, read_as[name]):
            message = f"{where}, column {name!r}: {shown(value)} does not fit {types[name]}"
            hint = f"{types[name]} takes {EXPECTED[types[name].kind]}"
            if types[name].kind == "timestamp" and type(value) in (int, str):
                hint = "write all times of a file as text, or all as numbers"
            raise IngestError(message, hint=hint)


def fits(value: object, arrow: pa.DataType) -> bool:
    """Whether a JSON value is what Arrow's reader takes for a type."""
    if pa.types.is_boolean(arrow):
        return isinstance(value, bool)
    if pa.types.is_integer(arrow):
        return type(value) is int and -INT64_BOUND <= value < INT64_BOUND
    if pa.types.is_floating(arrow):
        return type(value) in (int, float)
    if pa.types.is_decimal(arrow):
        return type(value) in (int, float, str)
    return isinstance(value, str)
