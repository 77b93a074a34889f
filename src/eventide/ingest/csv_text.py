"""CSV files, and which line of one is broken.

The first line has the names. A field with nothing in it is null; a quoted empty field is empty
text. Every column is read as text and parsed afterwards, so that a value that does not parse has
a row; lines are only counted, in a second pass, when an error needs one.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pyarrow as pa
import pyarrow.csv as arrow_csv

from eventide.errors import IngestError

BLOCK_BYTES = 16 << 20


def csv_schema(path: Path) -> pa.Schema:
    """Guess the types from the first block of the file."""
    header = csv_header(path)
    convert = arrow_csv.ConvertOptions(null_values=[""], strings_can_be_null=True)
    try:
        return open_csv(path, convert).schema
    except (pa.ArrowException, OSError) as error:
        raise csv_blame(path, len(header), error) from error


def csv_batches(path: Path, chunk_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a CSV file, every column as text."""
    header = csv_header(path)
    convert = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(header, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    try:
        for batch in open_csv(path, convert):
            for start in range(0, batch.num_rows, chunk_rows):
                yield batch.slice(start, chunk_rows)
    except (pa.ArrowException, OSError) as error:
        raise csv_blame(path, len(header), error) from error


def open_csv(path: Path, convert: arrow_csv.ConvertOptions) -> arrow_csv.CSVStreamingReader:
    """Open a file for reading in blocks."""
    return arrow_csv.open_csv(
        path,
        read_options=arrow_csv.ReadOptions(block_size=BLOCK_BYTES),
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
        convert_options=convert,
    )


def csv_header(path: Path) -> list[str]:
    """Return the names in the first line."""
    try:
        with open_text(path) as file:
            header = next((row for row in csv.reader(file) if row), [])
    except (OSError, EOFError, csv.Error) as error:
        message = f"cannot read {path}: {error}"
        raise IngestError(
            message, hint="check that the file is whole, and is what it says"
        ) from error
    if not header:
        message = f"{path} is empty"
        raise IngestError(message, hint="the first line of a CSV file names its columns")
    return header


def open_text(path: Path) -> TextIO:
    """Open a file, compressed or not, as text; bytes that are not UTF-8 become surrogates."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="")
    return path.open(encoding="utf-8-sig", errors="surrogateescape", newline="")


def numbered_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield every row after the header with the number of the line it starts on."""
    with open_text(path) as file:
        reader = csv.reader(file)
        line = 1
        header_seen = False
        for row in reader:
            if row and header_seen:
                yield line, row
            header_seen = header_seen or bool(row)
            line = reader.line_num + 1


def csv_line(path: Path, row: int) -> int | None:
    """Return the line on which a row starts."""
    for number, (line, _) in enumerate(numbered_rows(path)):
        if number == row:
            return line
    return None


def csv_blame(path: Path, width: int, error: Exception) -> IngestError:
    """Find the line that Arrow could not read."""
    try:
        for line, row in numbered_rows(path):
            if len(row) != width:
                message = (
                    f"{path}, line {line}: {len(row)} fields, not {width}: {','.join(row)!r:.80}"
                )
                hint = "give every line as many fields as the first; quote fields with commas"
                return IngestError(message, hint=hint)
            if broken := [field for field in row if not is_utf8(field)]:
                text = broken[0].encode("utf-8", "surrogateescape")
                message = f"{path}, line {line}: {text!r:.80} is not UTF-8"
                return IngestError(message, hint="save the file as UTF-8")
    except (OSError, EOFError, csv.Error) as problem:
        error = problem
    message = f"cannot read {path}: {error}"
    return IngestError(message, hint="check that the file is whole, and is what it says")


def is_utf8(field: str) -> bool:
    """Whether a field was UTF-8 in the file."""
    try:
        field.encode()
    except UnicodeEncodeError:
        return False
    return True
