"""The options of the data source: text, with names in lower case as Spark passes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation

from eventide.api.stream import options_from
from eventide.errors import SchemaError, StoreError, listed
from eventide.instants import ALL_TIME, TimeRange
from eventide.plan.times import parse_timestamp
from eventide.schema import SEQ, TS, DataType, Kind, Schema
from eventide.store import StreamOptions
from eventide.store.index.ranges import ValueRange, checked

WHERE = "where."
TO = ".."
PLACES = ("path", "stream")
READING = ("from", "to", "columns")
REPLAYING = ("speed", "rows_per_batch", "clock")
LISTS = ("index", "aggregates", "summaries")
KEEPING = (
    "durability",
    "commit_interval",
    "codec",
    "split",
    "keep",
    "keep_bytes",
    "order",
    "spare",
)
SPARKS = ("checkpointlocation", "queryname")
"""What Spark itself adds when a stream is written."""


def check_reading(options: Mapping[str, str], further: tuple[str, ...] = ()) -> None:
    """Refuse options that reading does not have: a misspelled one would silently read too much."""
    names = [name for name in options if not name.startswith(WHERE)]
    check_names(names, (*PLACES, *READING, *further), f"{WHERE}<attribute>")


def check_writing(options: Mapping[str, str]) -> None:
    """Refuse options that writing does not have."""
    known = (*PLACES, "commit_id", *KEEPING, *LISTS)
    check_names([name for name in options if name not in SPARKS], known)


def check_names(names: list[str], known: tuple[str, ...], *further: str) -> None:
    """Refuse an unknown name."""
    for name in names:
        if name not in known:
            message = f"the data source has no option {name!r} here"
            raise StoreError(message, hint=f"the options are {listed((*known, *further))}")


def columns_of(options: Mapping[str, str], schema: Schema) -> list[str]:
    """Return the columns to read, all of them without `columns`."""
    chosen = [name.strip() for name in options.get("columns", "").split(",") if name.strip()]
    for name in chosen:
        schema.type_of(name)
    return chosen or [TS, SEQ, *schema.names]


def times_of(options: Mapping[str, str]) -> TimeRange:
    """Return the time range of `from` and `to`."""
    return TimeRange(
        instant(options, "from", ALL_TIME.start_us), instant(options, "to", ALL_TIME.end_us)
    )


def rows_per_batch_of(options: Mapping[str, str], default: int) -> int:
    """Return how many rows a micro-batch has."""
    text = options.get("rows_per_batch", str(default))
    if not text.strip().isdigit() or int(text) < 1:
        message = f"option 'rows_per_batch' is {text!r}, which is not a number of rows"
        raise StoreError(message, hint='write .option("rows_per_batch", 100000)')
    return int(text)


def has_clock(options: Mapping[str, str]) -> bool:
    """Whether rows are to have the clock of the replay."""
    text = options.get("clock", "false").strip().lower()
    if text not in ("true", "false"):
        message = f"option 'clock' is {text!r}"
        raise StoreError(message, hint='write .option("clock", "true")')
    return text == "true"


def instant(options: Mapping[str, str], name: str, default: int) -> int:
    """Read an option that is an ISO time, or microseconds."""
    text = options.get(name)
    if text is None:
        return default
    found = read_time(text)
    if found is None:
        message = f"option {name!r} is {text!r}, which is not a time"
        raise StoreError(message, hint="write 2026-01-31T12:00:00, or microseconds since 1970")
    return found


def where_of(options: Mapping[str, str], schema: Schema) -> dict[str, ValueRange]:
    """Return the conditions of `where.<attribute>` options, by attribute."""
    found: dict[str, ValueRange] = {}
    for option, text in options.items():
        if option.startswith(WHERE):
            name = attribute_of(option.removeprefix(WHERE), schema)
            found[name] = checked(
                read_range(option, text, schema.type_of(name)), schema.type_of(name)
            )
    return found


def attribute_of(lower: str, schema: Schema) -> str:
    """Return the attribute that has a name in lower case, as Spark passes it."""
    same = [name for name in schema.names if name.lower() == lower]
    if len(same) == 1:
        return same[0]
    message = f"no attribute {lower!r}" if not same else f"{listed(same)} differ only in case"
    hint = f"there are {listed(schema.names)}; for ts use the options from and to"
    raise SchemaError(message, hint=hint)


def read_range(option: str, text: str, data_type: DataType) -> ValueRange:
    """Read `low..high`, of which either end may be missing, or a single value."""
    low, dots, high = text.partition(TO)
    if TO in high:
        message = f"option {option!r} is {text!r}, which has {TO!r} more than once"
        raise SchemaError(message, hint="write one value, or low..high")
    if not dots:
        value = read_value(option, text, data_type)
        return ValueRange(value, value)
    return ValueRange(
        low=read_value(option, low, data_type) if low.strip() else None,
        high=read_value(option, high, data_type) if high.strip() else None,
    )


def read_value(option: str, text: str, data_type: DataType) -> object:
    """Read a value of a type."""
    reader = READERS[data_type.kind]
    try:
        value = reader(text if data_type.kind == "string" else text.strip())
    except (ValueError, InvalidOperation):
        value = None
    if value is None:
        message = f"option {option!r} has {text!r}, which is not a value of type {data_type}"
        raise SchemaError(message, hint="write one value, or low..high")
    return value


def read_time(text: str) -> int | None:
    """Read an ISO time, or microseconds."""
    return int(text) if text.lstrip("-").isdigit() else parse_timestamp(text)


READERS: dict[Kind, Callable[[str], object]] = {
    "bool": lambda text: {"true": True, "false": False}.get(text.lower()),
    "int64": int,
    "float64": float,
    "string": str,
    "timestamp": read_time,
    "decimal": Decimal,
    "binary": bytes.fromhex,
}


def stream_options(options: Mapping[str, str]) -> StreamOptions:
    """Return how a new stream is to be kept; see `Database.create_stream` for the names."""
    given: dict[str, object] = {name: options[name] for name in KEEPING if name in options}
    for name in LISTS:
        if name in options:
            several = [each.strip() for each in options[name].split(",") if each.strip()]
            given[name] = "auto" if name == "index" and several == ["auto"] else several
    for name, reader in (("keep_bytes", int), ("spare", float)):
        if name in given:
            given[name] = read_number(name, options[name], reader)
    return options_from(given)


def read_number(name: str, text: str, reader: Callable[[str], float]) -> float:
    """Read an option that is a number."""
    try:
        return reader(text)
    except ValueError as error:
        message = f"option {name!r} is {text!r}, which is not a number"
        raise StoreError(message, hint='write .option("spare", "0.1")') from error
