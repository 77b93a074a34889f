"""Convert one column to one type, losing nothing, or find the first value that does not fit."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.schema import MAX_TS_US, MIN_TS_US, DataType
from eventide.threads import in_threads

UNIT_US = {"s": 1_000_000, "ms": 1_000, "us": 1}
HAS_ZONE = r"\d:\d.*(Z|[+-]\d\d(:?\d\d)?)$|\dZ$"
PLAIN_VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
CHECKED_AT_ONCE = 1 << 20
_HIGH_BITS = np.uint64(0x8080808080808080)
CONVERT_ERRORS = (pa.ArrowException, ValueError, OverflowError)

EXPECTED = {
    "bool": "true or false",
    "int64": "a whole number from -2^63 to 2^63 - 1",
    "float64": "a number that a double holds exactly",
    "string": "text in UTF-8",
    "timestamp": (
        "a time in the years 0001 to 9999: a timestamp, ISO-8601 text or microseconds since 1970"
    ),
    "decimal": "a whole number or a decimal that fits without rounding",
    "binary": "bytes",
    "interval": "a duration in whole microseconds",
}

Converter = Callable[[pa.ChunkedArray], pa.ChunkedArray]


class Misfit(Exception):  # noqa: N818 - never leaves this package: callers say where it was
    """The value at `row` of a column cannot become its type."""

    def __init__(self, column: str, row: int, value: object, data_type: DataType) -> None:
        super().__init__(column, row, value, data_type)
        self.column = column
        self.row = row
        self.value = value
        self.data_type = data_type

    @property
    def hint(self) -> str:
        """What would fit."""
        return f"{self.data_type} takes {EXPECTED[self.data_type.kind]}"

    def __str__(self) -> str:
        return f"column {self.column!r}: {shown(self.value)} does not fit {self.data_type}"


def shown(value: object) -> str:
    """Return a value for a message, cut short.

    >>> shown("abc")
    "'abc'"
    """
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def convert(name: str, column: pa.ChunkedArray, data_type: DataType) -> pa.ChunkedArray:
    """Return the column with exactly the Arrow type of `data_type`, or raise `Misfit`."""
    return checked(name, column, data_type, lambda part: to_type(part, data_type))


def parse_text(name: str, column: pa.ChunkedArray, data_type: DataType) -> pa.ChunkedArray:
    """Do the same for text from a file that has nothing but text."""
    return checked(name, column, data_type, lambda part: text_to_type(part, data_type))


def checked(
    name: str, column: pa.ChunkedArray, data_type: DataType, convert_part: Converter
) -> pa.ChunkedArray:
    """Convert, and if that fails, find the row."""
    try:
        return convert_part(column)
    except CONVERT_ERRORS:
        row = first_failure(column, convert_part)
        raise Misfit(name, row, value_at(column, row), data_type) from None


def first_failure(column: pa.ChunkedArray, convert_part: Converter) -> int:
    """Return the first row that cannot be converted, halving the part where it must be."""
    start, rows = 0, len(column)
    while rows > 1:
        half = rows // 2
        if succeeds(convert_part, column.slice(start, half)):
            start, rows = start + half, rows - half
        else:
            rows = half
    return start


def succeeds(convert_part: Converter, column: pa.ChunkedArray) -> bool:
    """Whether every value of the column can be converted."""
    try:
        convert_part(column)
    except CONVERT_ERRORS:
        return False
    return True


def value_at(column: pa.ChunkedArray, row: int) -> object:
    """Return a value as Python sees it; bytes or a count if Python cannot show it."""
    scalar = column[row]
    try:
        value: object = scalar.as_py()
    except CONVERT_ERRORS:
        is_time = pa.types.is_temporal(column.type)
        value = scalar.value if is_time else scalar.as_buffer().to_pybytes()
    return value


def to_type(column: pa.ChunkedArray, data_type: DataType) -> pa.ChunkedArray:
    """Convert losslessly from typed data; raise anything of `CONVERT_ERRORS`."""
    source, target = column.type, data_type.arrow
    if pa.types.is_dictionary(source):
        return to_type(decoded(column), data_type)
    if column.null_count == len(column):
        return pa.chunked_array([pa.nulls(len(column), target)])
    if data_type.kind == "timestamp":
        return to_timestamp(column)
    if source != target and not may_become(source, data_type):
        message = f"{source} does not become {target}"
        raise ValueError(message)
    if data_type.kind == "decimal" and pa.types.is_integer(source):
        # Arrow asks for room for any integer; go through a type that has it.
        column = column.cast(pa.decimal256(60, data_type.scale))
    result = column if source == target else column.cast(target)
    if data_type.kind == "string":
        check_text(result)
    return result


def check_text(column: pa.ChunkedArray) -> None:
    """Refuse text that says it is UTF-8 but is not."""
    parts = [
        chunk.slice(start, CHECKED_AT_ONCE)
        for chunk in column.chunks
        for start in range(0, len(chunk), CHECKED_AT_ONCE)
    ]
    in_threads(check_texts, parts, os.cpu_count() or 1)


def check_texts(texts: pa.Array) -> None:
    """Refuse texts of which one is not UTF-8."""
    # Arrow looks at every text; if all bytes are ASCII, a look at the whole is enough.
    texts.validate(full=not is_ascii(texts))


def is_ascii(texts: pa.Array) -> bool:
    """Whether texts lie one behind the other in bytes that are all ASCII."""
    if not len(texts):
        return True
    _, bounds, data = texts.buffers()
    offsets = np.frombuffer(bounds, np.int32)[texts.offset :][: len(texts) + 1]
    if data is None or len(offsets) <= len(texts) or (offsets[1:] < offsets[:-1]).any():
        return False
    begin, end = int(offsets[0]), int(offsets[-1])
    if begin < 0 or end > data.size:
        return False
    found = np.frombuffer(data, np.uint8)[begin:end]
    words = found[: len(found) // 8 * 8].view(np.uint64)
    return not (np.bitwise_or.reduce(words) & _HIGH_BITS or (found[8 * len(words) :] > 127).any())


def decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a dictionary column as plain values."""
    # Polars' categories are views, which Arrow can neither take from nor cast to.
    plain = PLAIN_VIEWS.get(column.type.value_type, column.type.value_type)
    chunks = [chunk.dictionary.cast(plain).take(chunk.indices) for chunk in column.chunks]
    return pa.chunked_array(chunks, plain)


