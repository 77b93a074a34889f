"""Read events from a file; its suffix says the format."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from eventide.errors import EventideError, IngestError, SchemaError, listed
from eventide.ingest.coerce import check_known, check_names
from eventide.ingest.columnar import arrow_batches, arrow_schema, parquet_batches, parquet_schema
from eventide.ingest.convert import Misfit, convert, parse_text
from eventide.ingest.csv_text import csv_batches, csv_header, csv_line, csv_schema
from eventide.ingest.json_lines import json_batches, json_line, json_schema
from eventide.schema import TS, DataType, Schema

Types = Mapping[str, DataType]


@dataclass(frozen=True, slots=True)
class Format:
    """How to read one kind of file.

    `names` returns its columns where the file says them, and `line` the line of a row where
    there are lines.
    """

    schema: Callable[[Path], pa.Schema]
    batches: Callable[[Path, int, Types], Iterator[pa.RecordBatch]]
    names: Callable[[Path], list[str]] | None = None
    line: Callable[[Path, int], int | None] | None = None
    is_text: bool = False


PARQUET = Format(
    parquet_schema,
    lambda path, rows, _: parquet_batches(path, rows),
    lambda path: list(parquet_schema(path).names),
)
ARROW = Format(
    arrow_schema,
    lambda path, rows, _: arrow_batches(path, rows),
    lambda path: list(arrow_schema(path).names),
)
CSV = Format(
    csv_schema, lambda path, rows, _: csv_batches(path, rows), csv_header, csv_line, is_text=True
)
JSON = Format(json_schema, json_batches, line=json_line)

FORMATS = {
    ".parquet": PARQUET,
    ".csv": CSV,
    ".csv.gz": CSV,
    ".jsonl": JSON,
    ".ndjson": JSON,
    ".json": JSON,
    ".jsonl.gz": JSON,
    ".ndjson.gz": JSON,
    ".json.gz": JSON,
    ".arrow": ARROW,
    ".feather": ARROW,
    ".ipc": ARROW,
}


def infer_schema(path: Path, *, ts: str = TS) -> Schema:
    """Return the schema a file's events would have, `ts` naming the column with the time.

    CSV and JSON have no types: they are inferred from the first 16 megabytes. A column without a
    single value becomes a string.
    """
    kind = format_of(path)
    with reading(path):
        found = kind.schema(path)
        names = names_after_renaming(list(found.names), ts)
        fields = [
            (name, pa.string() if pa.types.is_null(field.type) else field.type)
            for name, field in zip(names, found, strict=True)
        ]
        check_names(names, dict.fromkeys(names, DataType("null")))
        return Schema.from_arrow(pa.schema(fields))


def read_events(
    path: Path, schema: Schema | None = None, *, ts: str = TS, chunk_rows: int = 250_000
) -> Iterator[pa.Table]:
    """Yield the events of a file as tables of up to `chunk_rows` rows that fit the schema.

    Each has `ts`, read from the column that `ts` names, and the attributes. An error names the
    file, the line (or the row, counted from 0) and the value. It may come after some tables:
    stage them, and commit when the file is done.
    """
    types = (infer_schema(path, ts=ts) if schema is None else schema).event_types
    kind = format_of(path)
    named_in_file = {ts if name == TS else name: data_type for name, data_type in types.items()}
    row = 0
    with reading(path):
        if kind.names is not None:
            check_names(names_after_renaming(kind.names(path), ts), types)
        for batch in kind.batches(path, chunk_rows, named_in_file):
            names = names_after_renaming(list(batch.schema.names), ts)
            check_known(names, types)
            table = pa.Table.from_batches([batch]).rename_columns(names)
            if table.num_rows:
                yield converted(path, table, types, row)
            row += table.num_rows


def format_of(path: Path) -> Format:
    """Return how to read a file; an error says why it cannot be read."""
    if not path.exists():
        message = f"there is no file {path}"
        raise IngestError(message, hint=f"check the path; the current folder is {Path.cwd()}")
    if path.is_dir():
        message = f"{path} is a folder"
        raise IngestError(message, hint="name the files in it one by one")
    for suffix, kind in FORMATS.items():
        if path.name.lower().endswith(suffix):
            return kind
    message = f"cannot tell the format of {path}"
    raise IngestError(message, hint=f"the suffixes are {listed(list(FORMATS))}")


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Name the file in errors that do not."""
    try:
        yield
    except EventideError as error:
        if str(path) in error.message:
            raise
        message = f"{path}: {error.message}"
        raise type(error)(message, hint=error.hint) from error
    except (pa.ArrowException, OSError) as error:
        message = f"cannot read {path}: {error}"
        hint = "check that the file is whole, and is what its suffix says"
        raise IngestError(message, hint=hint) from error


def names_after_renaming(names: list[str], ts: str) -> list[str]:
    """Return the columns' names with the one that holds the time called `ts`."""
    if ts not in names:
        message = f"there is no column {ts!r}, which should hold the time"
        raise SchemaError(message, hint=f"say which of {listed(names)} holds it")
    if ts != TS and TS in names:
        message = f"the time is to come from {ts!r}, but there is a column 'ts' as well"
        raise SchemaError(message, hint="rename one of them, or take the time from 'ts'")
    return [TS if name == ts else name for name in names]


def converted(path: Path, table: pa.Table, types: Types, first_row: int) -> pa.Table:
    """Convert every column; an error names the place in the file where that fails."""
    kind = format_of(path)
    to_type = parse_text if kind.is_text else convert
    try:
        columns = {name: to_type(name, table.column(name), types[name]) for name in types}
    except Misfit as misfit:
        message = f"{place(path, kind, first_row + misfit.row)}, {misfit}"
        raise IngestError(message, hint=misfit.hint) from None
    ts = columns[TS]
    if ts.null_count:
        where = place(path, kind, first_row + ts.is_null().index(True).as_py())
        message = f"{where}, column 'ts': there is no time"
        raise IngestError(message, hint="every event has a time; drop or repair the row")
    return pa.table(columns)


def place(path: Path, kind: Format, row: int) -> str:
    """Return where a row is: its line if the file has lines, else its number."""
    line = kind.line(path, row) if kind.line is not None else None
    return f"{path}, row {row}" if line is None else f"{path}, line {line}"
