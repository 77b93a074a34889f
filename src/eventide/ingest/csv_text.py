"""CSV files, and which line of one is broken.

The first line has the names. An empty field is null; a quoted empty field is empty text. Every
column is read as text and parsed afterwards, so that a value that does not parse has a row; lines
are counted in a second pass, only when an error needs one.
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from eventide.errors import IngestError
from eventide.ingest.compressed import UNREADABLE, open_bytes, open_stream

BLOCK_BYTES = 16 << 20

_OPENING = re.compile(r'(?:^|(?<=,))"')
_CLOSING = re.compile(r'(?:[^"]++|"")*+"')
"""The rest of a quoted field and the quote that closes it; two are a quote within it."""


def csv_schema(path: Path) -> pa.Schema:
    """Guess the types from the first block of the file."""
    header = csv_header(path)
    convert = arrow_csv.ConvertOptions(null_values=[""], strings_can_be_null=True)
    try:
        return open_csv(open_stream(path), convert).schema
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
    file = QuoteCounter(path)
    try:
        for batch in open_csv(pa.PythonFile(file, "r"), convert):
            file.across_lines |= file.quotes > 0 and has_line_breaks(batch)
            for start in range(0, batch.num_rows, chunk_rows):
                yield batch.slice(start, chunk_rows)
        if file.quotes % 2 or file.across_lines:
            check_quotes(path)
    except (pa.ArrowException, *UNREADABLE) as error:
        raise csv_blame(path, len(header), error) from error


class QuoteCounter(io.RawIOBase):
    """A file that counts the quotes read: an odd number means that one was never closed."""

    def __init__(self, path: Path) -> None:
        self.file = open_bytes(path)
        self.quotes = 0
        self.across_lines = False
        """Whether a field continues behind the end of a line, as it does if a quote is missing."""

    def read(self, size: int = -1) -> bytes:
        """Read on."""
        content = self.file.read(size)
        self.quotes += content.count(b'"')
        return content

    def close(self) -> None:
        """Close the file."""
        self.file.close()
        super().close()

    def readable(self) -> bool:
        """Whether it can be read."""
        return True


def has_line_breaks(rows: pa.RecordBatch) -> bool:
    """Whether any field of the rows has more than one line."""
    return any(
        pc.any(pc.match_substring(each, ending)).as_py()
        for each in rows.columns
        for ending in ("\n", "\r")
    )


def check_quotes(path: Path) -> None:
    """Refuse a file with a quote that is not closed, or closed by one meant to open another.

    Text behind a closing quote within one line, as in `"a"b`, does no harm. If the quote was opened
    on an earlier line, a quote meant to open a field has closed it.
    """
    opened = 0
    with open_text(path) as file:
        for number, line in enumerate(file, 1):
            place = 0
            while found := (_CLOSING.match if opened else _OPENING.search)(line, place):
                place = found.end()
                if not opened:
                    opened = number
                elif opened == number or line[place : place + 1] in ("", ",", "\r", "\n"):
                    opened = 0
                else:
                    raise not_closed(path, opened)
    if opened:
        raise not_closed(path, opened)


def not_closed(path: Path, line: int) -> IngestError:
    """Return the error for a quote that is not closed."""
    message = f"{path}, line {line}: a quote that opens here is not closed"
    hint = 'close it, or write "" for a quote within quotes; nothing was stored'
    return IngestError(message, hint=hint)


def open_csv(
    file: pa.NativeFile, convert: arrow_csv.ConvertOptions
) -> arrow_csv.CSVStreamingReader:
    """Open a file for reading in blocks."""
    return arrow_csv.open_csv(
        file,
        read_options=arrow_csv.ReadOptions(block_size=BLOCK_BYTES),
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
        convert_options=convert,
    )


def csv_header(path: Path) -> list[str]:
    """Return the names in the first line."""
    try:
        with open_text(path) as file:
            header = next((row for row in csv.reader(file) if row), [])
        if any("\n" in name or "\r" in name for name in header):
            check_quotes(path)
    except (*UNREADABLE, csv.Error) as error:
        message = f"cannot read {path}: {error}"
        raise IngestError(
            message, hint="check that the file is whole, and is what it says"
        ) from error
    if not header:
        message = f"{path} is empty"
        raise IngestError(message, hint="the first line of a CSV file names its columns")
    if broken := not_utf8(header):
        message = f"{path}, the line of names: {broken!r:.80} is not UTF-8"
        raise IngestError(message, hint="save the file as UTF-8")
    return header


def open_text(path: Path) -> TextIO:
    """Open a file, compressed or not, as text; bytes that are not UTF-8 become surrogates."""
    return io.TextIOWrapper(
        open_bytes(path), encoding="utf-8-sig", errors="surrogateescape", newline=""
    )


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
    """Return the line on which a row starts, or None where Python's reader gives up before it."""
    with contextlib.suppress(csv.Error):  # a field longer than it takes; Arrow takes any
        for number, (line, _) in enumerate(numbered_rows(path)):
            if number == row:
                return line
    return None


def csv_blame(path: Path, width: int, error: Exception) -> IngestError:
    """Find the line that Arrow could not read."""
    try:
        check_quotes(path)
        for line, row in numbered_rows(path):
            if len(row) != width:
                message = (
                    f"{path}, line {line}: {len(row)} fields, not {width}: {','.join(row)!r:.80}"
                )
                hint = "give every line as many fields as the first; quote fields with commas"
                return IngestError(message, hint=hint)
            if broken := not_utf8(row):
                message = f"{path}, line {line}: {broken!r:.80} is not UTF-8"
                return IngestError(message, hint="save the file as UTF-8")
    except IngestError as found:
        return found
    except csv.Error:
        pass  # a field longer than Python's reader takes: what Arrow said stands
    except UNREADABLE as problem:
        error = problem
    message = f"cannot read {path}: {error}"
    return IngestError(message, hint="check that the file is whole, and is what it says")


def not_utf8(row: list[str]) -> bytes:
    """Return the bytes of the first field that was not UTF-8 in the file, or nothing."""
    for field in row:
        try:
            field.encode()
        except UnicodeEncodeError:
            return field.encode("utf-8", "surrogateescape")
    return b""