def may_become(source: pa.DataType, data_type: DataType) -> bool:
    """Whether values of an Arrow type may become another type, if they fit."""
    found = DataType.from_arrow(source)
    if found is None:
        return False
    match data_type.kind:
        case "int64" | "float64":
            return found.is_numeric
        case "decimal":
            # A float is almost never the decimal it was written as.
            return found.kind in ("int64", "decimal")
        case kind:
            return found.kind == kind


def to_timestamp(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert timestamps, dates, microseconds or ISO-8601 text to UTC microseconds.

    Times without a zone are UTC. Nanoseconds are rounded down to microseconds.
    """
    source = column.type
    if pa.types.is_integer(source):
        return in_years(column.cast(pa.int64()))
    if pa.types.is_date(source):
        return to_timestamp(column.cast(pa.timestamp("ms")))
    if pa.types.is_timestamp(source):
        counts = column.cast(pa.int64())
        if source.unit == "ns":
            return in_years(floor_divide(counts, 1000))
        factor = UNIT_US[source.unit]
        return in_years(counts if factor == 1 else pc.multiply_checked(counts, factor))
    if DataType.from_arrow(source) == DataType("string"):
        return parse_iso(column.cast(pa.string()))
    message = f"{source} is not a time"
    raise ValueError(message)


def floor_divide(counts: pa.ChunkedArray, divisor: int) -> pa.ChunkedArray:
    """Divide towards minus infinity; Arrow's own division goes towards zero."""
    missing = counts.is_null().to_numpy(zero_copy_only=False)
    floored = np.floor_divide(counts.fill_null(0).to_numpy(), divisor)
    return pa.chunked_array([pa.array(floored, mask=missing)])


def in_years(counts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Turn microseconds into timestamps, refusing those that not every tool can show."""
    least, most = pc.min_max(counts).values()
    if least.is_valid and not MIN_TS_US <= least.as_py() <= most.as_py() <= MAX_TS_US:
        message = "a time lies outside the years 0001 to 9999"
        raise ValueError(message)
    return counts.cast(pa.timestamp("us"))


def parse_iso(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Parse ISO-8601 text, with or without a zone, digits below the microsecond cut off."""
    text = pc.utf8_trim_whitespace(column)
    text = pc.replace_substring_regex(text, r"(\.\d{6})\d+", r"\1")
    zoned = pc.match_substring_regex(text, HAS_ZONE)
    absent = pa.scalar(None, pa.string())
    with_zone = pc.if_else(zoned, text, absent).cast(pa.timestamp("us", "UTC"))
    without = pc.if_else(zoned, absent, text).cast(pa.timestamp("us"))
    return in_years(pc.coalesce(with_zone.cast(pa.int64()), without.cast(pa.int64())))


def text_to_type(column: pa.ChunkedArray, data_type: DataType) -> pa.ChunkedArray:
    """Parse text; raise anything of `CONVERT_ERRORS`."""
    if data_type.kind in ("string", "binary"):
        return column.cast(data_type.arrow)
    text = pc.utf8_trim_whitespace(column)
    if data_type.kind == "timestamp":
        return parse_time(text)
    return text.cast(data_type.arrow)


def parse_time(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Parse ISO-8601 text, or whole numbers of microseconds."""
    numeric = pc.match_substring_regex(text, r"^[+-]?\d+$")
    absent = pa.scalar(None, pa.string())
    counts = in_years(pc.if_else(numeric, text, absent).cast(pa.int64()))
    return pc.coalesce(counts, parse_iso(pc.if_else(numeric, absent, text)))
